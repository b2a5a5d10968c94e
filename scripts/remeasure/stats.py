"""Intervals and tests. Undefined is None, never 0; every random draw has an explicit seed."""

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

Interval = tuple[float, float]
CONFIDENCE = 0.95
"""All intervals of all tables."""


def wilson(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Return Wilson's score interval for a rate.

    Args:
        successes: number of successes, 0 to n.
        n: number of trials.
        confidence: coverage, between 0 and 1.

    Returns:
        Lower and upper bound, shares; None for n = 0.

    Source:
        Wilson 1927, without continuity correction.
    """
    if n == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _by_group(values: np.ndarray, groups: Sequence[Hashable]) -> tuple[np.ndarray, np.ndarray]:
    """Return sum and count of the values per group, each of shape (n_groups,), in order of first sight."""
    places: dict[Hashable, int] = {}
    index = np.array([places.setdefault(group, len(places)) for group in groups], dtype=np.int64)
    return np.bincount(index, weights=values), np.bincount(index)


def bootstrap_mean(
    values: Sequence[float],
    *,
    n_resamples: int,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return the percentile bootstrap interval of a mean, whole groups resampled where groups are given.

    Groups with the same sum and size are interchangeable, so the number of times that each kind is drawn is
    one multinomial draw: same distribution as drawing groups one by one, in memory that does not grow with
    the number of values, and independent of their order.

    Args:
        values: shape (n,).
        n_resamples: bootstrap samples.
        seed: of the generator; same seed, same interval.
        groups: shape (n,), cluster of each value; None for independent values.
        weights: shape (n,), above 0: how often each value counts; None for once.
        confidence: coverage, between 0 and 1.

    Returns:
        Lower and upper bound; None for fewer than two groups (or values), where nothing can be resampled.

    Edges:
        All groups alike give an interval of no width.
    """
    numbers = np.asarray(values, dtype=np.float64)
    each = range(len(numbers)) if groups is None else groups
    sums, counts = _by_group(numbers, each)
    if weights is not None:
        own = np.asarray(weights, dtype=np.float64)
        sums, counts = _by_group(numbers * own, each)[0], _by_group(own, each)[0]
    if len(sums) < 2:
        return None
    kinds, multiplicity = np.unique(np.column_stack([sums, counts]), axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(
        len(sums), multiplicity / multiplicity.sum(), size=n_resamples
    )
    totals = drawn @ kinds
    low, high = np.quantile(totals[:, 0] / totals[:, 1], [0.5 - confidence / 2, 0.5 + confidence / 2])
    return float(low), float(high)


def bootstrap_difference(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    n_resamples: int,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return the paired bootstrap interval of mean(ours - theirs); pairs, or groups of pairs, are resampled.

    Args:
        ours: shape (n,).
        theirs: shape (n,), same items in the same order.
        n_resamples: as in ``bootstrap_mean``.
        seed: as in ``bootstrap_mean``.
        groups: as in ``bootstrap_mean``.
        confidence: as in ``bootstrap_mean``.

    Returns:
        As in ``bootstrap_mean``.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    return bootstrap_mean(
        differences, n_resamples=n_resamples, seed=seed, groups=groups, confidence=confidence
    )


def mcnemar_exact(n_only_ours: int, n_only_theirs: int) -> float:
    """Return the two-sided exact p of McNemar's test.

    Args:
        n_only_ours: pairs that only the first got right.
        n_only_theirs: pairs that only the second got right.

    Edges:
        1.0 without discordant pairs.

    Source:
        Binomial test of the discordant pairs against one half, doubled smaller tail, at most 1.
    """
    n = n_only_ours + n_only_theirs
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = np.arange(min(n_only_ours, n_only_theirs) + 1)
    logs = log_factorial[n] - log_factorial[k] - log_factorial[n - k] - n * math.log(2)
    return min(1.0, 2 * float(np.exp(logs).sum()))


def paired_wald(
    n_only_ours: int, n_only_theirs: int, n_pairs: int, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return Wald's interval of the difference of two rates over the same items; pairs are independent.

    Args:
        n_only_ours: pairs that only the first got right.
        n_only_theirs: pairs that only the second got right.
        n_pairs: all pairs.
        confidence: coverage, between 0 and 1.

    Returns:
        Lower and upper bound, shares; None for no pairs.

    Edges:
        Without discordant pairs it has no width.

    Source:
        Standard error sqrt(b + c - (b - c)^2 / n) / n; RAG card, section 3.7. It takes no account of items
        that belong together: the clustered bootstrap beside it does.
    """
    if n_pairs == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    balance = n_only_ours - n_only_theirs
    error = math.sqrt(n_only_ours + n_only_theirs - balance * balance / n_pairs) / n_pairs
    return balance / n_pairs - z * error, balance / n_pairs + z * error


def lower_bound(share: float, n: int, n_all: int) -> float | None:
    """Return what a share of some items is at least over all: those that are missing count as failures.

    Args:
        share: of the ``n`` items that were counted, 0 to 1.
        n: items that were counted.
        n_all: items that there are.

    Edges:
        None for no items.
    """
    return share * n / n_all if n_all else None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p values, in the order given; None stays None and is not in the family.

    Source:
        Holm 1979, step-down, monotone.
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, place) in enumerate(known):
        running = max(running, min(1.0, (len(known) - rank) * p))
        adjusted[place] = running
    return adjusted


class Spread(NamedTuple):
    """Several values of one number."""

    n: int
    mean: float
    sd: float | None
    """Sample standard deviation (n - 1); None for a single value, of which nothing is known."""
    lowest: float
    highest: float


def spread(values: Sequence[float]) -> Spread | None:
    """Return how several values of one number lie; None for none."""
    n = len(values)
    if not n:
        return None
    if min(values) == max(values):  # not the rounding of their mean
        return Spread(n, values[0], 0.0 if n > 1 else None, values[0], values[0])
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Spread(n, mean, sd, min(values), max(values))


class Agreement(NamedTuple):
    """Two raters on the same items: raw counts, share of agreement, Cohen's kappa (None where undefined)."""

    yes_yes: int
    yes_no: int
    no_yes: int
    no_no: int
    agreement: float | None
    kappa: float | None


def agreement(first: Sequence[bool], second: Sequence[bool]) -> Agreement:
    """Compare two raters' yes and no on the same items in the same order.

    Edges:
        Kappa is None for no items, and where both raters always give the same one answer (chance agreement
        is then complete).

    Source:
        Cohen 1960.
    """
    table = [0, 0, 0, 0]
    for one, other in zip(first, second, strict=True):
        table[2 * (not one) + (not other)] += 1
    yes_yes, yes_no, no_yes, no_no = table
    n = sum(table)
    if not n:
        return Agreement(0, 0, 0, 0, None, None)
    observed = (yes_yes + no_no) / n
    # Chance agreement times n squared, in whole numbers, so that "complete" is exact.
    chance = (yes_yes + yes_no) * (yes_yes + no_yes) + (no_yes + no_no) * (yes_no + no_no)
    kappa = None if chance == n * n else (observed - chance / n**2) / (1 - chance / n**2)
    return Agreement(yes_yes, yes_no, no_yes, no_no, observed, kappa)


class Verdict(NamedTuple):
    """How our value stands to a published one: within, outside or not comparable, and why."""

    verdict: str
    reason: str


def near(value: float, published: float, tolerance: float) -> Verdict:
    """Compare a published value with ours where nothing is sampled: the difference alone counts.

    Args:
        value: ours, in the unit of ``published``.
        published: the printed value.
        tolerance: how far the two may lie apart, same unit.

    Edges:
        A value is half a last decimal off by printing alone: tolerances are to allow for it.
    """
    apart = abs(value - published)
    text = f"published {published:g} against {value:.4f}, {apart:.4f} apart, allowed {tolerance:g}"
    return Verdict("within" if apart <= tolerance else "outside", text)


def verdict(
    interval: Interval | None, published: float | None, noise: float | None, differing: Sequence[str]
) -> Verdict:
    """Compare a published value with our interval widened by the published run-to-run noise.

    Args:
        interval: ours, in the unit of ``published``.
        published: the printed value; None if there is none.
        noise: how far two runs of the authors lie apart, same unit; None if not known.
        differing: protocol fields in which the two differ; with any, nothing is compared.
    """
    if published is None:
        return Verdict("not comparable", "no published value")
    if differing:
        return Verdict("not comparable", "differs in " + ", ".join(differing))
    if interval is None:
        return Verdict("not comparable", "no interval")
    margin = noise or 0.0
    inside = interval[0] - margin <= published <= interval[1] + margin
    places = 1 if interval[1] > 1 else 3  # percents and ranks, or shares
    span = f"{interval[0]:.{places}f} to {interval[1]:.{places}f}"
    text = f"published {published:g} against {span}, noise {margin:g}"
    return Verdict("within" if inside else "outside", text)
