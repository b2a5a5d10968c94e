"""What an image is, from its header alone: format, size, and what a model server may trip over.

Nothing is decoded and nothing as large as the image is ever made: a bomb is refused by the size that it
claims. Pillow is not used: opening a file with it warns, makes canvases for animations and reads whole WebP
files; the tests compare every format with it.
"""

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from remeasure import images
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, Record

# Larger images are never sent as they are. Source: page-image card 1.4, reader image encoding (150 Mpx).
MAX_PIXELS = 150_000_000
_SUFFIXES = {
    "png": (".png", ".apng"),
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "gif": (".gif",),
    "webp": (".webp",),
}
_ORIENTATION = 0x0112
# What readers of headers say of an image that may be transparent.
_ALPHA = "alpha"
_MAX_EXIF_BYTES, _MAX_JUNK_BYTES = 1 << 20, 1 << 16


class ImageFacts(Record, kw_only=True):
    """What the header of an image says."""

    format: str
    """png, jpeg, gif or webp, by content."""
    width_px: int
    height_px: int
    odd: tuple[str, ...] = ()
    """What servers treat differently: 16-bit, 12-bit, cmyk, exif-rotated, animated, wrong-suffix."""
    has_alpha: bool = False
    """Whether a PNG or WebP says that pixels may be transparent; whether one is, only decoding tells."""


def inspect(image: bytes | IO[bytes], name: str | None = None) -> ImageFacts:
    """Return what an image is; its pixels are not decoded.

    Args:
        image: the bytes, or a stream that can seek, of which only the header is read.
        name: file or member name, for the suffix; null where there is none.

    Raises:
        RemeasureError: empty, not one of the four formats, a broken or cut header, no pixel, or more than
            ``MAX_PIXELS``. The text says what, not where.
    """
    stream = io.BytesIO(image) if isinstance(image, bytes) else image
    start = stream.read(16)
    if not start:
        raise RemeasureError("is empty (0 bytes)")
    try:
        kind = images.media_type(start).removeprefix("image/")
    except RemeasureError:
        raise RemeasureError(f"is not a PNG, JPEG, GIF or WebP image (starts with {start[:8]!r})") from None
    try:
        width, height, odd = _READERS[kind](stream)
    except _Broken as error:
        raise RemeasureError(f"is cut off or broken in its {kind} header ({error})") from None
    _check_pixels(width, height)
    suffix = os.path.splitext(name or "")[1].lower()
    if suffix and suffix not in _SUFFIXES[kind]:
        odd += ("wrong-suffix",)
    plain = tuple(word for word in odd if word != _ALPHA)
    return ImageFacts(format=kind, width_px=width, height_px=height, odd=plain, has_alpha=_ALPHA in odd)


def _check_pixels(width_px: int, height_px: int) -> None:
    if width_px < 1 or height_px < 1:
        raise RemeasureError(f"has no pixels ({width_px} x {height_px})")
    if width_px * height_px > MAX_PIXELS:
        raise RemeasureError(
            f"has {width_px} x {height_px} = {width_px * height_px / 1e6:.0f} megapixels, at most "
            f"{MAX_PIXELS / 1e6:.0f} are read; make it smaller or leave it out"
        )


class _Broken(Exception):
    """A header that does not hold what its format says."""


def _take(stream: IO[bytes], n: int) -> bytes:
    data = stream.read(n)
    if len(data) != n:
        raise _Broken("ends too early")
    return data


def _rotated(exif: bytes) -> tuple[str, ...]:
    """Return the fact that an EXIF block turns the image, where it does; a broken block turns nothing.

    Source:
        TIFF 6.0, section 2 (header, directory of 12-byte entries); Exif 2.3, tag 274.
    """
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None or len(tiff) < 8:
        return ()
    (first,) = struct.unpack_from(order + "I", tiff, 4)
    if first + 2 > len(tiff):
        return ()
    (n,) = struct.unpack_from(order + "H", tiff, first)
    for at in range(first + 2, min(first + 2 + 12 * n, len(tiff) - 11), 12):
        tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, at)
        if tag == _ORIENTATION:
            return ("exif-rotated",) if 2 <= value <= 8 else ()
    return ()


