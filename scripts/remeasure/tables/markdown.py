"""The table for people: paper's layout first, then intervals, differences, parts, failures."""

from collections.abc import Iterable, Mapping, Sequence

from remeasure import showing
from remeasure.records import Stage
from remeasure.tables import cells as cell_rows
from remeasure.tables import wide
from remeasure.tables.breakdown import MACRO, Part
from remeasure.tables.contrasts import Contrast
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.servers import Servers, warning
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]

MAX_LEVELS = 6
"""Divisions of at most this many parts are shown in full."""
N_LARGEST = 10
MAX_CELLS_NAMED = 10
"""Tables of at most this many cells say the length of answers for each."""


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], n_text: int) -> str:
    """Return a Markdown table; the first ``n_text`` columns are aligned left, the others right."""
    rule = [":--" if place < n_text else "--:" for place in range(len(header))]
    lines = [list(header), *rows]
    escaped = [[showing.markdown(field) for field in row] for row in lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in [escaped[0], rule, *escaped[1:]]) + "\n"


def _axes(settings: TableSettings) -> tuple[str, ...]:
    """Return the axes that tell cells apart; of a table of one cell its bench."""
    return settings.open_axes or ("bench",)


def _titles(key: CellKey | NumberKey, axes: Iterable[str], settings: TableSettings) -> list[str]:
    return [settings.title_of(axis, getattr(key, axis)) for axis in axes]


def _names(axes: Iterable[str]) -> list[str]:
    return [axis.capitalize() for axis in axes]


def _span(interval: tuple[float, float] | None, settings: TableSettings) -> str:
    if interval is None:
        return "undefined"
    return f"{settings.scaled(interval[0])} to {settings.scaled(interval[1])}"


def _p(value: float | None) -> str:
    return "–" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _of(n: int, n_all: int) -> str:
    return f"{n:,} of {n_all:,}"


def _value(share: float | None, settings: TableSettings) -> str:
    return settings.scaled(share) or "none graded"


def paper_layout(cells: Cells, settings: TableSettings) -> str:
    """Return the paper's layout with the grader beside every row."""
    rows = []
    for row in settings.rows:
        keys = [wide.number_at(cells, row, column, settings) for column in settings.columns]
        graders = sorted({cells[key.cell].score.grader for key in keys if key})
        values = [_value(_share(cells, key), settings) if key else "–" for key in keys]
        title = settings.place_title(row, settings.row_axes)
        rows.append([title, ", ".join(graders), *values])
    header = ", ".join(_names(settings.row_axes)) or "Table"
    columns = [settings.place_title(column, settings.column_axes) for column in settings.columns]
    return grid([header, "Grader", *columns], rows, 2)


def _share(cells: Cells, key: NumberKey) -> float | None:
    return cells[key.cell].score.metrics[key.metric].published.value


