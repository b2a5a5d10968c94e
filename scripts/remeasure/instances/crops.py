"""Boxes of queries as whole pixels: the two rules that are in use, clamped to the photograph.

Public code crops one box in different ways; which rule is used decides about a row of pixels. Coordinates
are of the stored grid of pixels, before any turning by EXIF. Photographs of a gallery are never cropped.
"""

import math
from collections.abc import Sequence

from remeasure.errors import RemeasureError

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are not part of it."""


def pillow_box(bbx: Sequence[float], size: tuple[int, int], name: str = "") -> Box:
    """Return the box that the global branch crops: every number rounded, a half to the even one.

    Args:
        bbx: left, top, right, bottom, pixels from 0.
        size: width and height of the photograph as stored, pixels.
        name: of the photograph, for the error.

    Raises:
        RemeasureError: a number is not finite, or no pixel of the photograph is in the box.

    Source:
        Pillow's ``crop``, as revisitop's own Python uses it. Pillow fills what lies outside with black;
        here the box is clamped first.
    """
    return _clamped([round(number) for number in _finite(bbx, name)], size, bbx, name)


def array_box(bbx: Sequence[float], size: tuple[int, int], name: str = "") -> Box:
    """Return the box that the local branch crops: the fractions of every number cut off.

    Args and errors as of ``pillow_box``.

    Source:
        AMES's extractor slices an array. A negative start of a slice counts from the end there, so that a
        box that begins left of the photograph gives an empty or a wrong crop; here it is clamped first.
    """
    return _clamped([math.trunc(number) for number in _finite(bbx, name)], size, bbx, name)


def reaches_outside(bbx: Sequence[float], size: tuple[int, int]) -> bool:
    """Return whether the rounded box had to be clamped to the photograph."""
    left, top, right, bottom = (round(number) for number in _finite(bbx, ""))
    return left < 0 or top < 0 or right > size[0] or bottom > size[1]


def _finite(bbx: Sequence[float], name: str) -> Sequence[float]:
    if len(bbx) != 4 or not all(math.isfinite(number) for number in bbx):
        raise RemeasureError(
            f"{name or 'a query'}: box {list(bbx)}: expected four finite numbers; correct it"
        )
    return bbx


def _clamped(box: list[int], size: tuple[int, int], bbx: Sequence[float], name: str) -> Box:
    width, height = size
    left, right = (min(max(x, 0), width) for x in (box[0], box[2]))
    top, bottom = (min(max(y, 0), height) for y in (box[1], box[3]))
    if right <= left or bottom <= top:
        raise RemeasureError(
            f"{name or 'a query'}: box {list(bbx)} has no pixel of a photograph of {width} x {height}; "
            "correct the ground truth, or put the photograph there that it was made for"
        )
    return left, top, right, bottom
