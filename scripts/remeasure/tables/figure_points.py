"""A panel per column of the layout, a point per row: for tables whose columns are metrics."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from remeasure.tables import figure_scale, wide
from remeasure.tables.cells import differing, failures
from remeasure.tables.figure_bars import compared_with
from remeasure.tables.figure_style import (
    ALARM,
    FAINT,
    GRID,
    INK,
    LEFT_IN,
    N_ACROSS,
    PT_PER_IN,
    name_row,
    plain,
    wrapped,
)
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, Place, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]

BETTER = {"high": "#0072B2", "low": "#D55E00"}
"""Colour of a metric by its better direction; told apart with every kind of colour vision."""
SHADE = "#F0F5FA"
WIDTH_IN = 9.7
NAMES_IN = 1.72
"""Room for the names of rows, left of the panels."""
AXIS_IN = 1.38
VALUES_IN = 1.03
"""Room for value and n, right of each axis."""
GAP_IN = 0.16
ROW_IN = 0.3
TITLE_PT = 9.5
NAME_PT = 8.0
FOOT_PT = 7.5


NOT_COMPARABLE = {"color": "none", "markerfacecolor": "none", "mec": "#8A8A8A", "mew": 1.0}


class Marks(NamedTuple):
    """How published values are drawn."""

    shows_all: bool = False
    """Whether also those that are not comparable."""
    comparable: Mapping[str, Any] = {"color": "white", "mec": INK}


COMPARABLE, ALL = Marks(), Marks(True, {"color": INK, "mec": INK})


class Size(NamedTuple):
    """What the picture's height is made of, in inches."""

    title: float
    panel: float
    foot: float
    n_down: int

    @property
    def pitch(self) -> float:
        """From one row of panels to the next."""
        return self.title + self.panel + 0.3


def _titles(settings: TableSettings) -> list[list[str]]:
    """Return the lines of every panel's title."""
    room = (AXIS_IN + VALUES_IN) * PT_PER_IN
    texts = [settings.place_title(column, settings.column_axes) for column in settings.columns]
    return [wrapped(text, room, TITLE_PT, 2, "bold") for text in texts]


def failure_lines(cells: Cells, settings: TableSettings) -> list[str]:
    """Return one line for every cell that has failures."""
    lines = []
    for key, cell in cells.items():
        found = [f"{count:,} {name.replace('_', ' ')}" for name, count in failures(cell).items() if count]
        if found:
            axes = settings.open_axes or ("bench",)
            name = ", ".join(settings.title_of(axis, getattr(key, axis)) for axis in axes)
            lines.append(f"{name}: {', '.join(found)} of {cell.score.n_answers:,} answers")
    return lines


def _foot(cells: Cells, settings: TableSettings) -> tuple[list[str], list[str]]:
    """Return what stands below the panels: what is what, and what failed."""
    room = (WIDTH_IN - 2 * LEFT_IN) * PT_PER_IN
    shaded = [m.title for m in settings.metrics if any(c.score.headline == m.name for c in cells.values())]
    text = "Beside each point: value, and units in the denominator (strict: after the comma). Shaded: "
    text += f"{', '.join(shaded)}."
    lines = failure_lines(cells, settings)
    if not lines:
        text += " No answer failed."
    return wrapped(text, room, FOOT_PT, 2), [
        line for failed in lines for line in wrapped(failed, room, FOOT_PT, 2)
    ]


