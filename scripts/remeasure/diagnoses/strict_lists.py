"""From a reply to a ranked list of diagnoses, strictly: reasoning is no list, and marks are no names.

Every step runs in time linear in the reply.

Source:
    MRareBench card, section 4, "STRICT adds"; what goes further is said at its place.
"""

import re
from collections.abc import Iterable, Iterator

from remeasure.diagnoses import names
from remeasure.diagnoses.spans import Kept, Parsed, Span, chosen

MOST_WORDS = 15
"""A line without a number that has more words is prose."""
MOST_WORDS_LISTED = 6
"""A single line is parted at its commas where no part has more words."""
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
# Markup, a number with 1. 1) 1: 1． 1、 #1 **1.** (1) |1| or 1 -, but no decimal such as "1.5 mg".
_NUMBERED = re.compile(
    r"[\s>|*_`•·‣◦▪●–—+-]*(?P<hash>#+\s*(?:\*\*|__)?)?[(\[（]?(?P<number>\d{1,3})(?!\d)[*_`]*"
    r"(?:\s?[.)\]．）。、:：#]{1,3}(?!\d)|\s*(?P<cell>\|)|\s+[–—-](?=\s)|(?(hash)\s|(?!)))"
)
_INLINE = re.compile(r"(?:^|(?<=[\s;,，；]))[#(（*_]*(?P<number>\d{1,2})[*_]*[.)．）、:：]{1,2}(?!\d)")
_BULLET = re.compile(r"\s*[*•·‣◦▪●–—+-]+\s+(?=\S)")
_BOLD_BEGINS = re.compile(r"\s*(?:\*\*|__)")
_BOLD_ENDS = re.compile(r"\*\*|__")
_MARKUP = re.compile(r"\*+|`+|__+|\\(?=[*_#.])")
_SEMICOLONS = re.compile(r"[;；]+")
_COMMAS = re.compile(r"[,，、]+\s*(?:(?:and|or)\s)?")
_ENDS = " \t\r\n\x0b\x0c\u3000\xa0,;，；、|*_`>#-–—•·‣◦▪●+"
_COLONS = (":", "：")
_NOTHING = ("nan", "na", "n a", "none", "null")
_DASHES = ("-", "–", "—")


def strict(text: str) -> Parsed:
    """Return the candidates of a reply; without any, ``step`` says why it is no list."""
    kept = _without_reasoning(text)
    if not kept.text.strip():
        return Parsed(found=(), step="nothing but reasoning" if text.strip() else "empty")
    numbered = list(_numbered(kept))
    inline = _inline(kept) if len(numbered) < 2 else []
    if len(inline) > len(numbered):
        return _list(inline, "inline numbers")
    if numbered:
        return _list(numbered, "numbered lines")
    bullets = [
        (match.end(), end) for start, end in kept.lines() if (match := _BULLET.match(kept.text, start, end))
    ]
    if len(bullets) > 1:
        return _list(_parts(kept, bullets, _SEMICOLONS), "bullets")
    return _plain(kept)


def _plain(kept: Kept) -> Parsed:
    """Read lines without numbers; those that announce what follows are none of them."""
    lines = [(start, end) for start, end in kept.lines() if not _announces(kept.text[start:end])]
    if len(lines) == 1:
        listed = _parts(kept, lines, _COMMAS)
        if len(listed) > 2 and all(len(span.text.split()) <= MOST_WORDS_LISTED for span in listed):
            return _list(listed, "commas")
    found = _parts(kept, lines, _SEMICOLONS)
    short = [span for span in found if len(span.text.split()) <= MOST_WORDS]
    return _list(short, "lines") if short or not found else Parsed(found=(), step="nothing but prose")


def _announces(line: str) -> bool:
    line = line.strip(_ENDS)
    return not line or line.endswith(_COLONS)


def _list(found: list[Span], step: str) -> Parsed:
    """Drop what has no name in it and what repeats an earlier name; a word for "missing" alone is no list."""
    formed = [(span, form) for span in found if (form := names.form(span.text))]
    if not formed or (len(formed) == 1 and formed[0][1] in _NOTHING):
        return Parsed(found=(), step="no names")
    spans, forms = zip(*formed, strict=True)
    return chosen(list(spans), list(forms), step)


