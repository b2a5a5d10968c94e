"""A page as one HTML file that loads nothing and runs nothing; texts are shown, never read as markup."""

from collections.abc import Mapping, Sequence
from html import escape

import msgspec
from msgspec import Struct

from remeasure.records import Graded, Item, Mark, Reading, Response
from remeasure.showing import seen

LONGEST_TEXT = 4000
"""Characters of an answer that are shown; the rest is counted."""

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --faint: #666; --line: #ddd; --ground: #fff; --card: #fafafa;
  --good: #00694e; --bad: #a3320b; --mark: #ffe7a3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --faint: #a0a0a0; --line: #444;
  --ground: #16181a; --card: #1e2124; --good: #6fd3b2; --bad: #ff9d76; --mark: #665200; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; color: var(--ink); background: var(--ground);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
p { margin: .3rem 0; } .faint { color: var(--faint); } code { font-size: .92em; }
section { border: 1px solid var(--line); border-radius: 8px; background: var(--card); margin: 1rem 0;
  padding: .8rem 1rem; overflow-x: auto; }
section > h3 { margin: 0 0 .4rem; font-size: 1rem; } section > h3 a { color: inherit; text-decoration: none; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; min-width: 34rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem .45rem 0;
  border-top: 1px solid var(--line); font-weight: normal; overflow-wrap: anywhere; }
thead th { border: 0; } th:first-child { width: 19rem; }
img { max-width: 100%; border-radius: 4px; display: block; margin-bottom: .3rem; }
mark { background: var(--mark); color: inherit; border-radius: 3px; padding: 0 .1em; }
mark small { color: var(--faint); margin-left: .25em; } h3 small { font-weight: normal; }
.state { color: var(--bad); font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
details { color: var(--faint); } summary { cursor: pointer; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 .5rem; margin: .2rem 0 0;
  font-size: .88em; }
dt { color: var(--faint); } dd { margin: 0; }
"""


class Shown(Struct, frozen=True):
    """What one cell says about one unit."""

    title: str
    graded: Graded
    responses: tuple[Response, ...]
    """In the order of the unit's items."""


class UnitPart(Struct, frozen=True):
    """A unit with its pictures and what every cell says about it."""

    unit_id: str
    items: tuple[Item, ...]
    pictures: tuple[tuple[str, ...], ...]
    """``data:`` addresses of every item's images; empty for one that cannot be decoded."""
    cells: tuple[Shown, ...]


class BenchPart(Struct, frozen=True):
    """The units of one bench that are shown."""

    title: str
    n_units: int
    """How many there are in all."""
    units: tuple[UnitPart, ...]


def visible(text: str) -> str:
    """Return text as HTML; characters that are not seen but change what is, are shown by their number."""
    return escape(seen(text))


def marked(text: str, marks: Sequence[Mark], n_readings: int = 0) -> str:
    """Return an answer as HTML with its marks.

    Args:
        text: the answer.
        marks: what decided in it; of those that overlap the one that begins first, and of these the longest.
        n_readings: how many readings there are; a mark of fewer names them.
    """
    cut = text[:LONGEST_TEXT]
    parts, at = [], 0
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start < at or not mark.start < mark.end <= len(cut):
            continue
        parts.append(visible(cut[at : mark.start]))
        said = cut[mark.start : mark.end]
        words = [] if said.lower() == mark.label else [mark.label]
        words += [f"({', '.join(mark.readings)})"] if 0 < len(mark.readings) < n_readings else []
        label = f"<small>{visible(' '.join(words))}</small>" if words else ""
        parts.append(f"<mark>{visible(said)}{label}</mark>")
        at = mark.end
    parts.append(visible(cut[at:]))
    if len(text) > len(cut):
        parts.append(f'<span class="faint"> … {len(text) - len(cut):,} more characters</span>')
    return "<bdi>" + "".join(parts).replace("\n", "<br>") + "</bdi>"


def _answer(response: Response, marks: Sequence[Mark], n_readings: int) -> str:
    state = ""
    if response.status != "answered":
        said = f": {response.error}" if response.error else ""
        state = f'<p class="state">{visible(response.status.replace("_", " ") + said)}</p>'
    if response.text is None:
        return state or '<p class="state">no text</p>'
    if not response.text.strip():
        return state + '<p class="state">empty</p>'
    return state + f"<p>{marked(response.text, marks, n_readings)}</p>"


def _scores(reading: Reading, headline: str) -> str:
    values = {headline: reading.score, **reading.scores}
    return " ".join(
        f"{visible(name)}&nbsp;{'–' if value is None else format(value, '.3g')}"
        for name, value in values.items()
    )


def _verdicts(graded: Graded, headline: str) -> str:
    """Return the readings of a unit; those that say the same stand together."""
    alike: dict[bytes, list[str]] = {}
    readings = {"published": graded.published, "strict": graded.strict, **graded.also}
    for name, reading in readings.items():
        alike.setdefault(msgspec.json.encode(reading), []).append(name)
    rows = []
    for names in alike.values():
        name, reading = ", ".join(names), readings[names[0]]
        colour = {1.0: "good", 0.0: "bad"}.get(reading.score, "faint")
        verdict = visible(reading.verdict.replace("_", " "))
        said = f'<span class="{colour}">{verdict}</span> <span class="faint">{visible(reading.reason)}</span>'
        if reading.scores:
            said += f"<details><summary>scores</summary>{_scores(reading, headline)}</details>"
        rows.append(f"<dt>{visible(name)}</dt><dd>{said}</dd>")
    return f"<dl>{''.join(rows)}</dl>"


def _facts(item: Item, names: Sequence[str]) -> str:
    """Return what is known of an item: some of its plain facts, and its answers."""
    plain = [name for name in names if _is_plain(item.meta.get(name))]
    shown = [f"{item.meta[name]}" if name == "title" else f"{name} {item.meta[name]}" for name in plain]
    if item.references:
        shown.append("answer " + " | ".join(item.references[:5]))
    return visible(", ".join(shown)[:600])


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float)) and value != ""


