"""What failed and how long answers are, as text."""

from collections.abc import Mapping

from remeasure.tables import cells as cell_rows
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_text import axes_of, axis_names, grid, titles
from remeasure.tables.settings import CellKey, TableSettings

Cells = Mapping[CellKey, Cell]

MAX_CELLS_NAMED = 10
"""Tables of at most this many cells say the length of answers for each."""


def failure_table(cells: Cells, settings: TableSettings) -> str:
    """Return the failures of the cells that have some, or a sentence if none has."""
    axes = axes_of(settings)
    split = any(cell.score.n_answers != cell.score.n for cell in cells.values())
    rows = []
    for key, cell in cells.items():
        counts = cell_rows.failures(cell)
        if any(counts.values()):
            n = [cell.score.n, cell.score.n_answers] if split else [cell.score.n]
            rows.append([*titles(key, axes, settings), *(f"{count:,}" for count in (*n, *counts.values()))])
    if not rows:
        judged = any(cell.score.judge for cell in cells.values())
        return "Every request was answered" + (
            ", and every judge's reply could be read.\n" if judged else ".\n"
        )
    names = [name.replace("_", " ").capitalize() for name in cell_rows.FAILURES]
    header = [*axis_names(axes), *(["Units", "Answers"] if split else ["Items"]), *names]
    rest = len(cells) - len(rows)
    word = "cell has" if rest == 1 else "cells have"
    return grid(header, rows, len(axes)) + (f"\nThe other {rest} {word} none.\n" if rest else "")


def lengths(cells: Cells, settings: TableSettings) -> str:
    """Say how long answers are and which share of them was cut off: of each cell, or of many the range."""
    if len(cells) <= MAX_CELLS_NAMED:
        return (
            "Words per answer: "
            + "; ".join(_length(key, cell, settings) for key, cell in cells.items())
            + ".\n"
        )
    means = sorted(cell.score.n_words_mean for cell in cells.values() if cell.score.n_words_mean is not None)
    cut = sorted(_cut_off(cell) for cell in cells.values())
    words = f"{means[0]:.1f} to {means[-1]:.1f}, mean of a cell" if means else "none"
    return f"Words per answer: {words}; cut off {cut[0]:.1%} to {cut[-1]:.1%} of the answers of a cell.\n"


def _cut_off(cell: Cell) -> float:
    return cell.score.statuses.get("cut_off", 0) / cell.score.n_answers if cell.score.n_answers else 0.0


def _length(key: CellKey, cell: Cell, settings: TableSettings) -> str:
    score = cell.score
    name = ", ".join(titles(key, axes_of(settings), settings))
    if score.n_words_mean is None:
        return f"{name}: no words"
    return (
        f"{name}: mean {score.n_words_mean:.1f}, median {score.n_words_median:g}, "
        f"{_cut_off(cell):.1%} of {score.n_answers:,} cut off"
    )
