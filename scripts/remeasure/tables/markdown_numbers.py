"""The paper's layout and the table of all numbers, as text."""

from collections.abc import Mapping

from remeasure.tables import cells as cell_rows
from remeasure.tables import wide
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_failures import failure_marks
from remeasure.tables.markdown_text import axes_of, axis_names, grid, n_of, span, titles, value_text
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]


def paper_layout(cells: Cells, settings: TableSettings) -> str:
    """Return the paper's layout with the grader beside every row."""
    marks = failure_marks(cells)
    rows = []
    for row in settings.rows:
        keys = [wide.number_at(cells, row, column, settings) for column in settings.columns]
        graders = sorted({cells[key.cell].score.grader for key in keys if key})
        values = [
            value_text(_share(cells, key), settings) + marks.get(key.cell, "") if key else "–" for key in keys
        ]
        title = settings.place_title(row, settings.row_axes)
        rows.append([title, ", ".join(graders), *values])
    header = ", ".join(axis_names(settings.row_axes)) or "Table"
    columns = [settings.place_title(column, settings.column_axes) for column in settings.columns]
    return grid([header, "Grader", *columns], rows, 2)


def _share(cells: Cells, key: NumberKey) -> float | None:
    return cells[key.cell].score.metrics[key.metric].published.value


def number_table(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Return one line per number: interval, other readings, counts, published value, verdict."""
    axes = axes_of(settings)
    also = cell_rows.further_readings(cells)
    several = len(settings.metrics) > 1
    recall = any(cell.score.recall_at_k is not None for cell in cells.values())
    rows = []
    for key in wide.numbers(cells, settings):
        cell, there = cells[key.cell], published.get(key)
        metric = cell.score.metrics[key.metric]
        found = [metric.also.get(name) for name in also]
        rows.append(
            [
                *titles(key, axes, settings),
                *([settings.metric(key.metric).directed] if several else []),
                value_text(metric.published.value, settings),
                span(metric.published.interval, settings),
                value_text(metric.strict.value, settings),
                span(metric.strict.interval, settings),
                *(value_text(number.value, settings) if number else "–" for number in found),
                n_of(metric.published.n, cell.score.n),
                n_of(metric.strict.n, cell.score.n),
                *(n_of(number.n, cell.score.n) if number else "–" for number in found),
                f"{metric.n_differ:,}",
                *([settings.scaled(cell.score.recall_at_k) or "–"] if recall else []),
                decimals(there.value, settings.decimals) or "" if there else "–",
                cell_rows.verdict(cell, key.metric, there, settings).verdict,
            ]
        )
    header = [*axis_names(axes), *(["Metric"] if several else []), "Value", "95 % interval"]
    header += ["Strict", "95 % interval, strict", *map(_reading, also), "Graded", "Graded, strict"]
    header += [f"Graded, {name}" for name in also] + ["Differ"]
    header += [*(["Recall"] if recall else []), "Paper", "Verdict"]
    return grid(header, rows, len(axes) + several)


def _reading(name: str) -> str:
    return name.replace("_", " ").capitalize()


def explained(cells: Cells, settings: TableSettings) -> str:
    """Return the sentences before the table of all numbers."""
    metrics = [metric for cell in cells.values() for metric in cell.score.metrics.values()]
    methods = sorted({metric.published.interval_method for metric in metrics})
    ks = sorted({cell.score.k for cell in cells.values() if cell.score.k is not None})
    also = cell_rows.further_readings(cells)
    units = "units" if any(cell.score.n_answers != cell.score.n for cell in cells.values()) else "items"
    parts = [
        "*Value* repeats the original's grading, flaws included; *strict* corrects it and leaves "
        f"{units} without an answer out; *differ* counts the {units} whose score is not the same in both."
    ]
    if also:
        parts.append(f"Further readings: {', '.join(f'*{name}*' for name in also)}.")
    if any(metric.better == "low" for metric in settings.metrics):
        parts.append("↑: higher is better; ↓: lower is better.")
    if ks:
        parts.append(
            "*Recall* is the share of items with a page that holds the answer among the first "
            f"{', '.join(map(str, ks))} retrieved."
        )
    return " ".join([*parts, f"Intervals: {'; '.join(methods)}."])
