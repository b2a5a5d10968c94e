"""The paper's layout: one row per bench, one column per arm, one decimal."""

from collections.abc import Mapping

from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell, TableSettings


def printed(cell: Cell, settings: TableSettings) -> str:
    """Return a cell's number as the table prints it."""
    assert cell.score.value is not None  # checked while loading
    text = decimals(cell.score.value * settings.factor, 1)
    assert text is not None
    return text


def columns(settings: TableSettings) -> list[str]:
    """Return the header."""
    return ["bench", *(column.arm for column in settings.columns)]


def rows(cells: Mapping[tuple[str, str], Cell], settings: TableSettings) -> list[dict[str, str]]:
    """Return one row per bench."""
    return [
        {"bench": row.bench}
        | {column.arm: printed(cells[row.bench, column.arm], settings) for column in settings.columns}
        for row in settings.rows
    ]
