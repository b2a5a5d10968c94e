"""Which answers are shown to judges and people: half that the judge let pass, half that it did not."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.records import Graded, Item, Record, Response


class Chosen(Record, kw_only=True):
    """An answer of the sample: one line of ``picked.jsonl``."""

    answer_id: str
    """``answer-<number, 4 digits>``: says nothing of who answered or how it was judged."""
    key: str
    """Of question and answer (``key_of``): a label with it belongs to this answer and to no other."""
    bench: str
    arm: str
    model: str
    item: Item
    response: Response
    passed: bool
    """The verdict in the table, strict reading."""


class Folder(NamedTuple):
    """A cell whose answers may be picked."""

    bench: str
    arm: str
    model: str
    graded: Path
    responses: Path


class Pool(NamedTuple):
    """How many answers there were to pick from, by verdict."""

    n_passed: int
    n_failed: int


def key_of(item_id: str, answer: str) -> str:
    """Return what names a question's answer whatever the sample: 16 hexadecimal digits."""
    return hashlib.sha256(f"{item_id}\0{answer}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _rank(seed: int, cell: Folder, item_id: str) -> int:
    text = f"{seed}\0{cell.bench}\0{cell.arm}\0{cell.model}\0{item_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _verdicts(cell: Folder) -> Iterator[tuple[Graded, bool]]:
    """Yield the units of a cell that have an answer and a readable verdict on it."""
    for line in jsonl.read(cell.graded, Graded):
        usable = line.status in ("answered", "cut_off") and bool((line.answer or "").strip())
        if usable and line.strict.score in (0.0, 1.0):
            yield line, line.strict.score == 1.0


def draw(cells: Iterable[Folder], n: int, seed: int) -> tuple[dict[Folder, dict[str, bool]], Pool]:
    """Return the items whose answers are picked, by cell, and what there was to pick from.

    The draw depends on names and seed alone, not on the order of cells or items: ``n // 2`` that failed and
    the rest that passed, fewer where there are fewer. Only what is picked is held.

    Args:
        cells: where the answers lie.
        n: how many are wanted in all.
        seed: of the draw.
    """
    sizes = {True: n - n // 2, False: n // 2}
    heaps: dict[bool, list[tuple[int, int, Folder, str]]] = {True: [], False: []}
    seen = {True: 0, False: 0}
    for cell in cells:
        for line, passed in _verdicts(cell):
            seen[passed] += 1
            entry = (-_rank(seed, cell, line.item_id), seen[passed], cell, line.item_id)
            if len(heaps[passed]) < sizes[passed]:
                heapq.heappush(heaps[passed], entry)
            elif heaps[passed]:
                heapq.heappushpop(heaps[passed], entry)
    found: dict[Folder, dict[str, bool]] = {}
    for passed, heap in heaps.items():
        for _, _, cell, item_id in heap:
            found.setdefault(cell, {})[item_id] = passed
    return found, Pool(seen[True], seen[False])


def collect(
    drawn: dict[Folder, dict[str, bool]], items_of: Callable[[str], Iterable[Item]], seed: int
) -> list[Chosen]:
    """Return the drawn answers with their questions, in an order that tells nothing of them.

    Args:
        drawn: items by cell, with the verdict in the table.
        items_of: the items of a bench.
        seed: of the draw; the order follows from it.

    Raises:
        RemeasureError: a cell has no such item or no answer to it.
    """
    found: list[tuple[int, Folder, Item, Response, bool]] = []
    for bench in dict.fromkeys(cell.bench for cell in drawn):
        cells = {cell: wanted for cell, wanted in drawn.items() if cell.bench == bench}
        ids = {item_id for wanted in cells.values() for item_id in wanted}
        items = {item.item_id: item for item in items_of(bench) if item.item_id in ids}
        for cell, wanted in cells.items():
            answers = {
                line.custom_id: line
                for line in jsonl.read(cell.responses, Response)
                if line.custom_id in wanted
            }
            for item_id, passed in wanted.items():
                if item_id not in items or item_id not in answers:
                    raise RemeasureError(
                        f"{cell.graded}: item {item_id!r} has no question or no answer beside it; delete "
                        "the file and rerun, the cell is graded again"
                    )
                # Another draw than that of the sample: places do not tell the strata apart.
                place = _rank(seed + 1, cell, item_id)
                found.append((place, cell, items[item_id], answers[item_id], passed))
    found.sort(key=lambda row: (row[0], row[1][:3], row[2].item_id))
    return [
        Chosen(
            answer_id=f"answer-{number:04}",
            key=key_of(item.item_id, response.text or ""),
            bench=cell.bench,
            arm=cell.arm,
            model=cell.model,
            item=item,
            response=response,
            passed=passed,
        )
        for number, (_, cell, item, response, passed) in enumerate(found, start=1)
    ]
