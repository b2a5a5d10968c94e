"""Values of the World Factbook: free text with HTML in it, read into short answers.

The data is written for people: tags and entities inside values, notes after ";" or in brackets, ranges, two
spellings in one cell. Every reader returns ``None`` where the cell is not one unambiguous short answer; the
cell is still shown on the page, but nothing is asked about it.
"""

import html
import re
import unicodedata
from collections.abc import Callable

from msgspec import Struct

from remeasure.errors import RemeasureError

MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December"  # as in the data
)
_NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?: (?:million|billion|trillion))?"
_UNITS = {"sq km": "square kilometers", "km": "kilometers", "m": "meters", "%": "percent"}
_NO_NAME = re.compile(r"(?:other|unspecified|none|no |unnamed|mixed|NA\b|\d)", re.IGNORECASE)


class Reading(Struct, frozen=True, kw_only=True):
    """A short answer found in a cell: ``value`` stands literally in the shown text."""

    value: str
    aliases: tuple[str, ...] = ()


def plain(text: str) -> str:
    """Return the visible text of a value: no tags, entities decoded, one space, paragraphs as lines."""
    text = re.sub(r"<!--.*?(?:-->|$)", "", text)
    text = re.sub(r"\s*(?:<br\s*/?>|</?p\b[^>]*>)\s*", "\n", text, flags=re.IGNORECASE)
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.split("\n"))
    return unicodedata.normalize("NFC", "\n".join(line for line in lines if line))


def without_brackets(text: str) -> str:
    """Drop everything in round or square brackets, nested ones too."""
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])", "", text)
    return text.strip()


def head(text: str) -> str:
    """Return the first statement of a value: before a line end, a ";" or a note."""
    return re.split(r"\n|;|,? note\b| - note\b", text, maxsplit=1)[0].strip().rstrip(",.")


def _bracket_aliases(text: str) -> tuple[str, ...]:
    """Return bracketed second spellings: a few capitalised words, not a remark."""
    found = []
    for inner in re.findall(r"\(([^()]*)\)", text):
        for part in re.split(r"[/,]", inner):
            words = part.strip(" '\"“”‘’").split()
            if 0 < len(words) <= 4 and all(word[0].isupper() for word in words):
                found.append(" ".join(words))
    return tuple(found)


def read_name(text: str) -> Reading | None:
    """Read a proper name, such as a capital. Several names in one cell are no answer."""
    first = head(text)
    name = first.split("(")[0].strip()
    several = ";" in text or "\n" in text or "," in without_brackets(first)
    if several or not name or len(name) > 50 or _NO_NAME.match(name):
        return None
    return Reading(value=name, aliases=_bracket_aliases(first))


def read_kind(text: str) -> Reading | None:
    """Read a common noun phrase, such as a form of government; what follows a ";" is a remark."""
    name = head(text).split("(")[0].strip()
    if not name or len(name) > 60 or _NO_NAME.match(name):
        return None
    return Reading(value=name)


def read_things(text: str) -> Reading | None:
    """Read one thing or a short list of things, such as national symbols."""
    first = head(text)
    things = first.split("(")[0].strip() if "," not in first else first
    if not things or "(" in things or ";" in text or len(things) > 50 or _NO_NAME.match(things):
        return None
    bare = re.sub(r"^(?:a|an|the) ", "", things)
    return Reading(value=things, aliases=(bare,) if bare != things else ())


def read_place(text: str) -> Reading | None:
    """Read the name of a place that is followed by its height in metres."""
    found = re.match(rf"(?P<name>.*?),?\s+(?P<height>{_NUMBER})(?: m\b|$)", head(text))
    if not found:
        return None
    name = found["name"].split("(")[0].strip()
    if not name or not name[0].isupper() or len(name) > 50 or _NO_NAME.match(name):
        return None
    aliases = _bracket_aliases(found["name"])
    if "(" not in found["name"]:
        aliases += (found[0],)
    return Reading(value=name, aliases=aliases)


