"""Bootstrap of many statistics at once: those of as many groups share one set of draws."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

CHUNK = 500
"""Resamples that are held at a time."""
BATCH = 128
"""Statistics whose resampled values are held at a time: 10 MB for 10,000 resamples."""


class Sums(NamedTuple):
    """What a ratio of sums, or the difference of two, is made of, group by group."""

    tops: np.ndarray
    """Shape (n_groups, k), float64; k is 1 for a ratio, 2 for the first ratio minus the second."""
    bottoms: np.ndarray
    """Shape (n_groups, k), float64, none below 0."""


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
    the others. A resample in which a ratio has nothing to divide by is left out of that statistic's.

    Args:
        samples: the statistics.
        n_resamples: bootstrap samples.
        seed: of the generator; same seed, same intervals.
        confidence: coverage, between 0 and 1.

    Returns:
        Lower and upper bound, in the order given; None for fewer than two groups, or no resample.
    """
    found: list[tuple[float, float] | None] = [None] * len(samples)
    by_size: dict[int, list[int]] = defaultdict(list)
    for place, sample in enumerate(samples):
        if len(sample.tops) > 1:
            by_size[len(sample.tops)].append(place)
    for n_groups, places in by_size.items():
        for start in range(0, len(places), BATCH):
            here = places[start : start + BATCH]
            values = _resampled([samples[place] for place in here], n_groups, n_resamples, seed)
            for place, own in zip(here, values, strict=True):
                own = own[~np.isnan(own)]
                if not len(own):
                    continue
                low, high = np.quantile(own, [0.5 - confidence / 2, 0.5 + confidence / 2])
                found[place] = (float(low), float(high))
    return found


def _resampled(samples: Sequence[Sums], n_groups: int, n_resamples: int, seed: int) -> np.ndarray:
    """Return every statistic of every resample, shape (n_samples, n_resamples)."""
    tops = np.column_stack([sample.tops for sample in samples])
    # Most statistics have the same groups of the same sizes: these are added up once.
    alike: dict[bytes, int] = {}
    columns = [column for sample in samples for column in sample.bottoms.T]
    which = [alike.setdefault(column.tobytes(), len(alike)) for column in columns]
    bottoms = np.column_stack([columns[which.index(place)] for place in range(len(alike))])
    widths = [sample.tops.shape[1] for sample in samples]
    starts = np.cumsum([0, *widths[:-1]])
    signs = np.concatenate([[1.0, -1.0][:width] for width in widths])
    values = np.empty((len(samples), n_resamples))
    done = 0
    for drawn in draws(n_groups, n_resamples, seed):
        with np.errstate(invalid="ignore"):
            ratios = (drawn @ tops) / (drawn @ bottoms)[:, which] * signs
        values[:, done : done + len(drawn)] = np.add.reduceat(ratios, starts, axis=1).T
        done += len(drawn)
    return values
