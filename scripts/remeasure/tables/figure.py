"""The picture of a table: bars by arm, points by metric or conditions with their differences."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remeasure.tables import figure_bars, figure_blocks, figure_conditions, figure_panels, figure_points, wide
from remeasure.tables.contrasts import Contrast
from remeasure.tables.figure_style import ALARM, FAINT, LEFT_IN, PT_PER_IN, STYLE, header, with_words, wrapped
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]
EXTRA_LINE_IN = (0.21, 0.15)
"""Height of each further line of title and subtitle."""
WARNED_LINES = 6
"""At most so many lines has a subtitle that begins with a warning."""


def summary(cells: Cells, settings: TableSettings) -> str:
    """Return the picture in words, for readers who cannot see it."""
    lines = []
    for row in settings.rows:
        values = []
        for column in settings.columns:
            key = wide.number_at(cells, row, column, settings)
            if key:
                number = wide.printed(cells[key.cell], key.metric, settings) or "none graded"
                values.append(f"{settings.place_title(column, settings.column_axes)} {number}")
        lines.append(f"{settings.place_title(row, settings.row_axes)}: {', '.join(values)}.")
    kind = "Points" if "metric" in settings.column_axes else "Bars"
    return f"{kind} in {settings.unit}, run {settings.run}, with 95 percent intervals. " + " ".join(lines)


def _subtitle(settings: TableSettings, warning: str | None) -> str:
    text = f"Run {settings.run}: {settings.run_title}; {settings.unit}"
    theirs = "published values" if settings.blocks else "paper's values"
    text += f"; not comparable with the {theirs}" if settings.not_comparable else ""
    return text if warning is None else f"{warning} {text}"


def _conditions(contrasts: Sequence[Contrast]) -> Callable[..., None]:
    """Return what draws conditions, called as the others are; no published value is drawn beside them."""

    def draw(figure: Any, cells: Cells, _: Printed, settings: TableSettings, down_in: float) -> None:
        figure_conditions.draw(figure, cells, contrasts, settings, down_in)

    return draw


def _words(cells: Cells, settings: TableSettings, contrasts: Sequence[Contrast]) -> str:
    if settings.figure == "conditions":
        return figure_panels.summary(cells, contrasts, settings)
    return figure_blocks.summary(cells, settings) if settings.blocks else summary(cells, settings)


def render(
    cells: Cells,
    published: Printed,
    settings: TableSettings,
    contrasts: Sequence[Contrast] = (),
    warning: str | None = None,
) -> str:
    """Return the SVG; the same cells give the same text. Columns of metrics become panels of points.

    Where the study asks for conditions, these and their differences are shown instead.

    Args:
        cells: all cells.
        published: values of the paper.
        settings: of the table.
        contrasts: differences that are drawn too.
        warning: a sentence that the subtitle begins with.
    """
    import matplotlib

    with matplotlib.rc_context(STYLE):
        from matplotlib.figure import Figure

        if settings.figure == "conditions":
            draw, (width, height) = (
                _conditions(contrasts),
                figure_conditions.size_in(cells, contrasts, settings),
            )
        elif settings.blocks:
            draw, (width, height) = figure_blocks.draw, figure_blocks.size_in(cells, settings)
        elif "metric" in settings.column_axes:
            draw, (width, height) = figure_points.draw, figure_points.size_in(cells, settings)
        else:
            draw, (width, height) = figure_bars.draw, figure_bars.size_in(settings)
        room = (width - 2 * LEFT_IN) * PT_PER_IN
        title = wrapped(settings.title, room, 12, 2, "bold")
        subtitle = wrapped(_subtitle(settings, warning), room, 8.5, 2 if warning is None else WARNED_LINES)
        height += EXTRA_LINE_IN[0] * (len(title) - 1) + EXTRA_LINE_IN[1] * (len(subtitle) - 1)
        colour = FAINT if warning is None else ALARM
        figure = Figure(figsize=(width, height), facecolor="white")
        draw(figure, cells, published, settings, header(figure, title, subtitle, colour))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    words = _words(cells, settings, contrasts)
    return with_words(out.getvalue(), settings.title, words if warning is None else f"{warning} {words}")
