"""Which text of an answer is graded: as the original finds it in its spreadsheet, and without its flaws.

Source:
    MRareBench card, sections 2, 4 and 9; the toolkit that the original is a part of.
"""

import re
from typing import NamedTuple

from remeasure.records import Response

FAILED = "Failed to obtain answer via API."
"""What stands in the place of an answer that could not be had."""
MARKER = "Failed to obtain answer"
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>")  # the card's
    + ("#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN")
)
"""Cells that are read as missing; white space is none."""
# How an import says that a table's cell was empty: no failure to the original.
_EMPTY_CELLS = ("empty: empty cell", "empty: missing value")
_NAN = "nan"
_OPENING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


class Strict(NamedTuple):
    """An answer to be graded, or why it is none."""

    text: str | None
    problem: str
    thought: bool = False
    """Whether thinking stood before it, which a judge saw too."""


def cell(text: str | None) -> str:
    """Return what the original sees of a cell of a table: a missing one becomes the three letters "nan"."""
    return _NAN if text is None or text in MISSING else text


def published(response: Response) -> str | None:
    """Return the text that the original grades, thinking and all; null where it has no row.

    Edges:
        A failed request is a sentence that says so; an answer without a text, or a word for "missing", is
        "nan".
    """
    text = response.text or ""
    if response.status == "not_sent":
        return None
    if response.status in ("failed", "refused"):
        if (response.error or "").startswith(_EMPTY_CELLS):
            return _NAN
        return text if MARKER in text else FAILED
    return cell(text)


def strict(response: Response) -> Strict:
    """Return the answer behind the thinking, where there is a whole one.

    Edges:
        Thinking ends with its last closing tag, whether or not the reply has the opening one.
    """
    if response.status != "answered":
        return Strict(None, f"reader {response.status.replace('_', ' ')}")
    whole = response.text or ""
    start, end = 0, 0
    for closing in _CLOSING.finditer(whole):
        start, end = closing.span()
    if _OPENING.search(whole, end):
        return Strict(None, "the answer ends while it thinks")
    if not whole[end:].strip():
        return Strict(None, "the answer is empty")
    return Strict(whole[end:], "", thought=bool(_OPENING.sub("", whole[:start]).strip()))
