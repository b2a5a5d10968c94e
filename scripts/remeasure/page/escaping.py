"""Texts of others in HTML: shown as they are, never read as markup, and never without an end."""

from collections.abc import Sequence
from html import escape

from remeasure.records import Mark
from remeasure.showing import seen

LONGEST_TEXT = 4000
"""Characters of an answer that are shown; the rest is counted."""


def visible(text: str) -> str:
    """Return text as HTML; characters that are not seen but change what is, are shown by their number."""
    return escape(seen(text))


def marked(text: str, marks: Sequence[Mark], n_readings: int = 0, longest: int = LONGEST_TEXT) -> str:
    """Return an answer as HTML with its marks.

    Args:
        text: the answer.
        marks: what decided in it; of those that overlap the one that begins first, and of these the longest.
        n_readings: how many readings there are; a mark of fewer names them.
        longest: so many characters are shown; the rest is counted.
    """
    cut = text[:longest]
    parts, at = [], 0
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start < at or not mark.start < mark.end <= len(cut):
            continue
        parts.append(visible(cut[at : mark.start]))
        said = cut[mark.start : mark.end]
        words = [] if mark.label in ("", said.lower()) else [mark.label]
        words += [f"({', '.join(mark.readings)})"] if 0 < len(mark.readings) < n_readings else []
        label = f"<small>{visible(' '.join(words))}</small>" if words else ""
        parts.append(f"<mark>{visible(said)}{label}</mark>")
        at = mark.end
    parts.append(visible(cut[at:]))
    if len(text) > len(cut):
        parts.append(f'<span class="faint"> … {len(text) - len(cut):,} more characters</span>')
    return "<bdi>" + "".join(parts).replace("\n", "<br>") + "</bdi>"


def plain(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text as HTML, cut where it is too long."""
    return marked(text, (), longest=longest)
