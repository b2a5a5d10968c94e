"""Numbers of a merged model, computed a few rows at a time: memory does not grow with the model."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from remeasure.adapters.checkpoint import Checkpoint
from remeasure.adapters.peft import Pair
from remeasure.errors import RemeasureError
from remeasure.number_types import FLOATS, NUMBERS, Spec, n_not_finite


class Place(NamedTuple):
    """Where a tensor's numbers come from."""

    file: Checkpoint
    name: str

    @property
    def spec(self) -> Spec:
        """Its type and shape there."""
        return self.file.specs[self.name]


def added(rows: np.ndarray, down: np.ndarray, up: np.ndarray, scale: float, dtype: np.dtype) -> np.ndarray:
    """Return ``rows + scale · up · down``, computed in float32 and rounded once.

    Args:
        rows: rows of the base's weight, shape (n, columns), any float type.
        down: float32, shape (rank, columns).
        up: float32, shape (n, rank).
        scale: of the product.
        dtype: of the result.

    Source:
        LoRA (2021), section 4.1: W = W0 + (alpha / r) · B · A.
    """
    total = up @ down
    total *= np.float32(scale)
    total += rows.astype(np.float32)
    with np.errstate(over="ignore"):  # counted by the caller
        return total.astype(dtype)


class Weights:
    """The tensors of a merged model, by the canonical names of its base.

    Args:
        places: where the base's numbers are.
        kinds: number type of each result.

    After ``merge`` and ``grow`` have said what changes, ``blocks`` gives the result.
    """

    def __init__(self, places: dict[str, Place], kinds: dict[str, str]) -> None:
        self.places = dict(places)
        self._kinds = kinds
        self._pairs: dict[str, Pair] = {}
        self._replaced: set[str] = set()
        self._rows: dict[str, int] = {}
        self._adapter: Checkpoint | None = None
        self.n_base_not_finite = 0

    def merge(self, adapter: Checkpoint, pairs: dict[str, Pair]) -> None:
        """Add an adapter's pairs.

        Raises:
            RemeasureError: an adapter's number that is none.
        """
        for pair in pairs.values():
            for name in (pair.down, pair.up):
                check_finite(adapter, name)
        self._adapter, self._pairs = adapter, dict(pairs)

    def replace(self, file: Checkpoint, names: dict[str, str]) -> None:
        """Take whole tensors from another file: canonical name to the name there.

        Raises:
            RemeasureError: a number that is none.
        """
        for target, name in names.items():
            check_finite(file, name)
            self.places[target] = Place(file, name)
            self._replaced.add(target)

    def changed(self) -> set[str]:
        """Return the names of tensors that are not the base's."""
        return self._replaced | self._pairs.keys()

    def grow(self, name: str, n_rows: int) -> None:
        """Let a tensor have more rows; new ones are the mean of all others.

        Source:
            The conversion of LLaVA in transformers draws them from a normal distribution around that mean, of
            a hundred thousandth of the rows' variance. The mean itself is the same in every run, and as a row
            of the output head it is never the largest.
        """
        self._rows[name] = n_rows

    def spec(self, name: str) -> Spec:
        """Return type and shape of a result."""
        shape = self.places[name].spec.shape
        return Spec(self._kinds[name], (self._rows[name], *shape[1:]) if name in self._rows else shape)

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """Yield the rows of a result in order.

        Raises:
            RemeasureError: a sum that its type cannot hold.
        """
        place, dtype = self.places[name], NUMBERS[self._kinds[name]]
        pair, sums, n_rows = self._pairs.get(name), None, 0
        down, up = self._factors(pair) if pair else (None, None)
        for start, rows in place.file.blocks(place.name):
            made = rows if rows.dtype == dtype else rows.astype(dtype)
            if pair:
                stop = start + len(rows)
                columns, part = (up.T, down[:, start:stop].T) if pair.is_embedding else (down, up[start:stop])
                made = added(rows, columns, part, pair.scale, dtype)
            self._count(name, rows, made)
            if name in self._rows:
                sums = made.sum(axis=0, dtype=np.float64) + (0 if sums is None else sums)
                n_rows += len(made)
            yield made
        if name in self._rows:
            yield np.tile((sums / n_rows).astype(np.float32).astype(dtype), (self._rows[name] - n_rows, 1))

    def _factors(self, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
        return tuple(self._adapter.read(name).astype(np.float32) for name in (pair.down, pair.up))

    def _count(self, name: str, before: np.ndarray, after: np.ndarray) -> None:
        n_after = n_not_finite(after)
        if not n_after:
            return
        n_before = n_not_finite(before)
        if n_after > n_before:
            raise RemeasureError(
                f"{name}: {n_after - n_before} numbers of the result are too large for {after.dtype}; base "
                "and adapter do not belong together"
            )
        self.n_base_not_finite += n_before


def check_finite(file: Checkpoint, name: str) -> None:
    """Check that a tensor holds numbers.

    Raises:
        RemeasureError: some are infinite or none at all, or of a type that is none.
    """
    if file.specs[name].kind not in FLOATS:
        raise RemeasureError(f"{file.where(name)}: tensor {name} holds {file.specs[name].kind}, no weights")
    bad = sum(n_not_finite(rows) for _, rows in file.blocks(name))
    if bad:
        raise RemeasureError(
            f"{file.where(name)}: tensor {name} holds {bad} numbers that are infinite or none at all; its "
            "training has failed or the file is damaged"
        )


def n_differing(one: Place, other: Place, kind: str) -> int:
    """Return how many numbers of two tensors of one shape differ once they are of one type."""
    dtype, n = NUMBERS[kind], 0
    for (_, a), (_, b) in zip(one.file.blocks(one.name), other.file.blocks(other.name), strict=True):
        n += int(np.count_nonzero(a.astype(dtype) != b.astype(dtype)))
    return n
