"""Model by model: a panel of conditions for every bench, and one of their differences with a line at zero."""

from collections.abc import Iterable, Sequence
from typing import Any

from remeasure.tables import figure_scale, wide
from remeasure.tables.figure_bars import failure_words
from remeasure.tables.figure_panels import Cells, Contrasts, Panel, called, models, panels
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
    width_pt,
    wrapped,
)
from remeasure.tables.settings import TableSettings

VALUE, DIFFERENCE = "#0072B2", "#D55E00"
WIDTH_IN = 12.3
NAMES_IN = 1.5
"""Room for the names of rows, left of every axis."""
AXIS_IN = 1.3
VALUES_IN = 1.02
"""Room for value, n and failures, right of every axis."""
GAP_IN = 0.1
FAILED_PT = 6.3
EDGE = 0.07
"""Share of an axis beyond either end, so that a mark at an end does not touch what stands beside it."""
ROW_IN = 0.44
TITLE_IN = 0.52
"""Room for a panel's title and metric, above its axis."""
BELOW_IN = 0.34
MODEL_IN = 0.3
TITLE_PT = 9.5
NAME_PT = 8.0
FOOT_PT = 7.5


def _lines_of_panels(
    cells: Cells, contrasts: Contrasts, model: str, settings: TableSettings
) -> list[list[Panel]]:
    """Return the panels of a model in lines of at most so many across."""
    own = panels(cells, contrasts, model, settings)
    return [own[start : start + N_ACROSS] for start in range(0, len(own), N_ACROSS)]


def _line_in(line: Sequence[Panel]) -> float:
    return TITLE_IN + ROW_IN * max(panel.n_rows for panel in line) + BELOW_IN


def _foot(settings: TableSettings) -> list[str]:
    text = (
        "Headline metric of each bench. Lines: 95 % intervals; rings: strict reading. Beside each point: "
        "value, and units in its denominator (pairs for differences); in red what failed, below it the "
        "judge where the metric needs one; nothing where nothing did."
    )
    return wrapped(text, (WIDTH_IN - 2 * LEFT_IN) * PT_PER_IN, FOOT_PT, 2)


def size_in(cells: Cells, contrasts: Contrasts, settings: TableSettings) -> tuple[float, float]:
    """Return width and height of the picture below a header of one line each, in inches."""
    names = models(cells)
    height = 0.5 + 0.2 + 0.14 * len(_foot(settings))
    for model in names:
        height += MODEL_IN if len(names) > 1 else 0.0
        height += sum(map(_line_in, _lines_of_panels(cells, contrasts, model, settings)))
    return WIDTH_IN, height


def _mark(
    axes: Any,
    place: int,
    value: float | None,
    interval: tuple[float, float] | None,
    strict: float | None,
    factor: float,
    colour: str,
) -> None:
    """Draw one number: point and interval, a ring for the strict reading."""
    if interval:
        span = [bound * factor for bound in interval]
        axes.plot(span, [place, place], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=3)
    ring = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 0.8}
    if strict is not None:
        axes.plot(strict * factor, place, marker="o", markersize=8, clip_on=False, zorder=4, **ring)
    if value is not None:
        axes.plot(value * factor, place, marker="o", markersize=4.4, color=colour, clip_on=False, zorder=5)


def _beside(
    axes: Any, place: int, offset: tuple[float, float], text: str, ha: str, size_pt: float, colour: str
) -> None:
    axes.annotate(
        plain(text),
        (1, place),
        xycoords=("axes fraction", "data"),
        xytext=offset,
        textcoords="offset points",
        ha=ha,
        va="center_baseline",
        fontsize=size_pt,
        color=colour,
        annotation_clip=False,
    )


def _numbers(axes: Any, place: int, value: str | None, n: int, failed: Iterable[Sequence[str]]) -> None:
    """Write value and n beside a row, and below them what failed: the reader's answers, then the judge's."""
    kinds = zip(failed, ("failures", "judge failures"), strict=False)
    lines = [fitting(words, together) for words, together in kinds if words]
    up = 4.5 * len(lines)
    _beside(axes, place, (37, up), value or "–", "right", 8.2, INK)
    _beside(axes, place, (41, up), f"n {n:,}", "left", 6.8, FAINT)
    for number, line in enumerate(lines):
        _beside(axes, place, (7, up - 11 - 8 * number), line, "left", FAILED_PT, ALARM)


def fitting(failed: Sequence[str], together: str) -> str:
    """Return what failed in one line that fits: all classes, the largest and how many others, or how many."""
    room = (VALUES_IN - 7 / PT_PER_IN) * PT_PER_IN
    counts = [int(words.split()[0]) for words in failed]
    texts = [", ".join(failed)]
    if len(failed) > 1:
        texts += [f"{failed[0]}, {sum(counts[1:])} others", f"{sum(counts)} {together}"]
    text = next((one for one in texts if width_pt(one, FAILED_PT) <= room), texts[-1])
    (line,) = wrapped(text, room, FAILED_PT, 1)
    return line


def _name(axes: Any, place: int, text: str) -> None:
    name_row(axes, place, wrapped(text, (NAMES_IN - 0.2) * PT_PER_IN, NAME_PT, 3), NAME_PT, gap_pt=8)


