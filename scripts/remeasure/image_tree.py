"""A collection of images: a folder, or a zip store of the same tree; listed in one order, read one by one.

Both come from outside, so nothing in them is trusted: a link out of the folder is not followed; a name that
leaves the store, a bomb, an encrypted or doubled member is refused with a sentence. Nothing is unpacked to
the disk.
"""

import hashlib
import os
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.images import MAX_BYTES, MAX_RATIO, MAX_UNPACKED_BYTES, PARTS
from remeasure.records import ImageRef

_MAX_PATH = 1000
_SHOWN = 200
_UTF8_NAME, _ENCRYPTED = 0x800, 0x1
_LOCAL_HEADER_BYTES = 30


class Refused(NamedTuple):
    """Something that is not taken from a collection."""

    path: str
    """As it can be printed: odd characters escaped, a long name cut."""
    problem: str
    is_doubled: bool = False
    """Whether the store holds several members of this name."""


class Listing(NamedTuple):
    """What a collection holds, sorted by path."""

    paths: tuple[str, ...]
    """Places below the folder or in the store, with ``/``; all of them printable UTF-8 without ``..``."""
    refused: tuple[Refused, ...]


class ImageTree(Protocol):
    """A collection that was opened. Reading is safe from several threads."""

    def listing(self) -> Listing:
        """List all files, whatever they are.

        Raises:
            RemeasureError: a folder cannot be read, or something is neither file nor folder nor link.
        """

    def read(self, path: str) -> bytes:
        """Return the bytes of a listed file.

        Raises:
            RemeasureError: it cannot be read, is too large, or is damaged; the text says what, not where.
        """

    def ref(self, path: str, sha256: str) -> ImageRef:
        """Return the reference to a listed file."""


@contextmanager
def open_tree(source: Path) -> Iterator[ImageTree]:
    """Open a folder or a zip store.

    Raises:
        RemeasureError: it is missing, or neither.
    """
    if os.path.isdir(source):
        yield _Folder(source)
        return
    try:
        open_regular(source).close()  # zipfile would wait for a pipe
        store = zipfile.ZipFile(source)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise RemeasureError(
            f"{source}: images cannot be listed ({getattr(error, 'strerror', None) or error}); expected a "
            "folder or a zip store of images: put one there or correct `source` of the study in the run"
        ) from None
    with store:
        yield _Store(source, store)


def state_of(source: Path) -> str | None:
    """Return what shows that a folder's files have changed, without reading them.

    The time of a folder says nothing of what lies below its folders.

    Returns:
        A hash of the place, size and time of change of everything below it; links count themselves. Null for
        a file, whose own time says it, and where there is nothing.

    Edges:
        A folder that cannot be listed counts by its name; the listing says what is wrong with it.
    """
    if not os.path.isdir(source):
        return None
    found: list[bytes] = []
    todo = [os.fsencode(source)]
    skipped = len(todo[0])
    while todo:
        here = todo.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                        continue
                    now = entry.stat(follow_symlinks=False)
                    found.append(b"%s\0%d\0%d" % (entry.path[skipped:], now.st_size, now.st_mtime_ns))
        except OSError:
            found.append(here[skipped:])
    return hashlib.sha256(b"\0\0".join(sorted(found))).hexdigest()


def printable(name: str) -> str:
    """Return a name as it can be written to a report: odd characters escaped, at most 200 characters."""
    shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name[: _SHOWN + 1])
    return shown if len(name) <= _SHOWN and len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def _problem_of(path: str) -> str | None:
    """Return why a path is not taken, whatever lies there; null where it may be."""
    if len(path) > _MAX_PATH:
        return f"its path has {len(path)} characters, at most {_MAX_PATH} are taken; give it a shorter name"
    if any("\ud800" <= sign <= "\udfff" for sign in path):
        return "its name is not UTF-8; rename it"
    if not path.isprintable():
        return "its name holds characters that cannot be printed; rename it"
    if "\\" in path:
        return "its name holds a backslash; rename it, or pack the store with / between folders"
    return None


class _Folder:
    """A folder of images."""

    def __init__(self, source: Path) -> None:
        self._source = str(source)

    def listing(self) -> Listing:
        paths: list[str] = []
        refused: list[Refused] = []
        root = os.path.realpath(self._source)
        todo = [""]
        while todo:
            here = todo.pop()
            try:
                with os.scandir(os.path.join(self._source, here)) as found:
                    entries = list(found)
            except OSError as error:
                raise RemeasureError(
                    f"{printable(os.path.join(self._source, here))}: cannot be listed ({error.strerror}); "
                    "make the folder readable"
                ) from None
            for entry in entries:
                path = os.path.join(here, entry.name)
                problem = _problem_of(path)
                if problem is None and entry.is_symlink():
                    problem = _problem_of_link(entry.path, root)
                if problem is not None:
                    refused.append(Refused(printable(path), problem))
                elif entry.is_dir(follow_symlinks=False):
                    todo.append(path)
                elif entry.is_file():
                    paths.append(path)
                else:
                    raise RemeasureError(
                        f"{printable(entry.path)}: is neither a file nor a folder; remove it from the images"
                    )
        return Listing(tuple(sorted(paths)), tuple(sorted(refused)))

    def read(self, path: str) -> bytes:
        try:
            with open_regular(os.path.join(self._source, path)) as stream:
                _check_bytes(os.fstat(stream.fileno()).st_size)
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise RemeasureError(f"cannot be read ({error.strerror})") from None
        _check_bytes(len(data))
        return data

    def ref(self, path: str, sha256: str) -> ImageRef:
        return ImageRef(sha256=sha256, path=os.path.join(self._source, path))


