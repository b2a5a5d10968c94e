"""The table for people: paper's layout first, then intervals, differences, parts, failures."""

from collections.abc import Iterable, Mapping, Sequence

from remeasure import showing
from remeasure.records import Stage
from remeasure.tables import spread, wide
from remeasure.tables.blocks import texts
from remeasure.tables.breakdown import Part
from remeasure.tables.comparability import comparability
from remeasure.tables.contrasts import Contrast
from remeasure.tables.drift import Drift
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_blocks import blocks, left_out_line
from remeasure.tables.markdown_differences import differences
from remeasure.tables.markdown_drift import drift_sections
from remeasure.tables.markdown_failures import failed_answers, failure_marks, footnotes, left_out, lengths
from remeasure.tables.markdown_numbers import explained, number_table, paper_layout
from remeasure.tables.markdown_parts import counts, strata
from remeasure.tables.markdown_stages import fewer, told
from remeasure.tables.published import Published
from remeasure.tables.servers import Servers, warning
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]


def _comparable(cells: Cells, published: Printed, settings: TableSettings) -> str:
    said, because = comparability(cells, published, settings)
    text = showing.markdown(said)
    return " ".join(filter(None, [f"**{text}**" if settings.not_comparable else text, because]))


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


def _numbers(cells: Cells, published: Printed, settings: TableSettings) -> list[str]:
    """Return the paper's layout, whole or in blocks."""
    if settings.blocks:
        return blocks(texts(cells, published, settings, failure_marks(cells)))
    return [paper_layout(cells, settings)]


def first_line(warning: str | None) -> str:
    """Return what stands above everything else: a warning, or nothing."""
    return "" if warning is None else f"**{showing.markdown(warning)}**\n\n"


def render(
    cells: Cells,
    published: Printed,
    contrasts: Sequence[Contrast],
    parts: Sequence[Part],
    settings: TableSettings,
    drifts: Sequence[Drift],
    servers: Mapping[CellKey, Servers],
    stages: Iterable[Stage] = (),
    spreads: Sequence[spread.Spread] = (),
) -> str:
    """Return the whole page; numbers are of the first time that a model was asked."""
    first = wide.first_time(cells)
    notes = [" ".join(map(showing.markdown, settings.notes)) + "\n"] if settings.notes else []
    stages = list(stages)
    sections = [
        f"# {showing.markdown(settings.title)}\n",
        _head(first, settings) + "\n",
        *notes,
        *fewer(stages),
        _comparable(cells, published, settings) + "\n",
        *filter(None, [warning(servers, settings)]),
        *left_out_line(settings),
        *_numbers(first, published, settings),
        *footnotes(first, settings),
        "## Cells\n",
        explained(first, settings) + "\n",
        number_table(first, published, settings),
        *differences(contrasts, settings),
        *spread.sections(spreads, settings),
        *drift_sections(drifts, settings),
        *strata(parts, settings),
        *counts(first, settings),
        "## Failures\n",
        *failed_answers(cells, settings),
        *left_out(first, settings),
        *lengths(cells, settings),
        *told(stages, settings),
    ]
    return "\n".join(sections)
