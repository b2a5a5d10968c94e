"""What failed and how long answers are, as text."""

from collections.abc import Mapping, Sequence

from remeasure import failing, showing
from remeasure.tables import cells as cell_rows
from remeasure.tables import failures, limits
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_text import axes_of, axis_names, grid, titles
from remeasure.tables.settings import CellKey, TableSettings

Cells = Mapping[CellKey, Cell]

MAX_CELLS_NAMED = 10
"""Tables of at most this many cells say the length of answers for each."""
MAX_REASONS = 5
"""So many reasons of a cell are named."""
MAX_REASON = 100
"""Characters of a reason."""
MAX_ITEMS = 20
"""So many items that failed in several cells are named."""
_UNREAD = ("unreadable", "judge_failed", "judge_unreadable")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def failure_marks(cells: Cells) -> dict[CellKey, str]:
    """Return the footnote mark of every cell whose answers did not all come whole."""
    lost = [key for key, cell in cells.items() if sum(cell.score.failed.values())]
    return {key: f" {str(number).translate(_RAISED)}" for number, key in enumerate(lost, start=1)}


def footnotes(cells: Cells, settings: TableSettings) -> list[str]:
    """Return what the marks mean: how many answers of the cell failed; nothing where none did."""
    notes = [
        f"{mark.strip()} {_called(key, settings)}: {_rate(cells[key])}"
        for key, mark in failure_marks(cells).items()
    ]
    return ["; ".join(map(showing.markdown, notes)) + ". See Failures.\n"] if notes else []


def failed_answers(cells: Cells, settings: TableSettings) -> list[str]:
    """Return what failed: answers of readers by cell and class, items that failed again and again, judges."""
    lost = [key for key, cell in cells.items() if sum(cell.score.failed.values())]
    read = {key: cell for key, cell in cells.items() if _unread(cell)}
    if not lost and not read:
        judged = any(cell.score.judge for cell in cells.values())
        text = ", and every judge's reply could be read" if judged else ""
        return [f"Every request was answered{text}.\n"]
    parts = [_reader_table(cells, lost, settings)] if lost else ["Every request was answered.\n"]
    parts += _again(failures.again(cells), settings)
    return [*parts, *([_unread_table(cells, read, settings)] if read else [])]


def left_out(cells: Cells, settings: TableSettings) -> list[str]:
    """Return a sentence on the units that the strict reading leaves out, by reason; nothing without any."""
    rows = [
        f"{_called(key, settings)}: {sum(cell.left_out.values()):,} of {cell.score.n:,} "
        f"({_reasons(cell.left_out)})"
        for key, cell in cells.items()
        if cell.left_out
    ]
    if not rows:
        return []
    return [f"The strict reading leaves units out of its headline: {showing.markdown('; '.join(rows))}.\n"]


def _reasons(counts: Mapping[str, int]) -> str:
    found = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    words = [f"{n:,} × {reason[:MAX_REASON]}" for reason, n in found[:MAX_REASONS]]
    rest = sum(n for _, n in found[MAX_REASONS:])
    return ", ".join([*words, *([f"{rest:,} for other reasons"] if rest else [])])


def _called(key: CellKey, settings: TableSettings) -> str:
    return ", ".join(titles(key, axes_of(settings), settings))


def _rate(cell: Cell) -> str:
    return limits.of_all(sum(cell.score.failed.values()), cell.score.n_answers)


def _reader_table(cells: Cells, lost: Sequence[CellKey], settings: TableSettings) -> str:
    axes, kinds = axes_of(settings), failures.classes(cells, "reader")
    rows = []
    for key in lost:
        score = cells[key].score
        found = failures.by_class(score, "reader", kinds)
        n_failed = sum(score.failed.values())
        counts = [f"{n:,}" for n in (score.n_answers, n_failed)]
        share = limits.percent(n_failed / score.n_answers)
        rows.append([*titles(key, axes, settings), *counts, share, *(f"{n:,}" for n in found.values())])
    header = [*axis_names(axes), "Answers", "Failed", "Share", *map(_title, kinds)]
    rest = len(cells) - len(rows)
    word = "cell has" if rest == 1 else "cells have"
    text = "Answers that are not whole, by class; every one of them is in "
    text += f"`{settings.table}.failures.csv`.\n\n"
    return text + grid(header, rows, len(axes)) + (f"\nThe other {rest} {word} none.\n" if rest else "")


def _title(kind: str) -> str:
    return kind.replace("_", " ").capitalize() if kind in failing.KINDS else kind


def _again(items: Sequence[failures.Again], settings: TableSettings) -> list[str]:
    """Return the items that failed in several cells: most often too large for whoever answers."""
    if not items:
        return []
    rows = [
        [settings.title_of("bench", one.bench), one.item_id, f"{len(one.cells):,}", ", ".join(one.classes)]
        for one in items[:MAX_ITEMS]
    ]
    more = len(items) - len(rows)
    text = f"Items that failed in more than one cell: {len(items):,}."
    text += f" The {len(rows)} that failed most often:\n" if more else "\n"
    return [text, grid(["Bench", "Item", "Cells", "Classes"], rows, 2)]


def _unread(cell: Cell) -> dict[str, int]:
    """Return what could not be read, and what the judge did not say; empty where there is nothing."""
    counts = {name: n for name, n in cell_rows.failures(cell).items() if name in _UNREAD}
    return counts if any(counts.values()) or sum(cell.score.judge_failed.values()) else {}


def _unread_table(cells: Cells, read: Mapping[CellKey, Cell], settings: TableSettings) -> str:
    axes, kinds = axes_of(settings), failures.classes(cells, "judge")
    rows = []
    for key, cell in read.items():
        found = failures.by_class(cell.score, "judge", kinds)
        counts = (cell.score.n, *_unread(cell).values(), *found.values())
        rows.append([*titles(key, axes, settings), *(f"{n:,}" for n in counts)])
    header = [*axis_names(axes), "Units", *map(_title_of, _UNREAD)]
    header += [f"Judge: {_title(kind).lower()}" for kind in kinds]
    text = "Units that could not be read, and what the judge did not say:\n\n" + grid(header, rows, len(axes))
    if any(_unread(cell)["judge_unreadable"] for cell in read.values()):
        text += "\nA judge's reply that cannot be read is in no strict number; the published ones make "
        text += "what they can of it.\n"
    return text


def _title_of(name: str) -> str:
    return name.replace("_", " ").capitalize()


def lengths(cells: Cells, settings: TableSettings) -> list[str]:
    """Say how long answers are and which share of them was cut off: of each cell, or of many the range.

    Rankings have no length: nothing is said of them.
    """
    if all(_has_no_texts(cell) for cell in cells.values()):
        return []
    if len(cells) <= MAX_CELLS_NAMED:
        named = "; ".join(_length(key, cell, settings) for key, cell in cells.items())
        return [f"Words per answer: {named}.\n"]
    means = sorted(cell.score.n_words_mean for cell in cells.values() if cell.score.n_words_mean is not None)
    cut = sorted(_cut_off(cell) for cell in cells.values())
    words = f"{means[0]:.1f} to {means[-1]:.1f}, mean of a cell" if means else "none"
    return [f"Words per answer: {words}; cut off {cut[0]:.1%} to {cut[-1]:.1%} of the answers of a cell.\n"]


def _has_no_texts(cell: Cell) -> bool:
    score = cell.score
    return bool(score.statuses.get("answered")) and score.n_words_mean is None and not score.n_empty


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
