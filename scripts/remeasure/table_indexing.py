"""An index made from tables with images inside: every row read once, one list of all that is wrong.

The index module of such a study has ``Settings`` (the options of its index; with ``expected`` and
``exclude``), ``check(settings, files)`` (raises for settings that no index can be made with), and
``Reader()``, which reads rows (see the protocol). The stage opens, writes and records.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from remeasure import data_tables, jsonl
from remeasure.data_tables import Columns, Table, TableRow
from remeasure.errors import RemeasureError
from remeasure.held_images import Held, Images
from remeasure.table_report import (
    ID_COLUMN,
    MAX_PROBLEMS,
    ConvertedImage,
    Excluded,
    Problem,
    TableFacts,
    TablesReport,
    shown,
)

Wrong = Callable[[str | None, str], None]
"""Takes a column, or null for the whole row, and what is wrong there."""


class Case(Protocol):
    """What a row becomes: a record with at least these fields."""

    item_id: str
    images: tuple[Held, ...]


class Reader(Protocol):
    """What a study makes of rows."""

    def columns(self, file: str) -> Columns:
        """Return what the header of the table behind an index file must hold, and may; the id is one."""

    def case(self, file: str, cells: Mapping[str, str], images: Images, wrong: Wrong) -> Any:
        """Return the ``Case`` that a row becomes; null, or any, after it has said what is wrong."""

    def facts(self, file: str) -> dict[str, int]:
        """Return what was counted in a table's good rows, by sentence."""

    def on_count(self, file: str, n_rows: int, expected: int) -> str:
        """Return what is wrong with a number of rows: found, expected, where it may come from, what to do."""


class Out(Protocol):
    """Where lines go."""

    def write(self, data: bytes, /) -> int:
        """Write bytes."""