def size(cells: Cells, settings: TableSettings) -> Size:
    """Return what the height of the panels is made of."""
    n_lines = max(len(title) for title in _titles(settings))
    usual, failed = _foot(cells, settings)
    return Size(
        title=0.3 + 0.155 * n_lines,
        panel=ROW_IN * len(settings.rows),
        foot=0.22 + 0.14 * (len(usual) + len(failed)),
        n_down=-(-len(settings.columns) // N_ACROSS),
    )


def size_in(cells: Cells, settings: TableSettings) -> tuple[float, float]:
    """Return width and height of the picture below a header of one line each, in inches."""
    here = size(cells, settings)
    return WIDTH_IN, 0.5 + 0.24 + here.n_down * here.pitch + here.foot


def _point(axes: Any, place: int, cell: Cell, key: NumberKey, settings: TableSettings) -> None:
    """Draw one number: point and interval, a ring for the strict reading, value and n at the right."""
    metric, factor = cell.score.metrics[key.metric], settings.factor_of(key.metric)
    number, strict = metric.published, metric.strict
    colour = BETTER[settings.metric(key.metric).better]
    if number.interval:
        low, high = (bound * factor for bound in number.interval)
        axes.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=3)
    if strict.value is not None:
        axes.plot(
            strict.value * factor,
            place,
            marker="o",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=0.8,
            clip_on=False,
            zorder=4,
        )
    if number.value is not None:
        axes.plot(
            number.value * factor, place, marker="o", markersize=4.4, color=colour, clip_on=False, zorder=5
        )
    text = wide.rounded(cell, key.metric, settings) or "–"
    _beside(axes, place, 40, text, "right", 8.2, INK)
    others = "" if strict.n == number.n else f", {strict.n:,}"
    _beside(axes, place, 44, f"n {number.n:,}{others}", "left", 6.8, FAINT)


def _beside(axes: Any, place: int, right_pt: float, text: str, ha: str, size_pt: float, colour: str) -> None:
    axes.annotate(
        text,
        (1, place),
        xycoords=("axes fraction", "data"),
        xytext=(right_pt, 0),
        textcoords="offset points",
        ha=ha,
        va="center_baseline",
        fontsize=size_pt,
        color=colour,
        annotation_clip=False,
    )


def _diamond(axes: Any, place: int, value: float, comparable: bool, marks: Marks) -> None:
    """Draw a published value: filled where it may be compared with ours, hollow and grey where not."""
    if comparable or marks.shows_all:
        colours = marks.comparable if comparable else NOT_COMPARABLE
        axes.plot(value, place, marker="D", markersize=4.2, clip_on=False, zorder=6, **colours)


def _panel(
    axes: Any,
    column: Place,
    title: Sequence[str],
    cells: Cells,
    published: Printed,
    settings: TableSettings,
    marks: Marks,
) -> None:
    metric = settings.metric(column.at["metric"])
    drawn = []
    headline = False
    for place, row in enumerate(settings.rows):
        axes.axhline(place, color=GRID, linewidth=0.7, zorder=1)
        key = wide.number_at(cells, row, column, settings)
        if key is None:
            _beside(axes, place, 40, "no cell", "right", 6.8, FAINT)
            continue
        cell = cells[key.cell]
        headline = headline or cell.score.headline == key.metric
        _point(axes, place, cell, key, settings)
        there = published.get(key)
        if there:
            _diamond(axes, place, there.value, not differing(cell.score, there, settings), marks)
            drawn += [there.value] if marks.shows_all else []
    for number, line in enumerate(reversed(title)):
        _above(axes, 17 + 11.2 * number, line, fontsize=TITLE_PT, fontweight="bold")
    words = f"{'higher' if metric.better == 'high' else 'lower'} is better"
    _above(axes, 6.5, words, fontsize=7, color=BETTER[metric.better])
    axes.set_facecolor(SHADE if headline else "white")
    scale = figure_scale.of_metric(metric.name, cells.values(), settings, drawn)
    axes.set_xlim(scale.low, scale.high)
    axes.set_ylim(len(settings.rows) - 0.5, -0.5)
    axes.set_xticks(scale.ticks, scale.words)
    axes.set_yticks([])
    axes.tick_params(axis="x", length=0, labelsize=7, labelcolor=FAINT, pad=3)
    axes.grid(axis="x", color=GRID, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def _above(axes: Any, up_pt: float, text: str, **style: Any) -> None:
    axes.annotate(
        plain(text),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, up_pt),
        textcoords="offset points",
        va="baseline",
        **style,
    )


