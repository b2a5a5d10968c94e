"""A page as one HTML file that loads nothing and runs nothing; texts are shown, never read as markup."""

from collections.abc import Mapping, Sequence
from html import escape

import msgspec
from msgspec import Struct

from remeasure import failing
from remeasure.page import prompt
from remeasure.page.boxes import boxes
from remeasure.page.escaping import marked, plain, visible
from remeasure.page.style import STYLE
from remeasure.page.tables import tables
from remeasure.page.traces import is_list_of_hits, reference_conversation, without_replies
from remeasure.records import Graded, Item, Mark, Reading, Response
from remeasure.records import Shown as Box
from remeasure.tables.block_text import BlockText

LONGEST_FACT = 120
"""Longer facts of an item are folded."""
LONGEST_NAME = 60
MAX_REFERENCES = 5
NOT_SHOWN = ("image_path",)
"""Facts that say nothing beside what is shown: where the images of a published table would lie."""
LONGEST_ERROR = 400
_NO_ANSWER = {
    failing.EMPTY: "empty",
    failing.UNFINISHED: "thinking that does not end",
    failing.MARKED: "the sentence of a failed request",
}


class Shown(Struct, frozen=True):
    """What one cell says about one unit."""

    title: str
    graded: Graded
    responses: tuple[Response, ...]
    """In the order of the unit's items."""
    prompts: tuple[prompt.Prompt, ...] = ()
    """What the reader was given, in the same order; empty where it is not known."""
    traced: tuple[Box, ...] = ()
    """What a system did and what a judge replied."""
    ranking: str = ""
    """The top of a ranking of photographs, as markup of ours."""


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


def _answer(response: Response, marks: Sequence[Mark], n_readings: int) -> str:
    state = _state(response)
    if response.text is None or not response.text.strip() or is_list_of_hits(response):
        return state
    return state + f"<p>{marked(response.text, marks, n_readings)}</p>"


def _state(response: Response) -> str:
    """Return why an answer is not whole, with its class; nothing where it is."""
    kind = failing.kind_of(response)
    if kind is None:
        return ""
    said = "no text" if response.text is None else _NO_ANSWER.get(kind, "")
    if response.status != "answered":
        error = (response.error or "").removeprefix(response.status).removeprefix(": ")
        said = response.status.replace("_", " ") + (f": {error}" if error else "")
    return _told(kind, said)


def _told(kind: str, said: str) -> str:
    return f'<p class="state"><span class="kind">{visible(kind)}</span> {plain(said, LONGEST_ERROR)}</p>'


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
    lost = [one for one in graded.failed if one.role == "judge"]
    judges = "".join(_told(one.kind, f"judge: {one.error or 'no reply'}") for one in lost)
    return f"<dl>{''.join(rows)}</dl>{judges}"


def _facts(item: Item, names: Sequence[str]) -> str:
    """Return what is known of an item as labelled lines: plain facts, long ones folded, and its answers."""
    known = [(name, item.meta[name]) for name in names if _is_told(item, name)]
    lines = [_fact(name, str(value)) for name, value in known]
    if item.references:
        more = len(item.references) - MAX_REFERENCES
        answers = " | ".join(item.references[:MAX_REFERENCES]) + (f" | {more:,} more" if more > 0 else "")
        lines.append(_fact("answer", answers))
    return f'<dl class="facts">{"".join(lines)}</dl>' if lines else ""


def _fact(name: str, value: str) -> str:
    label, text = visible(name[:LONGEST_NAME].replace("_", " ")), plain(value)
    if len(value) > LONGEST_FACT:
        begin = visible(" ".join(value[:LONGEST_NAME].split()))
        text = f"<details><summary>{begin}…</summary><div>{text}</div></details>"
    return f"<dt>{label}</dt><dd>{text}</dd>"


def _is_told(item: Item, name: str) -> bool:
    """Say whether a fact is plain and not said already: the item's own name stands above."""
    value = item.meta.get(name)
    plain_value = isinstance(value, (str, int, float)) and value != ""
    return plain_value and name not in NOT_SHOWN and str(value) != item.item_id


def _in_common(item: Item, names: Sequence[str]) -> str:
    """Return short facts that all items of a unit share, for the line of its name."""
    known = [name for name in names if _is_told(item, name) and len(str(item.meta[name])) <= LONGEST_FACT]
    return visible(
        ", ".join(str(item.meta[name]) if name == "title" else f"{name} {item.meta[name]}" for name in known)
    )


def _common(items: Sequence[Item]) -> list[str]:
    """Return the facts that are the same for all items of a unit; of one item none."""
    first, *rest = (item.meta for item in items)
    same = [name for name, value in first.items() if all(meta.get(name) == value for meta in rest)]
    return same if rest else []


def _item(item: Item, pictures: Sequence[str], common: Sequence[str], span: int) -> str:
    labelled = isinstance(item.meta.get("labels"), list) or len(pictures) > 1
    parts = [_picture(item, place, url, labelled) for place, url in enumerate(pictures)]
    parts = [f'<div class="pictures">{"".join(parts)}</div>'] if parts else []
    if item.question:
        parts.append(f"<p>{plain(item.question)}</p>")
    parts.append(reference_conversation(item))
    own = [name for name in item.meta if name not in common]
    if span == 1:  # the unit's own name otherwise
        parts.append(f'<p class="faint"><code>{visible(item.item_id)}</code></p>')
    return f'<th colspan="{span}">{"".join(parts)}{_facts(item, own)}</th>'


