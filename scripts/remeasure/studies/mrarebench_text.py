"""Texts that the check of the tables and the messages both need: the NoDx cut, the findings block.

Source:
    MRareBench card, sections 3.2 (findings block) and 3.3 (established diagnosis, NoDx cut); both are the
    published ones to the letter.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

_CUT = re.compile(r"^\s*Established diagnosis:\s*[^.]*\.\s*", re.IGNORECASE)
_OPENING = re.compile(r"\s*Established diagnosis:", re.IGNORECASE)
MAX_LABEL_CHARS = 40
# Control and format characters (zero-width ones among them), ends of lines and of paragraphs.
_UNSEEN = ("Cc", "Cf", "Zl", "Zp")
_WITHOUT_WIDTH = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f]")


def without_diagnosis(context: str) -> str:
    r"""Return a context without its leading sentence about the established diagnosis.

    What goes is everything up to the first full stop, wherever that stands, and the white space behind it;
    the rest is stripped at both ends.

    Edges:
        A context that does not begin so, or that has no full stop, only loses white space at its ends. A name
        with a full stop loses its beginning only, and a sentence without one takes text of the case with it:
        `mrarebench_index` refuses such rows.
    """
    return _CUT.sub("", context).strip()


def established_line(context: str) -> str | None:
    """Return what follows the opening words about the established diagnosis on their line.

    Edges:
        Null where the context does not begin with them.
    """
    opening = _OPENING.match(context)
    return None if opening is None else (context[opening.end() :].splitlines() or [""])[0]


def leak(context: str, diagnosis: str) -> str | None:
    """Return why the NoDx cut does not take the diagnosis, or takes more; null where all is well.

    Args:
        context: of the condition that tells the diagnosis.
        diagnosis: the name that must not be told.
    """
    first = established_line(context)
    if first is None:
        return f"does not begin with 'Established diagnosis: NAME.' but with {ascii(context[:40])}"
    if "." not in first:
        return (
            "has no full stop on the line of the established diagnosis: the NoDx cut would take text of the "
            "case, or nothing"
        )
    if names(diagnosis, without_diagnosis(context)):
        return "still holds final_diagnosis after the NoDx cut"
    if "." in plain(diagnosis) and not names(diagnosis, cut_off(context)):
        return (
            "is cut by NoDx inside the name, which has a full stop as final_diagnosis has, and keeps the rest"
        )
    return None


def cut_off(context: str) -> str:
    """Return what the NoDx cut takes away."""
    return context[: len(context.rstrip()) - len(without_diagnosis(context))]


def plain(text: str) -> str:
    """Return a text as names are looked for: lower case, white space as one space, no stop at the end.

    What looks alike is alike: NFKC, without characters that have no width.
    """
    words = unicodedata.normalize("NFKC", text).casefold().split()
    seen = "".join(one for one in " ".join(words) if unicodedata.category(one) != "Cf")
    folded = unicodedata.normalize("NFKC", _WITHOUT_WIDTH.sub("", seen))
    return " ".join(folded.split()).rstrip(". ")


def names(diagnosis: str, text: str) -> bool:
    """Return whether a text holds the name of a diagnosis, whatever the case and the white space."""
    return plain(diagnosis) in plain(text)


def label_problem(labels: Sequence[str], diagnosis: str) -> str | None:
    """Return why the labels of a case's images cannot be shown; null where they can.

    NoDx shows them, too.

    Args:
        labels: of all images, in their order.
        diagnosis: the name that must not be told; empty where it is not known.
    """
    seen: dict[str, int] = {}
    for number, label in enumerate(labels, start=1):
        what = f"label {number} ({ascii(label[:MAX_LABEL_CHARS])})"
        if not label.strip():
            return f"label {number} is empty"
        if any(unicodedata.category(one) in _UNSEEN for one in label):
            return f"{what} holds a line break, a control character or one without width"
        if len(label) > MAX_LABEL_CHARS:
            return f"{what} has {len(label)} characters, at most {MAX_LABEL_CHARS} are shown"
        if diagnosis and names(diagnosis, label):
            return f"{what} holds final_diagnosis, and NoDx shows it, too"
        if (other := seen.setdefault(plain(label), number)) != number:
            return f"{what} is that of image {other}, too; each image needs its own"
    return None


class Findings(NamedTuple):
    """What a cell of imaging findings comes to."""

    block: str | None
    """The text that the condition FD appends to the context; null where there is none."""
    problem: str | None = None
    """Why there is none. The text says what, not where."""
    n_skipped: int = 0
    """Entries that are no objects, have no text, or repeat an earlier one; they are left out."""


def findings_block(cell: str) -> Findings:
    """Render the imaging findings of a case.

    Args:
        cell: a JSON list of objects with `markdown`, else `title` and `body`.

    Edges:
        Where the published code goes on without a block (no JSON, no list, no text in any entry) there is a
        problem: the condition that discloses findings would be the one that withholds them.
    """
    try:
        entries = json.loads(cell)
    except (ValueError, RecursionError) as error:
        said = "is nested too deep" if isinstance(error, RecursionError) else f"is no JSON ({error})"
        return Findings(None, said if cell.strip() else "is empty")
    if not isinstance(entries, list):
        return Findings(None, f"is JSON of another kind ({type(entries).__name__}), expected a list")
    texts = [_entry(entry) for entry in entries]
    kept = list(dict.fromkeys(text for text in texts if text))
    if not kept:
        return Findings(None, f"has no text in any of its {len(entries)} entries")
    return Findings("\n\n".join(kept), n_skipped=len(texts) - len(kept))


def _entry(entry: Any) -> str:
    """Return the text of one finding; empty where there is none."""
    if not isinstance(entry, dict):
        return ""
    markdown, title, body = (str(entry.get(key) or "").strip() for key in ("markdown", "title", "body"))
    return markdown or (f"### {title}\n{body}" if title else body).strip()
