"""Images by content: zip stores with random access, references in requests, checked reading.

Many small images travel in one zip file without compression, so that a deleted or torn image cannot go
unnoticed, millions of tiles stay a few files, and equal content is equal bytes.
"""

import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path, sha256_bytes
from remeasure.records import ImageRef

SCHEME = "remeasure-image:"
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


_LARGEST_MEMBER_BYTES = 2**29
_LOCAL_HEADER_BYTES = 30


def _file_bytes(path: str) -> bytes:
    """Return the bytes of a regular file; a pipe or a device is never waited for."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError("not a regular file")
        return stream.read()


class ImageReader:
    """Reads images by reference; keeps the stores that it has opened open. Not for several threads."""

    def __init__(self) -> None:
        self._stores: dict[str, zipfile.ZipFile] = {}

    def __enter__(self) -> "ImageReader":
        return self

    def __exit__(self, *_) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def read(self, ref: ImageRef) -> bytes:
        """Return the bytes of an image.

        Raises:
            RemeasureError: file or member missing, damaged, or with other content than the reference says.
        """
        place = ref.path if ref.member is None else f"{ref.path} member {ref.member}"
        try:
            data = _file_bytes(ref.path) if ref.member is None else self._member(ref.path, ref.member)
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            raise RemeasureError(
                f"{place}: image cannot be read ({error}); delete {ref.path} and rerun, it will be made again"
            ) from None
        found = sha256_bytes(data)
        if found != ref.sha256:
            raise RemeasureError(
                f"{place}: image has SHA-256 {found[:12]}…, expected {ref.sha256[:12]}…; "
                f"delete {ref.path} and rerun, it will be made again"
            )
        return data

    def _member(self, path: str, name: str) -> bytes:
        """Return a member's bytes; of one that is stored as it is in one read, without zip's checksum."""
        store = self._store(path)
        info = store.getinfo(name)
        if info.file_size > _LARGEST_MEMBER_BYTES:
            raise zipfile.BadZipFile(f"{info.file_size} bytes when unpacked")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or store.fp is None:
            return store.read(info)
        file = store.fp.fileno()
        header = os.pread(file, _LOCAL_HEADER_BYTES, info.header_offset)
        if header[:4] != b"PK\3\4" or len(header) < _LOCAL_HEADER_BYTES:
            raise zipfile.BadZipFile("damaged local header")
        n_name, n_extra = struct.unpack("<HH", header[26:30])
        start = info.header_offset + _LOCAL_HEADER_BYTES + n_name + n_extra
        return os.pread(file, info.file_size, start)

    def _store(self, path: str) -> zipfile.ZipFile:
        if path not in self._stores:
            self._stores[path] = zipfile.ZipFile(path)
        return self._stores[path]