def _without_reasoning(text: str) -> Kept:
    """Cut out thinking: closed, not closed, and everything before a closing tag that nothing opened."""
    stretches: list[tuple[int, int]] = []
    at, is_open = 0, False
    for tag in _TAG.finditer(text):
        if tag[1]:
            if not is_open:
                stretches.clear()
            is_open, at = False, tag.end()
        elif not is_open:
            stretches.append((at, tag.start()))
            is_open = True
    if not is_open:
        stretches.append((at, len(text)))
    return Kept.of(text, stretches)


def _numbered(kept: Kept) -> Iterator[Span]:
    """Yield the name on each numbered line."""
    for start, end in kept.lines():
        number = _NUMBERED.match(kept.text, start, end)
        if number:
            cell_end = kept.text.find("|", number.end(), end) if number["cell"] else -1
            is_bold = any(mark in kept.text[start : number.end()] for mark in ("**", "__"))
            span = _name(kept, number.end(), end if cell_end < 0 else cell_end, is_bold)
            if span.text:
                yield span


def _name(kept: Kept, start: int, end: int, is_bold: bool = False) -> Span:
    """Return a name without markup.

    Where a name is bold and a colon or a dash follows, what follows explains it and is no part of it.

    Args:
        kept: the reply.
        start: first character.
        end: behind the last.
        is_bold: whether the bold stretch begins before ``start``.
    """
    stop = _bold_end(kept.text, start, end, is_bold)
    whole = kept.span(start, end, _ENDS) if stop is None else kept.span(start, stop, _ENDS + ":：")
    return Span(" ".join(_MARKUP.sub("", whole.text).split()), whole.start, whole.end)


def _bold_end(text: str, start: int, end: int, is_bold: bool) -> int | None:
    """Return where a bold name ends that an explanation follows; null where none does."""
    opening = None if is_bold else _BOLD_BEGINS.match(text, start, end)
    if not is_bold and opening is None:
        return None
    start = opening.end() if opening else start
    closing = _BOLD_ENDS.search(text, start, end)
    if closing is None:
        return None
    name, rest = text[start : closing.start()].strip(), text[closing.end() : end]
    if not name:  # only the number was bold
        return _bold_end(text, closing.end(), end, False) if is_bold else None
    near = rest[:3]
    is_dash = near[:1].isspace() and near[1:2] in _DASHES and near[2:].isspace()
    explains = name.endswith(_COLONS) or near.lstrip()[:1] in _COLONS or is_dash
    return closing.start() if explains and rest.strip() else None


def _inline(kept: Kept) -> list[Span]:
    """Return what stands behind numbers that count up from 0 or 1, each piece to the end of its line at most.

    A number behind a word such as "type" belongs to a name.
    """
    marks: list[tuple[int, int]] = []
    expected: int | None = None
    for number in _INLINE.finditer(kept.text):
        value = int(number["number"])
        before = kept.text[max(0, number.start() - 12) : number.start()].split()[-1:]
        if before and before[0].lower().strip("(") in names.DESIGNATING:
            continue
        if value == expected or (expected is None and value in (0, 1)):
            marks.append((number.start(), number.end()))
            expected = value + 1
    if len(marks) < 2:
        return []
    stops = [start for start, _ in marks[1:]] + [len(kept.text)]
    found = []
    for (_, start), stop in zip(marks, stops, strict=True):
        line_end = kept.text.find("\n", start, stop)
        found.append(_name(kept, start, stop if line_end < 0 else line_end))
    return [span for span in found if span.text]


def _parts(kept: Kept, lines: Iterable[tuple[int, int]], gap: re.Pattern[str]) -> list[Span]:
    """Return what stands on lines, parted at gaps."""
    found = []
    for start, end in lines:
        at = start
        for between in gap.finditer(kept.text, start, end):
            found.append(_name(kept, at, between.start()))
            at = between.end()
        found.append(_name(kept, at, end))
    return [span for span in found if span.text]
