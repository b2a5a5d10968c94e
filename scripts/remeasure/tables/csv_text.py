"""CSV files: comma, Unix line ends, empty for what is missing, nothing that a spreadsheet would run."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from remeasure.errors import RemeasureError
from remeasure.jsonl import unreadable

_FORMULA = re.compile(r"\s*[=+\-@]")
_SIGNED = re.compile(r"[+-]|[+-]?[0-9.,]+(?:[eE][+-]?[0-9]+)?[ a-z%]*")
WARNING = "warning"
"""The first column of a table that must not be read without it."""


def render(columns: Sequence[str], rows: Iterable[dict[str, Any]], warning: str | None = None) -> str:
    """Return rows as CSV text; every row has exactly the given columns, None becomes an empty field.

    Args:
        columns: the header.
        rows: by column.
        warning: stands in a first column of every row; null: there is no such column.
    """
    if warning is not None:
        columns = [WARNING, *columns]
        rows = ({WARNING: warning} | row for row in rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="raise")
    writer.writeheader()
    for row in rows:
        missing = [name for name in columns if name not in row]
        if missing:
            raise KeyError(f"row lacks {missing}")
        writer.writerow({name: _inert(value) for name, value in row.items()})
    return out.getvalue()


def _inert(value: Any) -> Any:
    """Return a field; before a text that a spreadsheet takes for a formula stands an apostrophe.

    Names of classes and errors come from data and models. Numbers with a sign stay as they are.
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _SIGNED.fullmatch(value):
        return value
    return f"'{value}"


def read(path: Path, columns: Sequence[str] | None = None) -> list[dict[str, str]]:
    """Read the rows of a CSV file; as ``read_table``."""
    return read_table(path, columns)[1]


def read_table(path: Path, columns: Sequence[str] | None = None) -> tuple[list[str], list[dict[str, str]]]:
    """Read a CSV file as its header and a list of rows.

    Args:
        path: the file.
        columns: expected header, in this order; None for any.

    Raises:
        RemeasureError: unreadable, another header, or a row with too few or too many fields.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            found, rows = list(reader.fieldnames or []), list(reader)
    except OSError as error:
        raise unreadable(path, error) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise RemeasureError(f"{path}: not a CSV file in UTF-8 ({error}); save it as one") from None
    if columns is not None and found != list(columns):
        raise RemeasureError(
            f"{path} line 1: columns are {found}, expected {list(columns)}; correct the header"
        )
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise RemeasureError(f"{path} row {number}: expected {len(found)} fields; correct the row")
    return found, rows


def decimals(value: float | None, places: int) -> str | None:
    """Return a number with a fixed number of decimals; None stays None, and there is no minus zero."""
    if value is None:
        return None
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def significant(value: float | None, digits: int = 6) -> str | None:
    """Return a number with a fixed number of significant digits; None stays None."""
    return None if value is None else f"{value:.{digits}g}"
