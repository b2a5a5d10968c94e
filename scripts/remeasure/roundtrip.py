"""What a scorer sees of answers and cells that reach it through a spreadsheet, as those of VLMEvalKit do.

Source:
    MRareBench card, sections 2, 4 and 11; the round trip was run with pandas, both of its writers.
"""

from remeasure.failing import MARKER, SENTENCE
from remeasure.records import Response

FAILED = f"{SENTENCE}."
"""What the toolkit puts in the place of an answer that it did not get."""
NAN = "nan"
"""What comes back of a cell that counts as missing."""
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>")  # the card's
    + ("#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN")
)
"""Cells that come back as missing. Case counts: "none", "Nan" and a cell of white space stay text."""
# How an import says that a table's cell was empty: no failure to the original.
_EMPTY_CELLS = ("empty: empty cell", "empty: missing value")


def cell(text: str | None) -> str:
    """Return what comes back of a cell: a missing one as three letters."""
    return NAN if text is None or text in MISSING else text


def answer(response: Response) -> str | None:
    """Return the text that the original scores, thinking and all; null where its table has no such row.

    Edges:
        A failed or refused request is the sentence of the toolkit, or what an import kept of it. An answer
        without a text, or one that is a word for "missing", is "nan".
    """
    if response.status == "not_sent":
        return None
    text = response.text or ""
    if response.status in ("failed", "refused"):
        if (response.error or "").startswith(_EMPTY_CELLS):
            return NAN
        return text if MARKER in text else FAILED
    return cell(text)


def is_marked(text: str) -> bool:
    """Say whether a text is counted as a failed request by the toolkit's summary."""
    return MARKER in text
