"""ZIM archives whose bytes depend on nothing but their content."""

import contextlib
import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from remeasure.corpora import factbook, factbook_html, values
from remeasure.corpora.settings import ArchiveSettings
from remeasure.errors import RemeasureError
from remeasure.records import Record

_UUID = slice(8, 24)  # position of the archive's id in the ZIM header
_CHECKSUM_BYTES = 16  # MD5 of everything before it, at the end of the file


class Entry(Record, kw_only=True):
    """One thing in an archive; ``target`` instead of ``content`` makes it a redirect."""

    path: str
    title: str
    media_type: str = "text/html"
    content: bytes = b""
    target: str | None = None


def entries(
    wheel: Path, flags: Path, settings: ArchiveSettings
) -> tuple[list[Entry], list[factbook.Country]]:
    """Make all entries of the country archive, and the countries that they were made from."""
    countries = factbook.read_countries(wheel, settings)
    special = settings.special
    pages = {country.name: factbook_html.country_page(country, settings) for country in countries}
    pages[special.languages] = factbook_html.languages_page(countries, settings)
    pages[special.wide] = factbook_html.wide_page(countries, settings)
    heading = settings.metadata["Title"]
    found = [Entry(path=path, title=path, content=text.encode()) for path, text in sorted(pages.items())]
    titles = [(entry.path, entry.title) for entry in found]
    listing = factbook_html.listing_page(titles, heading).encode()
    found.append(Entry(path="mainpage", title=heading, content=listing))
    taken = {entry.path for entry in found}
    for path, target in special.moved.items():
        if target not in taken or path in taken:
            raise RemeasureError(
                f"moved page {path!r} -> {target!r}: target missing or path taken; correct `moved`"
            )
        found.append(Entry(path=path, title=path, content=factbook_html.moved_page(path, target).encode()))
    found += _redirects(countries, {entry.path for entry in found})
    return found + _flags(flags, countries, settings), countries


def _redirects(countries: Sequence[factbook.Country], taken: set[str]) -> list[Entry]:
    """Long and local names lead to the page, where only one country has them."""
    names: dict[str, set[str]] = {}
    for country in countries:
        for place in ("conventional long form", "local long form", "local short form"):
            name = values.head(factbook.lookup(country.data, f"Government > Country name > {place}") or "")
            if name and len(name) <= 60 and name not in taken:
                names.setdefault(name, set()).add(country.name)
    return [
        Entry(path=name, title=name, target=next(iter(targets)))
        for name, targets in sorted(names.items())
        if len(targets) == 1
    ]


def _flags(wheel: Path, countries: Sequence[factbook.Country], settings: ArchiveSettings) -> list[Entry]:
    found = []
    try:
        with zipfile.ZipFile(wheel) as store:
            for code in sorted({country.flag for country in countries if country.flag}):
                data = store.read(f"{settings.flags}/{code}.svg")
                found.append(
                    Entry(
                        path=f"flags/{code}.svg",
                        title=f"{code}.svg",
                        media_type="image/svg+xml",
                        content=data,
                    )
                )
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise RemeasureError(
            f"{wheel}: flag picture cannot be read ({error}); delete the wheel and rerun, it is fetched again"
        ) from None
    return found


def write_archive(
    path: Path, found: Sequence[Entry], *, main: str, language: str, date: str, metadata: Mapping[str, str]
) -> None:
    """Write entries as a ZIM archive; equal entries give equal bytes.

    libzim gives every archive a random id; it is replaced by one that is made from the content, and the
    checksum at the end of the file is computed again.
    """
    from libzim.writer import Creator

    with _quiet(), Creator(path).config_indexing(False, language).config_nbworkers(1) as creator:
        creator.set_mainpath(main)
        for entry in found:
            if entry.target is None:
                creator.add_item(_item(entry))
            else:
                creator.add_redirection(entry.path, entry.title, entry.target, {})
        for name, value in sorted({**metadata, "Language": language, "Date": date}.items()):
            creator.add_metadata(name, value.encode(), "text/plain;charset=utf-8")
    settle_identity(path)


def settle_identity(path: Path) -> None:
    """Replace a ZIM file's random id by a hash of its content, and repair the checksum."""
    data = bytearray(path.read_bytes())
    data[_UUID] = bytes(16)
    data[_UUID] = hashlib.sha256(data[:-_CHECKSUM_BYTES]).digest()[:16]
    data[-_CHECKSUM_BYTES:] = hashlib.md5(data[:-_CHECKSUM_BYTES], usedforsecurity=False).digest()
    path.write_bytes(data)


def _item(entry: Entry):
    from libzim.writer import Hint, Item, StringProvider

    class Written(Item):
        def get_path(self):
            return entry.path

        def get_title(self):
            return entry.title

        def get_mimetype(self):
            return entry.media_type

        def get_contentprovider(self):
            return StringProvider(entry.content)

        def get_hints(self):
            return {Hint.FRONT_ARTICLE: False, Hint.COMPRESS: True}

    return Written()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the progress lines that libzim prints to standard output out of it."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