_PNG_FACTS = {b"acTL": "animated", b"tRNS": _ALPHA}


def _png(stream: IO[bytes]) -> tuple[int, int, tuple[str, ...]]:
    """Read a PNG's chunks up to its first pixels.

    Source:
        W3C, "Portable Network Graphics (Third Edition)", sections 5.3, 11.2.1, 11.3.1 and 11.3.4.
    """
    stream.seek(8)
    length, kind, header, checksum = struct.unpack(">I4s13sI", _take(stream, 25))
    if length != 13 or kind != b"IHDR" or zlib.crc32(kind + header) != checksum:
        raise _Broken("first chunk is no whole IHDR")
    width, height, bits, colour = struct.unpack_from(">IIBB", header)
    odd = ("16-bit",) if bits == 16 else ()
    odd += (_ALPHA,) if colour & 4 else ()
    while True:
        length, kind = struct.unpack(">I4s", _take(stream, 8))
        if kind == b"IDAT":
            return width, height, odd
        if length >= 1 << 31 or kind == b"IEND":
            raise _Broken("no pixels follow")
        if kind == b"eXIf" and length <= _MAX_EXIF_BYTES:
            odd += _rotated(_take(stream, length))
            length = 0
        elif kind in _PNG_FACTS:
            odd += (_PNG_FACTS[kind],)
        stream.seek(length + 4, io.SEEK_CUR)


def _jpeg(stream: IO[bytes]) -> tuple[int, int, tuple[str, ...]]:
    """Read a JPEG's segments up to its frame header.

    Source:
        ITU-T T.81, annex B (markers, frame header); Exif 2.3, section 4.5.4 (APP1).
    """
    stream.seek(2)
    odd: tuple[str, ...] = ()
    while True:
        # Some writers leave bytes between segments; decoders pass over them.
        if not any(_take(stream, 1) == b"\xff" for _ in range(_MAX_JUNK_BYTES)):
            raise _Broken("no marker where one belongs")
        while (marker := _take(stream, 1)[0]) == 0xFF:
            pass
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:
            continue
        (length,) = struct.unpack(">H", _take(stream, 2))
        if marker in (0xD8, 0xD9, 0xDA) or length < 2:
            raise _Broken("no frame header before the pixels")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            bits, height, width, n_components = struct.unpack(">BHHB", _take(stream, 6))
            odd += (f"{bits}-bit",) if bits != 8 else ()
            return width, height, odd + (("cmyk",) if n_components == 4 else ())
        if marker == 0xE1 and not odd:
            data = _take(stream, length - 2)
            odd = _rotated(data) if data.startswith(b"Exif\0\0") else ()
        else:
            stream.seek(length - 2, io.SEEK_CUR)


def _gif(stream: IO[bytes]) -> tuple[int, int, tuple[str, ...]]:
    """Read a GIF's blocks up to its second picture; the first may be larger than the screen it says.

    Source:
        "Graphics Interchange Format, Version 89a", sections 18 to 27.
    """
    stream.seek(6)
    width, height, flags, _, _ = struct.unpack("<HHBBB", _take(stream, 7))
    _skip_colours(stream, flags)
    n_pictures = 0
    while (kind := stream.read(1)) not in (b"", b";"):
        if kind == b"!":
            _take(stream, 1)
        elif kind == b"," and n_pictures:
            return width, height, ("animated",)
        elif kind == b",":
            left, top, own_width, own_height, flags = struct.unpack("<HHHHB", _take(stream, 9))
            width, height = max(width, left + own_width), max(height, top + own_height)
            n_pictures += 1
            _skip_colours(stream, flags)
            _take(stream, 1)
        else:
            raise _Broken("no block where one belongs")
        while size := _take(stream, 1)[0]:
            stream.seek(size, io.SEEK_CUR)
    if not n_pictures:
        raise _Broken("holds no picture")
    return width, height, ()


def _skip_colours(stream: IO[bytes], flags: int) -> None:
    if flags & 0x80:
        _take(stream, 3 << (flags & 7) + 1)


