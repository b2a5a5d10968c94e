"""What a grader took out of an answer, line by line: what decided for it, what against it, and why."""

from collections.abc import Sequence

from remeasure.page.escaping import visible
from remeasure.records import Shown, ShownLine

MAX_LINES = 60
"""So many lines of a box are shown; the rest is counted."""
MAX_OPEN = 14
"""Boxes of more lines than this are folded."""
LONGEST_LINE = 600
_MARKS = {"yes": ("✓", "yes"), "no": ("✗", "no"), None: ("–", "neither")}


def boxes(shown: Sequence[Shown]) -> str:
    """Return the boxes of a unit as HTML; empty where there are none."""
    return f'<div class="boxes">{"".join(map(_box, shown))}</div>' if shown else ""


def _box(box: Shown) -> str:
    lines = "".join(_line(line, box.numbered) for line in box.lines[:MAX_LINES])
    kind = "ol" if box.numbered else "ul"
    more = len(box.lines) - MAX_LINES
    rest = f'<p class="faint">… {more:,} more lines</p>' if more > 0 else ""
    listed = f"<{kind}>{lines}</{kind}>{rest}" if box.lines else '<p class="faint">nothing</p>'
    title = visible(box.title[:LONGEST_LINE])
    if len(box.lines) <= MAX_OPEN:
        return f"<div><h4>{title}</h4>{listed}</div>"
    n_yes = sum(line.mark == "yes" for line in box.lines)
    said = f"{title} <small>{n_yes:,} ✓ of {len(box.lines):,}</small>"
    return f"<div><details><summary>{said}</summary><div>{listed}</div></details></div>"


def _line(line: ShownLine, numbered: bool) -> str:
    glyph, word = _MARKS[line.mark]
    note = f" <small>{visible(line.note[:LONGEST_LINE])}</small>" if line.note else ""
    text = line.text if len(line.text) <= LONGEST_LINE else line.text[: LONGEST_LINE - 1] + "…"
    if line.mark is None and not numbered:
        glyph = "·"
    mark = f'<b role="img" aria-label="{word}">{glyph}</b>'
    return f'<li class="{line.mark or "neither"}">{mark}<span><bdi>{visible(text)}</bdi>{note}</span></li>'
