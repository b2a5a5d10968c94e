"""How numbers, names and tables of a page are written."""

from collections.abc import Iterable, Sequence

from remeasure import showing
from remeasure.tables.settings import CellKey, NumberKey, TableSettings


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], n_text: int, n_last: int = 0) -> str:
    """Return a Markdown table; the first and the last so many columns are aligned left, the others right."""
    left = {*range(n_text), *range(len(header) - n_last, len(header))}
    rule = [":--" if place in left else "--:" for place in range(len(header))]
    lines = [list(header), *rows]
    escaped = [[showing.markdown(field) for field in row] for row in lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in [escaped[0], rule, *escaped[1:]]) + "\n"


def axes_of(settings: TableSettings) -> tuple[str, ...]:
    """Return the axes that tell cells apart; of a table of one cell its bench."""
    return settings.open_axes or ("bench",)


def titles(key: CellKey | NumberKey, axes: Iterable[str], settings: TableSettings) -> list[str]:
    """Return how the table calls a place on these axes."""
    return [settings.title_of(axis, getattr(key, axis)) for axis in axes]


def axis_names(axes: Iterable[str]) -> list[str]:
    """Return axes as headers."""
    return [axis.capitalize() for axis in axes]


def span(interval: tuple[float, float] | None, metric: str, settings: TableSettings) -> str:
    """Return an interval of a metric's values."""
    if interval is None:
        return "undefined"
    return f"{settings.rounded(interval[0], metric)} to {settings.rounded(interval[1], metric)}"


def p_value(value: float | None) -> str:
    """Return a p value with four decimals."""
    return "–" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def n_of(n: int, n_all: int) -> str:
    """Return a number of how many."""
    return f"{n:,} of {n_all:,}"


def value_text(value: float | None, metric: str, settings: TableSettings) -> str:
    """Return a value of a metric."""
    return settings.rounded(value, metric) or "none graded"


def points(difference: float | None, metric: str, settings: TableSettings) -> str:
    """Return a difference with its sign, and where lower is better with the words that say so."""
    text = settings.rounded(difference, metric)
    if text is None:
        return "undefined"
    signed = text if text.startswith("-") else f"+{text}"
    return signed if settings.metric(metric).better == "high" else f"{signed} (lower is better)"


def more_in(settings: TableSettings, part: str, also: str = "") -> str:
    """Say where all metrics are, if the page shows only those of the layout; or an empty text."""
    if not settings.is_shortened:
        return ""
    what = f"{len(settings.metrics)} metrics{f', {also},' if also else ''}"
    return f"Shown are the metrics of the layout; all {what} are in `{settings.table}.{part}.csv`."
