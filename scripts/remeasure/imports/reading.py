"""Files from outside as rows: typed fields, places that a person finds, one clear line for what is wrong."""

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from remeasure import jsonl
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.records import Record, Status

MAX_LINE_BYTES = 64 * 2**20
MAX_FILE_BYTES = 2**30
"""For files that are not lines and must be read whole."""


class Imported(Record, kw_only=True):
    """One outcome of another system."""

    foreign_id: str
    """Id of the question in that system."""
    status: Status
    text: str | None
    finish: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    error: str | None = None
    place: str
    """Where it stands in its file: ``line 17``, ``row 5``, ``cases[3]``."""


class Row:
    """One record of a file, with typed access to its fields."""

    def __init__(self, path: Path, place: str, fields: dict[str, Any]) -> None:
        self.path, self.place, self.fields = path, place, fields

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def wrong(self, what: str) -> RemeasureError:
        """Return the error for something that is wrong in this row."""
        return wrong(self.path, self.place, what)

    def text(self, name: str) -> str | None:
        """Return a text; null where it is missing, null or NaN (a missing value of a data frame)."""
        value = self.fields.get(name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if not isinstance(value, str):
            raise self.wrong(f"{name} is {_kind(value)}, expected a text")
        return self._sound(name, value)

    def id(self, name: str) -> str:
        """Return an id: a text that is not empty, or a whole number."""
        value = self.fields.get(name)
        if type(value) is int:
            return str(value)
        if not isinstance(value, str) or not value:
            raise self.wrong(f"{name} is {_kind(value)}, expected an id (a text or a whole number)")
        return self._sound(name, value)

    def inner(self, name: str) -> "Row":
        """Return a nested object as a row; an empty one where it is missing or null."""
        value = self.fields.get(name)
        if not isinstance(value, dict | None):
            raise self.wrong(f"{name} is {_kind(value)}, expected an object")
        return Row(self.path, f"{self.place}, {name}", value or {})

    def rows(self, name: str) -> Iterator["Row"]:
        """Yield the objects of a nested list."""
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise self.wrong(f"{name} is {_kind(value)}, expected a list")
        for number, fields in enumerate(value):
            yield _row(self.path, f"{name}[{number}]", fields)

    def whole_numbers(self) -> dict[str, int]:
        """Return the fields that are whole numbers."""
        return {name: value for name, value in self.fields.items() if type(value) is int}

    def _sound(self, name: str, value: str) -> str:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise self.wrong(f"{name} holds half a character (\\u escape) at {error.start}") from None
        return value


def wrong(path: Path, place: str, what: str) -> RemeasureError:
    """Return the error for something that is wrong in a file from outside."""
    return RemeasureError(f"{path} {place}: {what}; restore the file as the original system wrote it")


def check(path: Path, max_bytes: int | None = None) -> None:
    """Check that a file can be read at all.

    Raises:
        RemeasureError: it is missing, a folder, no plain file, a pickle, or larger than ``max_bytes``.
    """
    if path.suffix.lower() in (".pkl", ".pickle"):
        raise RemeasureError(
            f"{path}: pickles run code when they are read and are not taken; load it where it was written "
            "and save the table as .tsv or .json"
        )
    try:
        size = path.stat().st_size
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no plain file"
        raise RemeasureError(f"{path}: is {kind}; name the answer file itself")
    if max_bytes is not None and size > max_bytes:
        raise RemeasureError(f"{path}: has {size} bytes, at most {max_bytes} are read; split the file")


def json_lines(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSONL file; empty lines are passed over, NaN is understood.

    Raises:
        RemeasureError: names file and line: not JSON, not UTF-8, no object, above 64 MiB, nested too deeply.
    """
    check(path)
    try:
        with open(path, "rb") as stream:
            number = 0
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                place = f"line {number}"
                if len(line) > MAX_LINE_BYTES:
                    raise wrong(path, place, f"is longer than {MAX_LINE_BYTES} bytes")
                if line.strip():
                    yield _row(path, place, _decoded(line, path, place))
    except OSError as error:
        raise jsonl.unreadable(path, error) from None


def json_document(path: Path) -> Any:
    """Return what a JSON file holds; NaN is understood. Errors as in ``json_lines``."""
    check(path, MAX_FILE_BYTES)
    try:
        return _decoded(path.read_bytes(), path, "")
    except OSError as error:
        raise jsonl.unreadable(path, error) from None


def _decoded(data: bytes, path: Path, place: str) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise wrong(path, place, f"is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise wrong(path, place, "is nested too deeply") from None
    except ValueError as error:
        raise wrong(path, place, f"is not JSON ({error})") from None


def _row(path: Path, place: str, fields: Any) -> Row:
    if not isinstance(fields, dict):
        raise wrong(path, place, f"is {_kind(fields)}, expected an object")
    return Row(path, place, fields)


def json_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSON file that is one list."""
    document = json_document(path)
    if not isinstance(document, list):
        raise wrong(path, "", f"is {_kind(document)}, expected a list of objects")
    for number, fields in enumerate(document):
        yield _row(path, f"[{number}]", fields)


def table_rows(path: Path, delimiter: str, columns: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of a text table with a head; every field is a text, nothing is taken for missing.

    Args:
        path: a CSV or TSV file, UTF-8.
        delimiter: what parts its fields.
        columns: columns that it must have.

    Raises:
        RemeasureError: names file and line: a missing or doubled column, a row of another width, an open
            quotation mark (a file that was cut off), not UTF-8.
    """
    check(path, MAX_FILE_BYTES)
    csv.field_size_limit(MAX_LINE_BYTES)
    place = "line 1"
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            head = next(reader, [])
            check_columns(path, head, columns)
            place = f"line {reader.line_num + 1}"
            for fields in reader:
                if len(fields) not in (0, len(head)):
                    raise wrong(path, place, f"has {len(fields)} fields, the head has {len(head)}")
                if fields:
                    yield Row(path, place, dict(zip(head, fields, strict=True)))
                place = f"line {reader.line_num + 1}"
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise wrong(path, f"from {place} on", f"is not UTF-8 ({error.reason})") from None
    except csv.Error as error:
        raise wrong(path, place, f"is no row of a table ({error})") from None


def check_columns(path: Path, head: list[Any], columns: tuple[str, ...]) -> None:
    """Check that the needed columns stand in a table's head, each once.

    Raises:
        RemeasureError: names the column and what was found.
    """
    for name in columns:
        if head.count(name) != 1:
            found = ", ".join(str(known)[:40] for known in head[:20]) or "nothing"
            count = "twice" if name in head else "not"
            raise RemeasureError(
                f"{path}: column {name!r} is {count} there{did_you_mean(name, head)}; the first line has "
                f"{found}"
            )


def _kind(value: Any) -> str:
    if value == "":
        return "empty"
    names = {type(None): "missing", bool: "a truth value", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value)) or f"the number {str(value)[:20]}"
