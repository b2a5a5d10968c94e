"""A judge's lines: for each point YES or NO, then for each required point whether the answer denies it.

Source:
    MRareBench card, section 7.
"""

import re

from msgspec import Struct

from remeasure.rubrics.points import Rubric
from remeasure.text import strip_thinking

_WORD = re.compile(r"\b(yes|no)\b")
_LINE = re.compile(
    r"[\s*_`\"'(\[>-]*+(?:\d{1,4}+\s*+[.):-][\s*_`\"'(\[]*+)?+(yes|no)[\s*_`\"').,;!\]]*+", re.IGNORECASE
)


class Verdicts(Struct, frozen=True):
    """Bits of one reply, 1 for yes; each part in the order of the points."""

    required: tuple[int, ...]
    optional: tuple[int, ...]
    contradicted: tuple[int, ...]
    """Of the required points."""

    @property
    def n_both(self) -> int:
        """Points that the answer is said both to state and to deny."""
        return sum(stated and denied for stated, denied in zip(self.required, self.contradicted, strict=True))


def n_lines(reply: str) -> int:
    """Return how many lines of a reply say yes or no somewhere."""
    return len(_bits(reply))


def published(reply: str, rubric: Rubric) -> Verdicts:
    """Read a reply as the original does.

    Each line with the word yes or no gives one bit, the first of them in it. What is too much is cut off,
    what is missing is no. So chatter ("I have no answer") takes the first place, and a line with neither word
    moves all later ones up.
    """
    bits = _bits(reply)[: rubric.n_lines]
    return _parted([*bits, *[0] * (rubric.n_lines - len(bits))], rubric)


def strict(reply: str, rubric: Rubric) -> tuple[Verdicts | None, str]:
    """Read a reply that keeps to what was asked for: exactly one line for each verdict, nothing else.

    Thinking and empty lines are looked over; a line may carry its number and markup.

    Returns:
        The bits, or null and what is wrong with the reply.
    """
    answer, closed = strip_thinking(reply)
    lines = [line for line in answer.splitlines() if line.strip()]
    if closed is False:
        return None, "the judge's reply ends while it thinks"
    if len(lines) != rubric.n_lines:
        return None, f"the judge's reply has too {'few' if len(lines) < rubric.n_lines else 'many'} lines"
    found = [_LINE.fullmatch(line) for line in lines]
    if None in found:
        return None, "the judge's reply has a line that is neither yes nor no"
    bits = _parted([int(match[1].lower() == "yes") for match in found if match], rubric)
    if bits.n_both:
        return None, "the judge says of a point that it is stated and denied"
    return bits, ""


def none(rubric: Rubric) -> Verdicts:
    """Return what stands for no reply in the original: no to everything."""
    return _parted([0] * rubric.n_lines, rubric)


def _bits(reply: str) -> list[int]:
    found = (_WORD.search(line.lower()) for line in reply.splitlines())
    return [int(match[1] == "yes") for match in found if match]


def _parted(bits: list[int], rubric: Rubric) -> Verdicts:
    n, m = len(rubric.required), len(rubric.optional)
    return Verdicts(
        required=tuple(bits[:n]), optional=tuple(bits[n : n + m]), contradicted=tuple(bits[n + m :])
    )
