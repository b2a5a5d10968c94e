"""Means of scores, each with the interval that fits it."""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from remeasure import resampling
from remeasure.stats import CONFIDENCE, Interval, bootstrap_mean, wilson


class MeanInterval(NamedTuple):
    """A mean with its interval and the name of the method; None where undefined."""

    mean: float | None
    interval: Interval | None
    method: str


class Scored(NamedTuple):
    """Scores that a mean is taken of."""

    scores: Sequence[float]
    """Shape (n,), each 0 to 1 where they are shares."""
    groups: Sequence[Hashable]
    """Shape (n,), cluster of each score."""
    weights: Sequence[float] | None = None
    """Shape (n,), above 0: how often each score counts; None for once."""
    shares: bool = True
    """Whether the scores are shares."""
    per_group: bool = False
    """Whether the mean is that of the groups' means, each group counted once; such scores have no weights."""

    @property
    def n(self) -> int:
        """What the mean rests on: the scores, or what their weights add up to, or the groups."""
        if self.per_group:
            return len(set(self.groups))
        return len(self.scores) if self.weights is None else int(sum(self.weights))

    def by_group(self) -> "Scored":
        """Return the scores that the mean is taken of: one per group, in order of first sight, or these."""
        if not self.per_group:
            return self
        together: dict[Hashable, list[float]] = {}
        for score, group in zip(self.scores, self.groups, strict=True):
            together.setdefault(group, []).append(score)
        found = [math.fsum(scores) / len(scores) for scores in together.values()]
        return Scored(found, list(together), shares=self.shares)


def mean_with_interval(
    scores: Sequence[float],
    groups: Sequence[Hashable],
    *,
    n_resamples: int,
    seed: int,
    weights: Sequence[float] | None = None,
    shares: bool = True,
) -> MeanInterval:
    """Return the mean of item scores with the interval that fits them; as ``means_with_intervals``."""
    (found,) = means_with_intervals(
        [Scored(scores, groups, weights, shares)], n_resamples=n_resamples, seed=seed
    )
    return found


def means_with_intervals(sets: Sequence[Scored], *, n_resamples: int, seed: int) -> list[MeanInterval]:
    """Return the mean of each set of scores with the interval that fits it.

    Wilson for independent rates; a clustered bootstrap where groups repeat; a plain bootstrap for scores
    between 0 and 1. Where all groups have the same rate of 0 or 1, a bootstrap would claim certainty: then
    Wilson with the number of groups as n. Scores that are no shares, and weighted ones, have a bootstrap or,
    where all are alike, none. Scores of 0 and 1 are resampled by kinds of groups (``stats.bootstrap_mean``),
    others share their draws (``resampling``). Where each group counts once, the groups' means are the scores.

    Args:
        sets: the scores.
        n_resamples: bootstrap samples.
        seed: of the bootstrap.
    """
    found: list[MeanInterval] = []
    waiting: list[tuple[int, resampling.Sums]] = []
    for one in (given.by_group() for given in sets):
        known, waits = _without_draws(one, n_resamples, seed)
        if waits:
            scores = np.asarray(one.scores, dtype=np.float64)
            weights = None if one.weights is None else np.asarray(one.weights, dtype=np.float64)
            tops = scores if weights is None else scores * weights
            waiting.append((len(found), resampling.sums([tops], [weights], one.groups)))
        found.append(known)
    drawn = resampling.intervals(
        [sums for _, sums in waiting], n_resamples=n_resamples, seed=seed, confidence=CONFIDENCE
    )
    for (place, _), interval in zip(waiting, drawn, strict=True):
        found[place] = found[place]._replace(interval=interval)
    return found


def _without_draws(one: Scored, n_resamples: int, seed: int) -> tuple[MeanInterval, bool]:
    """Return the mean with its interval, and whether that is still to be drawn."""
    scores, groups = one.scores, one.groups
    if not len(scores):
        return MeanInterval(None, None, "undefined: nothing graded"), False
    n_groups = len(set(groups))
    weights = [1.0] * len(scores) if one.weights is None else one.weights
    mean = math.fsum(s * w for s, w in zip(scores, weights, strict=True)) / math.fsum(weights)
    words = ["weighted"] if one.weights is not None else []
    words += ["clustered"] if n_groups < len(scores) else []
    method = f"{' '.join([*words, 'bootstrap'])} 95 %, {n_resamples} samples, seed {seed}"
    if one.weights is None and one.shares:
        plain = all(score in (0, 1) for score in scores)
        if plain and n_groups == len(scores):
            return MeanInterval(mean, wilson(math.fsum(scores), len(scores)), "Wilson 95 %"), False
        if mean in (0, 1):
            return MeanInterval(mean, wilson(mean * n_groups, n_groups), "Wilson 95 % over groups"), False
        if plain and n_groups > 1:
            interval = bootstrap_mean(scores, groups=groups, n_resamples=n_resamples, seed=seed)
            return MeanInterval(mean, interval, method), False
    elif len(set(scores)) == 1 and n_groups > 1:
        return MeanInterval(mean, None, "undefined: all alike"), False
    if n_groups < 2:
        return MeanInterval(mean, None, "undefined: one group"), False
    return MeanInterval(mean, None, method), True
