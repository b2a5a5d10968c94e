"""One row per cell and metric: value, what it rests on, how it stands to the published one."""

from collections.abc import Mapping, Sequence
from typing import Any

from remeasure import repeats, stats
from remeasure.errors import RemeasureError
from remeasure.records import Score
from remeasure.tables import failures as failed_answers
from remeasure.tables import limits, protocol, wide
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.servers import Servers
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

STATUSES = ("answered", "cut_off", "refused", "failed", "not_sent")
FAILURES = (*STATUSES[1:], "empty", "unreadable", "judge_failed", "judge_unreadable")
_NUMBER = (
    "bench",
    "arm",
    "model",
    "repeat",
    "metric",
    "better",
    "unit",
    "value",
    "low",
    "high",
    "interval_method",
    "value_strict",
    "low_strict",
    "high_strict",
    "n",
    "n_graded",
    "n_graded_strict",
    "n_differ",
)
_ANSWERS = (
    "n_answers",
    *STATUSES,
    *FAILURES[4:],
    "share_without_answer",
    "failed_share",
    "n_words_mean",
    "n_words_median",
)
_ORIGIN = (
    "grader",
    "reader",
    "judge",
    "answered_by",
    "judged_by",
    "mixed",
    "corpus",
    "k",
    "recall_at_k",
    "published",
    "difference",
    "verdict",
    "reason",
)


def further_readings(cells: Mapping[CellKey, Cell]) -> list[str]:
    """Return the readings beside the published and the strict one, in order of first sight."""
    metrics = (metric for cell in cells.values() for metric in cell.score.metrics.values())
    return list(dict.fromkeys(name for metric in metrics for name in metric.also))


def counted(cells: Mapping[CellKey, Cell]) -> list[str]:
    """Return what the graders counted further, sorted; failures have columns of their own."""
    return sorted({name for cell in cells.values() for name in cell.score.counts} - set(FAILURES))


def methods(cells: Mapping[CellKey, Cell]) -> list[str]:
    """Return what the graders say of how they worked, sorted."""
    return sorted({name for cell in cells.values() for name in cell.score.method})


def columns(cells: Mapping[CellKey, Cell]) -> list[str]:
    """Return the header; readings and counts that some cell has are columns."""
    also = [f"{kind}_{name}" for name in further_readings(cells) for kind in ("value", "low", "high", "n")]
    counts = [f"count_{name}" for name in counted(cells)]
    method = [f"method_{name}" for name in methods(cells)]
    return [*_NUMBER, *also, *_ANSWERS, *failed_answers.columns(cells), *counts, *_ORIGIN, *method]


def failures_filed(cell: Cell) -> dict[str, int | None]:
    """Return the failures as the file has them: what a judge did is null where there is none."""
    return {
        name: None if cell.score.judge is None and name.startswith("judge_") and not count else count
        for name, count in failures(cell).items()
    }


def failures(cell: Cell) -> dict[str, int]:
    """Return the cell's failures by class, zeros included; classes may overlap (cut off and unreadable).

    Statuses and empty answers are counted per answer, what could not be read per unit.
    """
    score = cell.score
    counts = {status: score.statuses.get(status, 0) for status in STATUSES[1:]}
    return counts | {
        "empty": score.n_empty,
        "unreadable": sum(score.verdicts_strict.get(name, 0) for name in ("unreadable", "parse_failed")),
        "judge_failed": sum(there.get("judge_failed", 0) for there in (score.verdicts, score.counts)),
        "judge_unreadable": sum(
            there.get("judge_unreadable", 0) for there in (score.verdicts_strict, score.counts)
        ),
    }


def without_answer(cell: Cell) -> float | None:
    """Return the share of requests that ended without a text; null for no requests."""
    score = cell.score
    n_missing = score.n_empty + sum(
        score.statuses.get(status, 0) for status in ("refused", "failed", "not_sent")
    )
    return n_missing / score.n_answers if score.n_answers else None


def differing(score: Score, published: Published, settings: TableSettings) -> list[str]:
    """Return the protocol fields in which a cell and its published value differ, each once, sorted."""
    return [one.field for one in protocol.differences(score, published, settings)]