def _conditions(axes: Any, panel: Panel, cells: Cells, settings: TableSettings) -> figure_scale.Scale:
    factor = settings.factor_of(panel.metric)
    for place, key in enumerate(panel.keys):
        cell = cells[key]
        metric = cell.score.metrics[panel.metric]
        number = metric.published
        _mark(axes, place, number.value, number.interval, metric.strict.value, factor, VALUE)
        _numbers(axes, place, wide.printed(cell, panel.metric, settings), number.n, failure_words(cell))
        _name(axes, place, settings.title_of("arm", key.arm))
    own = [cell for key, cell in cells.items() if key.bench == panel.keys[0].bench]
    return figure_scale.of_metric(panel.metric, own, settings)


def _differences(
    axes: Any, panel: Panel, contrasts: Contrasts, settings: TableSettings
) -> figure_scale.Scale:
    for place, one in enumerate(panel.contrasts):
        factor, here = settings.factor_of(one.metric), one.published
        _mark(axes, place, here.difference, here.interval, one.strict.difference, factor, DIFFERENCE)
        text = settings.printed(here.difference, one.metric)
        signed = text if text is None or text.startswith("-") else f"+{text}"
        _numbers(axes, place, signed, here.n_pairs, ())
        _name(axes, place, called(one, settings))
    axes.axvline(0, color=INK, linewidth=0.9, zorder=2)
    unit = settings.unit_of(panel.metric)
    reach = [
        value * settings.factor_of(one.metric)
        for one in contrasts
        if one.is_headline and one.axis == "arm" and settings.unit_of(one.metric) == unit
        for reading in (one.published, one.strict)
        for value in (reading.difference, *(reading.interval or ()))
        if value is not None
    ]
    return figure_scale.scale("difference", settings.factor_of(panel.metric), reach)


def _said(panel: Panel, settings: TableSettings) -> str:
    """Return what the numbers of a panel are and which way is better."""
    named = dict.fromkeys([one.metric for one in panel.contrasts] or [panel.metric])
    metrics = [settings.metric(name) for name in named]
    words = [f"{m.title}: {'higher' if m.better == 'high' else 'lower'} is better" for m in metrics]
    if not panel.contrasts:
        return words[0]
    low = [m.title for m in metrics if m.better == "low"]
    return f"first minus second; of {', '.join(low)} negative is better" if low else "first minus second"


def _panel(axes: Any, panel: Panel, cells: Cells, contrasts: Contrasts, settings: TableSettings) -> None:
    for place in range(panel.n_rows):
        axes.axhline(place, color=GRID, linewidth=0.7, zorder=1)
    if panel.keys:
        scale = _conditions(axes, panel, cells, settings)
    else:
        scale = _differences(axes, panel, contrasts, settings)
    room = (NAMES_IN + AXIS_IN + VALUES_IN) * PT_PER_IN
    for up, text, style in (
        (19, panel.title, {"fontsize": TITLE_PT, "fontweight": "bold"}),
        (7, _said(panel, settings), {"fontsize": 7, "color": VALUE if panel.keys else DIFFERENCE}),
    ):
        (line,) = wrapped(text, room, style["fontsize"], 1, style.get("fontweight", "normal"))
        axes.annotate(
            plain(line),
            (0, 1),
            xycoords="axes fraction",
            xytext=(-NAMES_IN * PT_PER_IN, up),
            textcoords="offset points",
            va="baseline",
            annotation_clip=False,
            **style,
        )
    beyond = EDGE * (scale.high - scale.low)
    axes.set_xlim(scale.low - beyond, scale.high + beyond)
    axes.set_ylim(panel.n_rows - 0.5, -0.5)
    axes.set_xticks(scale.ticks, scale.words)
    axes.set_yticks([])
    axes.tick_params(axis="x", length=0, labelsize=7, labelcolor=FAINT, pad=3)
    axes.grid(axis="x", color=GRID, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def draw(figure: Any, cells: Cells, contrasts: Contrasts, settings: TableSettings, down_in: float) -> None:
    """Draw all panels below a header that reaches ``down_in`` inches down."""
    height, down = figure.get_figheight(), down_in
    names = models(cells)
    for model in names:
        if len(names) > 1:
            down += MODEL_IN
            title = plain(settings.title_of("model", model))
            figure.text(
                LEFT_IN / WIDTH_IN, 1 - (down - 0.12) / height, title, fontsize=10.5, fontweight="bold"
            )
        for line in _lines_of_panels(cells, contrasts, model, settings):
            for across, panel in enumerate(line):
                left = LEFT_IN + NAMES_IN + across * (NAMES_IN + AXIS_IN + VALUES_IN + GAP_IN)
                tall = ROW_IN * panel.n_rows
                bottom = height - (down + TITLE_IN + tall)
                axes = figure.add_axes((left / WIDTH_IN, bottom / height, AXIS_IN / WIDTH_IN, tall / height))
                _panel(axes, panel, cells, contrasts, settings)
            down += _line_in(line)
    for number, line in enumerate(_foot(settings)):
        figure.text(
            LEFT_IN / WIDTH_IN,
            (0.1 + 0.14 * (len(_foot(settings)) - number - 0.5)) / height,
            plain(line),
            fontsize=FOOT_PT,
            color=FAINT,
            va="center",
        )
