"""Parts of a corpus: which job makes which pages, and how what they made becomes one again.

Every page goes to the part that a hash of its id names. It depends on nothing but the id and the number of
parts: parts are equal but for chance (7 million pages in 70 parts: within one percent), a page that is added
moves no other, and the part of a tile is known from its name. Put together, everything stands in the order of
``pages.jsonl``: the same bytes however many parts there were.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from remeasure.errors import RemeasureError

T = TypeVar("T")
_NAME = re.compile(r"[1-9][0-9]{0,4}of[1-9][0-9]{0,4}")


class Part(NamedTuple):
    """One of several jobs over a corpus."""

    number: int
    """From 1."""
    of: int

    @property
    def name(self) -> str:
        """Its name in paths, such as ``2of3``."""
        return f"{self.number}of{self.of}"

    def holds(self, page_id: str) -> bool:
        """Return whether a page belongs to it."""
        return part_of(page_id, self.of) == self.number - 1


def part_of(page_id: str, n_parts: int) -> int:
    """Return the position of a page's part, from 0."""
    return int.from_bytes(hashlib.sha256(page_id.encode()).digest()[:6], "big") % n_parts


def page_of(unit_id: str) -> str:
    """Return the page of a tile, passage, picture or store member, whose names all begin with it."""
    return unit_id.partition("/")[0]


def names(n_parts: int) -> list[str]:
    """Return the names of all parts in order."""
    return [Part(number, n_parts).name for number in range(1, n_parts + 1)]


def read_part(text: str) -> Part:
    """Read a part's name, such as ``2of3``.

    Raises:
        RemeasureError: it is none.
    """
    number, _, of = text.partition("of")
    if not _NAME.fullmatch(text) or int(number) > int(of):
        raise RemeasureError(f"--part {text[:40]!r}: expected NofM with N from 1 to M, such as 2of3")
    return Part(int(number), int(of))


def counted(rows: Iterable[T], expected: int, place: str) -> Iterator[T]:
    """Pass the rows of a part through and stop at its end where they are not as many as it wrote.

    Args:
        rows: what the part's file holds.
        expected: how many its stage record counts.
        place: the file, for the message.

    Raises:
        RemeasureError: fewer or more.
    """
    n_found = 0
    for row in rows:
        n_found += 1
        yield row
    if n_found != expected:
        raise RemeasureError(
            f"{place}: holds {n_found} rows, its stage counted {expected}; delete it and run again, only "
            "this part is made again"
        )


def in_page_order(
    pages: Iterable[str], parts: Sequence[tuple[str, Iterator[tuple[str, T]]]], *, one_each: bool
) -> Iterator[T]:
    """Yield the rows of all parts in the order of the pages.

    Args:
        pages: page ids of the corpus, in order.
        parts: for every part in order its file, for messages, and its rows: (page id, row) in page order.
        one_each: whether every page must have exactly one row; else any number.

    Raises:
        RemeasureError: a page lacks its row, or a row is left over: it is of no page, of another part, or
            stands out of order.
    """
    waiting = [next(rows, None) for _, rows in parts]
    n_taken = [0] * len(parts)
    for page in pages:
        at = part_of(page, len(parts))
        place, rows = parts[at]
        n_before = n_taken[at]
        while (row := waiting[at]) is not None and row[0] == page:
            yield row[1]
            n_taken[at] += 1
            waiting[at] = next(rows, None)
        if one_each and n_taken[at] != n_before + 1:
            raise RemeasureError(
                f"{place}: {n_taken[at] - n_before} rows for page {page!r} after {n_before} of other pages, "
                "expected one; it was made from another page list: delete it and run again"
            )
    for (place, _), row, n in zip(parts, waiting, n_taken, strict=True):
        if row is not None:
            raise RemeasureError(
                f"{place}: row {n + 1} is of page {row[0]!r}, which is not next in this part of the page "
                f"list ({n} rows fit); it was made from another page list: delete it and run again"
            )
