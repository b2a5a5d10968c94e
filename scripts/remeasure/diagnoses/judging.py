"""The judge's five lines about a ranked list, as the original reads them and strictly.

Source:
    MRareBench card, section 6.1.
"""

import re

from msgspec import Struct

HIGHEST_TYPE_MATCH = 3
TITLES = ("in the list", "stands first", "type match (0-3)", "specific entities", "coherent")
_TYPE_MATCH_LINE = 3
_YES_NO = re.compile(r"\b(yes|no)\b")
_LINE_NUMBER = re.compile(r"\d+\s*[.)]\s*")
_DIGIT = re.compile("[0-3]")
# Strict: a number of the line, a label with a remark in brackets, then the answer.
_PREFIX = (
    r"(?:(?P<number>\d)\s*[.):]\s*)?(?:(?!(?:yes|no)\b)[^\W\d][\w -]{0,40}(?:\([^()]{0,20}\)\s*)?[:=]\s*)?"
)
_ANSWER = re.compile(_PREFIX + r"(?P<value>yes|no)\b(?P<rest>.*)", re.IGNORECASE)
_INTEGER = re.compile(_PREFIX + r"(?P<value>[0-3])")
_MARKUP = re.compile(r"[*`_]{2,}|(?<!\w)[*`_]|[*`_](?!\w)")


class Judged(Struct, frozen=True):
    """What a judge says about a list."""

    presence: int
    """Whether the right diagnosis stands in the list, 0 or 1, like the next and the last two."""
    top1: int
    typematch: int
    """How near the best candidate comes, 0 to 3."""
    specificity: int
    coherence: int

    @property
    def values(self) -> tuple[int, ...]:
        """The five, in the order of the lines."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)

    @property
    def score(self) -> float:
        """Mean of the five, the type match as a share."""
        shares = (
            self.presence,
            self.top1,
            self.typematch / HIGHEST_TYPE_MATCH,
            self.specificity,
            self.coherence,
        )
        return sum(shares) / len(shares)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What cannot all be true: first but not in the list; in the list but no full type match."""
        found = []
        if self.top1 and not self.presence:
            found.append("stands first, but not in the list")
        if self.presence and self.typematch < HIGHEST_TYPE_MATCH:
            found.append(f"in the list, but type match {self.typematch}")
        return tuple(found)


NOTHING = Judged(0, 0, 0, 0, 0)
"""What the original counts where there is no judge's reply."""


def published(reply: str) -> Judged:
    """Read the first five lines that are not blank; what is not understood is 0.

    Edges:
        "3." and "2.0" are 0, since the number is taken for that of the line; "10" is 1; a missing line is 0.
    """
    lines = [line.strip() for line in reply.strip().splitlines() if line.strip()][: len(TITLES)]
    lines += [""] * (len(TITLES) - len(lines))
    first, second, third, fourth, fifth = lines
    return Judged(_binary(first), _binary(second), _ordinal(third), _binary(fourth), _binary(fifth))


def _binary(line: str) -> int:
    found = _YES_NO.search(line.lower())
    return int(found is not None and found[1] == "yes")


def _ordinal(line: str) -> int:
    number = _LINE_NUMBER.match(line)
    found = _DIGIT.search(line, number.end() if number else 0)
    return int(found[0]) if found else 0


def strict(reply: str) -> Judged | str:
    """Read a reply of exactly five lines; return why it is none otherwise.

    Each line: YES or NO, the third a bare whole number from 0 to 3; before it its own number and a label may
    stand. Markup and blank lines do not count. Words may follow YES or NO unless they say the other as well.
    """
    lines = [line for raw in reply.splitlines() if (line := _MARKUP.sub("", raw).strip())]
    if len(lines) != len(TITLES):
        return f"{'more' if len(lines) > len(TITLES) else 'fewer'} than five lines"
    values = []
    for place, line in enumerate(lines, start=1):
        is_number = place == _TYPE_MATCH_LINE
        found = (_INTEGER if is_number else _ANSWER).fullmatch(line)
        if found is None:
            return f"line {place} is no {'whole number from 0 to 3' if is_number else 'YES or NO'}"
        if found["number"] not in (None, str(place)):
            return f"line {place} has another number"
        if not is_number and _YES_NO.search(found["rest"].lower()):
            return f"line {place} says both YES and NO"
        value = found["value"].lower()
        values.append(int(value) if is_number else int(value == "yes"))
    return Judged(*values)
