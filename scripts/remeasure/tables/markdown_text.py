"""How numbers, names and tables of a page are written."""

from collections.abc import Iterable, Sequence

from remeasure import showing
from remeasure.tables.settings import CellKey, NumberKey, TableSettings


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], n_text: int) -> str:
    """Return a Markdown table; the first ``n_text`` columns are aligned left, the others right."""
    rule = [":--" if place < n_text else "--:" for place in range(len(header))]
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


def span(interval: tuple[float, float] | None, settings: TableSettings) -> str:
    """Return an interval in the table's unit."""
    if interval is None:
        return "undefined"
    return f"{settings.scaled(interval[0])} to {settings.scaled(interval[1])}"


def p_value(value: float | None) -> str:
    """Return a p value with four decimals."""
    return "–" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def n_of(n: int, n_all: int) -> str:
    """Return a number of how many."""
    return f"{n:,} of {n_all:,}"


def value_text(share: float | None, settings: TableSettings) -> str:
    """Return a number in the table's unit."""
    return settings.scaled(share) or "none graded"


def points(share: float | None, settings: TableSettings) -> str:
    """Return a difference in the table's unit, with its sign."""
    text = settings.scaled(share)
    return "undefined" if text is None else text if text.startswith("-") else f"+{text}"