def _common(items: Sequence[Item]) -> list[str]:
    """Return the facts that are the same for all items of a unit; of one item none."""
    first, *rest = (item.meta for item in items)
    same = [name for name, value in first.items() if all(meta.get(name) == value for meta in rest)]
    return same if rest else []


def _item(item: Item, pictures: Sequence[str], common: Sequence[str]) -> str:
    parts = [
        f'<img src="{escape(url)}" alt="{visible(item.item_id)}" loading="lazy">'
        if url
        else '<p class="state">picture cannot be shown</p>'
        for url in pictures
    ]
    if item.question:
        parts.append(f"<p>{marked(item.question, ())}</p>")
    facts = _facts(item, [name for name in item.meta if name not in common])
    parts.append(f'<p class="faint"><code>{visible(item.item_id)}</code><br>{facts}</p>')
    return f"<th>{''.join(parts)}</th>"


def _unit(unit: UnitPart, headline: str) -> str:
    common = _common(unit.items)
    shown = ["title"] if "title" in common else common
    facts = _facts(msgspec.structs.replace(unit.items[0], references=()), shown) if common else ""
    head = "".join(_item(item, urls, common) for item, urls in zip(unit.items, unit.pictures, strict=True))
    rows = []
    for cell in unit.cells:
        n_readings = 2 + len(cell.graded.also)
        marks = {
            item.item_id: [m for m in cell.graded.marks if m.item_id == item.item_id] for item in unit.items
        }
        answers = "".join(
            f"<td>{_answer(response, marks[item.item_id], n_readings)}</td>"
            for item, response in zip(unit.items, cell.responses, strict=True)
        )
        rows.append(f"<tr><th>{visible(cell.title)}{_verdicts(cell.graded, headline)}</th>{answers}</tr>")
    anchor = escape(f"u-{unit.unit_id}")
    return (
        f'<section id="{anchor}"><h3><a href="#{anchor}">{visible(unit.unit_id)}</a> '
        f'<small class="faint">{facts}</small></h3>'
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"
    )


def render(
    title: str, run: str, lines: Sequence[str], headline: Mapping[str, str], benches: Mapping[str, BenchPart]
) -> str:
    """Return the whole page.

    Args:
        title: of the table.
        run: name of the run.
        lines: sentences under the title.
        headline: per bench the metric of the item scores.
        benches: what is shown.
    """
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{visible(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>{visible(title)}</h1>",
        *(f"<p>{visible(line)}</p>" for line in lines),
    ]
    parts.append(f'<p class="faint">Made from run {visible(run)}; nothing is loaded from anywhere.</p>')
    for bench, part in benches.items():
        parts.append(f"<h2>{visible(part.title)}</h2>")
        if len(part.units) < part.n_units:
            said = "chosen so that those are among them about which the cells disagree"
            parts.append(f'<p class="faint">{len(part.units):,} of {part.n_units:,} units, {said}.</p>')
        else:
            parts.append(f'<p class="faint">All {part.n_units:,} units.</p>')
        parts += [_unit(unit, headline[bench]) for unit in part.units]
    parts.append("</body>\n</html>\n")
    return "\n".join(parts)
