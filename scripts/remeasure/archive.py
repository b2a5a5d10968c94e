"""Read a ZIM archive: entries, redirects of both kinds, media types; clear errors for damaged files."""

import hashlib
import html.parser
import posixpath
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from remeasure.errors import RemeasureError

_MAGIC = 0x044D495A
_HEADER_BYTES = 80
_MAX_HOPS = 20
# A page whose only purpose is to send the reader on is small; larger ones are content with a refresh.
_CLIENT_REDIRECT_BYTES = 1024


@dataclass(frozen=True)
class Entry:
    """A content entry of an archive, redirects already followed.

    Attributes:
        path: entry path inside the archive, not percent-encoded.
        title: title as the archive states it, or the path where it states none.
        mimetype: media type without parameters, lower case.
        data: the bytes.
    """

    path: str
    title: str
    mimetype: str
    data: bytes

    @property
    def is_page(self) -> bool:
        """Whether the entry is an HTML document."""
        return self.mimetype in ("text/html", "application/xhtml+xml")


class _RefreshFinder(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.target: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the first refresh that names an address."""
        named = {name: value or "" for name, value in attrs}
        if tag != "meta" or named.get("http-equiv", "").lower() != "refresh" or self.target is not None:
            return
        _, _, rest = named.get("content", "").replace(",", ";", 1).partition(";")
        key, equals, value = rest.partition("=")
        if equals and key.strip().lower() == "url":
            self.target = value.strip().strip("'\"")


def client_redirect(path: str, data: bytes) -> str | None:
    """Return the entry path that a small page sends its reader to by meta refresh, or None.

    Args:
        path: entry path of the page, to resolve relative addresses.
        data: bytes of the page.

    Edges:
        Pages above 1,024 bytes and refreshes without or with a foreign address are content, not redirects.
    """
    if len(data) > _CLIENT_REDIRECT_BYTES or b"refresh" not in data.lower():
        return None
    finder = _RefreshFinder()
    finder.feed(data.decode("utf-8", errors="replace"))
    if not finder.target:
        return None
    address = urlsplit(finder.target)
    if address.scheme or address.netloc or not address.path:
        return None
    joined = posixpath.join("/", posixpath.dirname(path), unquote(address.path))
    return posixpath.normpath(joined).lstrip("/")


def _check_header(path: Path) -> None:
    """Compare the file with the length in its header; libzim notices a cut only where it reads."""
    try:
        size = path.stat().st_size
        with open(path, "rb") as stream:
            header = stream.read(_HEADER_BYTES)
    except OSError as error:
        raise RemeasureError(
            f"{path}: the archive cannot be read ({error.strerror}); correct `archive` in the run's settings"
        ) from None
    if len(header) < _HEADER_BYTES or struct.unpack_from("<I", header)[0] != _MAGIC:
        raise RemeasureError(
            f"{path}: not a ZIM archive ({size} bytes, expected to start with 'ZIM' and version); "
            "correct `archive` in the run's settings or fetch the file again"
        )
    expected = struct.unpack_from("<Q", header, 72)[0] + 16
    if path.suffix != ".zimaa" and size != expected:
        raise RemeasureError(
            f"{path}: the archive is {'cut short' if size < expected else 'too long'}: {size} bytes, "
            f"its header says {expected}; fetch or build it again"
        )


class Archive:
    """A ZIM archive, opened for reading.

    Raises:
        RemeasureError: the file is missing, no ZIM archive, cut short or otherwise unreadable.
    """

    def __init__(self, path: Path) -> None:
        import libzim.reader

        self.path = Path(path)
        _check_header(self.path)
        try:
            self._archive = libzim.reader.Archive(self.path)
        except RuntimeError as error:
            raise self._damaged(error) from None

    def __len__(self) -> int:
        return self._archive.all_entry_count

    @property
    def identity(self) -> str:
        """Hash of the size and of the checksum that the archive carries in itself; cheap for any size."""
        with open(self.path, "rb") as stream:
            stream.seek(-16, 2)
            tail = stream.read()
        return hashlib.sha256(tail + str(self.path.stat().st_size).encode()).hexdigest()[:16]

    def verify(self) -> None:
        """Compare the whole file with the checksum that it carries; reads everything once.

        Raises:
            RemeasureError: the archive is damaged somewhere.
        """
        if not self._archive.check():
            raise RemeasureError(
                f"{self.path}: the archive's own checksum does not fit its content; fetch or build it again"
            )

    def has(self, path: str) -> bool:
        """Whether an entry of this exact path exists."""
        return self._archive.has_entry_by_path(path)

    def redirect_target(self, path: str) -> str | None:
        """Return the path that an entry redirects to inside the archive file itself, or None for content.

        Raises:
            RemeasureError: no such entry.
        """
        entry = self._entry(path)
        return entry.get_redirect_entry().path if entry.is_redirect else None

    def read(self, path: str) -> Entry:
        """Return a content entry; redirects of the archive are followed, those of pages are not.

        Raises:
            RemeasureError: no such entry, a loop of redirects, or damaged data.
        """
        hops = [path]
        while (target := self.redirect_target(hops[-1])) is not None:
            hops.append(self._checked_hop(hops, target))
        entry = self._entry(hops[-1])
        try:
            item = entry.get_item()
            mimetype = item.mimetype.partition(";")[0].strip().lower()
            return Entry(path=entry.path, title=entry.title, mimetype=mimetype, data=bytes(item.content))
        except RuntimeError as error:
            raise self._damaged(error, path) from None

    def resolve(self, path: str) -> Entry:
        """Return the page that a reader ends on: redirects of the archive and of small pages are followed.

        Raises:
            RemeasureError: no such entry, a loop of redirects of either kind, or damaged data.
        """
        hops = [path]
        while True:
            entry = self.read(hops[-1])
            target = client_redirect(entry.path, entry.data) if entry.is_page else None
            if target is None:
                return entry
            hops.append(self._checked_hop([*hops, entry.path], target))

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield (path, title) of every HTML page in archive order, without redirects of either kind.

        Only pages small enough to be redirects are read.
        """
        for index in range(len(self)):
            try:
                entry = self._archive._get_entry_by_id(index)
                if entry.is_redirect:
                    continue
                item = entry.get_item()
                if not item.mimetype.lower().startswith(("text/html", "application/xhtml")):
                    continue
                small = item.size <= _CLIENT_REDIRECT_BYTES
                if not small or client_redirect(entry.path, bytes(item.content)) is None:
                    yield entry.path, entry.title
            except RuntimeError as error:
                raise self._damaged(error, f"number {index}") from None

    def _checked_hop(self, hops: list[str], target: str) -> str:
        if target in hops or len(hops) > _MAX_HOPS:
            chain = " -> ".join([*dict.fromkeys(hops), target])
            raise RemeasureError(
                f"{self.path} entry {hops[0]!r}: redirects go in a loop or never end ({chain}); "
                "take the page out of the page list or repair the archive"
            )
        return target

    def _entry(self, path: str):
        try:
            return self._archive.get_entry_by_path(path)
        except KeyError:
            raise RemeasureError(
                f"{self.path}: no entry {path!r} among {len(self)} entries; correct the page list, "
                "or delete it and rerun the target that writes it"
            ) from None
        except RuntimeError as error:
            raise self._damaged(error, path) from None

    def _damaged(self, error: Exception, path: str | None = None) -> RemeasureError:
        where = f"{self.path}" if path is None else f"{self.path} entry {path!r}"
        text = " ".join(str(error).split()) or type(error).__name__
        return RemeasureError(f"{where}: the archive is damaged ({text}); fetch or build it again")
