"""Differences between arms on the same items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remeasure import stats
from remeasure.errors import RemeasureError
from remeasure.tables.csv_text import decimals, significant
from remeasure.tables.inputs import Cell, TableSettings

COLUMNS = (
    "bench",
    "arm",
    "against",
    "unit",
    "difference",
    "low",
    "high",
    "n_pairs",
    "n_groups",
    "n_only_arm",
    "n_only_against",
    "mcnemar_p",
    "holm_p",
    "grader",
    "interval_method",
)


@dataclass(frozen=True)
class Contrast:
    """One arm against another on one bench; shares, None where undefined."""

    bench: str
    arm: str
    against: str
    grader: str
    difference: float | None
    interval: stats.Interval | None
    n_pairs: int
    n_groups: int
    n_only_arm: int | None
    """Items that only ``arm`` got right; None where scores are not right or wrong."""
    n_only_against: int | None
    mcnemar_p: float | None
    holm_p: float | None = None


def compare(ours: Cell, theirs: Cell, settings: TableSettings) -> Contrast:
    """Compare two cells of one bench over the items that both have in their denominator.

    Raises:
        RemeasureError: other items or another grader; numbers of different graders are never compared.
    """
    place = f"{ours.score_path} and {theirs.score_path}"
    if ours.score.grader != theirs.score.grader:
        raise RemeasureError(
            f"{place}: graded by {ours.score.grader} and {theirs.score.grader}; only the same grader "
            "can be compared: grade both anew"
        )
    if ours.item_ids != theirs.item_ids:
        raise RemeasureError(f"{place}: the cells have different items; delete both graded.jsonl and rerun")
    pairs = [
        (one, other, group)
        for one, other, group in zip(ours.scores, theirs.scores, ours.groups, strict=True)
        if one is not None and other is not None
    ]
    first, second, groups = zip(*pairs, strict=True) if pairs else ((), (), ())
    binary = pairs and all(value in (0, 1) for value in (*first, *second))
    only_ours = sum(one > other for one, other, _ in pairs) if binary else None
    only_theirs = sum(one < other for one, other, _ in pairs) if binary else None
    return Contrast(
        bench=ours.score.bench,
        arm=ours.score.arm,
        against=theirs.score.arm,
        grader=ours.score.grader,
        difference=(sum(first) - sum(second)) / len(pairs) if pairs else None,
        interval=stats.bootstrap_difference(
            first, second, groups=groups, n_resamples=settings.bootstrap.n, seed=settings.bootstrap.seed
        ),
        n_pairs=len(pairs),
        n_groups=len(set(groups)),
        n_only_arm=only_ours,
        n_only_against=only_theirs,
        mcnemar_p=stats.mcnemar_exact(only_ours, only_theirs) if binary else None,
    )


def compare_all(cells: Mapping[tuple[str, str], Cell], settings: TableSettings) -> list[Contrast]:
    """Return all contrasts, bench by bench, with Holm's p over all of them as one family."""
    found = [
        compare(cells[row.bench, arm], cells[row.bench, against], settings)
        for row in settings.rows
        for arm, against in settings.contrasts
    ]
    adjusted = stats.holm([contrast.mcnemar_p for contrast in found])
    return [Contrast(**{**vars(contrast), "holm_p": p}) for contrast, p in zip(found, adjusted, strict=True)]


def row(contrast: Contrast, settings: TableSettings) -> dict[str, Any]:
    """Return the CSV row of a contrast; differences in points of the table's unit."""

    def scaled(share: float | None) -> str | None:
        return decimals(None if share is None else share * settings.factor, 2)

    low, high = contrast.interval or (None, None)
    clustered = "paired clustered bootstrap" if contrast.n_groups < contrast.n_pairs else "paired bootstrap"
    method = f"{clustered} 95 %, {settings.bootstrap.n} samples, seed {settings.bootstrap.seed}"
    return {
        "bench": contrast.bench,
        "arm": contrast.arm,
        "against": contrast.against,
        "unit": f"{settings.unit} points" if settings.unit == "percent" else settings.unit,
        "difference": scaled(contrast.difference),
        "low": scaled(low),
        "high": scaled(high),
        "n_pairs": contrast.n_pairs,
        "n_groups": contrast.n_groups,
        "n_only_arm": contrast.n_only_arm,
        "n_only_against": contrast.n_only_against,
        "mcnemar_p": significant(contrast.mcnemar_p),
        "holm_p": significant(contrast.holm_p),
        "grader": contrast.grader,
        "interval_method": method if contrast.interval else "undefined: fewer than two groups",
    }
