"""The sheet that people label, safe to open in a spreadsheet, and the labels read back from it."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from remeasure.calibration.picking import Chosen
from remeasure.errors import RemeasureError
from remeasure.jsonl import unreadable
from remeasure.tables import csv_text

COLUMNS = ("answer_id", "key", "conversation", "question", "expected", "answer", "label", "remark")
WORDS = {
    **dict.fromkeys(("pass", "passed", "yes", "true", "1", "ok"), True),
    **dict.fromkeys(("fail", "failed", "no", "false", "0"), False),
}
LONGEST_FILE = 64 << 20
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")
LONGEST_CELL = 32_000
"""Characters; a spreadsheet cuts longer cells by itself, without a word."""


def safe(text: str) -> str:
    """Return text that no spreadsheet takes for a formula; control characters become spaces.

    An apostrophe is put before what begins like one, white space before it included.
    """
    shown = "".join(c if c >= " " or c == "\n" else " " for c in text.replace("\r\n", "\n"))
    if len(shown) > LONGEST_CELL:
        shown = f"{shown[:LONGEST_CELL]} … {len(shown) - LONGEST_CELL:,} more characters"
    begins = shown.lstrip()[:1] or shown[:1]
    return f"'{shown}" if begins in _FORMULA or shown[:1] in _FORMULA else shown


def conversation(chosen: Chosen) -> str:
    """Return what was said before the question; of a live conversation as it went."""
    trace = chosen.response.trace
    before = getattr(trace, "before", ())
    if before:
        return "\n".join(f"{turn.speaker}: {turn.text}" for turn in before)
    turns = chosen.item.meta.get("turns")
    told = [turn for turn in turns[:-1] if isinstance(turn, dict)] if isinstance(turns, list) else []
    return "\n".join(f"{turn.get('speaker')}: {turn.get('text')}" for turn in told)


def render(answers: Iterable[Chosen]) -> str:
    """Return the sheet: no verdict and no system's name stands in it."""
    return csv_text.render(
        COLUMNS,
        (
            {
                "answer_id": one.answer_id,
                "key": f"k{one.key}",  # digits alone, or with an e between, would become a number
                "conversation": safe(conversation(one)),
                "question": safe(one.item.question),
                "expected": safe("\n".join(one.item.references)),
                "answer": safe(one.response.text or ""),
                "label": "",
                "remark": "",
            }
            for one in answers
        ),
    )


def read(path: Path) -> dict[str, bool]:
    """Read the labels of a sheet; lines without a label are passed over.

    Args:
        path: the sheet, CSV in UTF-8, separated by commas or semicolons; it needs the columns key and label.

    Returns:
        Key of an answer to whether it passes.

    Raises:
        RemeasureError: unreadable, a word that is no label, or two labels for one answer; names the line.
    """
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise RemeasureError(f"{path}: larger than {LONGEST_FILE >> 20} MiB; give the labelled sheet")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise RemeasureError(f"{path}: not in UTF-8 ({error}); save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    separator = ";" if head.count(";") > head.count(",") else ","
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise RemeasureError(f"{path}: not a CSV file ({error}); save it as one") from None
    found: dict[str, bool] = {}
    for number, row in enumerate(rows, start=1):
        _take(row, found, f"{path} answer {number}")
    return found


def _take(row: Mapping[str, object], found: dict[str, bool], place: str) -> None:
    key, label = row.get("key"), row.get("label")
    if not isinstance(key, str) or not isinstance(label, str):
        raise RemeasureError(f"{place}: lacks the columns key and label; keep those of the sheet")
    word = label.strip().lower()
    if not word:
        return
    if word not in WORDS:
        raise RemeasureError(f"{place}: label {label.strip()[:40]!r} is none; write pass or fail")
    key = key.strip().removeprefix("k")
    if found.setdefault(key, WORDS[word]) != WORDS[word]:
        raise RemeasureError(f"{place}: key k{key[:40]} has two labels; leave one")
