"""Every number once more for each part of its units: by class, by overlap, by whatever a grader divides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remeasure import means, stats
from remeasure.tables import wide
from remeasure.tables.inputs import PUBLISHED, STRICT, Cell, group_means
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

MACRO = "(macro average)"
AT_ONCE = 50_000
"""Scores that are held as lists at a time."""
COLUMNS = (
    "bench",
    "arm",
    "model",
    "metric",
    "better",
    "stratum",
    "level",
    "unit",
    "n_units",
    "n",
    "value",
    "low",
    "high",
    "interval_method",
    "n_strict",
    "value_strict",
    "n_levels",
    "n_levels_strict",
)


@dataclass(frozen=True)
class Part:
    """A number over one part of a cell's units, or the mean over all parts of a division; shares."""

    key: NumberKey
    stratum: str
    level: str
    """Name of the part, or ``MACRO``."""
    n_units: int
    """Units of the part, in the denominator or not."""
    n: int
    value: float | None
    n_strict: int
    value_strict: float | None
    interval: stats.Interval | None = None
    interval_method: str | None = None
    n_levels: int | None = None
    """Parts that have a value, of a mean over parts."""
    n_levels_strict: int | None = None


def _mean(values: np.ndarray, weights: np.ndarray | None) -> tuple[float | None, int]:
    known = ~np.isnan(values)
    if weights is None:
        n = int(known.sum())
        return (float(values[known].sum()) / n if n else None), n
    n = int(weights[known].sum())
    return (float((values[known] * weights[known]).sum()) / n if n else None), n


def _scored(cell: Cell, metric: str, chosen: np.ndarray, settings: TableSettings) -> means.Scored:
    """Return the published scores of some units."""
    values, weights = cell.scores[metric][PUBLISHED], cell.weights_of(metric, PUBLISHED)
    known = chosen & ~np.isnan(values)
    return means.Scored(
        scores=values[known].tolist(),
        groups=cell.groups[known].tolist(),
        weights=None if weights is None else weights[known].tolist(),
        shares=settings.metric(metric).kind == "share",
        per_group=settings.metric(metric).per_group,
    )


def _part(
    cell: Cell, key: NumberKey, stratum: str, place: int, number: means.MeanInterval, per_group: bool
) -> Part:
    found = cell.strata[stratum]
    chosen = found.codes == place

    def mean(reading: str) -> tuple[float | None, int]:
        values = cell.scores[key.metric][reading][chosen]
        if per_group:
            return _mean(group_means(values, cell.groups[chosen])[0], None)
        weights = cell.weights_of(key.metric, reading)
        return _mean(values, None if weights is None else weights[chosen])

    value_strict, n_strict = mean(STRICT)
    return Part(
        key=key,
        stratum=stratum,
        level=found.levels[place],
        n_units=int(chosen.sum()),
        n=mean(PUBLISHED)[1],
        value=number.mean,
        n_strict=n_strict,
        value_strict=value_strict,
        interval=number.interval,
        interval_method=number.method,
    )


def _macro(parts: list[Part]) -> Part:
    """Return the mean over parts, each counted once whatever its size; parts without a value are left out."""
    values = [part.value for part in parts if part.value is not None]
    strict = [part.value_strict for part in parts if part.value_strict is not None]
    return Part(
        key=parts[0].key,
        stratum=parts[0].stratum,
        level=MACRO,
        n_units=sum(part.n_units for part in parts),
        n=sum(part.n for part in parts),
        value=sum(values) / len(values) if values else None,
        n_strict=sum(part.n_strict for part in parts),
        value_strict=sum(strict) / len(strict) if strict else None,
        n_levels=len(values),
        n_levels_strict=len(strict),
    )


def parts(cells: Mapping[CellKey, Cell], settings: TableSettings) -> Iterator[Part]:
    """Yield the parts of every number: the mean of an averaged division, then its parts sorted by name."""
    for place, cell in cells.items():
        keys = wide.numbers({place: cell}, settings)
        n_at_once = max(1, AT_ONCE // max(1, len(cell.groups) * len(cell.strata)))
        for start in range(0, len(keys), n_at_once):
            yield from _parts_of(cell, keys[start : start + n_at_once], settings)


def _parts_of(cell: Cell, keys: Sequence[NumberKey], settings: TableSettings) -> Iterator[Part]:
    """Yield the parts of some numbers of a cell; those of as many groups share their draws."""
    orders = {
        stratum: sorted(range(len(found.levels)), key=found.levels.__getitem__)
        for stratum, found in cell.strata.items()
    }
    asked = [(key, stratum, level) for key in keys for stratum in orders for level in orders[stratum]]
    drawn = means.means_with_intervals(
        [_scored(cell, key.metric, cell.strata[s].codes == level, settings) for key, s, level in asked],
        n_resamples=settings.bootstrap.n,
        seed=settings.bootstrap.seed,
    )
    numbers = dict(zip(asked, drawn, strict=True))
    for key in keys:
        for stratum, order in orders.items():
            per_group = settings.metric(key.metric).per_group
            here = [
                _part(cell, key, stratum, level, numbers[key, stratum, level], per_group) for level in order
            ]
            if stratum in settings.averaged:
                yield _macro(here)
            yield from here


def row(part: Part, settings: TableSettings) -> dict[str, Any]:
    """Return the CSV row of a part; numbers in the table's unit with two decimals."""
    low, high = part.interval or (None, None)
    return {
        **part.key._asdict(),
        "better": settings.metric(part.key.metric).better,
        "stratum": part.stratum,
        "level": part.level,
        "unit": settings.unit_of(part.key.metric),
        "n_units": part.n_units,
        "n": part.n,
        "value": settings.written(part.value, part.key.metric),
        "low": settings.written(low, part.key.metric),
        "high": settings.written(high, part.key.metric),
        "interval_method": part.interval_method,
        "n_strict": part.n_strict,
        "value_strict": settings.written(part.value_strict, part.key.metric),
        "n_levels": part.n_levels,
        "n_levels_strict": part.n_levels_strict,
    }
