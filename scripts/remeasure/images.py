"""Images by content: zip stores with random access, references in requests, checked reading.

Many small images travel in one zip file without compression, so that a deleted or torn image cannot go
unnoticed, millions of tiles stay a few files, and equal content is equal bytes.
"""

import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from remeasure import parts
from remeasure.errors import RemeasureError
from remeasure.files import atomic_path, open_regular, sha256_bytes
from remeasure.records import ImageRef

SCHEME = "remeasure-image:"
# As base64 a third more: the 200 MB that a whole batch file may have (OpenAI, Batch API).
MAX_BYTES = 150_000_000
# Images are packed already; a zip member that packs this much better and is not small is no image.
MAX_RATIO, MAX_UNPACKED_BYTES = 100, 10_000_000
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def media_type(data: bytes) -> str:
    """Return the media type that the bytes themselves show; the file name is never asked.

    Raises:
        RemeasureError: not a PNG, JPEG, GIF or WebP image.
    """
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise RemeasureError(
        f"not an image: {len(data)} bytes starting with {data[:8]!r}, expected PNG, JPEG, GIF or WebP; "
        "delete the file and rerun the target that writes it"
    )


def redo(path: str) -> str:
    """Return what to do about the file of an image that is not as it was; only our own can be made again."""
    if os.path.normpath(path).startswith("results/"):
        return f"delete {path} and rerun, it will be made again"
    return (
        "restore or replace it; where it changed after it was listed, delete results/<run>/<study>/index "
        "(the list of images) and rerun"
    )


def to_url(ref: ImageRef) -> str:
    """Return the reference that stands in a request instead of the bytes."""
    query = {"path": ref.path} | ({"member": ref.member} if ref.member is not None else {})
    return f"{SCHEME}{ref.sha256}?{urlencode(query)}"


def from_url(url: str) -> ImageRef:
    """Parse a reference made by ``to_url``.

    Raises:
        RemeasureError: the text is no such reference.
    """
    digest, _, query = url.removeprefix(SCHEME).partition("?")
    fields = parse_qs(query)
    if url.startswith(SCHEME) and re.fullmatch("[0-9a-f]{64}", digest) and "path" in fields:
        ref = ImageRef(sha256=digest, path=fields["path"][0], member=fields.get("member", [None])[0])
        if to_url(ref) == url:  # one image has one spelling: bytes are put in where it stands
            return ref
    raise RemeasureError(f"not an image reference: {url[:120]!r}; rebuild the request file")


def write_store(path: Path, members: Iterable[tuple[str, bytes]]) -> int:
    """Write named byte strings as one uncompressed zip, whole or not at all; equal content is equal bytes.

    Returns the number of members.

    Raises:
        RemeasureError: two members have one name, or a name leaves the store.
    """
    names: set[str] = set()
    with atomic_path(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as store:
            for name, data in members:
                if name in names or name.startswith("/") or ".." in name.split("/"):
                    raise RemeasureError(
                        f"{path}: member name {name!r} is taken or unsafe; names must be unique"
                    )
                names.add(name)
                store.writestr(zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0)), data)
    return len(names)


# The one member of a store whose images lie in the stores of the corpus's parts.
PARTS = "parts.json"
_LARGEST_LIST_BYTES = 10**7


def write_parted_store(path: Path, stores: Sequence[Path]) -> None:
    """Write a store that says where its images lie; nothing is copied.

    References name this store whatever the number of parts, so that requests do not change with it.

    Args:
        path: the store.
        stores: the parts' stores in order; a member is found by its page (``parts.part_of``).
    """
    named = [os.path.relpath(store, path.parent) for store in stores]
    write_store(path, [(PARTS, json.dumps(named, indent=1).encode())])


class Stores:
    """Zip stores that were opened and stay open. Not for several threads.

    Args:
        find: gives the file to open for a path; raises for one that must not be opened.
    """

    def __init__(self, find: Callable[[str], Path] = Path) -> None:
        self._find = find
        self._opened: dict[str, zipfile.ZipFile] = {}
        self._parts: dict[str, tuple[str, ...]] = {}

    def close(self) -> None:
        """Close them all."""
        for store in self._opened.values():
            store.close()
        self._opened.clear()
        self._parts.clear()

    def holder(self, path: str, member: str) -> str:
        """Return the path of the store that holds a member: the one that is named, or a part of it.

        Raises:
            OSError, zipfile.BadZipFile: as ``get``; or what it says of its parts is no list of paths.
        """
        if path not in self._parts:
            self._parts[path] = _part_stores(self.get(path), path)
        stores = self._parts[path]
        return stores[parts.part_of(parts.page_of(member), len(stores))] if stores else path

    def get(self, path: str) -> zipfile.ZipFile:
        """Return the opened store.

        Raises:
            OSError, zipfile.BadZipFile: it cannot be opened.
        """
        if path not in self._opened:
            found = self._find(path)
            open_regular(found).close()  # zipfile would wait for a pipe
            self._opened[path] = zipfile.ZipFile(found)
        return self._opened[path]


