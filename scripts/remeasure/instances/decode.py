"""Photographs as pixels: leniently where they are cut off, never rotated, always 8-bit red, green, blue.

Both branches, the global one (Pillow) and the local one (OpenCV), see the stored grid of pixels: the boxes of
queries are given on it. The published extractor of local descriptors lets OpenCV rotate by EXIF: that is a
difference of ours.
"""

import io
import threading
import warnings
from typing import NamedTuple

import numpy as np

from remeasure.image_check import MAX_PIXELS
from remeasure.instances.sizes import Size
from remeasure.looking import BROKEN

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP")
"""What is decoded, by content; the name of a file says nothing."""
OK, TRUNCATED, UNDECODABLE = 0, 1, 2
STATUSES = ("ok", "truncated", "undecodable")
"""Words for the three, for counts."""
RULE = (
    "orientation ignored; grey repeated; palette looked up; alpha dropped; CMYK as Pillow converts it; "
    "of 16 bits the upper 8"
)
"""How other kinds of pixels become red, green and blue."""


class Decoded(NamedTuple):
    """A photograph, or why it is none."""

    pixels: np.ndarray | None
    """Shape (height, width, 3), uint8, red, green, blue; null where it cannot be decoded."""
    status: int
    """0 decoded, 1 cut off or damaged but decoded, 2 not decoded."""
    size: Size
    """Width and height; 0 where it cannot be decoded."""
    problem: str | None = None
    """What the decoder said, for every status but 0."""


class _Leniency(threading.local):
    """Whether this thread wants what there is of a damaged file; Pillow has one switch for all threads."""

    on = False

    def __bool__(self) -> bool:
        return self.on


_leniency = _Leniency()


def _undecodable(problem: object) -> Decoded:
    from PIL import UnidentifiedImageError

    said = " ".join(str(problem).split()) or type(problem).__name__
    if isinstance(problem, UnidentifiedImageError):  # its text names an object in memory
        said = f"no photograph: not {', '.join(FORMATS)}, or cut off within its header"
    return Decoded(None, UNDECODABLE, Size(0, 0), said[:200])


def _load(data: bytes, lenient: bool):
    """Return a loaded Pillow image.

    Raises:
        ValueError: it has too many pixels, or none.
        Exception: what Pillow raises for broken files (``BROKEN``) and for bombs.
    """
    from PIL import Image, ImageFile

    ImageFile.LOAD_TRUNCATED_IMAGES = _leniency
    _leniency.on = lenient
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=FORMATS)
        if not 0 < image.width * image.height <= MAX_PIXELS:
            raise ValueError(f"{image.width} x {image.height} pixels, at most {MAX_PIXELS} are decoded")
        image.load()
        return image
    finally:
        _leniency.on = False


def _rgb(image) -> np.ndarray:
    """Return the pixels of a loaded image by ``RULE``; shape (height, width, 3), uint8."""
    if image.mode.startswith(("I", "F")):
        deep = np.asarray(image).astype(np.int64).clip(0, 65535)
        return np.repeat((deep >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


def _opened(data: bytes):
    """Return (image, status, problem); the image is null where nothing can be decoded."""
    from PIL import Image

    failures = (*BROKEN, Image.DecompressionBombError, MemoryError)
    try:
        return _load(data, lenient=False), OK, None
    except failures as error:
        problem = error
    try:
        return _load(data, lenient=True), TRUNCATED, str(problem)[:200]
    except failures as error:
        return None, UNDECODABLE, error


def decode(data: bytes) -> Decoded:
    """Decode a photograph with Pillow, for the global descriptor.

    Args:
        data: the bytes of a file, from anywhere.

    Edges:
        No bytes, no image, a bomb, one cut off within its header: status 2, no pixels, never an error.

    Source:
        Landmark card, pitfalls 9 and 10 (lenient decoding, orientation ignored).
    """
    image, status, problem = _opened(data)
    if image is None:
        return _undecodable(problem)
    try:
        pixels = _rgb(image)
    except BROKEN as error:
        return _undecodable(error)
    return Decoded(pixels, status, Size(*image.size), problem)


def decode_cv(data: bytes) -> Decoded:
    """Decode a photograph with OpenCV, for local descriptors; arguments and edges as of ``decode``.

    OpenCV fills what is missing with grey and says nothing, so that the status is Pillow's.
    """
    import cv2

    image, status, problem = _opened(data)
    if image is None:
        return _undecodable(problem)
    try:
        raw = np.frombuffer(data, dtype=np.uint8)
        found = cv2.imdecode(raw, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        return _undecodable(error)
    if found is None:  # a kind or a damage that only Pillow copes with
        return decode(data)
    return Decoded(np.ascontiguousarray(found[:, :, ::-1]), status, Size(*image.size), problem)
