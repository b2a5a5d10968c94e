"""Differences between arms, models or benches on the same units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from remeasure import resampling, stats
from remeasure.errors import RemeasureError
from remeasure.tables.inputs import PUBLISHED, STRICT, Cell, group_means
from remeasure.tables.settings import CellKey, Pair, TableSettings
from remeasure.tables.wide import first_time


@dataclass(frozen=True)
class Paired:
    """Two cells under one metric and one reading, over the units that are in the denominator of both.

    Where answers decide what is in the denominator (``ratios``) it is the first cell's number minus the
    second's, each over its own units: nothing pairs, nothing is tested, and all units are drawn.
    """

    difference: float | None
    """First minus second; None where no unit is left. Of a weighted metric that of two weighted means."""
    n_pairs: int
    """Of ratios all units: what is drawn is drawn of both."""
    n_dropped: int
    """Units that are not in the denominator of one or of both; of ratios none."""
    n_groups: int
    n_higher: int
    """Units whose score is higher in the first."""
    n_lower: int
    is_binary: bool
    """Whether all scores are 0 or 1, and count once."""
    is_weighted: bool
    interval: stats.Interval | None = None
    ratios: tuple[int, int] | None = None
    """Denominators of the two, where each has its own."""
    is_tested: bool = True
    all_alike: bool = False
    """Whether no pair differs, in score or weight: then there is no interval, rather than one of no width."""

    @property
    def wald(self) -> stats.Interval | None:
        """Wald's interval for pairs of 0 and 1, as if each pair were independent of the others."""
        if not self.is_binary or self.all_alike:
            return None
        return stats.paired_wald(self.n_higher, self.n_lower, self.n_pairs)

    @property
    def p(self) -> float | None:
        """The exact two-sided p of the units that differ; of scores of 0 and 1 that is McNemar's test."""
        if self.ratios or not self.is_tested or not self.n_pairs:
            return None
        return stats.mcnemar_exact(self.n_higher, self.n_lower)


@dataclass(frozen=True)
class Contrast:
    """An arm, model or bench against another under one metric; values as scores are, None where undefined."""

    metric: str
    is_headline: bool
    pair: Pair
    """What is compared and what that is called."""
    first: CellKey
    second: CellKey
    grader: str
    published: Paired
    strict: Paired
    holm_p: float | None = None

    @property
    def axis(self) -> str:
        """What the two cells differ in."""
        return self.pair.axis

    @property
    def against(self) -> str:
        """The second value of the axis."""
        return getattr(self.second, self.axis)

    @property
    def mcnemar_p(self) -> float | None:
        """McNemar's exact p, where scores are 0 or 1."""
        return self.published.p if self.published.is_binary else None

    @property
    def sign_p(self) -> float | None:
        """The exact sign test over the units that differ, where scores are not 0 or 1."""
        return None if self.published.is_binary else self.published.p


class Compared(NamedTuple):
    """A pair and its two cells."""

    pair: Pair
    first: CellKey
    second: CellKey


