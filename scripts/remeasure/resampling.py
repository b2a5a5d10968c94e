"""Bootstrap of many statistics at once: those of as many groups share one set of draws."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

CHUNK = 500
"""Resamples that are held at a time."""
BATCH = 128
"""Columns of sums whose resampled totals are held at a time: 10 MB for 10,000 resamples."""


class Sums(NamedTuple):
    """What a ratio of sums, or the difference of two, is made of, group by group."""

    tops: np.ndarray
    """Shape (n_groups, k), float64; k is 1 for a ratio, 2 for the first ratio minus the second."""
    bottoms: np.ndarray
    """Shape (n_groups, k), float64, each above 0."""


def sums(
    tops: Sequence[np.ndarray], bottoms: Sequence[np.ndarray | None], groups: Sequence[Hashable]
) -> Sums:
    """Add up values by group.

    Groups are sorted by their sums, so that an interval does not depend on the order of the values.

    Args:
        tops: k arrays of shape (n,).
        bottoms: k arrays of shape (n,), or None for ones.
        groups: shape (n,), cluster of each value; none is left out.
    """
    places: dict[Hashable, int] = {}
    index = np.array([places.setdefault(group, len(places)) for group in groups], dtype=np.int64)
    columns = [np.bincount(index, weights=top) for top in tops]
    columns += [np.bincount(index, weights=bottom).astype(np.float64) for bottom in bottoms]
    together = np.column_stack(columns) if len(index) else np.zeros((0, len(columns)))
    together = together[np.lexsort(together.T[::-1])]
    return Sums(together[:, : len(tops)], together[:, len(tops) :])


def draws(n_groups: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield how often each group is drawn, some resamples at a time.

    Yields:
        Shape (rows, n_groups), float64, rows of whole numbers that add up to ``n_groups``.
    """
    rng = np.random.default_rng(seed)
    for start in range(0, n_resamples, CHUNK):
        rows = min(CHUNK, n_resamples - start)
        chosen = rng.integers(0, n_groups, size=(rows, n_groups))
        chosen += np.arange(rows)[:, None] * n_groups
        counted = np.bincount(chosen.ravel(), minlength=rows * n_groups)
        yield counted.reshape(rows, n_groups).astype(np.float64)


def intervals(
    samples: Sequence[Sums], *, n_resamples: int, seed: int, confidence: float
) -> list[tuple[float, float] | None]:
    """Return the percentile bootstrap interval of every statistic, whole groups resampled.

    Statistics of equally many groups rest on the same draws; each interval alone is what it would be without
    the others.

    Args:
        samples: the statistics.
        n_resamples: bootstrap samples.
        seed: of the generator; same seed, same intervals.
        confidence: coverage, between 0 and 1.

    Returns:
        Lower and upper bound, in the order given; None for fewer than two groups.
    """
    found: list[tuple[float, float] | None] = [None] * len(samples)
    by_size: dict[int, list[int]] = defaultdict(list)
    for place, sample in enumerate(samples):
        if len(sample.tops) > 1:
            by_size[len(sample.tops)].append(place)
    for n_groups, places in by_size.items():
        for start in range(0, len(places), BATCH // 4):
            here = places[start : start + BATCH // 4]
            columns = [np.column_stack([samples[place].tops, samples[place].bottoms]) for place in here]
            stacked = np.column_stack(columns)
            totals = np.concatenate([drawn @ stacked for drawn in draws(n_groups, n_resamples, seed)])
            widths = np.cumsum([column.shape[1] for column in columns])[:-1]
            for place, own in zip(here, np.split(totals, widths, axis=1), strict=True):
                found[place] = _span(own, confidence)
    return found


def _span(totals: np.ndarray, confidence: float) -> tuple[float, float]:
    half = totals.shape[1] // 2
    ratios = totals[:, :half] / totals[:, half:]
    values = ratios[:, 0] - ratios[:, 1] if half == 2 else ratios[:, 0]
    low, high = np.quantile(values, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return float(low), float(high)