class _Seen:
    """What was found in one table."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.columns: tuple[str, ...] = ()
        self.n_rows = self.n_indexed = 0
        self.rows_of: dict[str, int] = {}
        self.items: dict[str, str] = {}
        self.excluded: Counter[str] = Counter()


class TableIndex:
    """Reads the tables of a study, one row at a time.

    Args:
        tables: table by the index file that is made from it, in order.
        reader: the study's.
        expected: rows by index file; null or no entry: not known.
        exclude: reason by id of a row that is not used.
    """

    def __init__(
        self,
        tables: Mapping[str, Path],
        reader: Reader,
        expected: Mapping[str, int | None],
        exclude: Mapping[str, str],
    ) -> None:
        self._reader, self._expected, self._exclude = reader, expected, exclude
        self._seen = {file: _Seen(path) for file, path in tables.items()}
        self._images = Images()
        self._n_images = self._n_odd = self.n_problems = 0
        self._converted: list[ConvertedImage] = []
        self._odd: Counter[str] = Counter()
        self._problems: list[Problem] = []

    def read(self, outs: Mapping[str, Out], done: Callable[[int], None]) -> Iterator[tuple[str, bytes]]:
        """Read all tables; yield name and bytes of every image, each content once, and write lines meanwhile.

        Args:
            outs: by index file where its lines go; after a problem they are of no use.
            done: told how many images more were looked at.
        """
        for file, seen in self._seen.items():
            try:
                with data_tables.open_table(Path(seen.path)) as table:
                    yield from self._table(file, table, outs[file], done)
            except RemeasureError as error:
                self._wrong(seen, str(error))

    def _table(
        self, file: str, table: Table, out: Out, done: Callable[[int], None]
    ) -> Iterator[tuple[str, bytes]]:
        seen, asked = self._seen[file], self._reader.columns(file)
        seen.columns = table.columns
        if problems := data_tables.header_problems(table.columns, asked):
            for problem in problems:
                self._wrong(seen, problem)
            return
        for row in table.rows():
            seen.n_rows += 1
            before = self._images.n_slots
            line = self._row(file, row)
            yield from self._images.new()
            done(self._images.n_slots - before)
            if line is not None and not self.n_problems:
                out.write(line + b"\n")
            del row  # before the next one is made
        expected = self._expected.get(file)
        if seen.n_rows == seen.excluded.total():
            said = f"all {seen.n_rows} rows are excluded" if seen.n_rows else "has no row below its header"
            self._wrong(seen, f"{said}: there is nothing to ask; put rows there, or correct `exclude`")
        elif expected is not None and seen.n_rows != expected:
            self._wrong(seen, self._reader.on_count(file, seen.n_rows, expected))

    def _row(self, file: str, row: TableRow) -> bytes | None:
        """Return a row's line; null where it is excluded or wrong."""
        seen = self._seen[file]
        n_before = self.n_problems

        def wrong(column: str | None, problem: str) -> None:
            self._wrong(seen, problem, row, index, column)

        index: str | None = None
        place = seen.columns.index(ID_COLUMN)
        index = row.cells[place] if place < len(row.cells) else None
        if index is not None and index in self._exclude:
            seen.excluded[index] += 1
            return None
        if (problem := data_tables.row_problem(row, seen.columns)) is not None:
            wrong(None, problem)
            return None
        cells = dict(zip(seen.columns, row.cells, strict=True))
        assert index is not None  # there are as many cells as columns
        if index in seen.rows_of:
            wrong(ID_COLUMN, f"stands already in row {seen.rows_of[index]}; ids must be unique")
        seen.rows_of.setdefault(index, row.number)
        try:
            case = self._reader.case(file, cells, self._images, wrong)
        except RecursionError:
            wrong(None, "holds JSON that is nested too deep")
            return None
        if case is None or self.n_problems > n_before:
            return None
        if (other := seen.items.setdefault(case.item_id, index)) != index:
            wrong(ID_COLUMN, f"gives the item id {case.item_id!r} that {shown(other)} has; rename one")
            return None
        try:
            line = jsonl.encode(case)
        except UnicodeEncodeError:
            wrong(None, "holds half of a surrogate pair (\\ud800 to \\udfff) in a JSON text; correct the row")
            return None
        seen.n_indexed += 1
        self._count(index, case)
        return line

    def _count(self, index: str, case: Case) -> None:
        for held in case.images:
            self._n_images += 1
            self._n_odd += bool(held.odd)
            self._odd.update(held.odd)
            if held.converted is not None:
                made = held.converted
                self._converted.append(
                    ConvertedImage(
                        index=index,
                        slot=held.slot,
                        rule=made.rule,
                        mode=made.mode,
                        minimum=made.minimum,
                        maximum=made.maximum,
                    )
                )

    def _wrong(
        self,
        seen: _Seen,
        problem: str,
        row: TableRow | None = None,
        index: str | None = None,
        column: str | None = None,
    ) -> None:
        self.n_problems += 1
        if len(self._problems) < MAX_PROBLEMS:
            place = {} if row is None else {"row": row.number, "line": row.line}
            self._problems.append(
                Problem(table=seen.path, index=index, column=column, problem=problem, **place)
            )

    def report(self) -> TablesReport:
        """Return what was found; call it when all tables are read."""
        tables = {file: self._facts(file) for file in self._seen}
        return TablesReport(
            tables=tables,
            n_rows=sum(one.n_rows for one in tables.values()),
            n_indexed=sum(one.n_indexed for one in tables.values()),
            n_excluded=sum(one.n_excluded for one in tables.values()),
            n_images=self._n_images,
            n_different_images=self._images.n_images,
            n_converted=len(self._converted),
            n_odd=self._n_odd,
            n_problems=self.n_problems,
            excluded=[self._excluded(index, reason) for index, reason in sorted(self._exclude.items())],
            converted=self._converted,
            odd=dict(sorted(self._odd.items())),
            problems=self._problems,
        )

    def _excluded(self, index: str, reason: str) -> Excluded:
        rows = {file: seen.excluded[index] for file, seen in self._seen.items() if seen.excluded[index]}
        return Excluded(index=index, reason=reason, rows=rows)

    def _facts(self, file: str) -> TableFacts:
        seen, expected, asked = self._seen[file], self._expected.get(file), self._reader.columns(file)
        return TableFacts(
            table=seen.path,
            n_rows=seen.n_rows,
            expected=expected,
            expected_met=None if expected is None else seen.n_rows == expected,
            n_indexed=seen.n_indexed,
            n_excluded=seen.excluded.total(),
            columns=tuple(map(shown, seen.columns)),
            unknown_columns=tuple(data_tables.unknown_columns(seen.columns, asked)),
            absent_columns=tuple(name for name in asked.optional if name not in seen.columns),
            facts=self._reader.facts(file),
        )
