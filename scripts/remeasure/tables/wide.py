"""The paper's layout: what stands in its rows and columns is a setting of the study."""

from collections.abc import Mapping

from remeasure import repeats
from remeasure.tables.inputs import Cell
from remeasure.tables.settings import CellKey, NumberKey, Place, TableSettings


def printed(cell: Cell, metric: str, settings: TableSettings) -> str | None:
    """Return a number as the table prints it; null where nothing was graded."""
    return settings.printed(cell.score.metrics[metric].published.value, metric)


def rounded(cell: Cell, metric: str, settings: TableSettings) -> str | None:
    """Return a number as people read it; null where nothing was graded."""
    return settings.rounded(cell.score.metrics[metric].published.value, metric)


def numbers(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[NumberKey]:
    """Return all numbers of a table, cell by cell."""
    return [
        NumberKey(*key, metric.name)
        for key, cell in cells.items()
        for metric in settings.metrics
        if metric.name in cell.score.metrics
    ]


def first_time(cells: Mapping[CellKey, Cell]) -> dict[CellKey, Cell]:
    """Return the cells of what was answered the first time that a model was asked."""
    return {key: cell for key, cell in cells.items() if repeats.parse(key.model)[1] == 1}


def number_at(
    cells: Mapping[CellKey, Cell], row: Place, column: Place, settings: TableSettings
) -> NumberKey | None:
    """Return the number of a row and a column; null where the table has no such cell."""
    key = settings.number_at(row, column)
    return key if key.cell in cells and key.metric in cells[key.cell].score.metrics else None


def shows_n(column: Place, settings: TableSettings) -> bool:
    """Return whether a number of a column means nothing without its denominator."""
    pinned = [settings.fixed | row.at | column.at for row in settings.rows]
    return any(settings.metric(at["metric"]).shows_n for at in pinned)


def columns(settings: TableSettings) -> list[str]:
    """Return the header: the axes of the rows, then the columns, some with their denominators behind them."""
    found = list(settings.row_axes)
    for column in settings.columns:
        name = settings.column_name(column)
        found += [name, f"{name}.n"] if shows_n(column, settings) else [name]
    return found


def rows(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[dict[str, str | int | None]]:
    """Return one row per row of the layout; a field is null where there is no cell, or nothing was graded."""
    counted = [settings.column_name(column) for column in settings.columns if shows_n(column, settings)]
    found = []
    for row in settings.rows:
        line: dict[str, str | int | None] = {axis: row.at[axis] for axis in settings.row_axes}
        for column in settings.columns:
            name = settings.column_name(column)
            key = number_at(cells, row, column, settings)
            line[name] = printed(cells[key.cell], key.metric, settings) if key else None
            if name in counted:
                has_n = key and settings.metric(key.metric).shows_n
                line[f"{name}.n"] = cells[key.cell].score.metrics[key.metric].published.n if has_n else None
        found.append(line)
    return found
