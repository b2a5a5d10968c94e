"""Tables with tabs between columns, read row by row by a CSV parser: quotes on, all cells text, none missing.

Cells may hold line breaks, tabs and millions of characters. One row is held at a time, however large the
table.
"""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import open_regular

# Twenty photographs of 5 MB each as base64. The parser takes four bytes for each character of a cell.
MAX_CELL_CHARS = 150_000_000
_MAX_COLUMNS = 1000
_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_SHOWN = 60


class TableRow(NamedTuple):
    """A row below the header."""

    number: int
    """Rows are counted from 1; the header is none."""
    line: int
    """Line of the file that it begins on, from 1."""
    cells: list[str]
    """One for every column in a table's order; more or fewer where the row does not fit the header."""


class Columns(NamedTuple):
    """What is asked of a header."""

    needed: Sequence[tuple[str, ...]]
    """Of each of these one name has to be there; further ones take over where that one's cell is empty."""
    optional: Sequence[str] = ()


class Table:
    """A table that was opened: its header, and its rows once.

    Args:
        path: the file, for errors.
        stream: its bytes.
    """

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self._reader = csv.reader(self._lines(), delimiter="\t", strict=True)
        first = self._next()
        if first is None:
            raise RemeasureError(f"{path}: is empty, expected a header and rows; copy the table again")
        self.columns: tuple[str, ...] = tuple(first)
        if len(self.columns) > _MAX_COLUMNS:
            raise RemeasureError(
                f"{path}: its header has {len(self.columns)} columns, at most {_MAX_COLUMNS} are read; "
                "this is no table with tabs between columns: copy it again"
            )

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows; empty lines between them are none.

        Raises:
            RemeasureError: a quote is not closed or stands in the wrong place, a cell is too long, or a byte
                is not UTF-8: what follows cannot be told apart. Names the line.
        """
        number, start = 0, self._reader.line_num + 1
        while (cells := self._next()) is not None:
            if cells:
                number += 1
                yield TableRow(number, start, cells)
            del cells  # before the next row is made
            start = self._reader.line_num + 1

    def _next(self) -> list[str] | None:
        """Return the cells of the next row; null behind the last; errors as in ``rows``."""
        start = self._reader.line_num + 1
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise RemeasureError(
                f"{self.path} line {start}: the row that begins here is no table row ({error}); a cell with "
                "quotes, tabs or line breaks stands in quotes, those in it doubled, and has at most "
                f"{MAX_CELL_CHARS} characters: copy the table again or correct the row"
            ) from None
        except UnicodeDecodeError as error:
            raise RemeasureError(
                f"{self.path} line {start} or soon after: not UTF-8 (byte {error.object[error.start]:#04x}: "
                f"{error.reason}); save the table as UTF-8"
            ) from None

    def _lines(self) -> Iterator[str]:
        """Yield lines for the parser; a file of one endless line is never read whole."""
        while line := self._text.readline(MAX_CELL_CHARS + 1):
            if len(line) > MAX_CELL_CHARS:
                raise csv.Error(f"a line has more than {MAX_CELL_CHARS} characters")
            yield line


@contextmanager
def open_table(path: Path) -> Iterator[Table]:
    """Open a table and read its header.

    Raises:
        RemeasureError: it is missing, empty, not UTF-8, or no text at all.
    """
    try:
        stream = open_regular(path)
    except OSError as error:
        raise RemeasureError(
            f"{path}: table cannot be read ({error.strerror}); put it there or correct `source` of the study "
            "in the run"
        ) from None
    limit = csv.field_size_limit(MAX_CELL_CHARS)
    try:
        with stream:
            start = stream.read(4)
            if start.startswith(_OTHER_ENCODINGS) or b"\0" in start:
                raise RemeasureError(
                    f"{path}: begins with {start!r}, expected UTF-8 text; save the table as UTF-8, or copy "
                    "it again"
                )
            stream.seek(0)
            yield Table(path, stream)
    finally:
        csv.field_size_limit(limit)


def header_problems(columns: Sequence[str], asked: Columns) -> list[str]:
    """Return what is wrong with a header: columns that are missing, or there twice."""
    counted = Counter(columns)
    found = [f"column {_shown(name)} stands {n} times, expected once" for name, n in counted.items() if n > 1]
    for names in asked.needed:
        if not any(name in counted for name in names):
            hint = did_you_mean(names[0], [column[:_SHOWN] for column in columns])
            wanted = " or ".join(map(repr, names))
            found.append(f"column {wanted} is missing{hint}; there are: {_listed(columns)}")
    return found


def unknown_columns(columns: Sequence[str], asked: Columns) -> list[str]:
    """Return the columns that nothing reads, as they can be printed."""
    known = {name for names in asked.needed for name in names} | set(asked.optional)
    return [_shown(name) for name in dict.fromkeys(columns) if name not in known]


def row_problem(row: TableRow, columns: Sequence[str]) -> str | None:
    """Return why a row does not fit the header; null where it does."""
    if len(row.cells) != len(columns):
        return (
            f"has {len(row.cells)} cells, the header has {len(columns)}: a quote or a tab is missing, or one "
            "too many"
        )
    for name, cell in zip(columns, row.cells, strict=True):
        if "\0" in cell:
            return f"column {_shown(name)} holds a NUL character at place {cell.index(chr(0))}"
    return None


def _shown(name: str) -> str:
    return ascii(name) if len(name) <= _SHOWN else f"{ascii(name[:_SHOWN])}… ({len(name)} characters)"


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - 30} further ones" if len(columns) > 30 else ""
    return ", ".join(_shown(name) for name in columns[:30]) + more
