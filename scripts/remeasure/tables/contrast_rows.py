"""The differences as lines of a file."""

from typing import Any

from remeasure.tables.contrasts import Contrast, Paired
from remeasure.tables.csv_text import significant
from remeasure.tables.settings import TableSettings

COLUMNS = (
    "bench",
    "contrast",
    "metric",
    "better",
    "axis",
    "arm",
    "model",
    "against",
    "unit",
    "difference",
    "low",
    "high",
    "favours",
    "n_pairs",
    "n_dropped",
    "n_denominator",
    "n_denominator_against",
    "n_groups",
    "n_higher",
    "n_lower",
    "n_only_arm",
    "n_only_model",
    "n_only_bench",
    "n_only_against",
    "mcnemar_p",
    "sign_p",
    "holm_p",
    "low_wald",
    "high_wald",
    "difference_strict",
    "low_strict",
    "high_strict",
    "n_pairs_strict",
    "n_dropped_strict",
    "grader",
    "interval_method",
)


NO_PAIR_DIFFERS = "no pair differs"
"""Instead of an interval of no width."""


def unit_of(metric: str, settings: TableSettings) -> str:
    """Return the unit of a difference: percents differ by points."""
    unit = settings.unit_of(metric)
    return f"{unit} points" if unit == "percent" else unit


def favours(difference: float | None, metric: str, settings: TableSettings) -> str | None:
    """Say whose value is the better one; where lower is better, a negative difference favours the first."""
    if difference is None:
        return None
    if abs(difference) < 1e-12:
        return "neither"
    return "first" if (difference > 0) == (settings.metric(metric).better == "high") else "second"


def _method(paired: Paired, settings: TableSettings) -> str:
    if paired.all_alike:
        return NO_PAIR_DIFFERS
    if paired.ratios and not all(paired.ratios):
        return "undefined: nothing in a denominator"
    if paired.interval is None:
        return "undefined: fewer than two groups"
    words = ["two ratios," if paired.ratios else "paired", *(["weighted"] if paired.is_weighted else [])]
    words += [*(["clustered"] if paired.n_groups < paired.n_pairs else []), "bootstrap"]
    return f"{' '.join(words)} 95 %, {settings.bootstrap.n} samples, seed {settings.bootstrap.seed}"


def row(contrast: Contrast, settings: TableSettings) -> dict[str, Any]:
    """Return the CSV row of a contrast; differences in points of the table's unit."""
    metric, here, strict = contrast.metric, contrast.published, contrast.strict
    low, high = here.interval or (None, None)
    low_strict, high_strict = strict.interval or (None, None)
    low_wald, high_wald = here.wald or (None, None)
    own, other = here.ratios or (None, None)
    only = dict.fromkeys(("n_only_arm", "n_only_model", "n_only_bench", "n_only_against"))
    if here.is_binary:
        only |= {f"n_only_{contrast.axis}": here.n_higher, "n_only_against": here.n_lower}
    return {
        "bench": contrast.first.bench,
        "contrast": contrast.pair.name,
        "metric": metric,
        "better": settings.metric(metric).better,
        "axis": contrast.axis,
        "arm": contrast.first.arm,
        "model": contrast.first.model,
        "against": contrast.against,
        "unit": unit_of(metric, settings),
        "difference": settings.written(here.difference, metric),
        "low": settings.written(low, metric),
        "high": settings.written(high, metric),
        "favours": favours(here.difference, metric, settings),
        "n_pairs": here.n_pairs,
        "n_dropped": here.n_dropped,
        "n_denominator": own,
        "n_denominator_against": other,
        "n_groups": here.n_groups,
        "n_higher": None if here.ratios else here.n_higher,
        "n_lower": None if here.ratios else here.n_lower,
        **only,
        "mcnemar_p": significant(contrast.mcnemar_p),
        "sign_p": significant(contrast.sign_p),
        "holm_p": significant(contrast.holm_p),
        "low_wald": settings.written(low_wald, metric),
        "high_wald": settings.written(high_wald, metric),
        "difference_strict": settings.written(strict.difference, metric),
        "low_strict": settings.written(low_strict, metric),
        "high_strict": settings.written(high_strict, metric),
        "n_pairs_strict": strict.n_pairs,
        "n_dropped_strict": strict.n_dropped,
        "grader": contrast.grader,
        "interval_method": _method(here, settings),
    }
