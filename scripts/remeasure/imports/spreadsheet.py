"""The first sheet of an ``.xlsx`` file as rows of text; the file is taken for hostile."""

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.imports.reading import Row, check, check_columns, wrong

MAX_CHARACTERS = 32_767
"""A cell holds no more; what writes the file cuts longer texts."""
MAX_UNPACKED_BYTES = 512 * 2**20
MAX_MEMBERS = 10_000
_LAST_ROW = 2**20
# Characters that XML cannot hold stand as _x0008_; other codes of that form are the answer's own text.
_ESCAPED = re.compile(r"_x00(0[0-8BCDEF]|1[0-9A-F])_", re.IGNORECASE)
# What openpyxl and the readers below it raise on damaged content; it wraps none of them.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    SyntaxError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
)


def rows(path: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of the first sheet under its head, with the given columns; empty rows are passed over.

    A cell is a text, or null where it is empty; a number is its digits. A formula is its text: older tables
    hold answers that begin with "=" as formulas. Nothing is computed and no link is followed.

    Raises:
        RemeasureError: not a spreadsheet, a missing or doubled column, more than 512 MiB once unpacked, a
            cell with a date, a truth value or an error: a spreadsheet program has changed what was text.
    """
    check(path, MAX_UNPACKED_BYTES)
    try:
        _check_size(path)
        yield from _rows(path, columns)
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    except _DAMAGE as error:
        what = (
            f"cannot be read as a spreadsheet ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        )
        raise RemeasureError(f"{path}: {what}; restore it, or export the table as .tsv") from None


def _check_size(path: Path) -> None:
    """Refuse a file that unpacks to too much; a member cannot unpack to more than the archive says."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
    if size > MAX_UNPACKED_BYTES or len(members) > MAX_MEMBERS:
        raise RemeasureError(
            f"{path}: unpacks to {size} bytes in {len(members)} parts, at most {MAX_UNPACKED_BYTES} in "
            f"{MAX_MEMBERS} are read; export the table as .tsv"
        )


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles, which nobody needs here
        book = openpyxl.load_workbook(path, read_only=True, keep_links=False)
    try:
        if not book.worksheets:
            raise RemeasureError(f"{path}: holds no sheet; name the table of predictions")
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its size may be wrong, and rows are padded to it
        head = [cell.value for cell in next(sheet.iter_rows(max_row=1), ())]
        check_columns(path, head, columns)
        places = [head.index(name) for name in columns]
        cells = sheet.iter_rows(min_row=2, max_row=_LAST_ROW, max_col=max(places) + 1)
        for number, row in enumerate(cells, start=2):
            where = f"row {number}"
            texts = {head[place]: _text(row[place], path, f"{where}, {head[place]}") for place in places}
            if any(text is not None for text in texts.values()):
                yield Row(path, where, texts)
    finally:
        book.close()


def _text(cell: Any, path: Path, place: str) -> str | None:
    value = cell.value
    if value is None:
        return None
    if isinstance(value, str) and cell.data_type != "e":
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
    if type(value) is int or (type(value) is float and not value.is_integer()):
        return str(value)
    if type(value) is float:
        return str(int(value))
    raise wrong(path, place, f"holds {str(value)[:40]!r} as {type(value).__name__}, which was a text once")
