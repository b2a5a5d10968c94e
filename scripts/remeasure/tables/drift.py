"""How far numbers move when all is asked again: each arm, what two arms share, and their difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from remeasure import repeats
from remeasure.tables import contrasts
from remeasure.tables.contrast_rows import unit_of
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import PUBLISHED, STRICT, Cell, group_means
from remeasure.tables.settings import CellKey, Pair, TableSettings

TINY = 1e-12
"""Sums of floating-point numbers that are equal on paper differ by less."""
COLUMNS = (
    "bench",
    "contrast",
    "metric",
    "better",
    "axis",
    "arm",
    "model",
    "against",
    "reading",
    "unit",
    "n_repeats",
    "n_units",
    "n_dropped",
    "values",
    "values_against",
    "differences",
    "drift",
    "drift_against",
    "drift_common",
    "drift_contrast",
    "ratio",
    "n_changed",
    "n_changed_against",
    "contrast_drifts_less",
    "grader",
)


@dataclass(frozen=True)
class Drift:
    """Two arms or models, asked several times, under one metric and one reading; values as scores are."""

    metric: str
    is_headline: bool
    reading: str
    pair: Pair
    first: CellKey
    second: CellKey
    grader: str
    n_repeats: int
    """How often everything was asked."""
    n_units: int
    """Units that are in the denominator of both sides every time: all numbers here are of these.

    Where answers decide what is in a denominator, values are of each cell's own units, and this counts those
    that all have.
    """
    n_dropped: int
    values: tuple[tuple[float, ...], tuple[float, ...]]
    """Of the first and of the second, time by time; empty without units."""
    n_changed: tuple[int, int]
    """Units whose score is not the same every time."""

    @property
    def differences(self) -> tuple[float, ...]:
        """First minus second, time by time."""
        return tuple(a - b for a, b in zip(*self.values, strict=True))

    @property
    def arms(self) -> tuple[float | None, float | None]:
        """The drift of the first and of the second."""
        return drift(self.values[0]), drift(self.values[1])

    @property
    def arm(self) -> float | None:
        """The mean of the two."""
        first, second = self.arms
        return None if first is None or second is None else (first + second) / 2

    @property
    def common(self) -> float | None:
        """The drift of what both share: of the mean of the two, time by time."""
        return drift([(a + b) / 2 for a, b in zip(*self.values, strict=True)])

    @property
    def contrast(self) -> float | None:
        """The drift of first minus second."""
        return drift(self.differences)

    @property
    def ratio(self) -> float | None:
        """The contrast's drift to that of an arm; None where no arm drifts."""
        return None if not self.arm or self.contrast is None else self.contrast / self.arm

    @property
    def drifts_less(self) -> bool | None:
        """Whether the difference drifts less than the values it is made of; None where nothing drifts."""
        if self.arm is None or self.contrast is None or (not self.arm and not self.contrast):
            return None
        return self.contrast < self.arm - TINY


def drift(values: Sequence[float]) -> float | None:
    """Return the mean absolute difference over all pairs of repeats.

    Edges:
        None for fewer than two repeats; exactly 0 where all are alike.
    """
    apart = [abs(one - other) for one, other in combinations(values, 2)]
    if not apart:
        return None
    mean = sum(apart) / len(apart)
    return 0.0 if mean < TINY else mean


def _mean(scores: np.ndarray, weights: np.ndarray | None) -> float:
    if weights is None:
        return float(scores.sum()) / len(scores)
    return float((scores * weights).sum() / weights.sum())


def _changed(scores: Sequence[np.ndarray]) -> int:
    return int((np.ptp(np.stack(scores), axis=0) > TINY).sum())


def _value(cell: Cell, metric: str, reading: str, known: np.ndarray, per_group: bool) -> float:
    """Return the mean over some units of a cell, or over their groups."""
    scores = cell.scores[metric][reading][known]
    if per_group:
        return _mean(group_means(scores, cell.groups[known])[0], None)
    weights = cell.weights_of(metric, reading)
    return _mean(scores, None if weights is None else weights[known])


