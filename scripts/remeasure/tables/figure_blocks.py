"""The picture of a table in blocks: the panels of each block under its title, one block below the other."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import structs

from remeasure.tables import figure_points, wide
from remeasure.tables.figure_points import ALL, GAP_IN, WIDTH_IN
from remeasure.tables.figure_style import FAINT, GRID, INK, LEFT_IN, plain
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.settings import BlockPlan, CellKey, NumberKey, TableSettings

Cells = Mapping[CellKey, Cell]
Printed = Mapping[NumberKey, Published]
TITLE_IN = 0.42
"""Room for the title of a block, the line above it included."""
TITLE_PT = 11.0
FOOT_IN = 0.1


class Part(NamedTuple):
    """A block as a table of its own."""

    title: str
    cells: Cells
    settings: TableSettings

    @property
    def height_in(self) -> float:
        """Height with its title."""
        size = figure_points.size(self.cells, self.settings)
        return TITLE_IN + size.n_down * size.pitch


def part(block: BlockPlan, cells: Cells, settings: TableSettings) -> Part | None:
    """Return a block with the rows and columns that have numbers; null where it has none."""
    here = settings.of_block(block)
    inside = {key: cell for key, cell in cells.items() if key.bench in block.benches}
    places = [
        (row, column)
        for row in here.rows
        for column in here.columns
        if wide.number_at(inside, row, column, here) is not None
    ]
    if not places:
        return None
    several = len({row.at.get("arm") for row, _ in places}) > 1
    return Part(
        block.title,
        inside,
        structs.replace(
            here,
            rows=tuple(row for row in here.rows if any(row is one for one, _ in places)),
            columns=tuple(column for column in here.columns if any(column is one for _, one in places)),
            row_axes=tuple(axis for axis in here.row_axes if several or axis != "arm"),
        ),
    )


def parts(cells: Cells, settings: TableSettings) -> list[Part]:
    """Return the blocks that have numbers."""
    found = (part(block, cells, settings) for block in settings.blocks)
    return [one for one in found if one is not None]


def size_in(cells: Cells, settings: TableSettings) -> tuple[float, float]:
    """Return width and height of the picture below a header of one line each, in inches."""
    height = sum(one.height_in for one in parts(cells, settings))
    return WIDTH_IN, 0.5 + 0.24 + height + figure_points.size(cells, settings).foot + FOOT_IN


def draw(figure: Any, cells: Cells, published: Printed, settings: TableSettings, down_in: float) -> None:
    """Draw all blocks below a header that reaches ``down_in`` inches down."""
    height = figure.get_figheight()
    at = down_in + 0.24
    for one in parts(cells, settings):
        line = 1 - (at + 0.1) / height
        edges = [LEFT_IN / WIDTH_IN, 1 - (LEFT_IN - GAP_IN / 4) / WIDTH_IN]
        _rule(figure, edges, line)
        figure.text(
            LEFT_IN / WIDTH_IN,
            1 - (at + 0.3) / height,
            plain(one.title),
            fontsize=TITLE_PT,
            fontweight="bold",
            color=INK,
            va="center",
        )
        figure_points.draw_panels(figure, one.cells, published, one.settings, at + TITLE_IN - 0.28, ALL)
        at += one.height_in
    figure_points.draw_foot(figure, cells, settings)
    figure_points.draw_legend(figure, cells, published, settings, down_in, ALL)


def _rule(figure: Any, edges: list[float], height: float) -> None:
    from matplotlib.lines import Line2D

    figure.add_artist(Line2D(edges, [height, height], color=GRID, linewidth=1.0, markeredgecolor=FAINT))


def summary(cells: Cells, settings: TableSettings) -> str:
    """Return the picture in words."""
    said = []
    for one in parts(cells, settings):
        for row in one.settings.rows:
            values = [
                f"{one.settings.metric(key.metric).title} "
                f"{wide.rounded(one.cells[key.cell], key.metric, settings) or 'none graded'}"
                for column in one.settings.columns
                if (key := wide.number_at(one.cells, row, column, one.settings))
            ]
            name = one.settings.place_title(row, one.settings.row_axes)
            said.append(f"{one.title}, {name}: {', '.join(values)}.")
    head = f"Points in {settings.unit}, run {settings.run}, with 95 percent intervals, block by block. "
    return head + " ".join(said)
