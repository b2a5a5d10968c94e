"""Whether an answer gives a number, read as people would: one number on the answer line, and its sign counts.

A percent sign and a scale word say what the number is. Gold answers give the same ratio as a percent or as a
share, so that a hundred times as much or as little is the same; a thousand times is not.

Source:
    RAG card, section 3.4: the strict variant beside "NumberMatch (haiku.rag rules)"; the details are ours.
"""

import re
from typing import NamedTuple

from remeasure.rag.numbers import TOLERANCE, WORDS

SCALES = (1.0, 0.01, 100.0)
_SCALE_OF = (
    WORDS | {f"{word}s": scale for word, scale in WORDS.items()} | {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9}
)
_MARKUP = " \t>#*_`-"
_LABEL = re.compile(r"(?:final )?answer[*_` ]*[:=]", re.IGNORECASE)
_DASHES = str.maketrans(dict.fromkeys("\N{MINUS SIGN}\N{EN DASH}\N{NON-BREAKING HYPHEN}", "-"))
_NUMBER = re.compile(
    r"""(?P<open>\()?
        (?P<minus>-)?[ ]?[$€£]?[ ]?(?P<late>-)?
        (?P<digits>\d++(?:,\d{3}(?!\d))*+(?:\.\d++)?+|\.\d++)
        (?:e(?P<power>[+-]?\d{1,3})(?![\w.]))?
        [ ]?(?P<percent>%|percent\b|per[ ]cent\b)?
        (?:[ ]?(?P<word>[a-z]++))?
        [ ]?(?P<close>\))?""",
    re.VERBOSE | re.IGNORECASE,
)


class Read(NamedTuple):
    """What an answer gives: one number, or why there is none."""

    value: float | None
    problem: str | None = None


def answer_line(text: str) -> str | None:
    """Return what stands behind the last label of an answer, on the same line; markup around it is none."""
    found = None
    for line in text.splitlines():
        plain = " ".join(line.split()).lstrip(_MARKUP)
        label = _LABEL.match(plain)
        if label:
            found = plain[label.end() :]
    return found


def answer(text: str) -> Read:
    """Return the one number of the answer line."""
    line = answer_line(text)
    if line is None:
        return Read(None, "no answer line")
    values = numbers(line)
    if len(values) != 1:
        return Read(None, "several numbers on the answer line" if values else "no number on the answer line")
    return Read(values[0])


def numbers(text: str) -> list[float]:
    """Return the numbers of a text with sign, power of ten and scale word; percents as they are written."""
    # One space at most, so that no pattern has to look far.
    text = " ".join(text.translate(_DASHES).split())
    found = []
    for match in _NUMBER.finditer(text):
        value = float(f"{match['digits'].replace(',', '')}e{match['power'] or 0}")
        value *= _SCALE_OF.get((match["word"] or "").lower(), 1.0)
        # A dash behind a number is a range and no sign.
        signed = (match["minus"] or match["late"]) and not text[: match.start()].rstrip(" ")[-1:].isdigit()
        # A number in parentheses is negative; a remark in parentheses has other words in it.
        closed = match["open"] and match["close"] and (match["word"] or "k").lower() in _SCALE_OF
        found.append(-value if signed or closed else value)
    return found


def matches(gold: float, value: float) -> bool:
    """Return whether a number is within a hundredth of the gold one, sign included.

    Edges:
        A gold number of 0 is met by an exact 0 only.
    """
    if not gold:
        return not value
    return any(abs(value * scale - gold) / abs(gold) <= TOLERANCE for scale in SCALES)
