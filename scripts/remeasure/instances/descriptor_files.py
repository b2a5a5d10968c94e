"""Descriptors of a benchmark and its distractors on disk, checked against labels and order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import gallery_order
from remeasure.instances.gallery_order import Order
from remeasure.instances.labels import Labels
from remeasure.instances.ranking import Gallery, Source
from remeasure.instances.vectors_file import Rows

DESCRIPTOR, STATUS = "descriptor", "status"
UNDECODABLE = 2
LENGTH_TOLERANCE = 1e-2
"""Descriptors may be float16."""
_SAME = ("projection", "head", "extractor")
"""What must have made all of them."""


def open_gallery(
    labels: Labels, own: Path, distractors: Sequence[Path] = (), order: Order | None = None
) -> Gallery:
    """Open the descriptors of a gallery; they are read while it is ranked.

    Args:
        labels: of the benchmark.
        own: its descriptors.
        distractors: theirs, one file per piece.
        order: theirs; null where there are none.

    Raises:
        RemeasureError: files that were made by different heads, other rows than labels and order name, or
            distractors without an order.
    """
    shards = order.shards if order else ()
    if len(shards) != len(distractors):
        raise RemeasureError(
            f"{len(distractors)} files of distractors, and an order of {len(shards)} pieces; give --order "
            "with --distractors, one file per piece"
        )
    first = Rows(own)
    check_names(first, labels.imlist, "the gallery")
    own_rows = _source(first)
    _check_lengths(own_rows)
    found = [first]
    for shard, path in zip(shards, distractors, strict=True):
        rows = Rows(path)
        gallery_order.check_piece(shard, Path(path), rows.names())
        _check_same(first, rows)
        found.append(rows)
    return Gallery([own_rows, *(_source(rows) for rows in found[1:])])


def read_queries(labels: Labels, path: Path, gallery: Path) -> np.ndarray:
    """Return the descriptors of the queries, float32 [nq, d].

    Raises:
        RemeasureError: others than the labels name, made by another head than the gallery's, or of a
            photograph that could not be decoded.
    """
    rows = Rows(path)
    check_names(rows, labels.qimlist, "the queries")
    _check_same(Rows(gallery), rows)
    source = _source(rows)
    if len(source.unreadable):
        raise RemeasureError(
            f"{path}: query {labels.qimlist[source.unreadable[0]]!r} could not be decoded, so there is "
            "nothing to rank by; copy its photograph again"
        )
    _check_lengths(source)
    return np.array(source.vectors, dtype=np.float32)


def check_names(rows: Rows, names: Sequence[str], what: str) -> None:
    """Check that the rows of a file are those of a list, in its order.

    Raises:
        RemeasureError: names the first difference.
    """
    found = rows.names()
    if len(found) != len(names):
        raise RemeasureError(
            f"{rows.path}: has {len(found)} rows, the labels name {len(names)} as {what}; delete it and run "
            "its target again"
        )
    for row, (one, other) in enumerate(zip(found, names, strict=True)):
        if one != other:
            raise RemeasureError(
                f"{rows.path}: row {row} is {one!r}, the labels have {other!r} there as {what}; delete it "
                "and run its target again"
            )


def _source(rows: Rows) -> Source:
    rows.check(DESCRIPTOR, None, kinds="f")
    rows.check(STATUS, kinds="u")
    unreadable = np.flatnonzero(rows.array(STATUS) == UNDECODABLE)
    return Source(rows.path, rows.array(DESCRIPTOR), unreadable)


def _check_lengths(source: Source) -> None:
    """Refuse rows that are not of length 1: short ones would stand in the middle of every ranking.

    Of distractors, which are many, it is checked where they are written.
    """
    lengths = np.linalg.norm(source.vectors.astype(np.float32), axis=1)
    wrong = np.abs(lengths - 1) > LENGTH_TOLERANCE
    wrong |= ~np.isfinite(lengths)
    wrong[source.unreadable] = False
    if wrong.any():
        row = int(np.argmax(wrong))
        raise RemeasureError(
            f"{source.path}: row {row} has the length {lengths[row]:.3g}, expected 1 (and "
            f"{int(wrong.sum()) - 1} more); delete it and run its target again"
        )


def _check_same(one: Rows, other: Rows) -> None:
    for name in _SAME:
        if one.about.get(name) != other.about.get(name):
            raise RemeasureError(
                f"{other.path}: {name} is {other.about.get(name)!r}, of {one.path} it is "
                f"{one.about.get(name)!r}; delete both and run their targets again"
            )
