"""How far numbers moved when everything was asked again, as text."""

from collections.abc import Sequence

from remeasure.tables.drift import Drift
from remeasure.tables.inputs import PUBLISHED
from remeasure.tables.markdown_text import axes_of, axis_names, grid, more_in, titles
from remeasure.tables.settings import TableSettings


def drift_table(drifts: Sequence[Drift], settings: TableSettings) -> str:
    """Return one line per comparison, metric and reading."""
    rows = []
    for one in drifts:
        axis = one.pair.axis
        fixed = [name for name in axes_of(settings) if name != axis]
        less = one.drifts_less
        rows.append(
            [
                ", ".join(titles(one.first, fixed, settings)),
                one.pair.title or one.pair.name or _minus(one, settings),
                settings.metric(one.metric).directed,
                one.reading,
                _several(one.values[0], one.metric, settings),
                _several(one.values[1], one.metric, settings),
                *(_printed(value, one.metric, settings) for value in (*one.arms, one.common, one.contrast)),
                "–" if one.ratio is None else f"{one.ratio:.2f}",
                f"{one.n_changed[0]:,}, {one.n_changed[1]:,} of {one.n_units:,}",
                "nothing drifts" if less is None else "yes" if less else "no",
            ]
        )
    fixed = [name for name in axes_of(settings) if name != drifts[0].pair.axis]
    header = [", ".join(axis_names(fixed)) or "Table", "Contrast", "Metric", "Reading", "First", "Second"]
    header += ["Drift, first", "Drift, second", "Common", "Contrast drifts", "Ratio", "Units changed"]
    return grid([*header, "Contrast drifts less"], rows, 4)


def _minus(one: Drift, settings: TableSettings) -> str:
    first, second = (getattr(key, one.pair.axis) for key in (one.first, one.second))
    return f"{settings.title_of(one.pair.axis, first)} − {settings.title_of(one.pair.axis, second)}"


def _several(values: Sequence[float], metric: str, settings: TableSettings) -> str:
    return " / ".join(str(settings.rounded(value, metric)) for value in values) or "none graded"


def _printed(value: float | None, metric: str, settings: TableSettings) -> str:
    return settings.rounded(value, metric) or "–"


def verdict(drifts: Sequence[Drift]) -> str:
    """Say in one sentence whether differences drift less than the values that they are made of."""
    known = [one for one in drifts if one.drifts_less is not None]
    if not known:
        return "Nothing drifted: every headline number was the same each time."
    n_less = sum(one.drifts_less is True for one in known)
    holds = "holds throughout" if n_less == len(known) else "does not hold" if not n_less else "holds in part"
    still = len(drifts) - len(known)
    return (
        f"Differences drifted less than the values that they are made of in {n_less} of {len(known)} "
        f"headline comparisons (published reading): here the claim {holds}"
        + (f"; in {still} more nothing drifted." if still else ".")
    )


def drift_sections(drifts: Sequence[Drift], settings: TableSettings) -> list[str]:
    """Return the section about repeats; nothing where nothing was repeated."""
    if not drifts:
        return []
    shown = {metric.name for metric in settings.shown}
    main = [one for one in drifts if one.is_headline]
    other = [
        one for one in drifts if not one.is_headline and one.metric in shown and one.reading == PUBLISHED
    ]
    text = (
        f"Everything was asked {max(one.n_repeats for one in drifts)} times. *Drift*: mean absolute "
        "difference over all pairs of times; *common*: that of the mean of both sides; *ratio*: drift of the "
        "contrast to the mean drift of a side. All of it over the units that both sides have every time. "
        f"{more_in(settings, 'drift', 'and the strict reading of all')}".strip()
    )
    return [
        "## Drift between repeats\n",
        f"{verdict([one for one in main if one.reading == PUBLISHED])}\n",
        f"{text}\n",
        *([drift_table(main, settings)] if main else []),
        *(["Other metrics:\n", drift_table(other, settings)] if other else []),
    ]
