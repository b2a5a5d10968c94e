"""The differences between two cells, as text."""

from collections.abc import Iterable, Sequence

from remeasure import showing, stats
from remeasure.tables.contrast_rows import NO_PAIR_DIFFERS
from remeasure.tables.contrasts import Contrast, Paired
from remeasure.tables.markdown_text import (
    axes_of,
    axis_names,
    grid,
    more_in,
    p_value,
    points,
    span,
    titles,
)
from remeasure.tables.settings import TableSettings

LONGEST_NAME = 40
"""Longer names of differences stand above their table, and their beginnings in its rows."""
_PLURALS = {"arm": "arms", "model": "models", "bench": "benches"}


def _sides(contrast: Contrast, settings: TableSettings) -> list[str]:
    return [
        settings.title_of(contrast.axis, getattr(contrast.first, contrast.axis)),
        settings.title_of(contrast.axis, contrast.against),
    ]


def _called(contrast: Contrast) -> str | None:
    return contrast.pair.title or contrast.pair.name


def _in_rows(contrasts: Sequence[Contrast]) -> dict[str, str]:
    """Return what rows call each difference: of long titles the part before the colon, if that is enough."""
    full = [called for contrast in contrasts if (called := _called(contrast))]
    short = {name: name.partition(": ")[0] if len(name) > LONGEST_NAME else name for name in full}
    return short if len(set(short.values())) == len(short) else {name: name for name in full}


def _has_pairs(contrast: Contrast) -> bool:
    """Say whether a difference has units at all: beyond the limit of a search a metric has none."""
    return bool(contrast.published.n_pairs or contrast.strict.n_pairs)


def shows_wald(contrasts: Sequence[Contrast]) -> bool:
    """Return whether Wald's interval stands beside the bootstrap's: where benches or models are compared."""
    return any(one.axis in ("bench", "model") and one.published.is_binary for one in contrasts)


def _span(paired: Paired, interval: stats.Interval | None, metric: str, settings: TableSettings) -> str:
    return NO_PAIR_DIFFERS if paired.all_alike else span(interval, metric, settings)


def _wald(paired: Paired, metric: str, settings: TableSettings) -> str:
    return _span(paired, paired.wald, metric, settings) if paired.is_binary else "–"


def _n(paired: Paired) -> str:
    return f"{paired.n_pairs:,}" if paired.ratios is None else "{:,} and {:,}".format(*paired.ratios)


def _n_strict(paired: Paired) -> str:
    return f"{_n(paired)} ({paired.n_dropped:,} dropped)" if paired.ratios is None else _n(paired)


def contrast_table(contrasts: Sequence[Contrast], axis: str, settings: TableSettings) -> str:
    """Return one line per difference between two values of an axis.

    Differences that all have names are called by these; ``differences`` says which is which.
    """
    fixed = [name for name in axes_of(settings) if name != axis]
    several = len(settings.metrics) > 1
    walds = shows_wald(contrasts)
    named, names = all(_called(contrast) for contrast in contrasts), _in_rows(contrasts)
    rows = [
        [
            *titles(contrast.first, fixed, settings),
            *([names[_called(contrast) or ""]] if named else _sides(contrast, settings)),
            *([settings.metric(contrast.metric).directed] if several else []),
            points(contrast.published.difference, contrast.metric, settings),
            _span(contrast.published, contrast.published.interval, contrast.metric, settings),
            *([_wald(contrast.published, contrast.metric, settings)] if walds else []),
            _n(contrast.published),
            "–"
            if contrast.published.ratios
            else f"{contrast.published.n_higher} : {contrast.published.n_lower}",
            p_value(contrast.mcnemar_p),
            *([p_value(contrast.sign_p)] if any(one.sign_p is not None for one in contrasts) else []),
            p_value(contrast.holm_p),
            points(contrast.strict.difference, contrast.metric, settings),
            _span(contrast.strict, contrast.strict.interval, contrast.metric, settings),
            _n_strict(contrast.strict),
        ]
        for contrast in contrasts
    ]
    header = [*axis_names(fixed), *(["Contrast"] if named else [axis.capitalize(), "Against"])]
    header += ["Metric"] if several else []
    n_text = len(header)
    units = {settings.unit_of(contrast.metric) for contrast in contrasts}
    header += [
        "Points" if units == {"percent"} else "Difference",
        "95 % interval",
        *(["Wald 95 %"] if walds else []),
        "Pairs",
        "Higher : lower",
        "McNemar p",
    ]
    header += ["Sign p"] if any(one.sign_p is not None for one in contrasts) else []
    header += ["Holm p", "Strict", "95 % interval, strict", "Pairs, strict"]
    return grid(header, rows, n_text)


