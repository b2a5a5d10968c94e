"""Every number once more for each part of its units: by class, by overlap, by whatever a grader divides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from remeasure import stats
from remeasure.tables import wide
from remeasure.tables.inputs import PUBLISHED, STRICT, Cell
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

MACRO = "(macro average)"
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


def _mean(values: np.ndarray) -> tuple[float | None, int]:
    known = values[~np.isnan(values)]
    return (float(known.sum()) / len(known) if len(known) else None), len(known)


def _part(cell: Cell, key: NumberKey, stratum: str, place: int, settings: TableSettings) -> Part:
    found = cell.strata[stratum]
    chosen = found.codes == place
    scores = cell.scores[key.metric]
    published = scores[PUBLISHED][chosen]
    known = ~np.isnan(published)
    number = stats.mean_with_interval(
        published[known].tolist(),
        cell.groups[chosen][known].tolist(),
        n_resamples=settings.bootstrap.n,
        seed=settings.bootstrap.seed,
    )
    value_strict, n_strict = _mean(scores[STRICT][chosen])
    return Part(
        key=key,
        stratum=stratum,
        level=found.levels[place],
        n_units=int(chosen.sum()),
        n=int(known.sum()),
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
    for key in wide.numbers(cells, settings):
        cell = cells[key.cell]
        for stratum, found in cell.strata.items():
            order = sorted(range(len(found.levels)), key=found.levels.__getitem__)
            here = [_part(cell, key, stratum, place, settings) for place in order]
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
        "unit": settings.unit,
        "n_units": part.n_units,
        "n": part.n,
        "value": settings.scaled(part.value, 2),
        "low": settings.scaled(low, 2),
        "high": settings.scaled(high, 2),
        "interval_method": part.interval_method,
        "n_strict": part.n_strict,
        "value_strict": settings.scaled(part.value_strict, 2),
        "n_levels": part.n_levels,
        "n_levels_strict": part.n_levels_strict,
    }
