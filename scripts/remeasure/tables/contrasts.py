"""Differences between arms or models on the same units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remeasure import stats
from remeasure.tables.csv_text import significant
from remeasure.tables.inputs import PUBLISHED, Cell
from remeasure.tables.settings import CellKey, TableSettings

COLUMNS = (
    "bench",
    "metric",
    "better",
    "axis",
    "arm",
    "model",
    "against",
    "unit",
    "difference",
    "low",
    "high",
    "n_pairs",
    "n_groups",
    "n_only_arm",
    "n_only_model",
    "n_only_against",
    "mcnemar_p",
    "holm_p",
    "grader",
    "interval_method",
)


@dataclass(frozen=True)
class Contrast:
    """One arm or model against another under one metric, published reading; shares, None where undefined."""

    metric: str
    is_headline: bool
    axis: str
    """What the two cells differ in."""
    first: CellKey
    second: CellKey
    grader: str
    difference: float | None
    """First minus second."""
    interval: stats.Interval | None
    n_pairs: int
    """Units that are in the denominator of both."""
    n_groups: int
    n_only_first: int | None
    """Units that score 1 in the first only; None where scores are not 0 or 1."""
    n_only_second: int | None
    mcnemar_p: float | None
    holm_p: float | None = None

    @property
    def against(self) -> str:
        """The second value of the axis."""
        return getattr(self.second, self.axis)


def compare(ours: Cell, theirs: Cell, metric: str, axis: str, settings: TableSettings) -> Contrast:
    """Compare two cells of the same units over those that both have in their denominator."""
    first, second = ours.scores[metric][PUBLISHED], theirs.scores[metric][PUBLISHED]
    both = ~(np.isnan(first) | np.isnan(second))
    first, second, groups = first[both], second[both], ours.groups[both].tolist()
    n_pairs = len(groups)
    binary = n_pairs > 0 and bool(np.isin(np.concatenate([first, second]), (0.0, 1.0)).all())
    only_first = int((first > second).sum()) if binary else None
    only_second = int((first < second).sum()) if binary else None
    return Contrast(
        metric=metric,
        is_headline=metric == ours.score.headline,
        axis=axis,
        first=ours.key,
        second=theirs.key,
        grader=ours.score.grader,
        difference=float(first.sum() - second.sum()) / n_pairs if n_pairs else None,
        interval=stats.bootstrap_difference(
            first, second, groups=groups, n_resamples=settings.bootstrap.n, seed=settings.bootstrap.seed
        ),
        n_pairs=n_pairs,
        n_groups=len(set(groups)),
        n_only_first=only_first,
        n_only_second=only_second,
        mcnemar_p=stats.mcnemar_exact(only_first, only_second) if binary else None,
    )


def pairs(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[tuple[str, CellKey, CellKey]]:
    """Return axis, first and second cell of every comparison that the table has both cells of."""
    found: dict[tuple[str, CellKey, CellKey], None] = {}
    benches = dict.fromkeys(key.bench for key in cells)
    for bench in benches:
        for pair in settings.contrasts:
            for key in cells:
                first = key._replace(**{pair.axis: pair.first})
                second = key._replace(**{pair.axis: pair.second})
                if key.bench == bench and first in cells and second in cells:
                    found[pair.axis, first, second] = None
    return list(found)


def compare_all(cells: Mapping[CellKey, Cell], settings: TableSettings) -> list[Contrast]:
    """Return all contrasts, metric by metric, headline first; Holm's p is over each metric as one family."""
    found: list[Contrast] = []
    shown = pairs(cells, settings)
    for metric in settings.metrics:
        here = [
            compare(cells[first], cells[second], metric.name, axis, settings)
            for axis, first, second in shown
            if metric.name in cells[first].scores and metric.name in cells[second].scores
        ]
        found += _adjusted(here)
    return sorted(found, key=lambda contrast: not contrast.is_headline)


def _adjusted(contrasts: Sequence[Contrast]) -> list[Contrast]:
    adjusted = stats.holm([contrast.mcnemar_p for contrast in contrasts])
    return [replace(contrast, holm_p=p) for contrast, p in zip(contrasts, adjusted, strict=True)]


def row(contrast: Contrast, settings: TableSettings) -> dict[str, Any]:
    """Return the CSV row of a contrast; differences in points of the table's unit."""
    low, high = contrast.interval or (None, None)
    clustered = "paired clustered bootstrap" if contrast.n_groups < contrast.n_pairs else "paired bootstrap"
    method = f"{clustered} 95 %, {settings.bootstrap.n} samples, seed {settings.bootstrap.seed}"
    only = {"n_only_arm": None, "n_only_model": None, f"n_only_{contrast.axis}": contrast.n_only_first}
    return {
        "bench": contrast.first.bench,
        "metric": contrast.metric,
        "better": settings.metric(contrast.metric).better,
        "axis": contrast.axis,
        "arm": contrast.first.arm,
        "model": contrast.first.model,
        "against": contrast.against,
        "unit": f"{settings.unit} points" if settings.unit == "percent" else settings.unit,
        "difference": settings.scaled(contrast.difference, 2),
        "low": settings.scaled(low, 2),
        "high": settings.scaled(high, 2),
        "n_pairs": contrast.n_pairs,
        "n_groups": contrast.n_groups,
        **only,
        "n_only_against": contrast.n_only_second,
        "mcnemar_p": significant(contrast.mcnemar_p),
        "holm_p": significant(contrast.holm_p),
        "grader": contrast.grader,
        "interval_method": method if contrast.interval else "undefined: fewer than two groups",
    }