def read_quantity(text: str) -> Reading | None:
    """Read a number with its unit; of a rate ("births/1,000 population") only the number; 0 is no answer."""
    first = without_brackets(head(text))
    found = re.match(rf"(?P<number>\$?{_NUMBER})\s?(?P<unit>sq km|km|m|years|%)?(?=\s|$)", first)
    if not found or not head(text).startswith(found[0]) or found["number"] == "0":
        return None
    number, unit = found["number"], found["unit"] or ""
    bare = number.replace(",", "")
    words = _UNITS.get(unit, "")
    others = [
        found[0].replace(number, bare),
        f"{number} {words}" if words else "",
        number,
        bare,
        first,
        head(text),
    ]
    return Reading(value=found[0], aliases=_distinct(others, found[0]))


def read_title(text: str) -> Reading | None:
    """Read a quoted title; translations in brackets and further quoted titles are aliases."""
    titles = re.findall(r"[\"“”]([^\"“”]+)[\"“”]", without_brackets(text))
    if not titles or len(titles[0]) > 60:
        return None
    translations = [part.strip(' "“”') for part in re.findall(r"\(([^()]*)\)", text)]
    return Reading(value=titles[0].strip(), aliases=_distinct(titles[1:] + translations, titles[0]))


def read_date(text: str) -> Reading | None:
    """Read a full date where it is the only one of the cell."""
    dates = re.findall(rf"\b(\d{{1,2}}) ({MONTHS}) (\d{{4}})", text)
    if len(dates) != 1 or not re.match(r"\d", text):
        return None
    day, month, year = dates[0]
    return Reading(value=f"{day} {month} {year}", aliases=(f"{month} {day}, {year}", f"{month} {day} {year}"))


def read_day(text: str) -> Reading | None:
    """Read a yearly day ("27 April") where it is the only one of the cell."""
    days = re.findall(rf"\b(\d{{1,2}}) ({MONTHS})\b", text)
    if len(days) != 1 or ";" in text:
        return None
    day, month = days[0]
    return Reading(value=f"{day} {month}", aliases=(f"{month} {day}",))


def read_largest(text: str) -> Reading | None:
    """Read the largest entry of a list of shares ("Muslim 96.4%, Christian 3.5%")."""
    bare = without_brackets(text).split("\n")[0]
    shares = re.findall(r"([^,;%\d]+?)\s+(\d+(?:\.\d+)?)%", bare)
    if not shares or any(float(share) > float(shares[0][1]) for _, share in shares[1:]):
        return None
    if len(shares) > 1 and shares[1][1] == shares[0][1]:
        return None
    name = shares[0][0].strip()
    if not text.startswith(name) or len(name) > 40 or _NO_NAME.match(name):
        return None
    return Reading(value=name)


def read_domain(text: str) -> Reading | None:
    """Read an internet country code."""
    found = re.match(r"\.[a-z]{2}\b", text)
    return Reading(value=found[0], aliases=(found[0][1:],)) if found else None


def read_currency(text: str) -> Reading | None:
    """Read the name of a currency; the code in brackets and the singular are aliases."""
    name = head(text).split("(")[0].strip()
    if not name or "/" in name or " or " in name:
        return None
    code = re.search(r"\(([A-Z]{3})\)", text)
    singular = name[:-1] if name.endswith("s") and not name.endswith("ss") else name
    return Reading(value=name, aliases=_distinct([singular, *(code.groups() if code else ())], name))


def read_zone(text: str) -> Reading | None:
    """Read a time zone as the offset to UTC."""
    found = re.match(r"UTC ?([+-]?\d+(?:\.\d+)?)\b", text)
    return Reading(value=found[0], aliases=(found[1],)) if found else None


def read_prefix(text: str) -> Reading | None:
    """Read a short code of capitals and digits, such as an aircraft prefix."""
    return Reading(value=text) if re.fullmatch(r"[A-Z0-9]{1,3}(?:-[A-Z0-9]{1,2})?", text) else None


READERS: dict[str, Callable[[str], Reading | None]] = {
    name.removeprefix("read_"): reader for name, reader in list(globals().items()) if name.startswith("read_")
}


def reader(name: str) -> Callable[[str], Reading | None]:
    """Return a reader by its name in the corpus settings.

    Raises:
        RemeasureError: there is none of that name.
    """
    if name not in READERS:
        raise RemeasureError(
            f"reader {name!r} of the corpus settings is unknown; use one of {sorted(READERS)}"
        )
    return READERS[name]


def _distinct(words: list[str], known: str) -> tuple[str, ...]:
    """Keep the order, drop repetitions, empty words and what is known already."""
    return tuple(dict.fromkeys(word for word in words if word and word != known))