def _webp(stream: IO[bytes]) -> tuple[int, int, tuple[str, ...]]:
    """Read a WebP's first chunk, and its EXIF chunk where the first one says that there is one.

    Source:
        "WebP Container Specification" (extended header, chunks), RFC 6386 section 9.1 (VP8 frame header),
        "WebP Lossless Bitstream Specification" section 3 (VP8L header).
    """
    stream.seek(12)
    kind, _, start = struct.unpack("<4sI10s", _take(stream, 18))
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(start[at : at + 3], "little") for at in (4, 7))
        odd = ("animated",) if start[0] & 0x02 else ()
        odd += (_ALPHA,) if start[0] & 0x10 else ()
        return width, height, odd + (_rotated(_webp_exif(stream)) if start[0] & 0x08 else ())
    if kind == b"VP8L" and start[0] == 0x2F:
        (bits,) = struct.unpack_from("<I", start, 1)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), ((_ALPHA,) if bits >> 28 & 1 else ())
    if kind == b"VP8 " and start[3:6] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", start, 6)
        return width & 0x3FFF, height & 0x3FFF, ()
    raise _Broken("no frame header in its first chunk")


def _webp_exif(stream: IO[bytes]) -> bytes:
    """Return the EXIF block of a WebP file; empty where it has none although it says so."""
    stream.seek(12)
    while len(head := stream.read(8)) == 8:
        kind, length = struct.unpack("<4sI", head)
        if kind == b"EXIF":
            return stream.read(min(length, _MAX_EXIF_BYTES))
        stream.seek(length + length % 2, io.SEEK_CUR)
    return b""


_READERS: dict[str, Callable[[IO[bytes]], tuple[int, int, tuple[str, ...]]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "gif": _gif,
    "webp": _webp,
}


# A missing file, a path that is none, and what zipfile says of archives that are broken or too new for it.
_UNREADABLE = (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


class Inspector:
    """Looks at images by reference: each once, zip stores stay open. Not for several threads.

    A context manager: leaving closes the stores.
    """

    def __init__(self, images_root: Path) -> None:
        self._root = Path(images_root)
        self._stores = images.Stores(self._regular)
        self._facts: dict[ImageRef, ImageFacts] = {}

    def __enter__(self) -> "Inspector":
        return self

    def __exit__(self, *_) -> None:
        self._stores.close()

    def facts(self, ref: ImageRef, where: str = "") -> ImageFacts:
        """Return what the image of a reference is.

        Args:
            ref: the reference; its hash is checked when the image is sent, not here.
            where: what asks for it, such as the request's id; opens the error.

        Raises:
            RemeasureError: file or member missing, unreadable, too large, packed like a bomb, or as in
                ``inspect``; one line with request, place, problem and what to do.
        """
        if ref not in self._facts:
            try:
                self._facts[ref] = self._look(ref)
            except RemeasureError as error:
                place = ref.path if ref.member is None else f"{ref.path} member {ref.member!r}"
                raise RemeasureError(
                    f"{where + ': ' if where else ''}image {place} {error}; {images.redo(ref.path)}"
                ) from None
        return self._facts[ref]

    def size(self, ref: ImageRef, where: str = "") -> tuple[int, int]:
        """Return (width_px, height_px); errors as in ``facts``."""
        found = self.facts(ref, where)
        return found.width_px, found.height_px

    def _look(self, ref: ImageRef) -> ImageFacts:
        try:
            if ref.member is None:
                with open(self._regular(ref.path), "rb") as stream:
                    images.check_bytes(os.fstat(stream.fileno()).st_size)
                    return inspect(stream, ref.path)
            store = self._stores.get(self._stores.holder(ref.path, ref.member))
            with store.open(images.safe_member(store, ref.member)) as stream:
                return inspect(stream, ref.member)
        except _UNREADABLE as error:
            raise RemeasureError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None

    def _regular(self, path: str) -> Path:
        """Return a path that can be opened without waiting for ever; folders, pipes and devices cannot."""
        found = self._root / path
        if not stat.S_ISREG(found.stat().st_mode):
            raise RemeasureError("is no file")
        return found
