"""Which text of an answer is graded strictly: what stands behind the thinking.

Source:
    MRareBench card, sections 4 and 9.
"""

import re
from typing import NamedTuple

from remeasure.records import Response

_OPENING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


class Strict(NamedTuple):
    """An answer to be graded, or why it is none."""

    text: str | None
    problem: str
    thought: bool = False
    """Whether thinking stood before it, which a judge saw too."""


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
