"""How far an axis reaches: shares to one, differences as far to either side, other numbers as they need."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from remeasure.tables.inputs import Cell
from remeasure.tables.settings import TableSettings


class Scale(NamedTuple):
    """Ends of an axis and its ticks with their words, in what is printed."""

    low: float
    high: float
    ticks: tuple[float, ...]
    words: tuple[str, ...]


def nice(value: float) -> float:
    """Return the smallest of 1, 2, 2.5 or 5 times a power of ten that is not below a value above 0."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def scale(kind: str, factor: float, values: Iterable[float]) -> Scale:
    """Return the axis of values of a kind of metric.

    Args:
        kind: ``MetricTitle.kind``.
        factor: what a share of one is printed as.
        values: all values and bounds, as printed.
    """
    if kind == "share":
        words = ("0", "", f"{factor / 2:g}", "", f"{factor:g}")
        return Scale(0, factor, tuple(step * factor / 4 for step in range(5)), words)
    reach = nice(max((abs(value) for value in values), default=0.0) or 0.01 * factor)
    if kind == "number":
        return Scale(0, reach, (0, reach / 2, reach), ("0", f"{reach / 2:g}", f"{reach:g}"))
    return Scale(-reach, reach, (-reach, 0, reach), (f"−{reach:g}", "0", f"{reach:g}"))


def of_metric(
    metric: str, cells: Iterable[Cell], settings: TableSettings, beside: Iterable[float] = ()
) -> Scale:
    """Return the axis of a metric's values in some cells, both readings with their intervals.

    Args:
        metric: whose values.
        cells: that are shown.
        settings: of the table.
        beside: further values that must lie on it, as printed.
    """
    found = [cell.score.metrics[metric] for cell in cells if metric in cell.score.metrics]
    numbers = [number for one in found for number in (one.published, one.strict)]
    factor = settings.factor_of(metric)
    values = [
        value * factor
        for number in numbers
        for value in (number.value, *(number.interval or ()))
        if value is not None
    ] + list(beside)
    kind = settings.metric(metric).kind
    if kind == "number" and min(values, default=0.0) < 0:
        kind = "difference"
    return scale(kind, factor, values)