def _explained(contrasts: Sequence[Contrast], settings: TableSettings) -> str:
    """Return which cells a named difference is of, one line each."""
    lines = {
        f"- {_called(contrast)}: {' minus '.join(_sides(contrast, settings))}": None
        for contrast in contrasts
        if _called(contrast)
    }
    return "\n".join(lines) + "\n" if lines else ""


def _own_denominators(contrasts: Sequence[Contrast], settings: TableSettings) -> list[str]:
    """Say what the pairs are of metrics that not every unit of the headline has; nothing without any."""
    headline = {(one.first, one.second): one.published.n_pairs for one in contrasts if one.is_headline}
    own = [
        settings.metric(one.metric).title
        for one in contrasts
        if one.published.n_pairs < headline.get((one.first, one.second), 0)
    ]
    if not own:
        return []
    return [f"Of {_listed(dict.fromkeys(own))}, pairs are the units that have the metric on both sides.\n"]


def _of_answers(contrasts: Sequence[Contrast], settings: TableSettings) -> list[str]:
    """Say what is compared where answers decide what is in the denominator."""
    own = [settings.metric(one.metric).title for one in contrasts if one.published.ratios]
    if not own:
        return []
    return [
        f"Of {_listed(dict.fromkeys(own))}, answers decide which units count: the difference is that of the "
        "two cells' numbers, each over its own denominator (both stand under *Pairs*), with groups drawn of "
        "both together and without a test.\n"
    ]


def _untested(contrasts: Sequence[Contrast], settings: TableSettings) -> list[str]:
    """Say which metrics are not tested and why."""
    own = [one.metric for one in contrasts if not settings.metric(one.metric).is_tested]
    if not own:
        return []
    titles_of = _listed(dict.fromkeys(settings.metric(name).title for name in own))
    return [
        f"{titles_of}: not tested. Cells run beside each other on one machine, so that times differ by what "
        "else ran; the interval is over units alone and knows nothing of that.\n"
    ]


def _listed(words: Iterable[str]) -> str:
    *most, last = map(showing.markdown, words)
    return f"{', '.join(most)} and {last}" if most else last


def differences(contrasts: Sequence[Contrast], settings: TableSettings) -> list[str]:
    """Return the sections of all differences, the headline metric first; nothing where there are none."""
    metrics = dict.fromkeys(contrast.metric for contrast in contrasts)
    family = (
        f"all {len(contrasts)} differences shown" if len(metrics) == 1 else "the differences of each metric"
    )
    shown = {metric.name: place for place, metric in enumerate(settings.shown)}
    parts = []
    for axis in dict.fromkeys(contrast.axis for contrast in contrasts):
        here = [contrast for contrast in contrasts if contrast.axis == axis]
        main = [contrast for contrast in here if contrast.is_headline]
        other = [
            contrast
            for contrast in here
            if not contrast.is_headline and contrast.metric in shown and _has_pairs(contrast)
        ]
        other.sort(key=lambda contrast: shown[contrast.metric])
        tests = ["McNemar's exact test over single units"]
        if any(contrast.sign_p is not None for contrast in here):
            tests.append("where scores are not 0 or 1 an exact sign test over the units that differ")
        said = [
            f"On the same units, published reading; bootstrap over groups of units that belong together, "
            f"{', '.join(tests)}, Holm over {family}.",
            *(
                ["*Wald*: as if each pair were independent of the others; the bootstrap is ours."]
                if shows_wald(here)
                else []
            ),
            "*Dropped*: units that one side has not in the strict denominator.",
        ]
        if any(settings.metric(contrast.metric).better == "low" for contrast in [*main, *other]):
            said.append(
                "Where lower is better, the sign is reversed: a negative difference favours the first."
            )
        said += filter(None, [more_in(settings, "contrasts")])
        parts += [f"## Differences between {_PLURALS[axis]}\n", " ".join(said) + "\n"]
        parts += filter(None, [_explained(here, settings)])
        parts += [contrast_table(main, axis, settings)] if main else []
        parts += ["Other metrics:\n"] if main and other else []
        parts += [contrast_table(other, axis, settings)] if other else []
        for sentences in (_own_denominators, _of_answers, _untested):
            parts += sentences([*main, *other], settings)
    return parts
