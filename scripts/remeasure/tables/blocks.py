"""A table in parts, each with benches and metrics of its own: ours beside what is published, row by row."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from remeasure.tables import cells as cell_rows
from remeasure.tables import protocol, wide
from remeasure.tables.block_text import BlockText
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.settings import BlockPlan, CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]

COMPARABLE, NOT = "comparable", "not because"
NOTHING = "no published value"
_COUNTS = ("n_attempted", "n_task_failed", "n_judge_failed", "n_scored")
_LAST = (*_COUNTS, "published_coverage", "comparable", "reason")


class Counts(NamedTuple):
    """What the headline of a cell rests on, in answers; scored: what is in its published denominator."""

    n_attempted: int
    n_task_failed: int
    n_judge_failed: int
    n_scored: int


class Row(NamedTuple):
    """A cell in its block."""

    key: CellKey
    metrics: tuple[str, ...]
    """Those that it has, in the order of the block."""
    counts: Counts
    comparable: str
    """``COMPARABLE``, ``NOT`` or ``NOTHING``."""
    reason: str
    """Which numbers lie within, or in what the two differ; empty where nothing is published."""
    differs: tuple[str, ...] = ()
    """In what the two differ, one by one."""


def counts(cell: Cell) -> Counts:
    """Return what the headline of a cell rests on."""
    failed = cell_rows.failures(cell)
    return Counts(
        n_attempted=cell.score.n_answers,
        n_task_failed=failed["failed"] + failed["refused"] + failed["not_sent"],
        n_judge_failed=failed["judge_failed"] + failed["judge_unreadable"],
        n_scored=cell.score.metrics[cell.score.headline].published.n,
    )


def rows(block: BlockPlan, cells: Cells, published: Printed, settings: TableSettings) -> list[Row]:
    """Return the rows of a block in the order of its benches; cells of the first time."""
    here = settings.of_block(block)
    found = []
    for place in here.rows:
        keys = [wide.number_at(cells, place, column, here) for column in here.columns]
        known = [key for key in keys if key is not None]
        if known:
            cell = cells[known[0].cell]
            metrics = [key.metric for key in known]
            comparable, reason = judged(cell, metrics, published, settings)
            differs = tuple(one.said for one in _differing(cell, metrics, published, settings))
            found.append(Row(cell.key, tuple(metrics), counts(cell), comparable, reason, differs))
    return found


def judged(cell: Cell, metrics: list[str], published: Printed, settings: TableSettings) -> tuple[str, str]:
    """Say whether a row may be compared with what is published, and how it then stands or why not."""
    there = _published(cell, metrics, published)
    if not there:
        return NOTHING, ""
    differ = _differing(cell, metrics, published, settings)
    if differ:
        return NOT, ", ".join(one.said for one in differ)
    verdicts = [
        f"{settings.metric(metric).title} {cell_rows.verdict(cell, metric, value, settings).verdict}"
        for metric, value in there.items()
    ]
    return COMPARABLE, ", ".join(verdicts)


def _published(cell: Cell, metrics: list[str], published: Printed) -> dict[str, Published]:
    keys = {metric: NumberKey(*cell.key, metric) for metric in metrics}
    return {metric: published[key] for metric, key in keys.items() if key in published}


def _differing(
    cell: Cell, metrics: list[str], published: Printed, settings: TableSettings
) -> list[protocol.Difference]:
    """Return in what a row differs from its published values, each field once, sorted by name."""
    found = {
        one.field: one
        for value in _published(cell, metrics, published).values()
        for one in reversed(protocol.differences(cell.score, value, settings))
    }
    return [found[name] for name in sorted(found)]


# -- the wide file -----------------------------------------------------------------------------------------


def metrics_of(settings: TableSettings) -> list[str]:
    """Return the metrics of all blocks, in order of first sight."""
    return list(dict.fromkeys(name for block in settings.blocks for name in block.metrics))


def columns(settings: TableSettings) -> list[str]:
    """Return the header of the wide file: of a metric ours, the published value and its lower bound."""
    found = ["block", *settings.row_axes]
    known = {column.at["metric"] for column in settings.columns}
    for name in metrics_of(settings):
        if name in known:
            found.append(name)
            found += [f"{name}.n"] if settings.metric(name).shows_n else []
            found += [f"{name}.published", f"{name}.published_at_least", f"{name}.difference"]
    return [*found, *_LAST]


def wide_rows(cells: Cells, published: Printed, settings: TableSettings) -> list[dict[str, Any]]:
    """Return one row per cell, block by block; a field is null where there is no such number."""
    header = columns(settings)
    return [
        dict.fromkeys(header) | _wide_row(block, row, cells, published, settings)
        for block in settings.blocks
        for row in rows(block, cells, published, settings)
    ]


def _wide_row(
    block: BlockPlan, row: Row, cells: Cells, published: Printed, settings: TableSettings
) -> dict[str, Any]:
    cell = cells[row.key]
    at = row.key._asdict()
    line: dict[str, Any] = {"block": block.title} | {axis: at[axis] for axis in settings.row_axes}
    for metric in row.metrics:
        line[metric] = wide.printed(cell, metric, settings)
        if settings.metric(metric).shows_n:
            line[f"{metric}.n"] = cell.score.metrics[metric].published.n
        there = published.get(NumberKey(*row.key, metric))
        if there is not None:
            line[f"{metric}.published"] = decimals(there.value, settings.decimals_of(metric))
            least = protocol.lower_bound(there, metric, settings)
            line[f"{metric}.published_at_least"] = decimals(least, settings.decimals_of(metric))
            line[f"{metric}.difference"] = cell_rows.difference(cell, metric, there, settings)
    covered = [found for one in _there(row, published) if (found := protocol.coverage(one))]
    said = list(dict.fromkeys(f"{found.n}/{found.n_all}" for found in covered))
    return line | {
        **row.counts._asdict(),
        "published_coverage": ", ".join(said) or None,
        "comparable": row.comparable,
        "reason": row.reason or None,
    }


def _there(row: Row, published: Printed) -> list[Published]:
    keys = [NumberKey(*row.key, metric) for metric in row.metrics]
    return [published[key] for key in keys if key in published]


# -- for people --------------------------------------------------------------------------------------------


def texts(
    cells: Cells, published: Printed, settings: TableSettings, marks: Mapping[CellKey, str] | None = None
) -> list[BlockText]:
    """Return all blocks that have cells.

    Args:
        cells: of the first time.
        published: values of the paper.
        settings: of the table.
        marks: footnote marks of cells.
    """
    return [
        _text(block, found, cells, published, settings, marks or {})
        for block in settings.blocks
        if (found := rows(block, cells, published, settings))
    ]


def _text(
    block: BlockPlan,
    found: list[Row],
    cells: Cells,
    published: Printed,
    settings: TableSettings,
    marks: Mapping[CellKey, str],
) -> BlockText:
    axes = ["bench"]
    axes += ["arm"] if len({row.key.arm for row in found}) > 1 else []
    axes += ["model"] if "model" in settings.open_axes or "model" in settings.row_axes else []
    metrics = [name for name in block.metrics if any(name in row.metrics for row in found)]
    common = _common(found)
    lines = []
    for row in found:
        values = [_beside(row, name, cells, published, settings) for name in metrics]
        values[0] += marks.get(row.key, "")
        names = [settings.title_of(axis, getattr(row.key, axis)) for axis in axes]
        lines.append((*names, *values, _of(row.counts), _said(row, common)))
    titles = [settings.metric(name).directed for name in metrics]
    header = (*(axis.capitalize() for axis in axes), *titles, "Scored", "Comparable")
    return BlockText(
        title=block.title,
        header=header,
        n_text=len(axes),
        rows=tuple(lines),
        common=_common_sentence(found, common),
        anchors=tuple(_anchors(block, metrics, found, settings)),
    )


def _common(found: list[Row]) -> list[str]:
    """Return the reasons that all rows with a published value share; nothing where there is one such row."""
    first, *rest = [row for row in found if row.comparable != NOTHING] or [None]
    return [one for one in first.differs if all(one in row.differs for row in rest)] if rest else []


def _common_sentence(found: list[Row], common: list[str]) -> str:
    if not common:
        return ""
    which = "All rows" if all(row.comparable == NOT for row in found) else "All rows with a published value"
    return f"{which} differ from the page in: {', '.join(common)}."


def _said(row: Row, common: list[str]) -> str:
    """Return whether a row is comparable, with the reasons that are its own."""
    if row.comparable == COMPARABLE:
        return f"{COMPARABLE}: {row.reason}"
    if row.comparable == NOTHING:
        return NOTHING
    own = [one for one in row.differs if one not in common]
    if not common:
        return f"{NOT} {', '.join(own)}"
    return "not, as said above" + (f"; also {', '.join(own)}" if own else "")


def _of(counts: Counts) -> str:
    """Return what is scored of what was attempted, and what became of the rest where it is known."""
    lost = {"failed": counts.n_task_failed, "without a verdict": counts.n_judge_failed}
    words = [f"{n:,} {name}" for name, n in lost.items() if n]
    return f"{counts.n_scored:,} of {counts.n_attempted:,}" + (f" ({', '.join(words)})" if words else "")


def _beside(row: Row, metric: str, cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Return ours with the published value and the difference beside it, as far as they are there."""
    if metric not in row.metrics:
        return "–"
    cell = cells[row.key]
    text = wide.rounded(cell, metric, settings) or "none graded"
    if settings.metric(metric).shows_n:
        text += f" (n {cell.score.metrics[metric].published.n:,})"
    there = published.get(NumberKey(*row.key, metric))
    if there is None:
        return text
    least = protocol.lower_bound(there, metric, settings)
    text += f"; published {settings.rounded_scaled(there.value, metric)}"
    text += "" if least is None else f", at least {settings.rounded_scaled(least, metric)}"
    value = cell.score.metrics[metric].published.value
    if value is None:
        return text
    difference = settings.rounded_scaled(value * settings.factor_of(metric) - there.value, metric)
    return f"{text}; {difference if difference.startswith('-') else f'+{difference}'}"


def _anchors(block: BlockPlan, metrics: list[str], found: list[Row], settings: TableSettings) -> list[str]:
    """Return a sentence for every anchor of a bench that is shown."""
    benches = {row.key.bench for row in found}
    lines = []
    for anchor in block.anchors:
        known = [name for name in metrics if name in anchor.values]
        if anchor.bench in benches and known:
            values = ", ".join(
                f"{settings.metric(name).title} {settings.printed(anchor.values[name], name)}"
                for name in known
            )
            bench = settings.title_of("bench", anchor.bench)
            lines.append(f"{anchor.label} ({anchor.scope}; {bench}): {values} [{anchor.source}]")
    return lines
