"""To which sizes photographs are scaled before a network sees them."""

from typing import NamedTuple


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def _snapped(length_px: float, patch_px: int) -> int:
    """Return the multiple of a patch that is nearest, at least one patch; halves go to the even one."""
    return max(round(length_px / patch_px), 1) * patch_px


def scaled(size: Size, scale: float, size_px: int = 224, patch_px: int = 14, max_px: int = 1022) -> Size:
    """Return the size of a photograph at one scale of the global descriptor.

    Args:
        size: of the decoded photograph, or of its crop.
        scale: 1.0, 1.414, 2.0 …
        size_px: what the shorter side becomes at scale 1.
        patch_px: both sides become multiples of it.
        max_px: the longer side becomes at most that; the picture is squeezed then.

    Raises:
        ValueError: a side of the photograph is not positive.

    Edges:
        A line of pixels, however long, becomes as long as the limit lets it.

    Source:
        Landmark card, section 5: a = round(224 s / 14) 14, f = a / min(w, h),
        b = min(1022, max(14, round(max(w, h) f / 14) 14)), rounding halves to even.
    """
    shorter, longer = min(size), max(size)
    if shorter < 1:
        raise ValueError(f"a photograph of {size[0]} x {size[1]} pixels")
    most = max_px // patch_px * patch_px
    short = min(most, _snapped(size_px * scale, patch_px))
    long = min(most, _snapped(longer * (short / shorter), patch_px))
    return Size(short, long) if size[0] < size[1] else Size(long, short)


def native(size: Size, patch_px: int = 14, longest_px: int | None = None) -> Size:
    """Return the size of a photograph for local descriptors: its own, each side at the nearest whole patch.

    Args:
        size: of the decoded photograph, or of its crop.
        patch_px: both sides become multiples of it.
        longest_px: the longer side is brought to it first, the shorter one alike; null leaves both.

    Source:
        Landmark card, section 3.3: each side becomes max(round(side / 14), 1) 14.
    """
    if min(size) < 1:
        raise ValueError(f"a photograph of {size[0]} x {size[1]} pixels")
    factor = 1.0 if longest_px is None else longest_px / max(size)
    return Size(_snapped(size[0] * factor, patch_px), _snapped(size[1] * factor, patch_px))


def n_tokens(size: Size, patch_px: int = 14) -> int:
    """Return the tokens of a picture in a vision transformer: its patches and the class token."""
    return (size[0] // patch_px) * (size[1] // patch_px) + 1
