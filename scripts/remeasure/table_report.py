"""The report beside an index made from tables: what they hold, and everything that keeps one from use."""

from collections.abc import Sequence
from pathlib import Path

from remeasure import files
from remeasure.records import Record

ID_COLUMN = "index"
# Of a table that is wrong as a whole nobody reads more.
MAX_PROBLEMS = 10_000
_SHOWN = 80


class Problem(Record, kw_only=True):
    """What keeps a table from being used."""

    table: str
    row: int | None = None
    """Rows are counted from 1, without the header; null: the table as a whole."""
    line: int | None = None
    """Line of the file that the row begins on."""
    index: str | None = None
    """The row's id, where it has one."""
    column: str | None = None
    problem: str

    def __str__(self) -> str:
        if self.row is None:
            return self.problem if self.problem.startswith(self.table) else f"{self.table}: {self.problem}"
        named = "" if self.index is None else f", {ID_COLUMN} {shown(self.index)}"
        place = "" if self.column is None else f" column {self.column!r}"
        return f"{self.table} row {self.row} (line {self.line}{named}):{place} {self.problem}"


class Excluded(Record, kw_only=True):
    """Rows that the settings exclude."""

    index: str
    reason: str
    rows: dict[str, int]
    """How many rows of each index file's table have this id; none: there is no such row."""


class ConvertedImage(Record, kw_only=True):
    """An image that is not shown as it was."""

    index: str
    slot: int
    rule: str
    mode: str
    minimum: float | None
    maximum: float | None


class TableFacts(Record, kw_only=True):
    """What one table holds."""

    table: str
    n_rows: int = 0
    expected: int | None = None
    expected_met: bool | None = None
    """Whether there are as many rows as expected, excluded ones among them; null where no number is."""
    n_indexed: int = 0
    n_excluded: int = 0
    columns: tuple[str, ...] = ()
    unknown_columns: tuple[str, ...] = ()
    """Columns that nothing reads."""
    absent_columns: tuple[str, ...] = ()
    """Optional columns that are not there."""
    facts: dict[str, int] = {}
    """What was counted in the indexed rows, by sentence."""


class TablesReport(Record, kw_only=True):
    """``index_report.json``: what was found in the tables, and why they cannot be used where they cannot."""

    tables: dict[str, TableFacts]
    """By index file."""
    n_rows: int
    n_indexed: int
    n_excluded: int
    n_images: int
    """Image slots of indexed rows."""
    n_different_images: int
    n_converted: int
    n_odd: int
    n_problems: int
    excluded: list[Excluded]
    converted: list[ConvertedImage]
    odd: dict[str, int]
    """Image slots that servers may read differently, by what is odd about them."""
    problems: list[Problem]
    """At most 10,000 of them."""

    @property
    def counts(self) -> dict[str, int]:
        """What the stage record says."""
        names = (
            "n_rows",
            "n_indexed",
            "n_excluded",
            "n_images",
            "n_different_images",
            "n_converted",
            "n_odd",
        )
        found = {name.removeprefix("n_"): getattr(self, name) for name in names}
        expected = [table.expected for table in self.tables.values() if table.expected is not None]
        return found | ({"expected": sum(expected)} if expected else {})


def shown(text: str) -> str:
    """Return a text of a table as it can be printed on one line."""
    return ascii(text) if len(text) <= _SHOWN else f"{ascii(text[:_SHOWN])}… ({len(text)} characters)"


def told(report: TablesReport) -> list[str]:
    """Return what a person should look at although it is no mistake, one line each."""
    found = [
        f"{ID_COLUMN} {shown(one.index)} is excluded ({one.reason})"
        + ("" if one.rows else ", but there is no such row: correct `exclude`")
        for one in report.excluded
    ]
    for table in report.tables.values():
        if table.unknown_columns:
            found.append(f"{table.table}: nothing reads column {', '.join(table.unknown_columns)}")
        found += [f"{table.table}: {fact}: {n}" for fact, n in table.facts.items()]
    found += [f"images that servers may read differently: {word}: {n}" for word, n in report.odd.items()]
    return found


def write_problems(path: Path, problems: Sequence[Problem], n: int) -> None:
    """Write all problems for a person, one a line; a file of an earlier try goes where there are none."""
    if not n:
        path.unlink(missing_ok=True)
        return
    more = [f"and {n - len(problems)} further ones"] if n > len(problems) else []
    files.write_text(path, "".join(f"{line}\n" for line in [*map(str, problems), *more]))


def summary(report: TablesReport) -> str:
    """Return the last line of the log."""
    tables = ", ".join(
        f"{file} {table.n_indexed} of {table.n_rows} rows"
        + {None: "", True: " (as expected)", False: f" ({table.expected} expected)"}[table.expected_met]
        for file, table in report.tables.items()
    )
    return (
        f"{tables}; {report.n_excluded} excluded; {report.n_images} images, {report.n_different_images} "
        f"different ones, {report.n_converted} made 8-bit; {report.n_problems} problems"
    )
