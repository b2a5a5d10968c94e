"""Where the photographs of a gallery come from: a benchmark's rows first, then distractors by piece."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from remeasure import jsonl
from remeasure.errors import RemeasureError


class Shard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The distractors of one piece."""

    name: str
    """The piece, such as ``2of4``."""
    rows: int
    start: int
    """Distractors before it."""
    list_sha256: str
    """Of their names in order, each with a line feed (``sha256_of_names``)."""


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The order of distractors: ``order.json``."""

    n: int
    shards: tuple[Shard, ...]


class Place(NamedTuple):
    """Rows of one piece."""

    piece: str
    rows: np.ndarray
    """int64, ascending, in the piece."""


def sha256_of_names(names: Iterable[str]) -> str:
    """Return the SHA-256 of names in order, each with a line feed."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\n")
    return digest.hexdigest()


def read(path: Path) -> Order:
    """Read the order of a set of distractors.

    Raises:
        RemeasureError: missing or damaged, or its counts do not add up.
    """
    order = jsonl.read_json(path, Order)
    start = 0
    for shard in order.shards:
        if shard.start != start or shard.rows < 0:
            raise RemeasureError(
                f"{path}: {shard.name} starts at {shard.start} with {shard.rows} rows, expected to start at "
                f"{start}; delete it and run its target again"
            )
        start += shard.rows
    if start != order.n or len({shard.name for shard in order.shards}) != len(order.shards):
        raise RemeasureError(
            f"{path}: its pieces have {start} rows and it says {order.n}, or one stands twice; delete it and "
            "run its target again"
        )
    return order


def check_piece(shard: Shard, path: Path, names: Sequence[str]) -> None:
    """Check that a file of a piece has the rows that the order promises, name by name.

    Raises:
        RemeasureError: another piece, another number of rows, or other names.
    """
    if path.stem != shard.name or len(names) != shard.rows or sha256_of_names(names) != shard.list_sha256:
        raise RemeasureError(
            f"{path}: has {len(names)} rows, expected the {shard.rows} photographs of {shard.name} in the "
            "order of order.json; delete it and run its target again"
        )


def distractor_rows(order: Order, n_gallery: int, ids: np.ndarray) -> list[Place]:
    """Return which rows of which pieces some ids of a gallery are.

    Args:
        order: of the distractors.
        n_gallery: photographs of the benchmark, which come first and are left out.
        ids: int64.

    Raises:
        RemeasureError: an id is behind the last distractor.
    """
    found = np.unique(ids[ids >= n_gallery]) - n_gallery
    if len(found) and found[-1] >= order.n:
        raise RemeasureError(
            f"a ranking names photograph {found[-1] + n_gallery} of a gallery of {n_gallery + order.n}; "
            "delete it and run its target again"
        )
    starts = [shard.start for shard in order.shards]
    ends = np.searchsorted(found, [*starts, order.n])
    return [
        Place(shard.name, found[begin:end] - shard.start)
        for shard, begin, end in zip(order.shards, ends[:-1], ends[1:], strict=True)
    ]