def number_table(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Return one line per number: interval, other readings, counts, published value, verdict."""
    axes = _axes(settings)
    also = cell_rows.further_readings(cells)
    several = len(settings.metrics) > 1
    recall = any(cell.score.recall_at_k is not None for cell in cells.values())
    rows = []
    for key in wide.numbers(cells, settings):
        cell, there = cells[key.cell], published.get(key)
        metric = cell.score.metrics[key.metric]
        found = [metric.also.get(name) for name in also]
        rows.append(
            [
                *_titles(key, axes, settings),
                *([settings.metric(key.metric).directed] if several else []),
                _value(metric.published.value, settings),
                _span(metric.published.interval, settings),
                _value(metric.strict.value, settings),
                _span(metric.strict.interval, settings),
                *(_value(number.value, settings) if number else "–" for number in found),
                _of(metric.published.n, cell.score.n),
                _of(metric.strict.n, cell.score.n),
                *(_of(number.n, cell.score.n) if number else "–" for number in found),
                f"{metric.n_differ:,}",
                *([settings.scaled(cell.score.recall_at_k) or "–"] if recall else []),
                decimals(there.value, settings.decimals) or "" if there else "–",
                cell_rows.verdict(cell, key.metric, there, settings).verdict,
            ]
        )
    header = [*_names(axes), *(["Metric"] if several else []), "Value", "95 % interval"]
    header += ["Strict", "95 % interval, strict", *map(_reading, also), "Graded", "Graded, strict"]
    header += [f"Graded, {name}" for name in also] + ["Differ"]
    header += [*(["Recall"] if recall else []), "Paper", "Verdict"]
    return grid(header, rows, len(axes) + several)


def _reading(name: str) -> str:
    return name.replace("_", " ").capitalize()


def contrast_table(contrasts: Sequence[Contrast], axis: str, settings: TableSettings) -> str:
    """Return one line per difference between two values of an axis."""
    fixed = [name for name in _axes(settings) if name != axis]
    several = len(settings.metrics) > 1
    rows = [
        [
            *_titles(contrast.first, fixed, settings),
            settings.title_of(axis, getattr(contrast.first, axis)),
            settings.title_of(axis, contrast.against),
            *([settings.metric(contrast.metric).directed] if several else []),
            _points(contrast.difference, settings),
            _span(contrast.interval, settings),
            f"{contrast.n_pairs:,}",
            "–" if contrast.n_only_first is None else f"{contrast.n_only_first} : {contrast.n_only_second}",
            _p(contrast.mcnemar_p),
            _p(contrast.holm_p),
        ]
        for contrast in contrasts
    ]
    header = [*_names(fixed), axis.capitalize(), "Against", *(["Metric"] if several else [])]
    only = "Only one right" if not several else "1 in one only"
    header += ["Points", "95 % interval", "Pairs", only, "McNemar p", "Holm p"]
    return grid(header, rows, len(header) - 6)


def _points(share: float | None, settings: TableSettings) -> str:
    text = settings.scaled(share)
    return "undefined" if text is None else text if text.startswith("-") else f"+{text}"


def differences(contrasts: Sequence[Contrast], settings: TableSettings) -> list[str]:
    """Return the sections of all differences, the headline metric first; nothing where there are none."""
    metrics = dict.fromkeys(contrast.metric for contrast in contrasts)
    family = (
        f"all {len(contrasts)} differences shown" if len(metrics) == 1 else "the differences of each metric"
    )
    parts = []
    for axis in dict.fromkeys(contrast.axis for contrast in contrasts):
        here = [contrast for contrast in contrasts if contrast.axis == axis]
        main = [contrast for contrast in here if contrast.is_headline]
        other = [contrast for contrast in here if not contrast.is_headline]
        parts += [
            f"## Differences between {axis}s\n",
            "On the same units, published reading; bootstrap over groups of units that belong together, "
            f"McNemar's exact test over single units, Holm over {family}.\n",
        ]
        parts += [contrast_table(main, axis, settings)] if main else []
        parts += ["Other metrics:\n"] if main and other else []
        parts += [contrast_table(other, axis, settings)] if other else []
    return parts


def strata(parts: Sequence[Part], settings: TableSettings) -> list[str]:
    """Return a section per division: its parts as rows, metrics as columns; nothing where there are none."""
    found = []
    for stratum in dict.fromkeys(part.stratum for part in parts):
        here = [part for part in parts if part.stratum == stratum]
        sizes: dict[str, int] = {}
        for part in here:
            if part.level != MACRO:
                sizes[part.level] = max(sizes.get(part.level, 0), part.n_units)
        largest = sorted(sizes, key=lambda level: (-sizes[level], level))[:N_LARGEST]
        in_full = len(sizes) <= MAX_LEVELS
        shown = list(sizes) if in_full else largest
        text = "Published reading. In brackets: the denominator, where it is not all units of the part."
        if not in_full:
            text += (
                f" The {len(shown)} largest of {len(sizes)} parts; all of them are in "
                f"`{settings.table}.breakdown.csv`."
            )
        found += [f"## By {stratum.replace('_', ' ')}\n", text + "\n"]
        found.append(_stratum_table(here, [*shown, MACRO], settings))
    return found


def _stratum_table(parts: Sequence[Part], levels: Sequence[str], settings: TableSettings) -> str:
    axes = _axes(settings)
    by_place = {(part.key.cell, part.level, part.key.metric): part for part in parts}
    metrics = [m for m in settings.metrics if any(part.key.metric == m.name for part in parts)]
    rows = []
    for cell in dict.fromkeys(part.key.cell for part in parts):
        for level in levels:
            here = [by_place.get((cell, level, metric.name)) for metric in metrics]
            known = [part for part in here if part]
            if known:
                values = [_stratum_value(part, settings) if part else "–" for part in here]
                name = (
                    f"{level[:-1]} of {max(part.n_levels for part in known)} parts)"
                    if level == MACRO
                    else level
                )
                rows.append([*_titles(cell, axes, settings), name, f"{known[0].n_units:,}", *values])
    header = [*_names(axes), "Part", "Units", *(metric.directed for metric in metrics)]
    return grid(header, rows, len(axes) + 1)


def _stratum_value(part: Part, settings: TableSettings) -> str:
    text = settings.scaled(part.value) or "–"
    return text if part.n == part.n_units else f"{text} ({part.n:,})"


def failure_table(cells: Cells, settings: TableSettings) -> str:
    """Return the failures of the cells that have some, or a sentence if none has."""
    axes = _axes(settings)
    split = any(cell.score.n_answers != cell.score.n for cell in cells.values())
    rows = []
    for key, cell in cells.items():
        counts = cell_rows.failures(cell)
        if any(counts.values()):
            n = [cell.score.n, cell.score.n_answers] if split else [cell.score.n]
            rows.append([*_titles(key, axes, settings), *(f"{count:,}" for count in (*n, *counts.values()))])
    if not rows:
        judged = any(cell.score.judge for cell in cells.values())
        return "Every request was answered" + (
            ", and every judge's reply could be read.\n" if judged else ".\n"
        )
    names = [name.replace("_", " ").capitalize() for name in cell_rows.FAILURES]
    header = [*_names(axes), *(["Units", "Answers"] if split else ["Items"]), *names]
    rest = len(cells) - len(rows)
    word = "cell has" if rest == 1 else "cells have"
    return grid(header, rows, len(axes)) + (f"\nThe other {rest} {word} none.\n" if rest else "")


def lengths(cells: Cells, settings: TableSettings) -> str:
    """Say how long answers are and which share of them was cut off: of each cell, or of many the range."""
    if len(cells) <= MAX_CELLS_NAMED:
        return (
            "Words per answer: "
            + "; ".join(_length(key, cell, settings) for key, cell in cells.items())
            + ".\n"
        )
    means = sorted(cell.score.n_words_mean for cell in cells.values() if cell.score.n_words_mean is not None)
    cut = sorted(_cut_off(cell) for cell in cells.values())
    words = f"{means[0]:.1f} to {means[-1]:.1f}, mean of a cell" if means else "none"
    return f"Words per answer: {words}; cut off {cut[0]:.1%} to {cut[-1]:.1%} of the answers of a cell.\n"


def _cut_off(cell: Cell) -> float:
    return cell.score.statuses.get("cut_off", 0) / cell.score.n_answers if cell.score.n_answers else 0.0


def _length(key: CellKey, cell: Cell, settings: TableSettings) -> str:
    score = cell.score
    name = ", ".join(_titles(key, _axes(settings), settings))
    if score.n_words_mean is None:
        return f"{name}: no words"
    return (
        f"{name}: mean {score.n_words_mean:.1f}, median {score.n_words_median:g}, "
        f"{_cut_off(cell):.1%} of {score.n_answers:,} cut off"
    )


def counts(cells: Cells, settings: TableSettings) -> list[str]:
    """Return what the graders counted further, cell by cell; nothing where they did not."""
    names = cell_rows.counted(cells)
    if not names:
        return []
    axes = _axes(settings)
    rows = [
        [*_titles(key, axes, settings), *(f"{cell.score.counts.get(name, 0):,}" for name in names)]
        for key, cell in cells.items()
    ]
    header = [*_names(axes), *(name.replace("_", " ").capitalize() for name in names)]
    return ["## Also counted\n", grid(header, rows, len(axes))]


def comparability(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Say in one sentence whether the table may be compared with the paper."""
    fields = sorted(
        {
            field
            for key, there in published.items()
            if key.cell in cells
            for field in cell_rows.differing(cells[key.cell].score, there, settings)
        }
    )
    if settings.not_comparable:
        differs = ", ".join(fields or sorted(settings.not_comparable))
        run = showing.markdown(settings.run_title)
        return f"**Not comparable with the paper: {run}** (differs in {differs})."
    if not published:
        return "There is no published value to compare with."
    if fields:
        return f"Some cells are not comparable with the paper; they differ in {', '.join(fields)}."
    return "The protocol fields on record are those of the paper."


def _head(cells: Cells, settings: TableSettings) -> str:
    """Return the line that says what the whole table has in common."""
    titles = {cell.score.model: cell.score.reader for cell in cells.values()}
    shown = {model: showing.markdown(title) for model, title in titles.items()}
    readers = [title if len(shown) == 1 else f"`{model}`: {title}" for model, title in shown.items()]
    judges = sorted({cell.score.judge for cell in cells.values() if cell.score.judge})
    fixed = [
        f"{axis.capitalize()}: {settings.title_of(axis, settings.fixed[axis])}."
        for axis in ("bench", "arm")
        if axis in settings.fixed
    ]
    return " ".join(
        [
            f"Run `{settings.run}`, table `{settings.table}`, in {settings.unit}.",
            *fixed,
            f"{'Reader' if len(readers) == 1 else 'Readers'}: {'; '.join(readers)}.",
            f"Judge: {'; '.join(map(showing.markdown, judges)) or 'none'}.",
        ]
    )


def _explained(cells: Cells, settings: TableSettings) -> str:
    """Return the sentences before the table of all numbers."""
    metrics = [metric for cell in cells.values() for metric in cell.score.metrics.values()]
    methods = sorted({metric.published.interval_method for metric in metrics})
    ks = sorted({cell.score.k for cell in cells.values() if cell.score.k is not None})
    also = cell_rows.further_readings(cells)
    units = "units" if any(cell.score.n_answers != cell.score.n for cell in cells.values()) else "items"
    parts = [
        "*Value* repeats the original's grading, flaws included; *strict* corrects it and leaves "
        f"{units} without an answer out; *differ* counts the {units} whose score is not the same in both."
    ]
    if also:
        parts.append(f"Further readings: {', '.join(f'*{name}*' for name in also)}.")
    if any(metric.better == "low" for metric in settings.metrics):
        parts.append("↑: higher is better; ↓: lower is better.")
    if ks:
        parts.append(
            "*Recall* is the share of items with a page that holds the answer among the first "
            f"{', '.join(map(str, ks))} retrieved."
        )
    return " ".join([*parts, f"Intervals: {'; '.join(methods)}."])


def fewer(stages: Iterable[Stage]) -> list[str]:
    """Return a sentence for every list of images that has another number of units than was expected."""
    found = []
    for stage in stages:
        expected, complete = stage.counts.get("expected"), stage.counts.get("complete")
        if stage.stage == "index_images" and expected is not None and complete != expected:
            found.append(f"**{complete:,} of {expected:,} expected units are complete.**\n")
    return found


_TOLD = {"index_images": "Images", "grade": "Grading"}


def told(stages: Iterable[Stage]) -> list[str]:
    """Return what listing images and grading were told, and what the list counted, as a section of its own.

    Edges:
        Nothing where neither has options.
    """
    lines: dict[str, None] = {}
    for stage in stages:
        options = stage.settings.get("options")
        if stage.stage not in _TOLD or not options:
            continue
        said = ", ".join(
            f"{name.replace('_', ' ')} {_option(value)}" for name, value in sorted(options.items())
        )
        if stage.stage == "index_images":
            said += ". Counted: " + ", ".join(
                f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(stage.counts.items())
            )
        lines[f"{_TOLD[stage.stage]}: {said}.\n"] = None
    return ["## Options\n", *lines] if lines else []


def _option(value: object) -> str:
    if isinstance(value, dict) and {"name", "sha256"} <= set(value):  # a file of the repository
        return f"{value['name']} (SHA-256 {value['sha256'][:12]}…)"
    if isinstance(value, dict | list) and not value:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not given" if value is None else str(value)


def render(
    cells: Cells,
    published: Printed,
    contrasts: Sequence[Contrast],
    parts: Sequence[Part],
    settings: TableSettings,
    servers: Mapping[CellKey, Servers],
    stages: Iterable[Stage] = (),
) -> str:
    """Return the whole page."""
    notes = [" ".join(map(showing.markdown, settings.notes)) + "\n"] if settings.notes else []
    stages = list(stages)
    sections = [
        f"# {showing.markdown(settings.title)}\n",
        _head(cells, settings) + "\n",
        *notes,
        *fewer(stages),
        comparability(cells, published, settings) + "\n",
        *filter(None, [warning(servers, settings)]),
        paper_layout(cells, settings),
        "## Cells\n",
        _explained(cells, settings) + "\n",
        number_table(cells, published, settings),
        *differences(contrasts, settings),
        *strata(parts, settings),
        *counts(cells, settings),
        "## Failures\n",
        failure_table(cells, settings),
        lengths(cells, settings),
        *told(stages),
    ]
    return "\n".join(sections)
