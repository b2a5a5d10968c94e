"""How a page is cut into tiles, and whether a captured tile is what it should be."""

import io
from dataclasses import dataclass
from typing import Any

from remeasure.files import sha256_bytes

# Rows and right-hand columns below this are left out, as in the published chunker ("strictly smaller").
MIN_REMAINDER_PX = 28
# Grey levels between the darkest and the lightest part that count as one colour.
_FLAT = 3
# Height of the stretches that are looked at one by one.
_BAND_PX = 256


@dataclass(frozen=True)
class Rectangle:
    """A stretch of a page in page coordinates, pixels."""

    x_px: int
    y_px: int
    width_px: int
    height_px: int


def _cuts(length_px: int, step_px: int) -> tuple[list[tuple[int, int]], int]:
    """Return (start, size) of each part and the dropped remainder; the first part always stays."""
    parts = [(start, min(step_px, length_px - start)) for start in range(0, length_px, step_px)]
    if len(parts) > 1 and parts[-1][1] < MIN_REMAINDER_PX:
        return parts[:-1], parts[-1][1]
    return parts, 0


@dataclass(frozen=True)
class Grid:
    """The tiles of a page, row by row, and what the remainder rule leaves out below and on the right."""

    rectangles: tuple[Rectangle, ...]
    dropped_bottom_px: int
    dropped_right_px: int


def cut(width_px: int, height_px: int, tile_width_px: int, tile_height_px: int) -> Grid:
    """Return the tiles of a page.

    Args:
        width_px: width of the content, at least 1.
        height_px: height of the content, at least 1.
        tile_width_px: width of the viewport.
        tile_height_px: height of a full tile.

    Edges:
        A page smaller than the remainder rule's limit is one tile.

    Source:
        Specification card, section 3.3: row-major grid, remainders strictly smaller than 28 px are left out.
    """
    rows, bottom = _cuts(height_px, tile_height_px)
    columns, right = _cuts(width_px, tile_width_px)
    return Grid(tuple(Rectangle(x, y, w, h) for y, h in rows for x, w in columns), bottom, right)


@dataclass(frozen=True)
class Capture:
    """A captured tile.

    Attributes:
        data: JPEG bytes as the browser gave them.
        sha256: hash of ``data``.
        problem: why the bytes are no valid tile (does not decode, other size), or None.
        blank: whether the tile is of one colour throughout.
        flat: (start, height) of full-width stretches of one colour, pixels from the tile's top.
    """

    data: bytes
    sha256: str
    problem: str | None
    blank: bool
    flat: tuple[tuple[int, int], ...]


def _flat(image: Any) -> bool:
    low, high = image.getextrema()
    return high - low <= _FLAT


def _flat_stretches(image: Any, height_px: int, scale: float) -> tuple[tuple[int, int], ...]:
    """Return flat bands of a reduced grey image, neighbours joined, in pixels of the full tile."""
    found: list[tuple[int, int]] = []
    for start in range(0, height_px, _BAND_PX):
        end = min(start + _BAND_PX, height_px)
        top, bottom = int(start * scale), max(int(start * scale) + 1, min(image.height, round(end * scale)))
        if not _flat(image.crop((0, top, image.width, bottom))):
            continue
        if found and sum(found[-1]) == start:
            found[-1] = (found[-1][0], end - found[-1][0])
        else:
            found.append((start, end - start))
    return tuple(found)


def check(data: bytes, width_px: int, height_px: int) -> Capture:
    """Decode a JPEG, compare its size and look for stretches of one colour.

    An eighth of the resolution is decoded, which reads all bytes and shows whether anything is on the tile at
    a third of the price.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            size = image.size
            image.draft("L", (max(1, size[0] // 8), max(1, size[1] // 8)))
            small = image.convert("L")
    except OSError as error:
        return Capture(data, sha256_bytes(data), f"does not decode ({error})", False, ())
    if size != (width_px, height_px):
        problem = f"is {size[0]} x {size[1]} px, expected {width_px} x {height_px}"
        return Capture(data, sha256_bytes(data), problem, False, ())
    stretches = _flat_stretches(small, height_px, small.height / height_px)
    return Capture(data, sha256_bytes(data), None, _flat(small), stretches)


def is_flat(data: bytes, start_px: int, height_px: int) -> bool:
    """Whether a stretch over the whole width of a JPEG is of one colour at full resolution."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        grey = image.convert("L")
    return _flat(grey.crop((0, start_px, grey.width, start_px + height_px)))
