"""Texts of MRareBench cells that both the check of the tables and the messages need: the NoDx cut, the findings.

Source:
    MRareBench card, sections 3.2 (findings block) and 3.3 (established diagnosis, NoDx cut); both are the
    published ones to the letter.
"""

import json
import re
from typing import Any, NamedTuple

_ESTABLISHED = r"\s*Established diagnosis:\s*"
_CUT = re.compile(rf"^{_ESTABLISHED}[^.]*\.\s*", re.IGNORECASE)
_OPENING = re.compile(_ESTABLISHED, re.IGNORECASE)


def without_diagnosis(context: str) -> str:
    r"""Return a context without its leading sentence about the established diagnosis.

    What goes is everything up to the first full stop, wherever that stands, and the white space behind it; the
    rest is stripped at both ends.

    Edges:
        A context that does not begin so, or that has no full stop, only loses white space at its ends. A name
        with a full stop loses its beginning only, and a sentence without one takes text of the case with it:
        `mrarebench_index` refuses such rows.
    """
    return _CUT.sub("", context).strip()


def established_line(context: str) -> str | None:
    """Return what stands on the line of the established diagnosis behind its opening words; null without them.

    Edges:
        A name that begins on the line below gives that line, since the published cut skips white space, too.
    """
    opening = _OPENING.match(context)
    return None if opening is None else (context[opening.end() :].splitlines() or [""])[0]


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
