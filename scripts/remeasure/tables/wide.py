"""The paper's layout: what stands in its rows and columns is a setting of the study."""

from collections.abc import Mapping

from remeasure.tables.inputs import Cell
from remeasure.tables.settings import CellKey, NumberKey, Place, TableSettings


def printed(cell: Cell, metric: str, settings: TableSettings) -> str | None:
    """Return a number as the table prints it; null where nothing was graded."""
    return settings.scaled(cell.score.metrics[metric].published.value)


def numbers(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[NumberKey]:
    """Return all numbers of a table, cell by cell."""
    return [
        NumberKey(*key, metric.name)
        for key, cell in cells.items()
        for metric in settings.metrics
        if metric.name in cell.score.metrics
    ]


def number_at(
    cells: Mapping[CellKey, Cell], row: Place, column: Place, settings: TableSettings
) -> NumberKey | None:
    """Return the number of a row and a column; null where the table has no such cell."""
    key = settings.number_at(row, column)
    return key if key.cell in cells and key.metric in cells[key.cell].score.metrics else None


def columns(settings: TableSettings) -> list[str]:
    """Return the header: the axes of the rows, then the columns."""
    return [*settings.row_axes, *map(settings.column_name, settings.columns)]


def rows(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[dict[str, str | None]]:
    """Return one row per row of the layout; a field is null where there is no cell, or nothing was graded."""
    found = []
    for row in settings.rows:
        line: dict[str, str | None] = {axis: row.at[axis] for axis in settings.row_axes}
        for column in settings.columns:
            key = number_at(cells, row, column, settings)
            line[settings.column_name(column)] = (
                printed(cells[key.cell], key.metric, settings) if key else None
            )
        found.append(line)
    return found
