"""Which text of an answer is graded: as the original finds it in its spreadsheet, and without its flaws.

Source:
    MRareBench card, sections 2, 4 and 9; the toolkit that the original is a part of.
"""

from typing import NamedTuple

from remeasure.records import Response
from remeasure.text import strip_thinking

FAILED = "Failed to obtain answer via API."
"""What stands in the place of an answer that could not be had."""
MARKER = "Failed to obtain answer"
MISSING = frozenset(("", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>"))
"""Cells that are read as missing."""
_NAN = "nan"


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
        A failed request is a sentence that says so; a blank answer, or a word for "missing", is "nan".
    """
    text = response.text or ""
    if response.status == "not_sent":
        return None
    if response.status in ("failed", "refused"):
        return text if MARKER in text else FAILED
    return cell(text if text.strip() else "")


def strict(response: Response) -> Strict:
    """Return the answer behind the thinking, where there is a whole one."""
    if response.status != "answered":
        return Strict(None, f"reader {response.status.replace('_', ' ')}")
    whole = response.text or ""
    text, closed = strip_thinking(whole)
    if closed is False:
        return Strict(None, "the answer ends while it thinks")
    if not text.strip():
        return Strict(None, "the answer is empty")
    thinking = whole[: len(whole) - len(text)].replace("<think>", "").replace("</think>", "")
    return Strict(text, "", thought=bool(thinking.strip()))
