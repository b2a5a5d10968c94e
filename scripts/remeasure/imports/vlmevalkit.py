"""Prediction tables of VLMEvalKit (MRareBench among its data sets): one row per item, any of its formats.

Source:
    open-compass/VLMEvalKit at e8e78f0, ``vlmeval/smp/file.py`` (``dump``, ``PRED_FORMAT``,
    ``INFER_FAIL_MSG``) and ``vlmeval/inference.py``; MRareBench card, sections 6, 11 and 13.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from remeasure.errors import RemeasureError
from remeasure.executors.replies import one_line
from remeasure.failing import MARKER
from remeasure.imports import spreadsheet
from remeasure.imports.reading import Imported, Row, json_rows, table_rows

_COLUMNS = ("index", "prediction")
_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".xlsx": lambda path: spreadsheet.rows(path, _COLUMNS),
    ".tsv": lambda path: table_rows(path, "\t", _COLUMNS),
    ".csv": lambda path: table_rows(path, ",", _COLUMNS),
    ".json": json_rows,
}


def read(path: Path) -> Iterator[Imported]:
    """Yield the prediction of each row; ids are the column ``index``, all text stays as it stands.

    A text with the marker is a failure and keeps its text, so that a grader can read it as the original did.
    In a text file and in JSON an empty text is an answer that is empty, and "NA" or "None" is what was said.
    A spreadsheet keeps neither an empty text nor a long one that begins with an address: its empty cells are
    failures, and a cell with the most characters that it can hold was cut off by it.

    Raises:
        RemeasureError: another kind of file, a missing column, a row without an id, a cell that a spreadsheet
            program has changed; names file and row.
    """
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise RemeasureError(
            f"{path}: tables are read from {', '.join(_READERS)} files; set PRED_FORMAT or convert it"
        )
    for row in _READERS[suffix](path):
        if "prediction" not in row:
            raise row.wrong("prediction is missing")
        yield _of_row(row, is_spreadsheet=suffix == ".xlsx")


def _of_row(row: Row, is_spreadsheet: bool) -> Imported:
    text = row.text("prediction")
    common = {"foreign_id": row.id("index"), "place": row.place}
    if text is None:
        error = "empty cell (a spreadsheet cannot tell an empty answer from a missing one)"
        error = error if is_spreadsheet else "missing value"
        return Imported(status="failed", text=None, error=f"empty: {error}", **common)
    if MARKER in text:
        return Imported(status="failed", text=text, error=f"marker: {one_line(text)}", **common)
    if is_spreadsheet and len(text) >= spreadsheet.MAX_CHARACTERS:
        error = f"cut_off: {spreadsheet.MAX_CHARACTERS} characters, the most that a cell can hold"
        return Imported(status="cut_off", text=text, error=error, **common)
    return Imported(status="answered", text=text, **common)
