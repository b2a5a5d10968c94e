"""The scores of one query over a whole gallery: exact ranks of some photographs, and the best ones, unsorted.

A histogram says how many scores stand above a bin; only scores that share a bin with one that is asked for
are compared themselves. Order is score descending, then id ascending.

Source:
    Landmarks card, section 2.5, which sorts the scores by value instead: that is slower by much where the
    processor has no fast sort.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError

_FEWEST_BINS, _MOST_BINS = 1 << 8, 1 << 16


class Ranks(NamedTuple):
    """Where some photographs stand in a whole gallery for one query."""

    ids: np.ndarray
    """int64 [L], ascending."""
    rank: np.ndarray
    """int64 [L], from 0; ties by gallery id."""
    rank_default: np.ndarray
    """int64 [L]; ties as numpy's default sort of the negated scores orders them, which depends on the
    processor; the same as ``rank`` where that was not asked for."""
    score: np.ndarray
    """float32 [L]."""
    n_tied: int
    """How many of them have a score that another photograph shares."""

    def of(self, ids: Sequence[int] | np.ndarray, *, default: bool = False) -> np.ndarray:
        """Return the ranks of some of them in their order, int64; ids that are not known are left out."""
        wanted = np.asarray(ids, dtype=np.int64)
        places = np.searchsorted(self.ids, wanted)
        inside = places < len(self.ids)
        inside[inside] = self.ids[places[inside]] == wanted[inside]
        return (self.rank_default if default else self.rank)[places[inside]]


class ScoreRow:
    """The scores of one query, counted.

    Args:
        scores: float32 [n], one per photograph of the gallery, at least one.

    Raises:
        RemeasureError: there is none, or one is NaN or infinite.
    """

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores
        if not len(scores):
            raise RemeasureError("the gallery is empty; nothing can be ranked: correct its photo set")
        low, high = float(scores.min()), float(scores.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            what = "NaN" if low != low else "infinite"
            raise RemeasureError(
                f"the score of photograph {int(np.argmin(np.isfinite(scores)))} of the gallery is {what}, "
                "expected a finite number; look for NaN or overflow in the descriptors and make them again"
            )
        self.low, self.high = low, high
        # About four scores per bin; more bins take longer to count up than they save.
        n_bins = min(max(_FEWEST_BINS, 1 << (len(scores) // 4).bit_length()), _MOST_BINS)
        self._bins = _in_bins(scores, np.float32(low), np.float32(high), n_bins)
        self._counts = np.bincount(self._bins, minlength=n_bins)
        self._above = len(scores) - np.cumsum(self._counts)

    def ranks(self, ids: np.ndarray, *, default: bool = False) -> Ranks:
        """Find where some photographs stand.

        Args:
            ids: int64 [L], ascending, each once.
            default: also as numpy's default sort orders ties, which sorts everything where there are any.

        Raises:
            RemeasureError: an id is not in the gallery.
        """
        n = len(self.scores)
        ids = np.asarray(ids, dtype=np.int64)
        if len(ids) and not 0 <= ids[0] <= ids[-1] < n:
            raise RemeasureError(
                f"the labels name photograph {ids[-1] if ids[0] >= 0 else ids[0]} of a gallery of {n} (0 to "
                f"{n - 1}); take labels and descriptors of the same benchmark"
            )
        own = self.scores[ids]
        after, alike = self._counted(own, self._bins[ids])
        tied = np.flatnonzero(alike > 1)
        rank = as_sorted = after
        if len(tied):
            rank = after.copy()
            rank[tied] += [np.count_nonzero(self.scores[: ids[i]] == own[i]) for i in tied]
            as_sorted = self._default_ranks(ids) if default else rank
        return Ranks(ids, rank, as_sorted, own.astype(np.float32), len(tied))

    def _counted(self, own: np.ndarray, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many scores are higher than each of some, and how many are equal, itself included."""
        asked = np.zeros(len(self._counts), dtype=bool)
        asked[bins] = True
        near = np.sort(self.scores[np.flatnonzero(asked.take(self._bins))])
        # What stands above a bin, less what stands there in bins that are compared one by one.
        used, place = np.unique(bins, return_inverse=True)
        compared = np.cumsum(self._counts[used])
        apart = self._above[used] - (len(near) - compared)
        begin, end = (np.searchsorted(near, own, side=side) for side in ("left", "right"))
        return apart[place] + len(near) - end, end - begin

    def _default_ranks(self, ids: np.ndarray) -> np.ndarray:
        """Return ranks as the published ``argsort`` of negated scores gives them."""
        order = np.argsort(-self.scores)
        found = np.empty(len(order), np.int64)
        found[order] = np.arange(len(order))
        return found[ids]

    def top(self, n: int) -> np.ndarray:
        """Return the ids of the first ``n`` of the ranking, or of all where there are fewer, int64."""
        n = min(n, len(self.scores))
        if n <= 0:
            return np.empty(0, np.int64)
        # The last bin above which fewer than n stand holds the n-th.
        last = int(np.argmax(self._above < n))
        found = np.flatnonzero(self._bins >= last)
        return found[np.argsort(-self.scores[found], kind="stable")][:n].astype(np.int64)


def _in_bins(scores: np.ndarray, low: np.float32, high: np.float32, n_bins: int) -> np.ndarray:
    """Return the bin of every score, uint16 [n], 0 to ``n_bins`` - 1.

    Subtracting, multiplying and cutting off keep the order of any two numbers, however they round: a score of
    a higher bin is higher, and only scores of one bin need to be compared.
    """
    with np.errstate(over="ignore", divide="ignore"):
        scale = np.float32(n_bins - 1) / (high - low)
    # All are equal, or so near or far from each other that their differences cannot be told in float32.
    if not np.isfinite(scale) or scale == 0:
        return np.zeros(len(scores), np.uint16)
    found = np.subtract(scores, low, dtype=np.float32)
    # The highest score gets the last bin, give or take two roundings: less than the next whole number.
    return np.multiply(found, scale, out=found).astype(np.uint16)
