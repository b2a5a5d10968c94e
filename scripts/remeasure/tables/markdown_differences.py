"""The differences between two cells, as text."""

from collections.abc import Sequence

from remeasure.tables.contrasts import Contrast
from remeasure.tables.markdown_text import axes_of, axis_names, grid, p_value, points, span, titles
from remeasure.tables.settings import TableSettings


def contrast_table(contrasts: Sequence[Contrast], axis: str, settings: TableSettings) -> str:
    """Return one line per difference between two values of an axis."""
    fixed = [name for name in axes_of(settings) if name != axis]
    several = len(settings.metrics) > 1
    rows = [
        [
            *titles(contrast.first, fixed, settings),
            settings.title_of(axis, getattr(contrast.first, axis)),
            settings.title_of(axis, contrast.against),
            *([settings.metric(contrast.metric).directed] if several else []),
            points(contrast.difference, settings),
            span(contrast.interval, settings),
            f"{contrast.n_pairs:,}",
            "–" if contrast.n_only_first is None else f"{contrast.n_only_first} : {contrast.n_only_second}",
            p_value(contrast.mcnemar_p),
            p_value(contrast.holm_p),
        ]
        for contrast in contrasts
    ]
    header = [*axis_names(fixed), axis.capitalize(), "Against", *(["Metric"] if several else [])]
    only = "Only one right" if not several else "1 in one only"
    header += ["Points", "95 % interval", "Pairs", only, "McNemar p", "Holm p"]
    return grid(header, rows, len(header) - 6)


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
