"""The first stage: a whole gallery ranked for every query by one descriptor per photograph, exactly.

Descriptors are read in blocks, which are multiplied with the queries; the scores of as many queries as fit
into memory are kept, and ranked row by row. Nothing else has the size of queries times gallery.

Source:
    Landmarks card, sections 2.4 and 2.5.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.first_file import First
from remeasure.instances.score_row import Ranks, ScoreRow

BLOCK_ROWS = 32_768
"""A block of 512 numbers each has 64 MiB. The benchmark's own rows are a block, with and without distractors:
the last bit of a score depends on the shape of a multiplication."""
SCORES_BYTES = 512 << 20
"""Most that the scores of queries which are ranked together take."""
_TOLERANCE = 1e-2
"""How much more than 1 a cosine may be: descriptors may be float16."""


class Source(NamedTuple):
    """Descriptors that lie in one file, or in memory."""

    path: Path | None
    vectors: np.ndarray
    """float16 or float32 [n, d], of length 1; may be mapped."""
    unreadable: np.ndarray
    """int64, ascending: rows of photographs that could not be decoded, which are zero and ranked last."""


class Gallery:
    """The descriptors of a gallery, in its order.

    Args:
        sources: the benchmark's, then those of distractors.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self._starts = np.cumsum([0, *(len(source.vectors) for source in self.sources)])
        self.n = int(self._starts[-1])
        pairs = zip(self._starts, self.sources, strict=False)
        self.unreadable = np.concatenate([start + source.unreadable for start, source in pairs])

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first id, float32 [rows, d]) in order; the next block is asked of the disk meanwhile."""
        parts = [
            (int(start), source, begin)
            for start, source in zip(self._starts, self.sources, strict=False)
            for begin in range(0, len(source.vectors), BLOCK_ROWS)
        ]
        for number, (start, source, begin) in enumerate(parts):
            if number + 1 < len(parts):
                _ask_for(*parts[number + 1][1:])
            yield start + begin, source.vectors[begin : begin + BLOCK_ROWS].astype(np.float32, copy=False)

    def place(self, photo: int) -> str:
        """Return where the descriptor of a photograph lies, for people."""
        part = int(np.searchsorted(self._starts, photo, side="right")) - 1
        name = self.sources[part].path or "descriptors"
        return f"{name} row {photo - int(self._starts[part])}"


def _ask_for(source: Source, begin: int) -> None:
    """Let the system read the rows of a mapped file before they are touched."""
    import os

    vectors = source.vectors
    if not isinstance(vectors, np.memmap) or not hasattr(os, "posix_fadvise"):
        return
    row = vectors.itemsize * vectors.shape[1]
    with open(vectors.filename, "rb") as stream:
        place = vectors.offset + begin * row
        os.posix_fadvise(stream.fileno(), place, BLOCK_ROWS * row, os.POSIX_FADV_WILLNEED)


class Kept(NamedTuple):
    """What of a ranking is kept."""

    n: int
    """Photographs per query, from the first."""
    labelled: Sequence[np.ndarray]
    """Of every query the labelled ids, int64, ascending."""
    default_ties: bool = True
    """Whether labelled ranks are also found as numpy's default sort orders ties, which takes longer."""


def first_stage(queries: np.ndarray, gallery: Gallery, kept: Kept, n_threads: int = 1) -> First:
    """Rank a gallery by inner products.

    Args:
        queries: float32 [nq, d], of length 1.
        gallery: what is ranked.
        kept: what of it is kept.
        n_threads: rows that are ranked at the same time.

    Raises:
        RemeasureError: descriptors of another length, or of such that are not finite or not of length 1.
    """
    for source in gallery.sources:
        if source.vectors.ndim != 2 or source.vectors.shape[1] != queries.shape[1]:
            raise RemeasureError(
                f"{source.path or 'descriptors'}: has the shape {source.vectors.shape}, queries have "
                f"{queries.shape}; project both with one head"
            )
    together = max(1, SCORES_BYTES // (4 * max(1, gallery.n)))
    found: list[tuple[Ranks, np.ndarray, np.ndarray]] = []
    with ThreadPoolExecutor(max(1, n_threads)) as pool:
        for begin in range(0, len(queries), together):
            scores = scored(queries[begin : begin + together], gallery)
            labelled = kept.labelled[begin : begin + together]
            found += pool.map(lambda pair: _ranked(*pair, gallery, kept), zip(scores, labelled, strict=True))
            del scores
    tops = np.stack([top for _, top, _ in found]), np.stack([score for _, _, score in found])
    ids = np.concatenate([np.empty(0, np.int64), *kept.labelled])
    undecoded = np.intersect1d(gallery.unreadable, ids)
    return First(gallery.n, *tops, tuple(ranks for ranks, _, _ in found), undecoded=tuple(undecoded.tolist()))


def scored(queries: np.ndarray, gallery: Gallery) -> np.ndarray:
    """Return the scores of queries over a gallery, float32 [nq, n]."""
    scores = np.empty((len(queries), gallery.n), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for start, block in gallery.blocks():
            np.matmul(queries, block.T, out=scores[:, start : start + len(block)])
    return scores


def _ranked(
    scores: np.ndarray, labelled: np.ndarray, gallery: Gallery, kept: Kept
) -> tuple[Ranks, np.ndarray, np.ndarray]:
    _check(scores, gallery)
    if len(gallery.unreadable):
        # Behind everything that could be decoded, which may have cosines below 0.
        scores[gallery.unreadable] = np.inf
        scores[gallery.unreadable] = np.nextafter(scores.min(), np.float32(-np.inf))
    row = ScoreRow(scores)
    top = row.top(kept.n)
    return row.ranks(labelled, default=kept.default_ties), top, scores[top]


def _check(scores: np.ndarray, gallery: Gallery) -> None:
    low, high = float(scores.min()), float(scores.max())
    if -1 - _TOLERANCE <= low and high <= 1 + _TOLERANCE:
        return
    wrong = ~(np.abs(scores) <= 1 + _TOLERANCE)
    photo = int(np.argmax(wrong))
    raise RemeasureError(
        f"{gallery.place(photo)}: has the score {scores[photo]} with a query, expected a cosine between -1 "
        "and 1 (NaN, overflow, or no length of 1?); delete that file and the one of the queries and run "
        "their targets again"
    )
