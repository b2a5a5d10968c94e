"""The picture of a table: one panel per bench, one bar per arm, with intervals and failures."""

import io
from collections.abc import Mapping
from html import escape
from typing import Any

from remeasure.tables import wide
from remeasure.tables.cells import differing, failures
from remeasure.tables.inputs import Cell, Row, TableSettings
from remeasure.tables.published import Published

Cells = Mapping[tuple[str, str], Cell]
Printed = Mapping[tuple[str, str], Published]

# Okabe and Ito's palette, told apart with every kind of colour vision; grey is the arm without evidence.
COLOURS = ("#999999", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00")
INK = "#222222"
FAINT = "#666666"
ALARM = "#A3320B"
WIDTH_IN = 8.6
PANEL_HEIGHT_IN = 2.5
N_ACROSS = 3
STYLE = {
    "svg.hashsalt": "remeasure",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": "#BBBBBB",
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": FAINT,
    "path.simplify": False,
}


_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
_WORDS = {
    "cut_off": "cut off",
    "not_sent": "not sent",
    "judge_failed": "judge failed",
    "judge_unreadable": "judge unread.",
}


def failure_words(cell: Cell) -> list[str]:
    """Return the failures that a cell has, one text per class; of many the largest two."""
    found = sorted(((count, name) for name, count in failures(cell).items() if count), reverse=True)
    shown = found if len(found) <= 3 else found[:2]
    words = [f"{count} {_WORDS.get(name, name)}" for count, name in shown]
    return words + ([f"{sum(count for count, _ in found[2:])} others"] if len(found) > 3 else [])


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


def _bar(axes: Any, place: int, cell: Cell, factor: float) -> None:
    """Draw one arm: bar, interval, number above; items in the denominator and failures below."""
    score = cell.score
    value = (score.value or 0.0) * factor
    low, high = (bound * factor for bound in score.interval) if score.interval else (value, value)
    axes.bar(place, value, width=0.7, color=COLOURS[place % len(COLOURS)], zorder=2)
    if score.interval:
        axes.vlines(place, low, high, color=INK, linewidth=1.1, zorder=4)
        axes.hlines([low, high], place - 0.09, place + 0.09, color=INK, linewidth=1.1, zorder=4)
    axes.text(
        place,
        high + 0.015 * factor,
        f"{value:.1f}",
        ha="center",
        va="bottom",
        fontsize=9,
        bbox=_PAPER,
        zorder=5,
    )
    _note(axes, place, 4, f"n {score.n_graded}" + ("" if score.n_graded == score.n else f"/{score.n}"), FAINT)
    _note(axes, place, 14, "\n".join(failure_words(cell)), ALARM)


def _panel(axes: Any, row: Row, cells: Cells, published: Printed, settings: TableSettings) -> None:
    factor = settings.factor
    for place, column in enumerate(settings.columns):
        cell = cells[row.bench, column.arm]
        _bar(axes, place, cell, factor)
        there = published.get((row.bench, column.arm))
        if there and not differing(cell.score, there, settings):
            axes.plot(place + 0.22, there.value, marker="D", markersize=4.5, color="white", mec=INK, zorder=6)
    graders = sorted({cells[row.bench, column.arm].score.grader for column in settings.columns})
    axes.set_title(row.title, loc="left", fontsize=10.5, fontweight="bold", pad=6)
    axes.set_title(", ".join(graders), loc="right", fontsize=7.5, color=FAINT, pad=6)
    axes.set_xlim(-0.6, len(settings.columns) - 0.4)
    axes.set_ylim(0, 1.12 * factor)
    axes.set_yticks([0, 0.25 * factor, 0.5 * factor, 0.75 * factor, factor])
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.7, zorder=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _legend(figure: Any, cells: Cells, published: Printed, settings: TableSettings) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys = [
        Patch(color=COLOURS[place % len(COLOURS)], label=column.title)
        for place, column in enumerate(settings.columns)
    ]
    keys.append(Line2D([], [], color=INK, marker="_", markersize=5, label="95 % interval"))
    if any(
        not differing(cells[key].score, there, settings) for key, there in published.items() if key in cells
    ):
        keys.append(
            Line2D([], [], linestyle="", marker="D", markersize=4.5, color="white", mec=INK, label="paper")
        )
    figure.legend(
        handles=keys,
        loc="upper left",
        bbox_to_anchor=(0.035, 1 - 0.52 / figure.get_figheight()),
        ncols=len(keys),
        frameon=False,
        fontsize=8.5,
        handlelength=1.1,
        columnspacing=1.3,
        borderpad=0,
    )


def summary(cells: Cells, settings: TableSettings) -> str:
    """Return the picture in words, for readers who cannot see it."""
    lines = []
    for row in settings.rows:
        values = [
            f"{column.title} {wide.printed(cells[row.bench, column.arm], settings)}"
            for column in settings.columns
        ]
        lines.append(f"{row.title}: {', '.join(values)}.")
    return f"Bars in {settings.unit}, run {settings.run}, with 95 percent intervals. " + " ".join(lines)


def render(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Return the SVG; the same cells give the same text."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        from matplotlib.figure import Figure

        n_down = -(-len(settings.rows) // N_ACROSS)
        height = 0.95 + PANEL_HEIGHT_IN * n_down
        figure = Figure(figsize=(WIDTH_IN, height), facecolor="white")
        panels = figure.subplots(n_down, N_ACROSS, squeeze=False).flat
        for axes, row in zip(panels, settings.rows, strict=False):
            _panel(axes, row, cells, published, settings)
        for axes in panels[len(settings.rows) :]:
            axes.set_visible(False)
        figure.subplots_adjust(
            left=0.045, right=0.99, top=1 - 1.1 / height, bottom=0.78 / height, hspace=0.48, wspace=0.16
        )
        figure.text(0.037, 1 - 0.2 / height, settings.title, fontsize=12, fontweight="bold", va="center")
        subtitle = f"Run {settings.run}: {settings.run_title}; {settings.unit}"
        if settings.not_comparable:
            subtitle += "; not comparable with the paper's values"
        figure.text(0.037, 1 - 0.41 / height, subtitle, fontsize=8.5, color=FAINT, va="center")
        foot = "Below each bar: items in the denominator; in red what failed, nothing where nothing did."
        figure.text(0.037, 0.13 / height, foot, fontsize=8, color=FAINT, va="center")
        _legend(figure, cells, published, settings)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _with_words(out.getvalue(), settings.title, summary(cells, settings))


def _with_words(svg: str, title: str, words: str) -> str:
    """Put a title and a description into the root element."""
    head, tag, rest = svg.partition("<svg ")
    attributes, close, body = rest.partition(">")
    described = f"\n <title>{escape(title)}</title>\n <desc>{escape(words)}</desc>"
    text = f'{head}{tag}role="img" {attributes}{close}{described}{body}'
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
