"""HTML of the country pages: an encyclopedia page with infobox, table and prose sections.

Everything that is asked about stands in the first 1024 px at a width of 875 px: introduction, infobox and
table come first, and their cells have a length limit in the settings.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from remeasure.corpora import values
from remeasure.corpora.factbook import Cell, Country, cells, lookup, shorten, subject
from remeasure.corpora.settings import ArchiveSettings, Section

STYLE = """
html { background: #fff; }
body { margin: 0; padding: 14px 18px 20px; color: #202122; font: 14px/1.5 "DejaVu Sans", sans-serif; }
h1, h2 { border-bottom: 1px solid #a2a9b1; font-weight: normal; }
h1 { margin: 0 0 10px; padding-bottom: 4px; font-size: 27px; line-height: 1.25; }
h2 { margin: 20px 0 6px; padding-bottom: 2px; font-size: 19px; }
h3 { margin: 14px 0 4px; font-size: 15px; }
p { margin: 0 0 9px; }
table { border-collapse: collapse; font-size: 13px; line-height: 1.35; }
th, td { padding: 3px 8px; text-align: left; vertical-align: top; }
.infobox { float: right; width: 292px; margin: 2px 0 14px 20px; border: 1px solid #a2a9b1; }
.infobox { background: #f8f9fa; }
.infobox th { width: 92px; font-weight: bold; }
.infobox .flag { padding: 10px 0 6px; text-align: center; }
.infobox img { width: 240px; height: 180px; border: 1px solid #c8ccd1; }
.infobox .caption { padding-bottom: 6px; text-align: center; color: #54595d; }
.figures { margin: 4px 0 12px; }
.figures caption { padding: 2px 0 4px; text-align: left; font-weight: bold; }
.figures th { min-width: 150px; border: 1px solid #c8ccd1; background: #eaecf0; font-weight: normal; }
.figures td { min-width: 190px; border: 1px solid #c8ccd1; }
.wide th, .wide td { border: 1px solid #c8ccd1; white-space: nowrap; }
.wide th { background: #eaecf0; }
.foot { clear: both; margin-top: 22px; padding-top: 6px; border-top: 1px solid #c8ccd1; }
.foot { color: #54595d; font-size: 12px; }
""".strip()

_FOOT = '<p class="foot">Text: The World Factbook, public domain. <a href="mainpage">All pages</a></p>'


def page(title: str, body: str) -> str:
    """Return a whole HTML document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def country_page(country: Country, settings: ArchiveSettings) -> str:
    """Return the page of one country; the configured one holds all data there is."""
    found = cells(country, settings)
    if country.code == settings.special.long:
        sections = "".join(_everything(country.data))
    else:
        sections = "".join(filter(None, (_section(country, section) for section in settings.sections)))
    first = "\n".join((_infobox(country, found), _introduction(country, found, settings), _figures(found)))
    return page(country.name, f"{first}\n{sections}{_FOOT}")


def _infobox(country: Country, found: Sequence[Cell]) -> str:
    rows = [
        f'<tr id="{cell.field.key}"><th>{escape(cell.field.label)}</th><td>{escape(cell.shown)}</td></tr>'
        for cell in found
        if cell.field.where == "infobox"
    ]
    flag = ""
    if country.flag:
        flag = (
            f'<tr><td colspan="2" class="flag"><img src="flags/{country.flag}.svg" width="240" height="180"'
            ' alt=""></td></tr>\n<tr><td colspan="2" class="caption">National flag</td></tr>\n'
        )
    return f'<table class="infobox">\n{flag}' + "\n".join(rows) + "\n</table>"


def _introduction(country: Country, found: Sequence[Cell], settings: ArchiveSettings) -> str:
    name = subject(country, settings)
    upper = name[0].upper() + name[1:]
    official = f", officially {country.long_name}," if country.long_name not in (None, country.name) else ""
    location = shorten(lookup(country.data, settings.location) or "", 150).replace("\n", " ").rstrip(".")
    link = " is situated in " if location[:1].isupper() else ": "
    sentences = [f"<b>{escape(upper)}</b>{escape(official)}{escape(link + location)}."]
    for cell in found:
        if cell.field.where == "prose" and cell.reading and cell.field.sentence:
            text = cell.field.sentence.format(Subject=upper, subject=name, value=cell.shown)
            sentences.append(f'<span id="{cell.field.key}">{escape(text)}</span>')
    half = (len(sentences) + 1) // 2
    return f"<p>{' '.join(sentences[:half])}</p>\n<p>{' '.join(sentences[half:])}</p>"


def _figures(found: Sequence[Cell]) -> str:
    rows = [
        f'<tr id="{cell.field.key}"><th>{escape(cell.field.label)}</th><td>{escape(cell.shown)}</td></tr>'
        for cell in found
        if cell.field.where == "table"
    ]
    return (
        '<table class="figures">\n<caption>Figures</caption>\n' + "\n".join(rows) + "\n</table>"
        if rows
        else ""
    )


def _sentence(text: str) -> str:
    """Make one or several telegraphic statements look like prose."""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else text + "."


def _section(country: Country, section: Section) -> str | None:
    paragraphs = []
    for lead, place in section.parts.items():
        text = lookup(country.data, place)
        if text is None:
            continue
        words = escape(_sentence(shorten(text, section.max_chars).replace("\n", " ")))
        paragraphs.append(f"<p><b>{escape(lead)}:</b> {words}</p>\n" if lead else f"<p>{words}</p>\n")
    if not paragraphs:
        return None
    return (
        f'<h2 id="section-{section.heading.lower().replace(" ", "-")}">{escape(section.heading)}</h2>\n'
        + "".join(paragraphs)
    )


def _everything(data: dict[str, Any]) -> Iterable[str]:
    """Yield all sections of a country's data as they come, in full length."""
    for heading, entries in data.items():
        yield f"<h2>{escape(heading)}</h2>\n"
        for name, entry in entries.items():
            yield f"<h3>{escape(name.strip())}</h3>\n"
            yield from _entry(entry)


def _entry(entry: Any, lead: str = "") -> Iterable[str]:
    if isinstance(entry, dict):
        for name, part in entry.items():
            yield from _entry(part, lead if name in ("text", "note") else name.strip())
    elif isinstance(entry, str):
        for number, line in enumerate(values.plain(entry).split("\n")):
            if line:
                label = f"<b>{escape(lead)}:</b> " if lead and not number else ""
                yield f"<p>{label}{escape(line)}</p>\n"


def languages_page(countries: Sequence[Country], settings: ArchiveSettings) -> str:
    """Return the page of language samples: one sentence in many languages and scripts."""
    rows: dict[str, str] = {}
    for country in countries:
        for line in (
            lookup(country.data, "People and Society > Languages > major-language sample(s)") or ""
        ).split("\n"):
            text, _, language = line.rstrip(")").rpartition("(")
            if language and text.strip():
                rows.setdefault(language.strip(), text.strip())
    body = "".join(
        f"<tr><th>{escape(language)}</th><td>{escape(text)}</td></tr>\n"
        for language, text in sorted(rows.items())
    )
    return page(
        settings.special.languages,
        f'<p>One sentence in {len(rows)} languages.</p>\n<table class="figures">\n{body}</table>\n{_FOOT}',
    )


def wide_page(countries: Sequence[Country], settings: ArchiveSettings) -> str:
    """Return the page with a table wider than the page: trade of the most populous countries."""
    special = settings.special

    def people(country: Country) -> int:
        reading = values.read_quantity(lookup(country.data, "People and Society > Population > total") or "")
        return (
            int(reading.value.replace(",", "")) if reading and reading.value.replace(",", "").isdigit() else 0
        )

    largest = sorted(countries, key=lambda country: (-people(country), country.name))[: special.wide_rows]
    head = "".join(f"<th>{escape(heading)}</th>" for heading in special.wide_at)
    rows = ""
    for country in largest:
        row = "".join(
            f"<td>{escape(values.without_brackets(lookup(country.data, place) or '-'))}</td>"
            for place in special.wide_at.values()
        )
        rows += f"<tr><th>{escape(country.name)}</th>{row}</tr>\n"
    table = f'<table class="wide">\n<tr><th>Country</th>{head}</tr>\n{rows}</table>'
    return page(
        special.wide, f"<p>Exports, imports, balances and reserves in US dollars.</p>\n{table}\n{_FOOT}"
    )


def listing_page(titles: Sequence[tuple[str, str]], heading: str) -> str:
    """Return the main page: links to all (path, title) pages."""
    from urllib.parse import quote

    links = "".join(f'<li><a href="{quote(path)}">{escape(title)}</a></li>\n' for path, title in titles)
    return page(heading, f"<ul>\n{links}</ul>")


def moved_page(title: str, target: str) -> str:
    """Return a tiny page that sends the reader on by itself (a client-side redirect)."""
    from urllib.parse import quote

    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="refresh" content="0;url={escape(quote(target))}"></head>'
        f'<body><a href="{escape(quote(target))}">{escape(target)}</a></body></html>\n'
    )