def _picture(item: Item, place: int, url: str, labelled: bool) -> str:
    label = visible(prompt.label_of(item, place))
    shown = (
        f'<img src="{escape(url)}" alt="{visible(item.item_id)}: {label}" loading="lazy">'
        if url
        else '<p class="state">picture cannot be shown</p>'
    )
    return f"<figure>{shown}{f'<figcaption>{label}</figcaption>' if labelled else ''}</figure>"


def _same_as(unit: UnitPart) -> dict[tuple[int, int], str]:
    """Return, by place of cell and item, the title of the first cell that was given just the same."""
    first: dict[tuple[int, prompt.Prompt], str] = {}
    found = {}
    for row, cell in enumerate(unit.cells):
        for column, given in enumerate(cell.prompts):
            title = first.setdefault((column, given), cell.title)
            if title != cell.title:
                found[row, column] = title
    return found


def _cell(unit: UnitPart, row: int, same: Mapping[tuple[int, int], str], headline: str) -> str:
    """Return a cell's rows: its name with verdicts, what it was given and said, what was taken out of it."""
    cell, several = unit.cells[row], len(unit.items) > 1
    columns = []
    for column, (item, response) in enumerate(zip(unit.items, cell.responses, strict=True)):
        marks = [mark for mark in cell.graded.marks if mark.item_id == item.item_id]
        which = f'<p class="which">{visible(item.item_id)}</p>' if several else ""
        given = prompt.details(cell.prompts[column], item, same.get((row, column))) if cell.prompts else ""
        said = _answer(response, marks, 2 + len(cell.graded.also))
        columns.append(f"{which}{given}{said}{cell.ranking}")
    below = boxes((*without_replies(cell.graded.shown, cell.traced), *cell.traced))
    if below and not several:
        columns = [f'<div class="beside"><div>{columns[0]}</div>{below}</div>']
        below = ""
    span = ' rowspan="2"' if below else ""
    name = f'<th class="cell"{span}><b>{visible(cell.title)}</b>{_verdicts(cell.graded, headline)}</th>'
    more = f'<tr class="lists"><td colspan="{len(unit.items)}">{below}</td></tr>' if below else ""
    return f"<tr>{name}{''.join(f'<td>{column}</td>' for column in columns)}</tr>{more}"


def _unit(unit: UnitPart, headline: str) -> str:
    common = _common(unit.items)
    shown = ["title"] if "title" in common else common
    facts = _in_common(unit.items[0], shown) if common else ""
    several = len(unit.items) > 1
    head = "".join(
        _item(item, urls, common, 1 if several else 2)
        for item, urls in zip(unit.items, unit.pictures, strict=True)
    )
    corner = '<th class="corner"></th>' if several else ""
    columns = '<col style="width: 17rem">' + "<col>" * len(unit.items)
    same = _same_as(unit)
    rows = "".join(_cell(unit, row, same, headline) for row in range(len(unit.cells)))
    anchor = escape(f"u-{unit.unit_id}")
    return (
        f'<section id="{anchor}"><h3><a href="#{anchor}">{visible(unit.unit_id)}</a> '
        f'<small class="faint">{facts}</small></h3><table><colgroup>{columns}</colgroup>'
        f"<thead><tr>{corner}{head}</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _index(units: Sequence[UnitPart]) -> str:
    """Return links to the units; those with an answer that failed stand out."""
    links = []
    for unit in units:
        lost = any(failing.kind_of(one) for cell in unit.cells for one in cell.responses)
        anchor, state = escape(f"#u-{unit.unit_id}"), ' class="bad"' if lost else ""
        links.append(f'<a href="{anchor}"{state}>{visible(unit.unit_id)}{" !" if lost else ""}</a>')
    said = "units (!: an answer failed)"
    return f"<details><summary>{said}</summary><nav>{' '.join(links)}</nav></details>" if units else ""


def render(
    title: str,
    run: str,
    lines: Sequence[str],
    headline: Mapping[str, str],
    benches: Mapping[str, BenchPart],
    warning: str | None = None,
    blocks: Sequence[BlockText] = (),
    style: str = "",
) -> str:
    """Return the whole page.

    Args:
        title: of the table.
        run: name of the run.
        lines: sentences under the title.
        headline: per bench the metric of the item scores.
        benches: what is shown.
        warning: stands above everything else.
        blocks: of the table, above the units.
        style: further rules of the style sheet.
    """
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{visible(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>",
        *([] if warning is None else [f'<p class="warning">{visible(warning)}</p>']),
        f"<h1>{visible(title)}</h1>",
        *(f"<p>{visible(line)}</p>" for line in lines),
    ]
    parts.append(f'<p class="faint">Made from run {visible(run)}; nothing is loaded from anywhere.</p>')
    parts += tables(blocks)
    for bench, part in benches.items():
        parts.append(f"<h2>{visible(part.title)}</h2>")
        if len(part.units) < part.n_units:
            said = "chosen so that those are among them about which the cells disagree"
            parts.append(f'<p class="faint">{len(part.units):,} of {part.n_units:,} units, {said}.</p>')
        else:
            parts.append(f'<p class="faint">All {part.n_units:,} units.</p>')
        parts.append(_index(part.units))
        parts += [_unit(unit, headline[bench]) for unit in part.units]
    parts.append("</body>\n</html>\n")
    return "\n".join(parts)
