"""Which pages of an archive a run uses, and which set each belongs to."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from remeasure.archive import Archive
from remeasure.errors import RemeasureError
from remeasure.records import Page

_PREFIXES = ("_assets_/", "-/", "_/", "_mw_/")
_ENDINGS = tuple(
    ".css .js .json .png .jpg .jpeg .gif .svg .webp .ico .bmp .tif .tiff .mp3 .mp4 .ogg .oga .ogv "
    ".webm .wav .pdf .woff .woff2 .ttf .otf .eot .xml .vtt .map".split()
)


class Selection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fixed partition of an archive's pages."""

    salt: str
    shares: dict[str, float]
    """Set name to its share of the pages; in order, sum 1."""
    places: dict[str, dict[str, int]] = {}
    """Set name to page ids that it must hold, with their position in the set's order."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``select_pages.py``."""

    pages: dict[str, int]
    """Set name to number of pages; ``{"all": N}`` for an archive without facts, ``{}`` for all pages."""
    selection: Selection | None = None


def slug(path: str) -> str:
    """Return a name for a page that is safe in file names: lower case letters, digits and hyphens.

    A path without any such character, or a very long one, gets a hash of itself.
    """
    text = unicodedata.normalize("NFKD", path.replace("ß", "ss"))
    text = "".join(letter for letter in text if not unicodedata.combining(letter)).lower()
    name = re.sub(r"[^a-z0-9]+", "-", text.replace("'", "")).strip("-")
    digest = hashlib.sha256(path.encode()).hexdigest()[:12]
    return name if 0 < len(name) <= 64 else f"{name[:48].strip('-')}-{digest}".strip("-")


def page_ids(paths: Sequence[str]) -> list[str]:
    """Return one page id per path; paths with the same slug are told apart by a hash of the path."""
    names = [slug(path) for path in paths]
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return [
        name if counts[name] == 1 else f"{name}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"
        for name, path in zip(names, paths, strict=True)
    ]


def content_pages(archive: Path) -> list[tuple[str, str]]:
    """Return (path, title) of every content page of a ZIM archive, in path order.

    Left out are redirects, also those that a tiny page does by itself, technical prefixes, media, styles and
    scripts, everything that is not HTML, and the main listing.

    Raises:
        RemeasureError: the file is no readable archive.

    Source:
        Enumeration of the PixelRAG corpus, card section 3.1.
    """
    opened = Archive(archive)
    opened.verify()
    return sorted(page for page in opened.pages() if is_content_path(page[0]))


def is_content_path(path: str) -> bool:
    """Return whether a path can be a page at all, by its prefix and ending."""
    last = path.rpartition("/")[2].lower()
    return not (path.startswith(_PREFIXES) or path in ("-", "mainpage") or last.endswith(_ENDINGS))


def partition(ids: Sequence[str], selection: Selection) -> dict[str, list[str]]:
    """Give every page its set, by a hash of its id, and every set its order.

    A page's set depends on nothing but its own id, the salt and the shares: neither on the other pages nor on
    how many pages a run asks for.
    """
    placed = {page: name for name, places in selection.places.items() for page in places}
    sets: dict[str, list[str]] = {name: [] for name in selection.shares}
    for page in sorted(set(ids) - set(placed), key=lambda page: _rank(selection.salt, page)):
        sets[_set_of(_share(selection.salt, page), selection.shares)].append(page)
    for name, places in selection.places.items():
        for page, position in sorted(places.items(), key=lambda place: place[1]):
            if page in ids:
                sets[name].insert(position, page)
    return sets


def select(entries: Sequence[tuple[str, str]], settings: Settings) -> list[Page]:
    """Choose pages from an archive's (path, title) pairs; without a partition in path order.

    Raises:
        RemeasureError: a set is unknown, or has fewer pages than asked for.
    """
    entries = sorted(entries)
    ids = page_ids([path for path, _ in entries])
    known = dict(zip(ids, entries, strict=True))
    sets = partition(ids, settings.selection) if settings.selection else {"all": ids}
    _check(settings.pages, sets)
    wanted = settings.pages if settings.selection else {"all": settings.pages.get("all", len(ids))}
    return [
        Page(page_id=page, path=known[page][0], title=known[page][1], set=name)
        for name, count in wanted.items()
        for page in sets[name][:count]
    ]


def _check(wanted: Mapping[str, int], sets: Mapping[str, Sequence[str]]) -> None:
    for name, count in wanted.items():
        if name not in sets:
            raise RemeasureError(f"pages: set {name!r} is unknown; this archive has {', '.join(sets)}")
        if not 0 <= count <= len(sets[name]):
            sizes = ", ".join(f"{known} {len(pages)}" for known, pages in sets.items())
            raise RemeasureError(
                f"pages: {count} pages asked for set {name!r}, the archive has {len(sets[name])} ({sizes}); "
                "ask for fewer under `pages` of the corpus"
            )


def _rank(salt: str, page: str) -> str:
    return hashlib.sha256(f"{salt} order {page}".encode()).hexdigest()


def _share(salt: str, page: str) -> float:
    digest = hashlib.sha256(f"{salt} set {page}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _set_of(share: float, shares: Mapping[str, float]) -> str:
    total = 0.0
    for name, part in shares.items():
        total += part
        if share < total:
            return name
    return next(reversed(shares))
