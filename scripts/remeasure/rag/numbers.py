"""Whether an answer gives a number, by the rules of haiku.rag 0.77.0, which are loose on purpose.

An answer counts where any number of its answer line (without one: of the whole text) is within a hundredth of
the gold number, whatever the sign, and also times or divided by 100 and 1,000. Known defects are repeated:
``.5`` is 5, ``1e6`` is 1 and 6, ``1,5`` is 15, a range ``2015-2016`` holds -2016, and a label in bold that is
closed before its colon is no answer line. ``strict_numbers`` has none of them.

Every function takes time that grows with the length of the text and not faster: answers come from outside.

Source:
    RAG card, section 3.4. The rules are haiku.rag's; whether they are those of the benchmark's own scorer
    (T²-RAGBench) is not known.
"""

import re

TOLERANCE = 0.01
"""Relative, the limit included."""
SCALES = (1.0, 0.01, 100.0, 0.001, 1000.0)
WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

# "answer" or "final answer" behind nothing but space and markup, and what follows the sign: on the same line,
# or on the next line that has something.
_ANSWER_LINE = re.compile(
    r"^(?:[^\S\n]|[*>#_-])*+(?:final\s+)?answer\s*[:=]\s*(?P<rest>.+)$", re.IGNORECASE | re.MULTILINE
)
_NUMBER = re.compile(
    r"""(?P<sign>[(-])?      # one of the two, not both
        \$?
        (?P<digits>\d[\d,]*(?:\.\d+)?)
        (?P<percent>%)?
        \)?""",
    re.VERBOSE,
)
_RUN = re.compile(r"[\d,.]+")
_WORD = re.compile(rf"\s*({'|'.join(WORDS)})", re.IGNORECASE)


def answer_line(text: str) -> str | None:
    """Return what stands behind the last label of an answer; None without a label."""
    found = None
    for match in _ANSWER_LINE.finditer(text):
        found = match["rest"]
    return found


def numbers(text: str) -> list[float]:
    """Return the numbers of a text, percents also as shares, and then those with a scale word, scaled.

    A typographic minus is a minus. A leading parenthesis or minus makes a number negative.
    """
    text = text.replace("\N{MINUS SIGN}", "-")
    found = []
    for match in _NUMBER.finditer(text):
        value = _value(match["digits"], match["sign"] is not None)
        found.append(value)
        if match["percent"]:
            found.append(value / 100)
    return found + _scaled(text)


def matches(gold: str, output: str) -> bool:
    """Return whether an answer gives the gold number: the first number of the gold text.

    Edges:
        False for a gold text without a number, and for an answer without one; a gold number of 0 is met by
        an exact 0 only.
    """
    wanted = numbers(gold)
    if not wanted:
        return False
    line = answer_line(output)
    return any(is_close(value, wanted[0]) for value in numbers(output if line is None else line))


def is_close(value: float, target: float, scales: tuple[float, ...] = SCALES) -> bool:
    """Return whether a number is within the tolerance of another at one of the scales; signs are ignored."""
    wanted, own = abs(target), abs(value)
    if not wanted:
        return not own
    return any(abs(own * scale - wanted) / wanted <= TOLERANCE for scale in scales)


def _value(digits: str, is_negative: bool) -> float:
    value = float(digits.replace(",", ""))
    return -value if is_negative else value


def _scaled(text: str) -> list[float]:
    """Return the numbers in front of a scale word, with or without space between, times what it stands for.

    Source:
        The longest number that ends there: digits and commas with decimals, else without.
    """
    found = []
    for run in _RUN.finditer(text):
        word = _WORD.match(text, run.end())
        if not word:
            continue
        head, dot, tail = run[0].rpartition(".")
        whole = head.rpartition(".")[2].lstrip(",")
        number = f"{whole}.{tail}" if dot and whole and tail and "," not in tail else tail.lstrip(",")
        if number:
            start = run.end() - len(number)
            found.append(_value(number, _is_negative(text, start)) * WORDS[word[1].lower()])
    return found


def _is_negative(text: str, start: int) -> bool:
    """Return whether a minus or a parenthesis stands in front of a number, a dollar sign between or not."""
    before = text[max(0, start - 2) : start]
    return before.removesuffix("$")[-1:] in ("-", "(")