def of_pair(
    sides: tuple[Sequence[Cell], Sequence[Cell]],
    metric: str,
    reading: str,
    pair: Pair,
    *,
    per_group: bool = False,
    of_answers: bool = False,
) -> Drift:
    """Return how far two cells and their difference drift.

    Args:
        sides: the cells of the first and of the second, time by time.
        metric: name.
        reading: published or strict.
        pair: what is compared.
        per_group: whether the metric is the mean of the groups' means.
        of_answers: whether an answer decides if it is in the denominator: each cell has its own.
    """
    first = sides[0][0]
    scores = [[cell.scores[metric][reading] for cell in side] for side in sides]
    known = ~np.isnan(np.stack([one for side in scores for one in side])).any(axis=0)
    own = [[~np.isnan(one) if of_answers else known for one in side] for side in scores]
    has_values = all(one.any() for side in own for one in side)
    values = [
        tuple(
            _value(cell, metric, reading, units, per_group)
            for cell, units in zip(side, masks, strict=True)
            if has_values
        )
        for side, masks in zip(sides, own, strict=True)
    ]
    return Drift(
        metric=metric,
        is_headline=metric == first.score.headline,
        reading=reading,
        pair=pair,
        first=first.key,
        second=sides[1][0].key,
        grader=first.score.grader,
        n_repeats=len(sides[0]),
        n_units=int(known.sum()),
        n_dropped=int((~known).sum()),
        values=(values[0], values[1]),
        n_changed=(_changed([s[known] for s in scores[0]]), _changed([s[known] for s in scores[1]])),
    )


def times(cells: Mapping[CellKey, Cell], key: CellKey) -> list[Cell]:
    """Return a cell and all its repeats, in order."""
    found = [cell for other, cell in cells.items() if _plain(other) == key]
    return sorted(found, key=lambda cell: repeats.parse(cell.key.model)[1])


def _plain(key: CellKey) -> CellKey:
    return key._replace(model=repeats.model_of(key.model))


def of_table(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[Drift]:
    """Return the drift of every comparison, metric by metric, headline first; none without repeats."""
    found: dict[str, list[Drift]] = {metric.name: [] for metric in settings.metrics}
    for one in contrasts.pairs(cells, settings):
        sides = (times(cells, one.first), times(cells, one.second))
        n = min(map(len, sides))
        if n < 2:
            continue
        sides = (sides[0][:n], sides[1][:n])
        for metric in settings.metrics:
            if all(metric.name in cell.scores for side in sides for cell in side):
                found[metric.name] += [
                    of_pair(
                        sides,
                        metric.name,
                        reading,
                        one.pair,
                        per_group=metric.per_group,
                        of_answers=metric.of_answers,
                    )
                    for reading in (PUBLISHED, STRICT)
                ]
    together = [drift for here in found.values() for drift in here]
    return sorted(together, key=lambda drift: not drift.is_headline)


def row(one: Drift, settings: TableSettings) -> dict[str, Any]:
    """Return the CSV row of a drift; several values are separated by semicolons, in order of the repeats."""
    metric = one.metric

    def written(value: float | None) -> str | None:
        return settings.written(value, metric)

    def several(values: Sequence[float]) -> str:
        return "; ".join(str(written(value)) for value in values)

    less = one.drifts_less
    return {
        "bench": one.first.bench,
        "contrast": one.pair.name,
        "metric": metric,
        "better": settings.metric(metric).better,
        "axis": one.pair.axis,
        "arm": one.first.arm,
        "model": one.first.model,
        "against": getattr(one.second, one.pair.axis),
        "reading": one.reading,
        "unit": unit_of(metric, settings),
        "n_repeats": one.n_repeats,
        "n_units": one.n_units,
        "n_dropped": one.n_dropped,
        "values": several(one.values[0]),
        "values_against": several(one.values[1]),
        "differences": several(one.differences),
        "drift": written(one.arms[0]),
        "drift_against": written(one.arms[1]),
        "drift_common": written(one.common),
        "drift_contrast": written(one.contrast),
        "ratio": decimals(one.ratio, 3),
        "n_changed": one.n_changed[0],
        "n_changed_against": one.n_changed[1],
        "contrast_drifts_less": "nothing drifts" if less is None and one.n_units else _yes(less),
        "grader": one.grader,
    }


def _yes(said: bool | None) -> str | None:
    return None if said is None else "yes" if said else "no"
