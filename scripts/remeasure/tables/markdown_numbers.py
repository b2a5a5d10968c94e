"""The paper's layout and the table of all numbers, as text."""

from collections.abc import Mapping

from remeasure.tables import cells as cell_rows
from remeasure.tables import wide
from remeasure.tables.blocks import NOTHING
from remeasure.tables.inputs import PUBLISHED, STRICT, Cell
from remeasure.tables.markdown_failures import failure_marks
from remeasure.tables.markdown_text import axes_of, axis_names, grid, more_in, n_of, span, titles, value_text
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]


UNDEFINED = "undefined: "
_WHY = {
    "undefined: all alike": "all scores are the same number",
    "undefined: nothing graded": "nothing was graded",
    "undefined: one group": "all units belong to one group",
}


def paper_layout(cells: Cells, settings: TableSettings) -> str:
    """Return the paper's layout with the grader beside every row."""
    marks = failure_marks(cells)
    rows = []
    for row in settings.rows:
        keys = [wide.number_at(cells, row, column, settings) for column in settings.columns]
        graders = sorted({cells[key.cell].score.grader for key in keys if key})
        values = [
            _with_n(cells[key.cell], key.metric, settings) + marks.get(key.cell, "") if key else "–"
            for key in keys
        ]
        title = settings.place_title(row, settings.row_axes)
        rows.append([title, ", ".join(graders), *values])
    header = ", ".join(axis_names(settings.row_axes)) or "Table"
    columns = [settings.place_title(column, settings.column_axes) for column in settings.columns]
    return grid([header, "Grader", *columns], rows, 2)


def _with_n(cell: Cell, metric: str, settings: TableSettings) -> str:
    """Return a value, its denominator beside it where it means nothing without."""
    number = cell.score.metrics[metric].published
    text = value_text(number.value, metric, settings)
    return f"{text} (n {number.n:,})" if settings.metric(metric).shows_n else text


def _graded(cell: Cell, metric: str, reading: str, n: int) -> str:
    """Return a denominator; of a weighted metric it counts weights, not units."""
    weighted = cell.weights_of(metric, reading) is not None
    return f"{n:,} in all" if weighted else n_of(n, cell.score.n)


def number_table(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Return one line per number: interval, other readings, counts, published value, verdict."""
    axes = axes_of(settings)
    also = cell_rows.further_readings(cells)
    several = len(settings.metrics) > 1
    recall = any(cell.score.recall_at_k is not None for cell in cells.values())
    printed = bool(published)
    rows = []
    for key in _shown(cells, settings):
        cell, there = cells[key.cell], published.get(key)
        metric = cell.score.metrics[key.metric]
        found = [metric.also.get(name) for name in also]
        rows.append(
            [
                *titles(key, axes, settings),
                *([settings.metric(key.metric).directed] if several else []),
                value_text(metric.published.value, key.metric, settings),
                span(metric.published.interval, key.metric, settings),
                value_text(metric.strict.value, key.metric, settings),
                span(metric.strict.interval, key.metric, settings),
                *(value_text(number.value, key.metric, settings) if number else "–" for number in found),
                _graded(cell, key.metric, PUBLISHED, metric.published.n),
                _graded(cell, key.metric, STRICT, metric.strict.n),
                *(
                    _graded(cell, key.metric, name, number.n) if number else "–"
                    for name, number in zip(also, found, strict=True)
                ),
                f"{metric.n_differ:,}",
                *([settings.scaled(cell.score.recall_at_k) or "–"] if recall else []),
                *([_paper(there, key.metric, settings)] if printed else []),
                _verdict(cell, key.metric, there, settings),
            ]
        )
    header = [*axis_names(axes), *(["Metric"] if several else []), "Value", "95 % interval"]
    header += ["Strict", "95 % interval, strict", *map(_reading, also), "Graded", "Graded, strict"]
    header += [f"Graded, {name}" for name in also] + ["Differ"]
    header += [*(["Recall"] if recall else []), *(["Published"] if printed else []), "Verdict"]
    return grid(header, rows, len(axes) + several)


def _shown(cells: Cells, settings: TableSettings) -> list[NumberKey]:
    """Return the numbers that the page shows: cell by cell, metrics in the order of the layout."""
    place = {metric.name: number for number, metric in enumerate(settings.shown)}
    found = [key for key in wide.numbers(cells, settings) if settings.shows(key)]
    cell = {key: number for number, key in enumerate(cells)}
    return sorted(found, key=lambda key: (cell[key.cell], place[key.metric]))


def _paper(there: Published | None, metric: str, settings: TableSettings) -> str:
    return settings.rounded_scaled(there.value, metric) if there else "–"


def _verdict(cell: Cell, metric: str, there: Published | None, settings: TableSettings) -> str:
    """Return what the comparison says; in a table of blocks, also that nothing is published."""
    if there is None and settings.blocks:
        return NOTHING
    return cell_rows.verdict(cell, metric, there, settings).verdict


def _reading(name: str) -> str:
    return name.replace("_", " ").capitalize()


def explained(cells: Cells, settings: TableSettings) -> str:
    """Return the sentences before the table of all numbers."""
    methods = _methods(cells, settings)
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
    numbers = [metric.title for metric in settings.shown if metric.kind == "number"]
    if numbers:
        parts.append(f"Numbers of their own, not in {settings.unit}: {', '.join(numbers)}.")
    parts += filter(None, [more_in(settings, "cells")])
    if ks:
        parts.append(
            "*Recall* is the share of items with a page that holds the answer among the first "
            f"{', '.join(map(str, ks))} retrieved."
        )
    return " ".join([*parts, *methods])


def _methods(cells: Cells, settings: TableSettings) -> list[str]:
    """Return how the intervals shown were made, and why some are undefined."""
    found = set()
    for key in _shown(cells, settings):
        metric = cells[key.cell].score.metrics[key.metric]
        found |= {metric.published.interval_method, metric.strict.interval_method}
    known = sorted(name for name in found if not name.startswith(UNDEFINED))
    reasons = sorted(found.difference(known))
    parts = [f"Intervals: {'; '.join(known)}."] if known else []
    if reasons:
        whys = [_WHY.get(name, name.removeprefix(UNDEFINED)) for name in reasons]
        parts.append(f"*undefined*: there is no interval where {' or '.join(whys)}.")
    return parts
