"""From a reply to a ranked list of diagnoses, as the original reads it; ``strict`` stands beside it.

The original strips closed thinking, takes numbered lines, and falls back to inline numbers (only where there
was thinking) or to lines and semicolons. Every step runs in time linear in the reply.

Source:
    MRareBench card, section 4.
"""

import re
from collections.abc import Iterator

from remeasure.diagnoses.spans import Kept, Parsed, Span, chosen
from remeasure.diagnoses.strict_lists import strict

__all__ = ["Parsed", "published", "read_published", "strict"]

_OPENING = re.compile(r"<think>", re.IGNORECASE)
_CLOSING = re.compile(r"</think>", re.IGNORECASE)
_NUMBERED = re.compile(r"\s*\d+[.)]")
_INLINE = re.compile(r"(?:^|\s)\d{1,2}[.)]\s+")
_BREAKS = re.compile(r"[\n;]+")


def published(text: str) -> list[str]:
    """Return the candidates as the original's parser does, the most likely first."""
    return read_published(text).candidates


def read_published(text: str) -> Parsed:
    """Return the same with where each candidate stands and which step found it."""
    kept = _without_thinking(text)
    found, step = list(_numbered(kept)), "numbered lines"
    if len(found) < 2 and "<think>" in text.lower():
        inline = list(_inline(kept))
        if len(inline) > len(found):
            found, step = inline, "inline numbers after thinking"
    if not found:
        found, step = list(_broken(kept)), "lines and semicolons"
    found = [span for span in found if span.text]
    return chosen(found, [span.text.lower() for span in found], step)


def _without_thinking(text: str) -> Kept:
    """Cut out closed thinking, then outer white space; the first closing tag closes."""
    stretches, at = [], 0
    while opening := _OPENING.search(text, at):
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            break
        stretches.append((at, opening.start()))
        at = closing.end()
    stretches.append((at, len(text)))
    return Kept.of(text, stretches).stripped()


def _numbered(kept: Kept) -> Iterator[Span]:
    """Yield what stands behind the number of each numbered line; white space alone is an empty candidate."""
    for start, end in kept.lines():
        number = _NUMBERED.match(kept.text, start, end)
        if number and number.end() < end:
            yield kept.span(number.end(), end)


def _inline(kept: Kept) -> Iterator[Span]:
    """Yield what stands between inline numbers, before the first one too."""
    at = 0
    for number in _INLINE.finditer(kept.text):
        yield from _piece(kept, at, number.start(), " -*\t\n")
        at = number.end()
    yield from _piece(kept, at, len(kept.text), " -*\t\n")


def _broken(kept: Kept) -> Iterator[Span]:
    """Yield what stands between ends of lines and semicolons."""
    at = 0
    for gap in _BREAKS.finditer(kept.text):
        yield from _piece(kept, at, gap.start(), " -*\t")
        at = gap.end()
    yield from _piece(kept, at, len(kept.text), " -*\t")


def _piece(kept: Kept, start: int, end: int, trimmed: str) -> Iterator[Span]:
    if kept.text[start:end].strip():
        yield kept.span(start, end, trimmed)
