"""Two files in the same item order, read side by side."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from remeasure.errors import RemeasureError

T = TypeVar("T")


class Aligned(Iterator[T]):
    """Looks up records that stand in item order, some absent; holds one, and the ids of the absent."""

    def __init__(self, records: Iterable[T], key: str, path: Path | str) -> None:
        self._records = iter(records)
        self._key = key
        self._path = path
        self._next: T | None = next(self._records, None)
        self.missed: list[str] = []
        """Items whose record was not the next one when it was asked for."""

    def __iter__(self) -> "Aligned[T]":
        return self

    def __next__(self) -> T:
        if self._next is None:
            raise StopIteration
        record, self._next = self._next, next(self._records, None)
        return record

    def take(self, item_id: str) -> T | None:
        """Return the record of this item if it is the next one, else None."""
        if self._next is None or getattr(self._next, self._key) != item_id:
            self.missed.append(item_id)
            return None
        return next(self)

    def ids_left(self) -> list[str]:
        """Read to the end and return the ids that were not taken, in the order of the file."""
        return [getattr(record, self._key) for record in self]

    def odd(self, wanted: Iterable[str]) -> list[str]:
        """Read to the end; return the ids that stand only in the rest or only in ``wanted``, sorted.

        An empty list means that the rest has the ids that are wanted, in another order.
        """
        return sorted(set(self.ids_left()) ^ set(wanted))

    def finish(self) -> None:
        """Check that no record is left over.

        Raises:
            RemeasureError: a record belongs to no item or stands out of item order.
        """
        if self._next is not None:
            raise RemeasureError(
                f"{self._path}: {self._key} {getattr(self._next, self._key)!r} belongs to no item or "
                "stands out of item order; delete the file and rerun the target that writes it"
            )
