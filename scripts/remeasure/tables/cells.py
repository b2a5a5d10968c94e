"""One row per cell: value, what it rests on, how it stands to the published one."""

from collections.abc import Mapping
from typing import Any

from remeasure import stats
from remeasure.errors import RemeasureError
from remeasure.records import Score
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell, TableSettings
from remeasure.tables.published import Published
from remeasure.tables.servers import Servers

STATUSES = ("answered", "cut_off", "refused", "failed", "not_sent")
FAILURES = (*STATUSES[1:], "empty", "unreadable", "judge_failed", "judge_unreadable")
COLUMNS = (
    "bench",
    "arm",
    "model",
    "unit",
    "value",
    "low",
    "high",
    "interval_method",
    "value_strict",
    "n",
    "n_graded",
    "n_graded_strict",
    "n_differ",
    *STATUSES,
    *FAILURES[4:],
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


def failures(cell: Cell) -> dict[str, int]:
    """Return the cell's failures by class, zeros included; classes may overlap (cut off and unreadable)."""
    score = cell.score
    counts = {status: score.statuses.get(status, 0) for status in STATUSES[1:]}
    return counts | {
        "empty": cell.n_empty,
        "unreadable": score.verdicts_strict.get("unreadable", 0),
        "judge_failed": score.verdicts.get("judge_failed", 0),
        "judge_unreadable": score.verdicts_strict.get("judge_unreadable", 0),
    }


def differing(score: Score, published: Published, settings: TableSettings) -> list[str]:
    """Return the protocol fields in which a cell and its published value differ, each once, sorted."""
    pairs = {
        "grader": (score.grader.partition("@")[0], published.grader),
        "n": (score.n, published.n),
        "reader": (score.reader, published.reader),
        **settings.protocol,
    }
    fields = {name for name, (ours, theirs) in pairs.items() if theirs is not None and ours != theirs}
    return sorted(fields | set(settings.not_comparable))


def verdict(cell: Cell, published: Published | None, settings: TableSettings) -> stats.Verdict:
    """Compare a cell with its published value, in the table's unit.

    Raises:
        RemeasureError: the published value has another unit.
    """
    if published is None:
        return stats.verdict(None, None, None, [])
    if published.unit != settings.unit:
        raise RemeasureError(
            f"{settings.table} {cell.score.bench} {cell.score.arm}: published in {published.unit}, the "
            f"table is in {settings.unit}; correct config/published or the study's unit"
        )
    interval = cell.score.interval
    scaled = (interval[0] * settings.factor, interval[1] * settings.factor) if interval else None
    fields = differing(cell.score, published, settings)
    return stats.verdict(scaled, published.value, published.noise, fields)


def row(cell: Cell, published: Published | None, settings: TableSettings, servers: Servers) -> dict[str, Any]:
    """Return the row of one cell; numbers in the table's unit with two decimals."""

    def scaled(share: float | None) -> str | None:
        return decimals(None if share is None else share * settings.factor, 2)

    score = cell.score
    assert score.value is not None  # checked while loading
    judged = verdict(cell, published, settings)
    low, high = score.interval or (None, None)
    return {
        "bench": score.bench,
        "arm": score.arm,
        "model": score.model,
        "unit": settings.unit,
        "value": scaled(score.value),
        "low": scaled(low),
        "high": scaled(high),
        "interval_method": score.interval_method,
        "value_strict": scaled(score.value_strict),
        "n": score.n,
        "n_graded": score.n_graded,
        "n_graded_strict": score.n_graded_strict,
        "n_differ": score.n_differ,
        "answered": score.statuses.get("answered", 0),
        **failures(cell),
        "grader": score.grader,
        "reader": score.reader,
        "judge": score.judge,
        "answered_by": "; ".join(servers.answered_by),
        "judged_by": "; ".join(servers.judged_by),
        "mixed": "yes" if servers.is_mixed else "no",
        "corpus": score.corpus,
        "k": score.k,
        "recall_at_k": scaled(score.recall_at_k),
        "published": decimals(published.value, 1) if published else None,
        "difference": decimals(score.value * settings.factor - published.value, 2) if published else None,
        "verdict": judged.verdict,
        "reason": judged.reason,
    }


def rows(
    cells: Mapping[tuple[str, str], Cell],
    published: Mapping[tuple[str, str], Published],
    settings: TableSettings,
    servers: Mapping[tuple[str, str], Servers],
) -> list[dict[str, Any]]:
    """Return one row per cell, in table order."""
    return [row(cell, published.get(key), settings, servers[key]) for key, cell in cells.items()]