def _names(axes: Any, settings: TableSettings) -> None:
    """Write the names of the rows left of a panel."""
    for place, row in enumerate(settings.rows):
        lines = wrapped(
            settings.place_title(row, settings.row_axes), (NAMES_IN - 0.12) * PT_PER_IN, NAME_PT, 2
        )
        name_row(axes, place, lines, NAME_PT, gap_pt=10)


def _published_keys(cells: Cells, published: Printed, settings: TableSettings, marks: Marks) -> list[Any]:
    """Return the entries of the legend for the diamonds that are drawn."""
    from matplotlib.lines import Line2D

    diamond = {"linestyle": "", "marker": "D", "markersize": 4.2}
    here = [(cells[key.cell].score, there) for key, there in published.items() if key.cell in cells]
    keys = []
    if compared_with(cells, published, settings):
        label = "published, comparable" if marks.shows_all else "published"
        keys.append(Line2D([], [], label=label, **diamond, **marks.comparable))
    if marks.shows_all and any(differing(score, there, settings) for score, there in here):
        keys.append(Line2D([], [], label="published, not comparable", **diamond, **NOT_COMPARABLE))
    return keys


def draw_legend(
    figure: Any,
    cells: Cells,
    published: Printed,
    settings: TableSettings,
    down_in: float,
    marks: Marks = COMPARABLE,
) -> None:
    """Say below the header what the marks are."""
    from matplotlib.lines import Line2D

    dark = {"color": INK, "markersize": 4.4}
    keys = [
        Line2D([], [], marker="o", linewidth=1.6, label="published reading, 95 % interval", **dark),
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=8,
            mfc="none",
            mec=INK,
            mew=0.8,
            label="strict reading",
        ),
    ]
    keys += _published_keys(cells, published, settings, marks)
    figure.legend(
        handles=keys,
        loc="upper left",
        bbox_to_anchor=(LEFT_IN / WIDTH_IN, 1 - down_in / figure.get_figheight()),
        ncols=len(keys),
        frameon=False,
        fontsize=8.5,
        handlelength=1.8,
        columnspacing=1.6,
        borderpad=0,
        borderaxespad=0,
    )


def draw_panels(
    figure: Any,
    cells: Cells,
    published: Printed,
    settings: TableSettings,
    down_in: float,
    marks: Marks = COMPARABLE,
) -> None:
    """Draw all panels below what reaches ``down_in`` inches down."""
    here, height = size(cells, settings), figure.get_figheight()
    for number, (column, title) in enumerate(zip(settings.columns, _titles(settings), strict=True)):
        down, across = divmod(number, N_ACROSS)
        left = LEFT_IN + NAMES_IN + across * (AXIS_IN + VALUES_IN + GAP_IN)
        bottom = height - (down_in + 0.24 + down * here.pitch + here.title + here.panel)
        axes = figure.add_axes((left / WIDTH_IN, bottom / height, AXIS_IN / WIDTH_IN, here.panel / height))
        _panel(axes, column, title, cells, published, settings, marks)
        if not across:
            _names(axes, settings)


def draw_foot(figure: Any, cells: Cells, settings: TableSettings) -> None:
    """Write below everything what is what, and what failed."""
    height = figure.get_figheight()
    usual, failed = _foot(cells, settings)
    below = size(cells, settings).foot
    for number, line in enumerate([*usual, *failed]):
        figure.text(
            LEFT_IN / WIDTH_IN,
            (below - 0.12 - 0.14 * number) / height,
            plain(line),
            fontsize=FOOT_PT,
            color=ALARM if number >= len(usual) else FAINT,
            va="center",
        )


def draw(figure: Any, cells: Cells, published: Printed, settings: TableSettings, down_in: float) -> None:
    """Draw all panels below a header that reaches ``down_in`` inches down."""
    draw_panels(figure, cells, published, settings, down_in)
    draw_foot(figure, cells, settings)
    draw_legend(figure, cells, published, settings, down_in)
