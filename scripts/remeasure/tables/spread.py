"""How far a number moves over readers that are the same but for a seed, and how two such groups differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from remeasure import showing, stats
from remeasure.tables.block_text import BlockText
from remeasure.tables.contrast_rows import unit_of
from remeasure.tables.inputs import PUBLISHED, STRICT, Cell
from remeasure.tables.markdown_text import axes_of, axis_names, grid, more_in, titles
from remeasure.tables.settings import CellKey, NumberKey, TableSettings
from remeasure.tables.wide import first_time

COLUMNS = (
    "bench",
    "arm",
    "spread",
    "against",
    "metric",
    "better",
    "reading",
    "unit",
    "n",
    "readers",
    "readers_against",
    "n_units",
    "values",
    "mean",
    "sd",
    "min",
    "max",
    "grader",
)
TITLE = "Spread over seeds"
_EXPLAINED = (
    "Readers that are the same but for a seed. *SD*: sample standard deviation (n − 1). A difference is "
    "taken reader by reader, in the order in which both groups name them."
)
Cells = Mapping[CellKey, Cell]


@dataclass(frozen=True)
class Spread:
    """One number of several readers, or the difference of two groups of readers; values as scores are."""

    place: NumberKey
    """Where the number of the first reader stands."""
    reading: str
    names: tuple[str, ...]
    """Of the group, or of the two."""
    readers: tuple[tuple[str, ...], ...]
    """Of each group, those that have the number."""
    values: tuple[float, ...]
    """Reader by reader; of two groups first minus second."""
    n_units: tuple[int, ...]
    """In the denominator of each; of two groups of that which has fewer."""
    grader: str

    @property
    def described(self) -> stats.Spread:
        """Mean, standard deviation, least and greatest."""
        found = stats.spread(self.values)
        assert found is not None, self.place
        return found


def of_table(cells: Cells, settings: TableSettings) -> list[Spread]:
    """Return the spread of every number, then the differences of groups of as many readers; headline first.

    Edges:
        Where fewer than two readers of a group have a number there is nothing to spread: it is left out.
    """
    found = [
        spread
        for bench, arm in dict.fromkeys((key.bench, key.arm) for key in settings.cells)
        for metric in settings.metrics
        for reading in (PUBLISHED, STRICT)
        for spread in _at(cells, settings, NumberKey(bench, arm, "", metric.name), reading)
    ]
    headlines = {key.bench: cell.score.headline for key, cell in cells.items()}
    return sorted(found, key=lambda one: one.place.metric != headlines[one.place.bench])


def _at(cells: Cells, settings: TableSettings, place: NumberKey, reading: str) -> Iterator[Spread]:
    """Yield the spreads at a place of the table, and the differences between them."""
    first = first_time(cells)
    groups = {
        name: [first.get(CellKey(place.bench, place.arm, reader)) for reader in readers]
        for name, readers in settings.spread_of
    }
    for name, group in groups.items():
        yield from _spread((name,), (group,), place, reading)
    for one, other in combinations(groups, 2):
        if len(groups[one]) == len(groups[other]):
            yield from _spread((one, other), (groups[one], groups[other]), place, reading)


def _spread(
    names: tuple[str, ...], groups: tuple[Sequence[Cell | None], ...], place: NumberKey, reading: str
) -> Iterator[Spread]:
    """Yield the spread of one group or of the difference of two, where at least two readers have it."""
    sides, values, n_units = [], [], []
    for cells in zip(*groups, strict=True):
        numbers = [_number(cell, place.metric, reading) for cell in cells]
        known = [number for number in numbers if number is not None]
        if len(known) < len(groups):
            continue
        sides.append(cells)
        values.append(known[0].value - known[1].value if len(groups) == 2 else known[0].value)
        n_units.append(min(number.n for number in known))
    if len(sides) < 2:
        return
    yield Spread(
        place=place._replace(model=sides[0][0].key.model),
        reading=reading,
        names=names,
        readers=tuple(tuple(cell.key.model for cell in group) for group in zip(*sides, strict=True)),
        values=tuple(values),
        n_units=tuple(n_units),
        grader=sides[0][0].score.grader,
    )


def _number(cell: Cell | None, metric: str, reading: str):
    """Return a cell's number; None where it has none, or nothing was in its denominator."""
    found = cell.score.metrics.get(metric) if cell else None
    number = getattr(found, reading) if found else None
    return number if number is not None and number.value is not None else None


def row(one: Spread, settings: TableSettings) -> dict[str, Any]:
    """Return the CSV row of a spread; several values are separated by semicolons, in order of the readers."""
    metric, found = one.place.metric, one.described
    against = dict(zip(("spread", "against"), one.names, strict=False))
    readers = dict(zip(("readers", "readers_against"), map("; ".join, one.readers), strict=False))
    return {
        "bench": one.place.bench,
        "arm": one.place.arm,
        "against": None,
        "readers_against": None,
        **against,
        "metric": metric,
        "better": settings.metric(metric).better,
        "reading": one.reading,
        "unit": unit_of(metric, settings),
        "n": found.n,
        **readers,
        "n_units": "; ".join(map(str, one.n_units)),
        "values": "; ".join(str(settings.written(value, metric)) for value in one.values),
        "mean": settings.written(found.mean, metric),
        "sd": settings.written(found.sd, metric),
        "min": settings.written(found.lowest, metric),
        "max": settings.written(found.highest, metric),
        "grader": one.grader,
    }


def texts(spreads: Sequence[Spread], settings: TableSettings) -> list[BlockText]:
    """Return the spreads of the published reading as a block for pages; none where nothing is spread."""
    axes = [axis for axis in axes_of(settings) if axis != "model"]
    rows = [
        _text_row(one, axes, settings)
        for one in spreads
        if one.reading == PUBLISHED and settings.shows(one.place)
    ]
    if not rows:
        return []
    header = [*axis_names(axes), "Readers", "Metric", "n", "Mean", "SD", "Least", "Greatest"]
    return [BlockText(title=TITLE, header=tuple(header), n_text=len(axes) + 2, rows=tuple(rows))]


def _text_row(one: Spread, axes: Sequence[str], settings: TableSettings) -> tuple[str, ...]:
    metric, found = one.place.metric, one.described
    numbers = (found.mean, found.sd, found.lowest, found.highest)
    return (
        *titles(one.place, axes, settings),
        " − ".join(one.names),
        settings.metric(metric).directed,
        str(found.n),
        *(settings.rounded(number, metric) or "–" for number in numbers),
    )


def sections(spreads: Sequence[Spread], settings: TableSettings) -> list[str]:
    """Return the section of the Markdown page; nothing where no readers are grouped."""
    return [
        text
        for block in texts(spreads, settings)
        for text in (
            f"## {showing.markdown(block.title)}\n",
            f"{_EXPLAINED} {more_in(settings, 'spread', 'and the strict reading of all')}".strip() + "\n",
            grid(block.header, block.rows, block.n_text),
        )
    ]
