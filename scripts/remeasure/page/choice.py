"""Which units a page shows: a bounded number, those first about which the cells disagree."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from remeasure import jsonl
from remeasure.records import Graded


def chosen(cells: Sequence[Path], n_shown: int) -> tuple[list[str], int]:
    """Return the units of one bench that are shown, in item order, and how many there are in all.

    Args:
        cells: ``graded.jsonl`` of every cell of the bench.
        n_shown: at most so many.

    Edges:
        Units alike in all cells are taken in item order.
    """
    outcomes: dict[str, set[tuple[str, str, str]]] = {}
    for path in cells:
        for line in jsonl.read(path, Graded):
            outcomes.setdefault(line.item_id, set()).add(_outcome(line))
    order = {unit: place for place, unit in enumerate(outcomes)}
    best = sorted(outcomes, key=lambda unit: (-len(outcomes[unit]), order[unit]))[:n_shown]
    return sorted(best, key=order.__getitem__), len(outcomes)


def _outcome(line: Graded) -> tuple[str, str, str]:
    return line.status, line.published.verdict, line.strict.verdict


def lines_of(path: Path, units: Iterable[str]) -> dict[str, Graded]:
    """Return the verdicts of some units of a cell."""
    wanted = set(units)
    return {line.item_id: line for line in jsonl.read(path, Graded) if line.item_id in wanted}
