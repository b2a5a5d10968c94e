"""What a table depends on beside its cells, and where each of its numbers stands."""

from typing import Literal, NamedTuple

from msgspec import Struct, structs

from remeasure import repeats
from remeasure.errors import RemeasureError
from remeasure.graders.base import Kind
from remeasure.grading import Bootstrap
from remeasure.tables.csv_text import decimals

FACTORS = {"percent": 100.0, "share": 1.0}
"""Units of a table: what a share is multiplied with."""
PLACES = {"percent": 2, "share": 4}
"""Decimals of shares in files other than the wide table."""
LARGE = 100.0
"""From here on pages show numbers that are no shares without decimals; files keep them."""
ARROWS = {"high": "↑", "low": "↓"}
"""Which way a metric is better."""
ONLY_COLUMN = "value"
"""Name of the one column of a table whose axes all stand in its rows."""


class CellKey(NamedTuple):
    """A cell of a table."""

    bench: str
    arm: str
    model: str


class NumberKey(NamedTuple):
    """A number of a table: a cell under one metric."""

    bench: str
    arm: str
    model: str
    metric: str

    @property
    def cell(self) -> CellKey:
        """The cell that it belongs to."""
        return CellKey(*self[:3])


class MetricTitle(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric as people read it."""

    name: str
    title: str
    better: Literal["high", "low"]
    kind: Kind = "share"
    shows_n: bool = False
    """Whether its denominator stands beside it in the wide table."""
    if_none: float | None = None
    """What the original says where nothing is in the denominator."""
    per_group: bool = False
    """Whether it is the mean over groups of their means, each group counted once."""
    of_answers: bool = False
    """Whether an answer decides if it is in the denominator, so that two cells differ by two ratios."""
    is_tested: bool = True
    """Whether differences are tested."""

    @property
    def directed(self) -> str:
        """The title with an arrow in the better direction."""
        return f"{self.title} {ARROWS[self.better]}"


class Place(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row or a column of the paper's layout."""

    at: dict[str, str]
    """Axis to value: what all numbers there have in common."""
    title: str


class Pair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two values of an axis whose difference is shown: first minus second."""

    axis: Literal["arm", "model", "bench"]
    first: str
    second: str
    name: str | None = None
    """What the difference is called."""
    title: str | None = None


class Anchor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of others that are a reading aid: they stand below a block and are compared with nothing."""

    bench: str
    label: str
    scope: str
    """What they were measured on, which is not what the block was."""
    source: str
    values: dict[str, float]
    """By metric, shares."""


class BlockPlan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a table with columns of its own."""

    title: str
    benches: tuple[str, ...]
    metrics: tuple[str, ...]
    anchors: tuple[Anchor, ...] = ()


class Facts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of how cells were made, by name of the fact (``tables.protocol.FACTS``)."""

    model: dict[str, dict[str, str]] = {}
    """Of a reader's cells."""
    bench: dict[str, dict[str, str]] = {}
    """Of a bench's cells."""
    options: dict[str, dict[str, str]] = {}
    """Of a reader's cells: its own options that change results, and those of its database."""

    def options_of(self, model: str) -> dict[str, str]:
        """Return the options behind a cell; the same of every time that a model was asked."""
        return self.options.get(repeats.parse(model)[0], {})

    def of(self, bench: str, model: str) -> dict[str, str]:
        """Return what is known of a cell; the same of every time that a model was asked."""
        return self.model.get(repeats.parse(model)[0], {}) | self.bench.get(bench, {})


class TableSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a table depends on beside its cells."""

    table: str
    run: str
    study: str
    title: str
    run_title: str
    unit: str
    decimals: int
    """How many the table prints."""
    notes: tuple[str, ...]
    cells: tuple[CellKey, ...]
    metrics: tuple[MetricTitle, ...]
    titles: dict[str, dict[str, str]]
    """Axis and value to what people call it."""
    row_axes: tuple[str, ...]
    column_axes: tuple[str, ...]
    rows: tuple[Place, ...]
    columns: tuple[Place, ...]
    fixed: dict[str, str]
    """Axes that have one value and stand neither in rows nor in columns."""
    averaged: tuple[str, ...]
    """Divisions whose parts are averaged, each counted once."""
    contrasts: tuple[Pair, ...]
    not_comparable: tuple[str, ...]
    """Protocol fields in which the whole run differs from the paper."""
    bootstrap: Bootstrap
    max_failed_share: float | None = None
    """Share of a cell's answers that may have failed before the table is not published; null: no limit."""
    allow_failures: bool = False
    """Whether it is published all the same."""
    protocol: dict[str, tuple[str, str]] = {}
    """Further protocol fields: ours and the published; those that differ are named."""
    shown_metrics: tuple[str, ...] = ()
    """The metrics that the page shows; none: all. Files have all."""
    stands_for: dict[str, tuple[str, ...]] = {}
    """Readers of the paper whose published values a reader is shown beside: the first that has the value."""
    left_out: tuple[str, ...] = ()
    """Readers that this computer cannot run."""
    blocks: tuple[BlockPlan, ...] = ()
    """Parts with columns of their own, as the page shows them; none: it is one."""
    facts: Facts = Facts()
    """How its cells were made, to be held against what is published of how those were."""
    spread_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Groups of readers that are the same but for a seed: name and readers."""
    figure: Literal["conditions"] | None = None
    """What the picture shows; null: bars by arm, or points by metric, as the columns are."""
    is_exact: bool = False
    """Whether numbers are computed from all units of the published ones, and nothing is sampled."""

    @property
    def factor(self) -> float:
        """Multiplier from shares to the table's unit.

        Raises:
            RemeasureError: the unit is not known.
        """
        if self.unit not in FACTORS:
            raise RemeasureError(
                f"unit {self.unit!r} of {self.table} is not one of {', '.join(FACTORS)}; correct it"
            )
        return FACTORS[self.unit]

    def scaled(self, share: float | None, places: int | None = None) -> str | None:
        """Return a share in the table's unit, with the table's decimals or others; None stays None."""
        value = None if share is None else share * self.factor
        return decimals(value, self.decimals if places is None else places)

    def filed(self, share: float | None) -> str | None:
        """Return a share as files have it: a hundredth of a percent is the last decimal."""
        return self.scaled(share, PLACES[self.unit])

    def factor_of(self, metric: str) -> float:
        """Return what a metric's values are multiplied with: 1 for numbers that are no shares."""
        return 1.0 if self.metric(metric).kind == "number" else self.factor

    def unit_of(self, metric: str) -> str:
        """Return the unit of a metric's values."""
        return "number" if self.metric(metric).kind == "number" else self.unit

    def decimals_of(self, metric: str) -> int:
        """Return how many decimals the table prints of a metric."""
        return min(max(self.decimals, 2), 3) if self.metric(metric).kind == "number" else self.decimals

    def places_of(self, metric: str) -> int:
        """Return how many decimals files have of a metric."""
        return 3 if self.metric(metric).kind == "number" else PLACES[self.unit]

    def printed(self, value: float | None, metric: str) -> str | None:
        """Return a value of a metric as the table prints it; None stays None."""
        return None if value is None else decimals(value * self.factor_of(metric), self.decimals_of(metric))

    def rounded(self, value: float | None, metric: str) -> str | None:
        """Return a value of a metric as people read it: a large number without decimals; None stays None."""
        return None if value is None else self.rounded_scaled(value * self.factor_of(metric), metric)

    def rounded_scaled(self, value: float, metric: str) -> str:
        """Return that of a value in the metric's unit."""
        large = self.metric(metric).kind == "number" and abs(value) >= LARGE
        return decimals(value, 0 if large else self.decimals_of(metric)) or ""

    def written(self, value: float | None, metric: str) -> str | None:
        """Return a value of a metric as files have it; None stays None."""
        return None if value is None else decimals(value * self.factor_of(metric), self.places_of(metric))

    # -- axes ----------------------------------------------------------------------------------------------

    @property
    def open_axes(self) -> tuple[str, ...]:
        """The axes of a cell that have several values: what tells one cell from another."""
        return tuple(
            axis
            for place, axis in enumerate(CellKey._fields)
            if len({cell[place] for cell in self.cells}) > 1
        )

    def name(self, cell: CellKey) -> str:
        """Return how a line of text names a cell: bench, arm and, where there are several, model."""
        several = "model" in self.open_axes
        return " ".join([cell.bench, cell.arm, *([cell.model] if several else [])])

    def title_of(self, axis: str, value: str) -> str:
        """Return what people call a value of an axis."""
        return self.titles[axis][value]

    def metric(self, name: str) -> MetricTitle:
        """Return a metric by name."""
        return next(metric for metric in self.metrics if metric.name == name)

    @property
    def shown(self) -> tuple[MetricTitle, ...]:
        """The metrics that the page shows, in the order of the layout."""
        return tuple(map(self.metric, self.shown_metrics)) or self.metrics

    @property
    def is_shortened(self) -> bool:
        """Whether the page shows fewer metrics than there are."""
        return len(self.shown) < len(self.metrics)

    def shows(self, key: NumberKey) -> bool:
        """Return whether the page shows a number: where there are blocks, each has metrics of its own."""
        if not self.blocks:
            return key.metric in {metric.name for metric in self.shown}
        return any(key.bench in block.benches and key.metric in block.metrics for block in self.blocks)

    def of_block(self, block: BlockPlan) -> "TableSettings":
        """Return the settings of a block as if it were a table of its own."""
        order = {name: place for place, name in enumerate(block.benches)}
        rows = [row for row in self.rows if row.at["bench"] in order]
        at = {column.at["metric"]: column for column in self.columns}
        return structs.replace(
            self,
            title=block.title,
            rows=tuple(sorted(rows, key=lambda row: order[row.at["bench"]])),
            columns=tuple(at[name] for name in block.metrics if name in at),
            cells=tuple(cell for cell in self.cells if cell.bench in order),
            shown_metrics=tuple(name for name in block.metrics if name in at),
            blocks=(),
        )

    def place_title(self, place: Place, axes: tuple[str, ...]) -> str:
        """Return the title of a row or column, the metric in it with its direction."""
        words = [
            self.metric(value).directed if axis == "metric" else self.title_of(axis, value)
            for axis, value in ((axis, place.at[axis]) for axis in axes)
        ]
        return ", ".join(words) or ONLY_COLUMN.capitalize()

    # -- layout --------------------------------------------------------------------------------------------

    def number_at(self, row: Place, column: Place) -> NumberKey:
        """Return the number of a row and a column; the table may have no such cell."""
        at = self.fixed | row.at | column.at
        return NumberKey(*(at[axis] for axis in NumberKey._fields))

    def row_name(self, place: Place) -> str:
        """Return what names a row in a file of published values."""
        return "/".join(place.at[axis] for axis in self.row_axes)

    def column_name(self, place: Place) -> str:
        """Return a column's name in the header of the wide table and in files of published values."""
        return ".".join(place.at[axis] for axis in self.column_axes) or ONLY_COLUMN

    def check(self) -> None:
        """Check that every number has one place.

        Raises:
            RemeasureError: an axis is neither in rows nor in columns nor fixed.
        """
        pinned = {*self.row_axes, *self.column_axes, *self.fixed}
        missing = [axis for axis in NumberKey._fields if axis not in pinned]
        if missing:
            raise RemeasureError(
                f"{self.table}: the layout says nothing of {', '.join(missing)}; name each axis in row_axes, "
                "column_axes or fixed"
            )