def verdict(cell: Cell, metric: str, published: Published | None, settings: TableSettings) -> stats.Verdict:
    """Compare a number with its published value, in the table's unit.

    Where the units are all that there are, an interval over units says nothing about a reproduction: a
    published value that comes with a tolerance is compared with the number itself.

    Raises:
        RemeasureError: the published value has another unit.
    """
    if published is None:
        return stats.verdict(None, None, None, [])
    if published.unit != settings.unit_of(metric):
        raise RemeasureError(
            f"{settings.table} {settings.name(cell.key)}: published in {published.unit}, the "
            f"table is in {settings.unit_of(metric)}; correct config/published or the study's unit"
        )
    number, factor = cell.score.metrics[metric].published, settings.factor_of(metric)
    interval, fields = number.interval, differing(cell.score, published, settings)
    if settings.is_exact and published.noise is not None and number.value is not None and not fields:
        return stats.near(number.value * factor, published.value, published.noise)
    scaled = (interval[0] * factor, interval[1] * factor) if interval else None
    return stats.verdict(scaled, published.value, published.noise, fields)


def difference(cell: Cell, metric: str, published: Published | None, settings: TableSettings) -> str | None:
    """Return ours minus the published value, as files have it; null where one of them is not there."""
    value, factor = cell.score.metrics[metric].published.value, settings.factor_of(metric)
    if value is None or published is None:
        return None
    return decimals(value * factor - published.value, settings.places_of(metric))


def _number(cell: Cell, metric: str, settings: TableSettings) -> dict[str, Any]:
    """Return what belongs to the metric alone: values under all readings, each with its denominator."""
    found = cell.score.metrics[metric]
    low, high = found.published.interval or (None, None)
    low_strict, high_strict = found.strict.interval or (None, None)
    also = {}
    for name, number in found.also.items():
        bounds = number.interval or (None, None)
        also |= {f"value_{name}": settings.written(number.value, metric), f"n_{name}": number.n}
        also |= {
            f"{kind}_{name}": settings.written(bound, metric)
            for kind, bound in zip(("low", "high"), bounds, strict=True)
        }
    return {
        "metric": metric,
        "better": settings.metric(metric).better,
        "unit": settings.unit_of(metric),
        "value": settings.written(found.published.value, metric),
        "low": settings.written(low, metric),
        "high": settings.written(high, metric),
        "interval_method": found.published.interval_method,
        "value_strict": settings.written(found.strict.value, metric),
        "low_strict": settings.written(low_strict, metric),
        "high_strict": settings.written(high_strict, metric),
        "n": cell.score.n,
        "n_graded": found.published.n,
        "n_graded_strict": found.strict.n,
        "n_differ": found.n_differ,
        **also,
    }


def row(
    cell: Cell, metric: str, published: Published | None, settings: TableSettings, servers: Servers
) -> dict[str, Any]:
    """Return the row of one number; numbers in the table's unit with two decimals."""
    score = cell.score
    judged = verdict(cell, metric, published, settings)
    return {
        **cell.key._asdict(),
        "repeat": repeats.parse(cell.key.model)[1],
        **_number(cell, metric, settings),
        "n_answers": score.n_answers,
        "answered": score.statuses.get("answered", 0),
        **failures_filed(cell),
        "share_without_answer": settings.filed(without_answer(cell)),
        "failed_share": settings.filed(limits.failed_share(score)),
        "n_words_mean": decimals(score.n_words_mean, 2),
        "n_words_median": decimals(score.n_words_median, 1),
        **{f"count_{name}": n for name, n in score.counts.items() if name not in FAILURES},
        "grader": score.grader,
        "reader": score.reader,
        "judge": score.judge,
        "answered_by": "; ".join(servers.answered_by),
        "judged_by": "; ".join(servers.judged_by),
        "mixed": "yes" if servers.is_mixed else "no",
        "corpus": score.corpus,
        "k": score.k,
        "recall_at_k": settings.filed(score.recall_at_k),
        "published": decimals(published.value, settings.decimals_of(metric)) if published else None,
        "difference": difference(cell, metric, published, settings),
        "verdict": judged.verdict,
        "reason": judged.reason,
        **{f"method_{name}": said for name, said in score.method.items()},
    }


def rows(
    cells: Mapping[CellKey, Cell],
    published: Mapping[NumberKey, Published],
    settings: TableSettings,
    servers: Mapping[CellKey, Servers],
    header: Sequence[str],
) -> list[dict[str, Any]]:
    """Return one row per cell and metric, in table order; what a cell does not have is null.

    Args:
        cells: all cells.
        published: values of the paper.
        settings: of the table.
        servers: who answered each cell.
        header: ``columns``.
    """
    found = []
    for key in wide.numbers(cells, settings):
        there = published.get(key)
        line = row(cells[key.cell], key.metric, there, settings, servers[key.cell])
        lost = failed_answers.columns_of(cells[key.cell].score, cells)
        found.append(dict.fromkeys(header) | line | lost)
    return found
