"""Archives read from front to back: tar, also packed with gzip. Nothing is unpacked to the disk.

What an archive says is not trusted: sizes are bounded before anything is read, names are only compared,
links and devices are told and passed over.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from remeasure.files import open_regular
from remeasure.images import MAX_RATIO, MAX_UNPACKED_BYTES

_BLOCK = 512
_MAX_NAME_BYTES = 1 << 16
_MAX_RECORDS_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_KINDS = {
    b"1": "a hard link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
    b"S": "a sparse file",
}
_FILES = (b"0", b"\0", b"7")
_WITHOUT_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")


class Damaged(Exception):
    """An archive that cannot be read to its end; the text says why, not where."""


class Member(NamedTuple):
    """An entry of an archive."""

    path: str
    """As it stands there; bytes that are no UTF-8 are surrogates."""
    size: int
    kind: str
    """Empty for a file, else what it is instead."""


class _Limited:
    """A packed stream that may not become much larger than it is: ``MAX_RATIO`` times and some."""

    def __init__(self, raw: BinaryIO, packed_bytes: int) -> None:
        self._raw = gzip.GzipFile(fileobj=raw, mode="rb")
        self._left = MAX_RATIO * packed_bytes + MAX_UNPACKED_BYTES

    def read(self, n: int) -> bytes:
        try:
            data = self._raw.read(n)
        except (OSError, EOFError, zlib.error) as error:
            raise Damaged(f"its packed stream is damaged or cut off ({error})") from None
        self._left -= len(data)
        if self._left < 0:
            raise Damaged("it unpacks to far more than photographs can: a bomb")
        return data


class Tar:
    """The members of an archive in order; a packed one is recognised by its content.

    Args:
        path: the archive, a regular file.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = open_regular(path)
        is_packed = self._file.read(2) == b"\x1f\x8b"
        self._file.seek(0)
        self._source = _Limited(self._file, path.stat().st_size) if is_packed else self._file
        self._left = 0
        self._padding = 0

    def __enter__(self) -> "Tar":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def members(self) -> Iterator[Member]:
        """Yield every entry; ``data`` gives the bytes of the one that was yielded last.

        Raises:
            Damaged: the archive is cut off or is none. A gzip's checksum is compared at its end.
        """
        long_name: str | None = None
        records: dict[str, str] = {}
        while (header := self._header()) is not None:
            kind, size, path = header
            if kind in (b"x", b"g", b"L", b"K"):
                text = self._text(size, _MAX_NAME_BYTES if kind in (b"L", b"K") else _MAX_RECORDS_BYTES)
                if kind == b"L":
                    long_name = text.rstrip(b"\0").decode("utf-8", "surrogateescape")
                elif kind == b"x":
                    records = _records(text)
                continue
            if "size" in records:
                size = _whole(records["size"])
            said = _KINDS.get(kind, "" if kind in _FILES else "of an unknown kind")
            if any(key.startswith("GNU.sparse") for key in records):
                said = _KINDS[b"S"]
            if kind in _FILES and path.endswith("/"):  # a folder, as old programs wrote it
                said = _KINDS[b"5"]
            self._left = 0 if kind in _WITHOUT_DATA else size
            self._padding = -self._left % _BLOCK
            yield Member(records.get("path", long_name if long_name is not None else path), size, said)
            self._skip()
            long_name, records = None, {}
        self._drain()

    def data(self) -> bytes:
        """Return the bytes of the last member, which may be read once."""
        found = self._exactly(self._left)
        self._left = 0
        return found

    def _header(self) -> tuple[bytes, int, str] | None:
        """Return kind, size and name of the next entry; null at the end."""
        block = self._source.read(_BLOCK)
        if len(block) < _BLOCK:
            raise Damaged("it is cut off" if block else "it is cut off: its end is missing")
        if not any(block):
            return None
        said = block[148:156]
        total = sum(block) - sum(said) + 8 * 32
        if _octal(said) != total:
            raise Damaged("it is no tar archive, or damaged: the checksum of an entry differs")
        path = block[:100].split(b"\0")[0]
        if block[257:263] == b"ustar\0" and block[345]:
            path = block[345:500].split(b"\0")[0] + b"/" + path
        return block[156:157], _size(block[124:136]), path.decode("utf-8", "surrogateescape")

    def _text(self, size: int, limit: int) -> bytes:
        if size > limit:
            raise Damaged(f"the name of an entry has {size} bytes, at most {limit} are read")
        found = self._exactly(size)
        self._exactly(-size % _BLOCK)
        return found

    def _exactly(self, n: int) -> bytes:
        pieces, left = [], n
        while left:
            piece = self._source.read(min(left, _PIECE_BYTES))
            if not piece:
                raise Damaged("it is cut off")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _skip(self) -> None:
        left = self._left + self._padding
        while left:
            piece = self._source.read(min(left, _PIECE_BYTES))
            if not piece:
                raise Damaged("it is cut off")
            left -= len(piece)
        self._left = self._padding = 0

    def _drain(self) -> None:
        """Read what pads the end, so that a packed stream compares its checksum."""
        while self._source.read(_PIECE_BYTES):
            pass


def _octal(field: bytes) -> int:
    text = field.strip(b" \0")
    if text and not text.isdigit():
        raise Damaged("it is no tar archive, or damaged: a number of an entry is none")
    try:
        return int(text or b"0", 8)
    except ValueError:
        raise Damaged("it is no tar archive, or damaged: a number of an entry is none") from None


def _size(field: bytes) -> int:
    """Return a size: octal digits, or binary where it has more than eleven of these."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:], "big")
        if number >= 1 << 48:
            raise Damaged("an entry has an impossible size")
        return number
    return _octal(field)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 14:
        raise Damaged("an entry has an impossible size")
    return int(text)


def _records(text: bytes) -> dict[str, str]:
    """Return the records of an extended header: ``length key=value`` each."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        digits = text[place : place + 8].split(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        record = text[place + len(digits) + 1 : place + length]
        key, equals, value = record.partition(b"=")
        if length <= len(digits) + 2 or place + length > len(text) or not equals or record[-1:] != b"\n":
            raise Damaged("an extended header of an entry is damaged")
        found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
        place += length
    return found
