"""A panel per row of the layout, a bar per column: for tables whose columns are arms or models."""

from collections.abc import Mapping
from typing import Any

from remeasure.tables import figure_scale, wide
from remeasure.tables.cells import differing, failures
from remeasure.tables.figure_style import ALARM, COLOURS, FAINT, GRID, INK, N_ACROSS, WIDTH_IN, plain
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, Place, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]
PANEL_HEIGHT_IN = 2.5

_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
_WORDS = {
    "cut_off": "cut off",
    "not_sent": "not sent",
    "judge_failed": "judge failed",
    "judge_unreadable": "judge unread.",
}


def failure_words(cell: Cell) -> tuple[list[str], list[str]]:
    """Return the failures that a cell has, one text per class: the reader's (of many two), the judge's.

    A judge's failure is one of the cell only where the headline needs the judge: it is a verdict there.
    """
    score = cell.score
    by_judge = {
        "judge_failed": score.verdicts.get("judge_failed", 0),
        "judge_unreadable": score.verdicts_strict.get("judge_unreadable", 0),
    }
    by_reader = {name: count for name, count in failures(cell).items() if name not in by_judge}
    found = sorted(((count, name) for name, count in by_reader.items() if count), reverse=True)
    shown = found if len(found) <= 3 else found[:2]
    words = [f"{count} {_WORDS.get(name, name)}" for count, name in shown]
    words += [f"{sum(count for count, _ in found[2:])} others"] if len(found) > 3 else []
    return words, [f"{count} {_WORDS[name]}" for name, count in by_judge.items() if count]


def _note(axes: Any, place: int, down_pt: float, text: str, colour: str) -> None:
    axes.annotate(
        text,
        (place, 0),
        xytext=(0, -down_pt),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=7.5,
        color=colour,
        linespacing=1.15,
        annotation_clip=False,
    )


def _bar(axes: Any, place: int, cell: Cell, metric: str, reach: float, settings: TableSettings) -> None:
    """Draw one bar: interval, number above; units in the denominator and failures below.

    ``reach``: where the axis ends.
    """
    factor, number = settings.factor_of(metric), cell.score.metrics[metric].published
    value = (number.value or 0.0) * factor
    low, high = (bound * factor for bound in number.interval) if number.interval else (value, value)
    axes.bar(place, value, width=0.7, color=COLOURS[place % len(COLOURS)], zorder=2)
    if number.interval:
        axes.vlines(place, low, high, color=INK, linewidth=1.1, zorder=4)
        axes.hlines([low, high], place - 0.09, place + 0.09, color=INK, linewidth=1.1, zorder=4)
    axes.text(
        place,
        high + 0.015 * reach,
        wide.printed(cell, metric, settings) or "–",
        ha="center",
        va="bottom",
        fontsize=9,
        bbox=_PAPER,
        zorder=5,
    )
    n_all = cell.score.n
    _note(axes, place, 4, f"n {number.n}" + ("" if number.n == n_all else f"/{n_all}"), FAINT)
    _note(axes, place, 14, "\n".join(sum(failure_words(cell), [])), ALARM)


def _panel(axes: Any, row: Place, cells: Cells, published: Printed, settings: TableSettings) -> None:
    graders = set()
    scale = _scale(row, cells, settings)
    for place, column in enumerate(settings.columns):
        key = wide.number_at(cells, row, column, settings)
        if key is None:
            _note(axes, place, 4, "no cell", FAINT)
            continue
        cell = cells[key.cell]
        graders.add(cell.score.grader)
        _bar(axes, place, cell, key.metric, scale.high, settings)
        there = published.get(key)
        if there and not differing(cell.score, there, settings):
            axes.plot(place + 0.22, there.value, marker="D", markersize=4.5, color="white", mec=INK, zorder=6)
    title = plain(settings.place_title(row, settings.row_axes))
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold", pad=6)
    axes.set_title(", ".join(sorted(graders)), loc="right", fontsize=7.5, color=FAINT, pad=6)
    axes.set_xlim(-0.6, len(settings.columns) - 0.4)
    axes.set_ylim(1.12 * scale.low, 1.12 * scale.high)
    axes.set_yticks(scale.ticks)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.grid(axis="y", color=GRID, linewidth=0.7, zorder=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _scale(row: Place, cells: Cells, settings: TableSettings) -> figure_scale.Scale:
    """Return the axis that all numbers of a row fit on."""
    keys = [wide.number_at(cells, row, column, settings) for column in settings.columns]
    metrics = dict.fromkeys(key.metric for key in keys if key)
    scales = [figure_scale.of_metric(metric, cells.values(), settings) for metric in metrics]
    return max(scales, key=lambda scale: scale.high, default=figure_scale.scale("share", settings.factor, ()))


def compared_with(cells: Cells, published: Printed, settings: TableSettings) -> bool:
    """Return whether some published value may be drawn beside ours."""
    return any(
        key.cell in cells and not differing(cells[key.cell].score, there, settings)
        for key, there in published.items()
    )


def _legend(figure: Any, cells: Cells, published: Printed, settings: TableSettings, down_in: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys = [
        Patch(
            color=COLOURS[place % len(COLOURS)],
            label=plain(settings.place_title(column, settings.column_axes)),
        )
        for place, column in enumerate(settings.columns)
    ]
    keys.append(Line2D([], [], color=INK, marker="_", markersize=5, label="95 % interval"))
    if compared_with(cells, published, settings):
        keys.append(
            Line2D(
                [], [], linestyle="", marker="D", markersize=4.5, color="white", mec=INK, label="published"
            )
        )
    figure.legend(
        handles=keys,
        loc="upper left",
        bbox_to_anchor=(0.035, 1 - down_in / figure.get_figheight()),
        ncols=len(keys),
        frameon=False,
        fontsize=8.5,
        handlelength=1.1,
        columnspacing=1.3,
        borderpad=0,
    )


def size_in(settings: TableSettings) -> tuple[float, float]:
    """Return width and height of the picture below a header of one line each, in inches."""
    n_down = -(-len(settings.rows) // N_ACROSS)
    return WIDTH_IN, 0.95 + PANEL_HEIGHT_IN * n_down


def draw(figure: Any, cells: Cells, published: Printed, settings: TableSettings, down_in: float) -> None:
    """Draw all panels below a header that reaches ``down_in`` inches down."""
    n_down = -(-len(settings.rows) // N_ACROSS)
    height = figure.get_figheight()
    panels = figure.subplots(n_down, N_ACROSS, squeeze=False).flat
    for axes, row in zip(panels, settings.rows, strict=False):
        _panel(axes, row, cells, published, settings)
    for axes in panels[len(settings.rows) :]:
        axes.set_visible(False)
    figure.subplots_adjust(
        left=0.045,
        right=0.99,
        top=1 - (down_in + 0.54) / height,
        bottom=0.78 / height,
        hspace=0.48,
        wspace=0.16,
    )
    foot = "Below each bar: items in the denominator; in red what failed, nothing where nothing did."
    figure.text(0.037, 0.13 / height, foot, fontsize=8, color=FAINT, va="center")
    _legend(figure, cells, published, settings, down_in - 0.04)
