"""The numbers by parts of the units, and what was counted further, as text."""

from collections.abc import Mapping, Sequence

from remeasure.tables import cells as cell_rows
from remeasure.tables.breakdown import MACRO, Part
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_text import axes_of, axis_names, grid, more_in, titles
from remeasure.tables.settings import CellKey, TableSettings

Cells = Mapping[CellKey, Cell]

MAX_LEVELS = 6
"""Divisions of at most this many parts are shown in full."""
N_LARGEST = 10


def strata(parts: Sequence[Part], settings: TableSettings) -> list[str]:
    """Return a section per division: its parts as rows, metrics as columns; nothing where there are none."""
    found = []
    shown_metrics = {metric.name for metric in settings.shown}
    parts = [part for part in parts if part.key.metric in shown_metrics]
    for stratum in dict.fromkeys(part.stratum for part in parts):
        here = [part for part in parts if part.stratum == stratum]
        sizes: dict[str, int] = {}
        for part in here:
            if part.level != MACRO:
                sizes[part.level] = max(sizes.get(part.level, 0), part.n_units)
        largest = sorted(sizes, key=lambda level: (-sizes[level], level))[:N_LARGEST]
        in_full = len(sizes) <= MAX_LEVELS
        shown = list(sizes) if in_full else largest
        text = "Published reading. In brackets: the denominator, where it is not all units of the part."
        if not in_full:
            text += (
                f" The {len(shown)} largest of {len(sizes)} parts; all of them are in "
                f"`{settings.table}.breakdown.csv`."
            )
        text = " ".join(filter(None, [text, more_in(settings, "breakdown")]))
        found += [f"## By {stratum.replace('_', ' ')}\n", text + "\n"]
        found.append(_stratum_table(here, [*shown, MACRO], settings))
    return found


def _stratum_table(parts: Sequence[Part], levels: Sequence[str], settings: TableSettings) -> str:
    axes = axes_of(settings)
    by_place = {(part.key.cell, part.level, part.key.metric): part for part in parts}
    metrics = [m for m in settings.shown if any(part.key.metric == m.name for part in parts)]
    rows = []
    for cell in dict.fromkeys(part.key.cell for part in parts):
        for level in levels:
            here = [by_place.get((cell, level, metric.name)) for metric in metrics]
            known = [part for part in here if part]
            if known:
                values = [_stratum_value(part, settings) if part else "–" for part in here]
                name = (
                    f"{level[:-1]} of {max(part.n_levels for part in known)} parts)"
                    if level == MACRO
                    else level
                )
                rows.append([*titles(cell, axes, settings), name, f"{known[0].n_units:,}", *values])
    header = [*axis_names(axes), "Part", "Units", *(metric.directed for metric in metrics)]
    return grid(header, rows, len(axes) + 1)


def _stratum_value(part: Part, settings: TableSettings) -> str:
    text = settings.rounded(part.value, part.key.metric) or "–"
    return text if part.n == part.n_units else f"{text} ({part.n:,})"


def counts(cells: Cells, settings: TableSettings) -> list[str]:
    """Return what the graders counted further, a table per bench of what is there; or nothing."""
    benches = dict.fromkeys(key.bench for key in cells)
    tables = [
        _counted({key: cell for key, cell in cells.items() if key.bench == bench}, settings)
        for bench in benches
    ]
    found = [table for table in tables if table]
    if not found:
        return []
    return ["## Also counted\n", "What is 0 in all cells of a bench is left out.\n", *found]


def _counted(cells: Cells, settings: TableSettings) -> str:
    """Return the counts of one bench that are not 0 everywhere; empty where all are."""
    axes = axes_of(settings)
    counted = [cell.score.counts for cell in cells.values()]
    names = [name for name in cell_rows.counted(cells) if any(counts.get(name) for counts in counted)]
    if not names:
        return ""
    rows = [
        [
            *titles(key, axes, settings),
            *(f"{cell.score.counts[name]:,}" if name in cell.score.counts else "–" for name in names),
        ]
        for key, cell in cells.items()
    ]
    header = [*axis_names(axes), *(name.replace("_", " ").capitalize() for name in names)]
    return grid(header, rows, len(axes))
