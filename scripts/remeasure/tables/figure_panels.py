"""What the picture of conditions shows, panel by panel, and the same in words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from remeasure.tables import wide
from remeasure.tables.contrasts import Contrast
from remeasure.tables.figure_bars import failure_words
from remeasure.tables.inputs import Cell
from remeasure.tables.settings import CellKey, TableSettings

Cells = Mapping[CellKey, Cell]
Contrasts = Sequence[Contrast]


class Panel(NamedTuple):
    """Some rows on one axis: conditions of a bench, or differences."""

    title: str
    metric: str
    keys: tuple[CellKey, ...] = ()
    """The conditions, of a panel of such."""
    contrasts: Contrasts = ()
    """The differences, of a panel of such."""

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return len(self.keys) or len(self.contrasts)


def models(cells: Cells) -> list[str]:
    """Return the models in the order of the table."""
    return list(dict.fromkeys(key.model for key in cells))


def panels(cells: Cells, contrasts: Contrasts, model: str, settings: TableSettings) -> list[Panel]:
    """Return the panels of one model: conditions bench by bench, then differences of arms, kind by kind."""
    found = []
    for bench in dict.fromkeys(key.bench for key in cells if key.model == model):
        keys = tuple(key for key in cells if (key.bench, key.model) == (bench, model))
        found.append(Panel(settings.title_of("bench", bench), cells[keys[0]].score.headline, keys))
    own = [one for one in contrasts if one.is_headline and one.axis == "arm" and one.first.model == model]
    by_unit: dict[str, list[Contrast]] = {}
    for one in own:
        by_unit.setdefault(settings.unit_of(one.metric), []).append(one)
    found += [Panel("Differences", here[0].metric, (), here) for here in by_unit.values()]
    return found


def called(contrast: Contrast, settings: TableSettings) -> str:
    """Return what a difference is called: its title, or which arms it is of."""
    sides = (contrast.first, contrast.second)
    names = [settings.title_of(contrast.axis, getattr(key, contrast.axis)) for key in sides]
    return contrast.pair.title or contrast.pair.name or " − ".join(names)


def summary(cells: Cells, contrasts: Contrasts, settings: TableSettings) -> str:
    """Return the picture in words, for readers who cannot see it."""
    lines = []
    several = len(models(cells)) > 1
    for model in models(cells):
        for panel in panels(cells, contrasts, model, settings):
            words = [_condition_words(cells[key], panel.metric, settings) for key in panel.keys]
            words += [_difference_words(one, settings) for one in panel.contrasts]
            title = f"{settings.title_of('model', model)}, {panel.title}" if several else panel.title
            metric = f", {settings.metric(panel.metric).title}" if panel.keys else ""
            lines.append(f"{title}{metric}: {'; '.join(words)}.")
    return (
        f"Conditions and differences in {settings.unit}, run {settings.run}, with 95 percent intervals. "
        + " ".join(lines)
    )


def _condition_words(cell: Cell, metric: str, settings: TableSettings) -> str:
    title = settings.title_of("arm", cell.key.arm)
    text = f"{title} {wide.printed(cell, metric, settings) or 'none graded'}"
    failed = sum(failure_words(cell), [])
    return f"{text} ({', '.join(failed)})" if failed else text


def _difference_words(one: Contrast, settings: TableSettings) -> str:
    here = one.published
    text = f"{called(one, settings)} {settings.printed(here.difference, one.metric) or 'undefined'}"
    if here.interval is None:
        return text
    low, high = (settings.printed(bound, one.metric) for bound in here.interval)
    return f"{text} ({low} to {high})"