def scores_of(
    ours: Cell, theirs: Cell, metric: str, reading: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return where both have a score, both scores there, and both weights there or None.

    Cells of two benches have the same units (``check_same_units``), so that places are pairs in all cases.
    """
    first, second = ours.scores[metric][reading], theirs.scores[metric][reading]
    both = ~(np.isnan(first) | np.isnan(second))
    weights = [cell.weights_of(metric, reading) for cell in (ours, theirs)]
    if all(one is None for one in weights):
        return both, first[both], second[both], None, None
    known = [np.ones(int(both.sum())) if one is None else one[both] for one in weights]
    return both, first[both], second[both], known[0], known[1]


def pair_up(
    ours: Cell, theirs: Cell, metric: str, reading: str, settings: TableSettings
) -> tuple[Paired, resampling.Sums | None]:
    """Compare two cells of the same units under one reading.

    Returns:
        The comparison, and what its interval is still to be drawn from: scores of 0 and 1 have theirs already
        (kinds of groups are drawn), all others share their draws.
    """
    if settings.metric(metric).of_answers:
        return two_ratios(ours, theirs, metric, reading)
    both, first, second, own, other = scores_of(ours, theirs, metric, reading)
    numbers = ours.groups[both]
    if settings.metric(metric).per_group:
        # Each group counts once: pairs are the groups' means over the units that both have.
        (first, _), (second, numbers) = (group_means(side, numbers) for side in (first, second))
    groups = numbers.tolist()
    n_pairs = len(groups)
    weighted = own is not None and other is not None
    binary = not weighted and bool(np.isin(np.concatenate([first, second]), (0.0, 1.0)).all())
    found = Paired(
        difference=None,
        n_pairs=n_pairs,
        n_dropped=int((~both).sum()),
        n_groups=len(set(groups)),
        n_higher=int((first > second).sum()),
        n_lower=int((first < second).sum()),
        is_binary=binary and n_pairs > 0,
        is_weighted=weighted,
        is_tested=settings.metric(metric).is_tested,
        all_alike=n_pairs > 0
        and bool((first == second).all())
        and (not weighted or bool((own == other).all())),
    )
    if not n_pairs:
        return found, None
    if found.all_alike:
        return replace(found, difference=0.0), None
    if own is not None and other is not None:
        tops, bottoms = [first * own, second * other], [own, other]
        value = float(tops[0].sum() / own.sum() - tops[1].sum() / other.sum())
        return replace(found, difference=value), resampling.sums(tops, bottoms, groups)
    found = replace(found, difference=float(first.sum() - second.sum()) / n_pairs)
    if not binary:
        return found, resampling.sums([first - second], [None], groups)
    interval = stats.bootstrap_difference(
        first, second, groups=groups, n_resamples=settings.bootstrap.n, seed=settings.bootstrap.seed
    )
    return replace(found, interval=interval), None


def two_ratios(ours: Cell, theirs: Cell, metric: str, reading: str) -> tuple[Paired, resampling.Sums | None]:
    """Compare two numbers whose denominators the answers decide, each over its own units.

    Returns:
        As ``pair_up``; whole groups of all units are drawn, of both cells the same.
    """
    scores = [cell.scores[metric][reading] for cell in (ours, theirs)]
    known = [~np.isnan(one) for one in scores]
    tops = [np.where(there, one, 0.0) for one, there in zip(scores, known, strict=True)]
    n_first, n_second = (int(there.sum()) for there in known)
    groups = ours.groups.tolist()
    found = Paired(
        difference=None,
        n_pairs=len(groups),
        n_dropped=0,
        n_groups=len(set(groups)),
        n_higher=0,
        n_lower=0,
        is_binary=False,
        is_weighted=False,
        ratios=(n_first, n_second),
        is_tested=False,
        all_alike=n_first > 0 and bool(np.array_equal(*scores, equal_nan=True)),
    )
    if not n_first or not n_second:
        return found, None
    found = replace(found, difference=float(tops[0].sum()) / n_first - float(tops[1].sum()) / n_second)
    if found.all_alike:
        return found, None
    return found, resampling.sums(tops, [there.astype(np.float64) for there in known], groups)


def pairs(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[Compared]:
    """Return every comparison that the table has both cells of, of the first time that models are asked."""
    found: dict[tuple[str, CellKey, CellKey], Compared] = {}
    first_cells = first_time(cells)
    check_same_units(first_cells, settings)
    for bench in dict.fromkeys(key.bench for key in first_cells):
        for pair in settings.contrasts:
            for key in first_cells:
                first = key._replace(**{pair.axis: pair.first})
                second = key._replace(**{pair.axis: pair.second})
                if key.bench == bench and first in first_cells and second in first_cells:
                    found[pair.axis, first, second] = Compared(pair, first, second)
    return list(found.values())


def _any_of(cells: Mapping[CellKey, Cell], bench: str) -> Cell | None:
    return next((cell for key, cell in cells.items() if key.bench == bench), None)


def check_same_units(cells: Mapping[CellKey, Cell], settings: TableSettings) -> None:
    """Check that benches that are compared have the same units, as cells of one bench always have.

    Raises:
        RemeasureError: they have not; differences would not be of pairs.
    """
    for pair in settings.contrasts:
        if pair.axis != "bench":
            continue
        one, other = (_any_of(cells, bench) for bench in (pair.first, pair.second))
        if one and other and one.units_sha256 != other.units_sha256:
            raise RemeasureError(
                f"{one.graded_path} and {other.graded_path}: benches {pair.first} ({one.score.n} items) and "
                f"{pair.second} ({other.score.n}) are compared and have different items; ask both the same "
                "questions (`dataset_of_bench`, `items_per_bench`, `items`), or take the contrast out"
            )


def compare(
    cells: Mapping[CellKey, Cell], compared: Compared, metrics: Sequence[str], settings: TableSettings
) -> list[Contrast]:
    """Compare two cells under some metrics; intervals of as many groups share their draws."""
    ours, theirs = cells[compared.first], cells[compared.second]
    places = [(metric, reading) for metric in metrics for reading in (PUBLISHED, STRICT)]
    found = {place: pair_up(ours, theirs, *place, settings) for place in places}
    waiting = {place: sums for place, (_, sums) in found.items() if sums is not None}
    drawn = resampling.intervals(
        list(waiting.values()),
        n_resamples=settings.bootstrap.n,
        seed=settings.bootstrap.seed,
        confidence=stats.CONFIDENCE,
    )
    pairs_of = {place: paired for place, (paired, _) in found.items()}
    for place, interval in zip(waiting, drawn, strict=True):
        pairs_of[place] = replace(pairs_of[place], interval=interval)
    return [
        Contrast(
            metric=metric,
            is_headline=metric == ours.score.headline,
            pair=compared.pair,
            first=ours.key,
            second=theirs.key,
            grader=ours.score.grader,
            published=pairs_of[metric, PUBLISHED],
            strict=pairs_of[metric, STRICT],
        )
        for metric in metrics
    ]


def shared_metrics(ours: Cell, theirs: Cell, settings: TableSettings) -> list[str]:
    """Return the metrics that both cells have, in the order of the table."""
    return [m.name for m in settings.metrics if m.name in ours.scores and m.name in theirs.scores]


def compare_all(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[Contrast]:
    """Return all contrasts, metric by metric, headline first; Holm's p is over each metric as one family."""
    by_metric: dict[str, list[Contrast]] = {metric.name: [] for metric in settings.metrics}
    for one in pairs(cells, settings):
        metrics = shared_metrics(cells[one.first], cells[one.second], settings)
        for contrast in compare(cells, one, metrics, settings):
            by_metric[contrast.metric].append(contrast)
    found = [contrast for here in by_metric.values() for contrast in _adjusted(here)]
    return sorted(found, key=lambda contrast: not contrast.is_headline)


def _adjusted(contrasts: Sequence[Contrast]) -> list[Contrast]:
    adjusted = stats.holm([contrast.published.p for contrast in contrasts])
    return [replace(contrast, holm_p=p) for contrast, p in zip(contrasts, adjusted, strict=True)]