def _problem_of_link(path: str, root: str) -> str | None:
    """Return why a link is not followed; null where it leads to a file of the same folder."""
    target = os.path.realpath(path)
    if os.path.commonpath((root, target)) != root:
        return "is a link that leads out of the folder; put the file itself there"
    if os.path.isdir(target):
        return "is a link to a folder, and these are not followed; put the folder itself there"
    if not os.path.isfile(target):
        return "is a link that leads to no file; remove or repair it"
    return None


def _check_bytes(size: int) -> None:
    if size > MAX_BYTES:
        raise RemeasureError(f"has {size} bytes, at most {MAX_BYTES} are read")


class _Store:
    """A zip store of images.

    Members are read by position, not through ``zipfile``, whose counting of open members is not safe from
    several threads, and which unpacks deflated data before it looks at how much there should be.
    """

    def __init__(self, source: Path, store: zipfile.ZipFile) -> None:
        self._source, self._store = str(source), store
        assert store.fp is not None
        self._file = store.fp.fileno()
        if PARTS in store.NameToInfo:
            raise RemeasureError(
                f"{source}: holds a member {PARTS}, which is how a store of several parts is marked; "
                "remove it from the images"
            )

    def listing(self) -> Listing:
        paths: list[str] = []
        refused: list[Refused] = []
        size = os.fstat(self._file).st_size
        counted = Counter(info.filename for info in self._store.infolist())
        infos = {info.filename: info for info in self._store.infolist() if not info.is_dir()}
        for name, info in infos.items():
            problem = _problem_of_member(info, size)
            if counted[name] > 1:
                said = f"stands {counted[name]} times in the store; leave one"
                refused.append(Refused(printable(info.orig_filename), said, is_doubled=True))
            elif problem is None:
                paths.append(name)
            else:
                refused.append(Refused(printable(info.orig_filename), problem))
        return Listing(tuple(sorted(paths)), tuple(sorted(refused)))

    def read(self, path: str) -> bytes:
        try:
            return self._bytes(self._store.getinfo(path))
        except (OSError, zlib.error, zipfile.BadZipFile, UnicodeDecodeError) as error:
            raise RemeasureError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None

    def ref(self, path: str, sha256: str) -> ImageRef:
        return ImageRef(sha256=sha256, path=self._source, member=path)

    def _bytes(self, info: zipfile.ZipInfo) -> bytes:
        header = os.pread(self._file, _LOCAL_HEADER_BYTES, info.header_offset)
        if len(header) < _LOCAL_HEADER_BYTES or header[:4] != b"PK\3\4":
            raise zipfile.BadZipFile("damaged local header")
        n_name, n_extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        start = info.header_offset + _LOCAL_HEADER_BYTES
        name = os.pread(self._file, n_name, start).decode("utf-8")
        if name != info.orig_filename:
            raise zipfile.BadZipFile("its name differs between the store's list and the member itself")
        data = os.pread(self._file, info.compress_size, start + n_name + n_extra)
        if info.compress_type == zipfile.ZIP_DEFLATED:
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            data = unpacker.decompress(data, info.file_size + 1)
        if len(data) != info.file_size:
            raise zipfile.BadZipFile(f"has not the {info.file_size} bytes that the store says")
        if zlib.crc32(data) != info.CRC:
            raise zipfile.BadZipFile("damaged: its checksum differs")
        return data


def _problem_of_member(info: zipfile.ZipInfo, store_bytes: int) -> str | None:
    """Return why a member of a store is not taken; null where it may be."""
    name = info.orig_filename
    if name != info.filename:
        return "its name holds a NUL character; rename it"
    if not name.isascii() and not info.flag_bits & _UTF8_NAME:
        return "its name is not marked as UTF-8; pack the store again with UTF-8 names"
    if (problem := _problem_of(name)) is not None:
        return problem
    if re.match("[A-Za-z]:", name) or {"", ".", ".."} & set(name.split("/")):
        return "its name leaves the store (absolute, `..` or an empty part); pack the store again"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link, and these are not followed; pack the file itself"
    if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is encrypted or packed in another way than store or deflate; pack the store again"
    if info.file_size > MAX_BYTES:
        return f"has {info.file_size} bytes, at most {MAX_BYTES} are read"
    if info.file_size > MAX_UNPACKED_BYTES and info.file_size > MAX_RATIO * max(1, info.compress_size):
        return f"unpacks from {info.compress_size} to {info.file_size} bytes: a zip bomb, not an image"
    if info.header_offset + info.compress_size > store_bytes:
        return f"has {info.compress_size} packed bytes, more than the store holds; copy the store again"
    return None
