"""How the evidence reader answers questions about numbers: rows and sentences, then plain arithmetic.

A question names what it is about and often a year; it may ask for the value itself, a difference, a sum, an
average, a share or ratio of two, or a change in percent. What it names is looked for among the rows of the
tables and the sentences that were found, by shared words.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Literal

from remeasure.embedded import evidence_words
from remeasure.embedded.case_words import stem
from remeasure.embedded.evidence_request import Chunk

Kind = Literal["value", "difference", "sum", "average", "ratio", "per", "share", "change"]
_NUMBER = re.compile(
    r"(?P<minus>[-−(]\s?)?\$?\s?(?P<digits>\d[\d,]*(?:\.\d+)?)(?P<percent>\s?%)?(?P<close>\s?\))?"
    r"(?P<scale>\s+(?:thousand|million|billion)\b)?"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
_KINDS: tuple[tuple[Kind, str], ...] = (
    (
        "change",
        r"(?:percent(?:age)?|%)\s+(?:change|increase|decrease|growth|decline|drop|rise)|growth rate"
        r"|by (?:what|how many) percent"
        r"|(?:grow|grew|change|rise|rose|fall|fell|increase|decrease|decline|drop)\w*.*\bpercent",
    ),
    ("share", r"(?:percent(?:age)?|%|share|portion|proportion|fraction)\s+of\b"),
    ("ratio", r"\bratio\b|divided by"),
    ("per", r"\w per (?!cent|share|annum|year)\w"),
    ("average", r"\baverage\b|\bmean\b"),
    ("sum", r"\bcombined\b|\bsum\b|\btogether\b|\bin total\b|\btotal of\b"),
    (
        "difference",
        r"\bdifference\b|how much (?:more|less|higher|lower|larger|smaller)|by how much|\bnet change\b"
        r"|\b(?:change|increase|decrease|decline|drop|rise)\b.*\bfrom\b.*\bto\b",
    ),
)
_BETWEEN = re.compile(r"\b(?:to|and|divided by|was|were|is|are|came from|comes from|over|than)\b")
_ASKED = frozenset(
    stem(word)
    for word in "ratio percent percentage share portion proportion fraction change increase decrease growth "
    "total average mean difference sum combined much many value amount number year fiscal decline rise drop "
    "net reported answer million billion thousand dollars".split()
)
MAX_LINES = 2000


@dataclass(frozen=True)
class Value:
    """A number with what the text says it is."""

    number: float
    written: str
    about: frozenset[str]
    """Stems of its row or sentence."""
    year: str | None
    chunk: int
    is_cell: bool


@dataclass(frozen=True)
class Found:
    """What a question about a number comes to."""

    kind: Kind
    parts: tuple[Value, ...]
    chunk_ids: tuple[str, ...]

    @property
    def number(self) -> float:
        """The answer."""
        return _computed(self.kind, [part.number for part in self.parts])


def kind_of(question: str) -> Kind:
    """Return what kind of number a question asks for."""
    lowered = question.lower()
    return next((kind for kind, pattern in _KINDS if re.search(pattern, lowered)), "value")


def find(question: str, chunks: list[Chunk]) -> Found | None:
    """Return the number that a question asks for; null where the chunks have none."""
    values = [value for i, chunk in enumerate(chunks) for value in values_of(chunk, i)]
    kind = kind_of(question)
    years = _YEAR.findall(question)
    parts = _parts(kind, question, years, values, chunks)
    if not parts or not _fits(kind, parts):
        return None
    ids = tuple(dict.fromkeys(chunks[part.chunk].chunk_id for part in parts))
    return Found(kind, parts, ids)


def _fits(kind: Kind, parts: tuple[Value, ...]) -> bool:
    divisor = {"change": parts[0], "ratio": parts[-1], "per": parts[-1], "share": parts[-1]}.get(kind)
    return divisor is None or divisor.number != 0


def _parts(
    kind: Kind, question: str, years: list[str], values: list[Value], chunks: list[Chunk]
) -> tuple[Value, ...]:
    """Return the numbers that are needed, in the order in which they are computed with."""
    wanted = _wanted(question)
    if kind in ("ratio", "per", "share"):
        pair = _split(kind, question)
        if pair is not None:
            return _pair(kind, question, pair, years, values, chunks)
    if kind != "value" and len(set(years)) >= 2:
        each = [_best(wanted, wanted, [year], values, chunks) for year in sorted(set(years))]
        return tuple(each) if None not in each else ()
    if kind in ("difference", "sum", "average") and (pair := _split(kind, question)):
        return _pair(kind, question, pair, years, values, chunks)
    one = _best(wanted, wanted, years, values, chunks)
    # Of the others a single number says nothing, unless the documents tell it themselves.
    return () if one is None or kind in ("difference", "per") else (one,)


def _pair(
    kind: Kind,
    question: str,
    pair: tuple[str, str],
    years: list[str],
    values: list[Value],
    chunks: list[Chunk],
) -> tuple[Value, ...]:
    """Return the values of two things that a question names; nothing where one is missing."""
    wanted = _wanted(question)
    found = [_best(_wanted(part), wanted, _YEAR.findall(part) or years, values, chunks) for part in pair]
    if None in found:
        return ()
    first, last = found
    if kind == "per" and re.search(r"\bin dollars\b", question):
        first = replace(first, number=first.number * _unit(chunks[first.chunk]))
    return first, last


def _unit(chunk: Chunk) -> float:
    """Return what the amounts of a chunk are told in: 1,000,000 for "in millions of dollars"."""
    told = re.search(r"\bin (thousand|million|billion)s\b", chunk.text)
    return _SCALES[told[1]] if told else 1.0


def _wanted(part: str) -> frozenset[str]:
    return evidence_words.stems(_YEAR.sub(" ", part)) - _ASKED


def _split(kind: Kind, question: str) -> tuple[str, str] | None:
    """Return the two things that a question puts beside each other: first what is divided or taken from."""
    rest = question.partition(" of ")[2] if kind in ("ratio", "share") else question
    both = re.split(r"\bper\b", rest, maxsplit=1) if kind == "per" else _BETWEEN.split(rest, maxsplit=1)
    if len(both) != 2 or not all(_wanted(part) for part in both):
        return None
    # "what share of sales came from services": services are divided by sales.
    return (both[1], both[0]) if kind == "share" else (both[0], both[1])


def _best(
    wanted: frozenset[str],
    all_wanted: frozenset[str],
    years: list[str],
    values: list[Value],
    chunks: list[Chunk],
) -> Value | None:
    """Return the value whose row, document and year fit best; null where no word fits."""
    titles = [evidence_words.stems(f"{chunk.title} {chunk.text[:200]}") for chunk in chunks]

    def rank(value: Value) -> tuple[float, ...]:
        shared = len(wanted & value.about) / (1 + len(value.about | wanted))
        return (
            round(len(all_wanted & titles[value.chunk] - value.about), 3),
            1.0 * (not years or value.year in years),
            round(shared, 9),
            1.0 * value.is_cell,
            -value.chunk,
        )

    fitting = [value for value in values if wanted & value.about]
    return max(fitting, key=rank, default=None)


def values_of(chunk: Chunk, number: int) -> list[Value]:
    """Return the numbers of a chunk: cells of its tables with row and year, and those of its sentences."""
    found: list[Value] = []
    header: list[str] = []
    for line in chunk.text.split("\n")[:MAX_LINES]:
        if line.count("|") >= 2:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if all(_YEAR.search(cell) or not _NUMBER.search(cell) for cell in cells) and not set(line) <= set(
                "|-: "
            ):
                header = cells
            found += _cells(cells, header, number)
        else:
            header = header if line.strip() else []
            for sentence in evidence_words.sentences(line):
                found += _in_sentence(sentence, number)
    return found


def _cells(cells: list[str], header: list[str], chunk: int) -> list[Value]:
    found = []
    for place, cell in enumerate(cells[1:], start=1):
        match = _NUMBER.search(cell)
        if not match or cells == header:
            continue
        column = header[place] if place < len(header) else ""
        year = _YEAR.search(column)
        about = evidence_words.stems(f"{cells[0]} {_YEAR.sub(' ', column)}")
        found.append(Value(_number(match), match[0].strip(), about, year[0] if year else None, chunk, True))
    return found


def _in_sentence(sentence: str, chunk: int) -> list[Value]:
    years = _YEAR.findall(sentence)
    about = evidence_words.stems(sentence)
    return [
        Value(
            _number(match), match[0].strip(), about, years[0] if len(set(years)) == 1 else None, chunk, False
        )
        for match in _NUMBER.finditer(sentence)
        if not _YEAR.fullmatch(match[0].strip(" ()-$"))
    ]


def _number(match: re.Match) -> float:
    value = float(match["digits"].replace(",", "")) * _SCALES.get((match["scale"] or "").strip(), 1)
    minus = (match["minus"] or "").strip()
    return -value if minus in ("-", "−") or (minus == "(" and match["close"]) else value


def _computed(kind: Kind, numbers: list[float]) -> float:
    if len(numbers) == 1:
        return numbers[0]
    first, last = numbers[0], numbers[-1]
    match kind:
        case "change":
            return 100 * (last - first) / abs(first)
        case "share":
            return 100 * first / last
        case "ratio" | "per":
            return first / last
        case "difference":
            return last - first
        case "average":
            return sum(numbers) / len(numbers)
        case _:
            return sum(numbers)


def program(found: Found | None) -> str | None:
    """Return a short Python program that prints the answer; null where nothing is computed."""
    if found is None or len(found.parts) < 2:
        return None
    a, b = (repr(part.number) for part in (found.parts[0], found.parts[-1]))
    formula = {
        "change": "100 * (b - a) / abs(a)",
        "share": "100 * a / b",
        "ratio": "a / b",
        "per": "a / b",
        "difference": "b - a",
        "average": "(a + b) / 2",
    }.get(found.kind, "a + b")
    return f"a = {a}\nb = {b}\nprint({formula})"


def said(found: Found, printed: str | None) -> str:
    """Return the answer in words with a last line ``ANSWER: <number>``.

    Args:
        found: the numbers.
        printed: what the program printed, where one ran; its number is taken if it is one.
    """
    number = _read(printed, found.number)
    if len(found.parts) == 1:
        written = found.parts[0].written
        return f"The documents say {written}.\nANSWER: {shown(number)}{'%' if '%' in written else ''}"
    sign = "%" if found.kind in ("change", "share") else ""
    parts = " and ".join(part.written for part in found.parts)
    return f"Computed from {parts} ({found.kind}).\nANSWER: {shown(number)}{sign}"


def _read(printed: str | None, otherwise: float) -> float:
    try:
        number = float((printed or "").strip())
    except ValueError:
        return otherwise
    return number if math.isfinite(number) else otherwise


def shown(number: float) -> str:
    """Return a number with at most four decimals and no exponent."""
    return f"{number:.4f}".rstrip("0").rstrip(".")
