"""Failed answers of a table as rows and counts: which, in which class, and which items fail again."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from remeasure import failing, repeats, showing
from remeasure.records import Score
from remeasure.tables.inputs import Cell
from remeasure.tables.settings import CellKey

Cells = Mapping[CellKey, Cell]

COLUMNS = ("bench", "arm", "model", "repeat", "role", "unit_id", "item_id", "class", "error")
MAX_ERROR = 300
MAX_UNKNOWN = 8
"""So many classes that are none of ours have a column; imported files may bring any number."""
# A spreadsheet takes a text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@")


def counts(score: Score, role: str) -> dict[str, int]:
    """Return a cell's failures by class, of readers or of judges."""
    return score.failed if role == "reader" else score.judge_failed


def classes(cells: Cells, role: str) -> list[str]:
    """Return the classes that occur in a table, in order; too many unknown ones are one."""
    totals = Counter()
    for cell in cells.values():
        totals.update(counts(cell.score, role))
    unknown = [kind for kind in totals if kind not in failing.KINDS]
    kept = sorted(unknown, key=lambda kind: (-totals[kind], kind))[:MAX_UNKNOWN]
    known = [kind for kind in totals if kind in failing.KINDS]
    folded = [failing.OTHER] if len(kept) < len(unknown) else []
    return failing.in_order([*known, *kept, *folded])


def by_class(score: Score, role: str, kinds: Iterable[str]) -> dict[str, int]:
    """Return how many of a cell's failures are of each class, zeros included; those of no class are other."""
    found = dict.fromkeys(kinds, 0)
    for kind, n in counts(score, role).items():
        found[kind if kind in found else failing.OTHER] += n
    return found


def columns(cells: Cells) -> list[str]:
    """Return the names of the counts in the file of cells."""
    return [_column(role, kind) for role in ("reader", "judge") for kind in classes(cells, role)]


def columns_of(score: Score, cells: Cells) -> dict[str, int | None]:
    """Return the counts of one cell by those names; null for those of a judge where there is none."""
    return {
        _column(role, kind): None if role == "judge" and score.judge is None and not n else n
        for role in ("reader", "judge")
        for kind, n in by_class(score, role, classes(cells, role)).items()
    }


def _column(role: str, kind: str) -> str:
    return f"failed_{kind}" if role == "reader" else f"judge_failed_{kind}"


def rows(cells: Cells) -> Iterator[dict[str, Any]]:
    """Yield one row per failed answer, cell by cell, in item order."""
    for key, cell in cells.items():
        for unit_id, one in cell.lost:
            yield {
                **key._asdict(),
                "repeat": repeats.parse(key.model)[1],
                "role": one.role,
                "unit_id": unit_id,
                "item_id": one.item_id,
                "class": one.kind,
                "error": said(one.error),
            }


def said(error: str | None) -> str | None:
    """Return what was said as one line of bounded length, in which nothing is hidden, and no formula."""
    if not error:
        return None
    line = showing.seen(" ".join(error[: 8 * MAX_ERROR].split()))
    line = f"'{line}" if line.startswith(_FORMULA) else line
    return line if len(line) <= MAX_ERROR else line[: MAX_ERROR - 1] + "…"


class Again(NamedTuple):
    """An item whose answers failed in several cells."""

    bench: str
    item_id: str
    cells: tuple[CellKey, ...]
    classes: tuple[str, ...]


def again(cells: Cells) -> list[Again]:
    """Return the items whose answers failed in more than one cell of their bench, the most often first."""
    found: dict[tuple[str, str], dict[CellKey, str]] = {}
    for key, cell in cells.items():
        for _, one in cell.lost:
            if one.role == "reader":
                found.setdefault((key.bench, one.item_id), {})[key] = one.kind
    listed = [
        Again(bench, item_id, tuple(here), tuple(failing.in_order(here.values())))
        for (bench, item_id), here in found.items()
        if len(here) > 1
    ]
    return sorted(listed, key=lambda one: (-len(one.cells), one.bench, one.item_id))