def _part_stores(store: zipfile.ZipFile, path: str) -> tuple[str, ...]:
    if PARTS not in store.NameToInfo:
        return ()
    if (size := store.getinfo(PARTS).file_size) > _LARGEST_LIST_BYTES:
        raise zipfile.BadZipFile(f"{PARTS}: {size} bytes when unpacked")
    try:
        named = json.loads(store.read(PARTS))
    except (ValueError, RuntimeError, EOFError) as error:  # too deep, encrypted, torn
        raise zipfile.BadZipFile(f"{PARTS}: {error}") from None
    if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
        raise zipfile.BadZipFile(f"{PARTS}: expected a list of paths")
    for name in named:
        if not _is_beside(name):
            raise zipfile.BadZipFile(
                f"{PARTS}: {ascii(name[:80])} ({len(name)} letters) is no place of a part, expected one such "
                "as '../parts/1of3/tiles/tiles.zip'"
            )
    return tuple(os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in named)


def _is_beside(name: str) -> bool:
    """Return whether a path leads below the folder of its store or the one above it, and nowhere else."""
    pieces = name.removeprefix("../").split("/")
    return len(name) <= 1000 and name.isprintable() and not {"", ".", ".."} & set(pieces)


_LOCAL_HEADER_BYTES = 30


def check_bytes(size: int) -> None:
    """Refuse an image that is too large to be sent.

    Raises:
        RemeasureError: more than ``MAX_BYTES``. The text says what, not where.
    """
    if size > MAX_BYTES:
        raise RemeasureError(f"has {size} bytes, at most {MAX_BYTES} can be sent")


def safe_member(store: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return a member that is safe to read.

    Raises:
        RemeasureError: it is missing, encrypted, packed in an odd way, too large, or a bomb. The text says
            what, not where.
    """
    try:
        info = store.getinfo(name)
    except KeyError:
        raise RemeasureError("is not there") from None
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RemeasureError("is encrypted or packed in another way than store or deflate")
    check_bytes(info.file_size)
    if info.file_size > MAX_UNPACKED_BYTES and info.file_size > MAX_RATIO * max(1, info.compress_size):
        raise RemeasureError(
            f"unpacks from {info.compress_size} to {info.file_size} bytes: a zip bomb, not an image"
        )
    return info


def _file_bytes(path: str) -> bytes:
    """Return the bytes of a regular file; a pipe or a device is never waited for."""
    with open_regular(path) as stream:
        check_bytes(os.fstat(stream.fileno()).st_size)
        return stream.read()


class ImageReader:
    """Reads images by reference; keeps the stores that it has opened open. Not for several threads."""

    def __init__(self) -> None:
        self._stores = Stores()

    def __enter__(self) -> "ImageReader":
        return self

    def __exit__(self, *_) -> None:
        self._stores.close()

    def read(self, ref: ImageRef) -> bytes:
        """Return the bytes of an image.

        Raises:
            RemeasureError: file or member missing, damaged, too large, packed like a bomb, or with other
                content than the reference says.
        """
        path, member = ref.path, "" if ref.member is None else f" member {ref.member}"
        try:
            if ref.member is None:
                data = _file_bytes(path)
            else:
                path = self._stores.holder(path, ref.member)
                data = self._member(path, ref.member)
        except RemeasureError as error:
            raise RemeasureError(f"{path}{member}: image {error}; {redo(path)}") from None
        except (OSError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            raise RemeasureError(f"{path}{member}: image cannot be read ({error}); {redo(path)}") from None
        found = sha256_bytes(data)
        if found != ref.sha256:
            raise RemeasureError(
                f"{path}{member}: image has SHA-256 {found[:12]}…, expected {ref.sha256[:12]}…; {redo(path)}"
            )
        return data

    def _member(self, path: str, name: str) -> bytes:
        """Return a member's bytes; of one that is stored as it is in one read, without zip's checksum."""
        store = self._stores.get(path)
        info = safe_member(store, name)
        if info.compress_type != zipfile.ZIP_STORED or store.fp is None:
            return store.read(info)
        file = store.fp.fileno()
        header = os.pread(file, _LOCAL_HEADER_BYTES, info.header_offset)
        if header[:4] != b"PK\3\4" or len(header) < _LOCAL_HEADER_BYTES:
            raise zipfile.BadZipFile("damaged local header")
        n_name, n_extra = struct.unpack("<HH", header[26:30])
        start = info.header_offset + _LOCAL_HEADER_BYTES + n_name + n_extra
        return os.pread(file, info.file_size, start)
