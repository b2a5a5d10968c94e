"""Which distractors get local descriptors: those that a first stage shortlists.

Source:
    Landmarks card, section 6: per benchmark and head at most the sum over queries of shortlist and easy ones,
    a hundred thousand of a million.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path
from remeasure.instances import gallery_order
from remeasure.instances.first_file import FirstFile
from remeasure.instances.gallery_order import Order, Place


def wanted(firsts: Sequence[Path], order: Order) -> list[Place]:
    """Return the distractors that rankings shortlist, by piece.

    Args:
        firsts: rankings, of one or several benchmarks with these distractors.
        order: of the distractors.

    Raises:
        RemeasureError: a ranking of another number of distractors, or none with any.
    """
    rows: dict[str, list[np.ndarray]] = {shard.name: [] for shard in order.shards}
    for path in firsts:
        opened = FirstFile(path)
        first = opened.ranking()
        n_own = first.n_gallery - order.n
        if n_own < 1:
            raise RemeasureError(
                f"{path}: ranks {first.n_gallery} photographs, the order has {order.n} distractors; delete "
                "it and run its target again"
            )
        # What is ignored and stands among them is of the benchmark: a prefix holds no distractor too many.
        lengths = opened.facts.get("reach") or [first.top_id.shape[1]] * len(first.top_id)
        _check_reach(lengths, first.top_id.shape, path)
        ids = np.concatenate([top[:n] for top, n in zip(first.top_id, lengths, strict=True)])
        for place in gallery_order.distractor_rows(order, n_own, ids):
            rows[place.piece].append(place.rows)
    none = np.empty(0, np.int64)
    return [Place(piece, np.unique(np.concatenate([none, *found]))) for piece, found in rows.items()]


def _check_reach(lengths: object, shape: tuple[int, ...], path: Path) -> None:
    is_list = isinstance(lengths, list) and len(lengths) == shape[0]
    if not is_list or not all(type(n) is int and 0 <= n <= shape[1] for n in lengths):
        raise RemeasureError(
            f"{path}: reach is no list of {shape[0]} numbers from 0 to {shape[1]}; delete it and run its "
            "target again"
        )


def everything(order: Order) -> list[Place]:
    """Return all distractors, by piece."""
    return [Place(shard.name, np.arange(shard.rows, dtype=np.int64)) for shard in order.shards]


def write(path: Path, places: Sequence[Place]) -> None:
    """Write piece and row of what is wanted as Parquet, sorted by both."""
    import pyarrow as pa
    from pyarrow import parquet

    found = sorted(places, key=lambda place: place.piece)
    pieces = [place.piece for place in found for _ in range(len(place.rows))]
    rows = np.concatenate([np.empty(0, np.int64), *(place.rows for place in found)])
    table = pa.table({"piece": pa.array(pieces, pa.string()), "row": pa.array(rows, pa.int64())})
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")
