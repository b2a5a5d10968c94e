"""What a scorer sees of answers and cells that reach it through a spreadsheet, as those of VLMEvalKit do.

Source:
    MRareBench card, sections 2, 4 and 11; VLMEvalKit at ``aec2f4e9``, ``vlmeval/smp/file.py`` (xlsxwriter
    writes, pandas reads); the round trip was run with xlsxwriter 3, pandas 3 and openpyxl 3.
"""

import re

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
# What a text that begins like this is written as: a link, which may not be long.
_LINK = re.compile(r"(?:(?:ftp|http)s?|file)://|mailto:|internal:|external:")
_SHORTENED = ("mailto:", "internal:")
_LONGEST_LINK = 2079
_LONGEST_CELL = 32_767
"""UTF-16 units."""
# What XML cannot hold, and the carriage return, come back as their numbers.
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")


def cell(text: str | None) -> str:
    """Return what comes back of a cell of a text table: a missing one as three letters."""
    return NAN if text is None or text in MISSING else text


def written(text: str) -> str:
    """Return what comes back of a text that was written into a spreadsheet cell.

    Edges:
        A long text that begins like an address is lost, whatever follows; any other loses what is beyond
        32,767 characters.
    """
    if _LINK.match(text):
        if max(map(len, text.split("#", 1))) > _LONGEST_LINK:
            return ""
        text = next((text.removeprefix(word) for word in _SHORTENED if text.startswith(word)), text)
    escaped = _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
    if len(escaped) * 2 <= _LONGEST_CELL:
        return escaped
    units = escaped.encode("utf-16-le", "surrogatepass")[: 2 * _LONGEST_CELL]
    return units.decode("utf-16-le", "ignore")


def answer(response: Response) -> str | None:
    """Return the text that the original scores, thinking and all; null where its table has no such row.

    Edges:
        A failed or refused request is the sentence of the toolkit, or what an import kept of it. An answer
        without a text, or one that is a word for "missing", is "nan"; long ones are cut (``written``).
    """
    if response.status == "not_sent":
        return None
    text = response.text or ""
    if response.status in ("failed", "refused"):
        if (response.error or "").startswith(_EMPTY_CELLS):
            return NAN
        return text if MARKER in text else FAILED
    return cell(written(text))


def is_marked(text: str) -> bool:
    """Say whether a text is counted as a failed request by the toolkit's summary."""
    return MARKER in text
