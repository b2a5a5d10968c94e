"""Small ZIM archives for tests, written by libzim itself."""

import json
from pathlib import Path
from typing import NamedTuple


class Given(NamedTuple):
    """An entry to write; ``redirect`` makes it a redirect to that path."""

    path: str
    data: str | bytes = ""
    mimetype: str = "text/html"
    redirect: str | None = None


def write_zim(path: Path, entries: list[Given]) -> Path:
    """Write an archive with these entries."""
    from libzim.writer import Creator, Hint, Item, StringProvider

    class Written(Item):
        def __init__(self, given: Given) -> None:
            super().__init__()
            self.given = given

        def get_path(self):
            return self.given.path

        def get_title(self):
            return self.given.path

        def get_mimetype(self):
            return self.given.mimetype

        def get_contentprovider(self):
            return StringProvider(self.given.data)

        def get_hints(self):
            return {Hint.FRONT_ARTICLE: self.given.mimetype == "text/html"}

    with Creator(path).config_indexing(False, "eng").config_verbose(False) as creator:
        for given in entries:
            if given.redirect is None:
                creator.add_item(Written(given))
            else:
                creator.add_redirection(given.path, given.path, given.redirect, {})
        creator.set_mainpath(entries[0].path)
        for name in ("Title", "Language", "Name", "Creator", "Publisher", "Description"):
            creator.add_metadata(name, "test")
        creator.add_metadata("Date", "2024-01-01")
    return path


def write_pages(path: Path, pages: dict[str, str]) -> Path:
    """Write a page list from page id to entry path."""
    lines = [
        json.dumps({"page_id": page_id, "path": entry, "title": entry, "set": "all"}) + "\n"
        for page_id, entry in pages.items()
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path
