"""Which text of an answer is graded strictly: what stands behind the thinking.

Source:
    MRareBench card, sections 4 and 9.
"""

from typing import NamedTuple

from remeasure import failing, thinking
from remeasure.records import Response

_PROBLEMS = {
    failing.UNFINISHED: "the answer ends while it thinks",
    failing.EMPTY: "the answer is empty",
    failing.MARKED: "the answer is the sentence of a failed request",
}


class Strict(NamedTuple):
    """An answer to be graded, or why it is none."""

    text: str | None
    problem: str
    thought: bool = False
    """Whether thinking stood before it, which a judge saw too."""


def strict(response: Response) -> Strict:
    """Return the answer behind the thinking (``thinking.behind``), where there is a whole one."""
    if response.status != "answered":
        return Strict(None, f"reader {response.status.replace('_', ' ')}")
    kind = failing.kind_of(response)
    if kind is not None:
        return Strict(None, _PROBLEMS[kind])
    found = thinking.behind(response.text or "")
    return Strict(found.text, "", thought=found.thought)
