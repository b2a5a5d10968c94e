"""Files out of a Debian package: an ``ar`` archive that holds a tar archive packed with xz or gzip.

Nothing is written to disk and no member's name is ever used as a path. Unpacking stops at the last wanted
file.

Source:
    deb(5) and ar(5): eight bytes of signature, then members with a header of 60 bytes, each at an even place.
"""

import io
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from remeasure.errors import RemeasureError
from remeasure.files import open_regular

_SIGNATURE, _HEADER_BYTES = b"!<arch>\n", 60
_MAX_AR_MEMBERS = 100
_MAX_TAR_MEMBERS = 1_000_000
MAX_FILE_BYTES = 50_000_000
"""A larger file is no photograph."""


def read_members(path: Path, wanted: Mapping[str, str]) -> dict[str, bytes]:
    """Read files of a package.

    Args:
        path: the package.
        wanted: name to the end of the file's path in it, whole folders (``data/leuvenA.jpg``).

    Returns:
        Bytes by name.

    Raises:
        RemeasureError: it is no package, damaged, or lacks a file; names it.
    """
    ends: dict[str, list[str]] = {}
    for name, end in wanted.items():
        ends.setdefault(end, []).append(name)
    try:
        with open_regular(path) as stream:
            data = _Window(stream, *_place_of_data(stream, path))
            found = _read(data, ends, path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, UnicodeError) as error:
        raise RemeasureError(
            f"{path}: cannot be read as a Debian package ({error}); fetch it again"
        ) from None
    missing = [end for end, names in ends.items() if names[0] not in found]
    if missing:
        raise RemeasureError(
            f"{path}: holds no {missing[0]} ({len(missing)} of {len(ends)} files are missing); "
            "correct config/scenes.yaml"
        )
    return found


def _place_of_data(stream: BinaryIO, path: Path) -> tuple[int, int]:
    """Return first byte and size of the member that holds the files."""
    if stream.read(len(_SIGNATURE)) != _SIGNATURE:
        raise RemeasureError(f"{path}: no Debian package: it does not begin with !<arch>; fetch it again")
    for _ in range(_MAX_AR_MEMBERS):
        header = stream.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or header[58:] != b"`\n" or not header[48:58].strip().isdigit():
            break
        size = int(header[48:58])
        if header[:16].startswith(b"data.tar"):
            return stream.tell(), size
        stream.seek(size + size % 2, io.SEEK_CUR)
    raise RemeasureError(f"{path}: no Debian package: it holds no data.tar; fetch it again")


def _read(data: BinaryIO, ends: Mapping[str, list[str]], path: Path) -> dict[str, bytes]:
    """Return the wanted files of a tar archive; the first of a name counts."""
    found: dict[str, bytes] = {}
    left = set(ends)
    with tarfile.open(fileobj=data, mode="r|*") as archive:
        for number, member in enumerate(archive):
            if not left or number >= _MAX_TAR_MEMBERS:
                break
            steps = member.name.split("/")
            end = next((e for n in (1, 2, 3) if (e := "/".join(steps[-n:])) in left), None)
            if end is None or not member.isreg():
                continue
            if member.size > MAX_FILE_BYTES:
                raise RemeasureError(
                    f"{path}: {end} has {member.size} bytes, at most {MAX_FILE_BYTES} are read"
                )
            content = archive.extractfile(member)
            assert content is not None, end
            found |= dict.fromkeys(ends[end], content.read())
            left.discard(end)
    return found


class _Window(io.RawIOBase):
    """A part of a file that reads like a file of its own, forwards."""

    def __init__(self, stream: BinaryIO, start: int, size: int) -> None:
        self._stream, self._left = stream, size
        stream.seek(start)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most so many bytes; nothing at the end of the part."""
        size = self._left if size is None or size < 0 else min(size, self._left)
        data = self._stream.read(size)
        self._left -= len(data)
        return data
