"""Images that model servers do not take, made 8-bit PNG by rules that are written down beside the image.

Source:
    MRareBench card, section 2.2: 16-bit grey and float images are converted by an explicit, recorded rule.
"""

import io
import math
from collections.abc import Iterator

from remeasure.errors import RemeasureError
from remeasure.image_check import MAX_PIXELS
from remeasure.looking import BROKEN
from remeasure.records import Record

_DEEP = ("I", "F")
_PLAIN = ("1", "L", "LA", "P", "RGB", "RGBA")
_STRIP_PX = 1 << 20
# TIFF 6.0, section 8; Pillow cuts colours of 16 bits down to 8 without a word.
_BITS_PER_SAMPLE = 258
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


class Converted(Record, kw_only=True):
    """What became of an image that was not taken as it is."""

    rule: str
    """How values became 0 to 255, in words."""
    sha256: str
    """Of the bytes before."""
    mode: str
    """As Pillow names what was there: I;16, F, …"""
    minimum: float | None = None
    """Value that became 0; null where the values stayed as they were."""
    maximum: float | None = None
    """Value that became 255."""


LINEAR = "linear from the image's own minimum (0) to its maximum (255), halves rounded up, 8-bit grey PNG"
SAME = "pixels as they are, as PNG"


def is_deep(mode: str) -> bool:
    """Return whether a mode of Pillow has grey values of 16 or 32 bits, or floating-point ones."""
    return mode.startswith(_DEEP)


def convert(data: bytes, sha256: str) -> tuple[bytes, Converted]:
    """Return an image as 8-bit PNG, and how it became that.

    Args:
        data: a PNG with 16-bit grey, or a TIFF.
        sha256: of ``data``.

    Raises:
        RemeasureError: it cannot be decoded to the end, is too large, has several pages, another kind of
            pixels, or values that are no finite numbers. The text says what, not where.

    Edges:
        An image of one value becomes black.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "TIFF")) as image:
            _check(image)
            image.load()
            mode = image.mode
            if is_deep(mode):
                low, high = _range(image)
                made = _scaled(image, low, high)
                done = Converted(rule=LINEAR, sha256=sha256, mode=mode, minimum=low, maximum=high)
            else:
                made, done = image, Converted(rule=SAME, sha256=sha256, mode=mode)
            out = io.BytesIO()
            made.save(out, "PNG")
    except Image.DecompressionBombError as error:
        raise RemeasureError(f"is too large to be decoded ({error})") from None
    except BROKEN as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise RemeasureError(f"cannot be decoded to the end ({said[:200]})") from None
    return out.getvalue(), done


def _check(image) -> None:
    """Refuse an opened image by its header."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise RemeasureError(
            f"has {width} x {height} = {width * height / 1e6:.0f} megapixels, at most {MAX_PIXELS / 1e6:.0f} "
            "are read; make it smaller or leave it out"
        )
    if (pages := getattr(image, "n_frames", 1)) != 1:
        raise RemeasureError(f"has {pages} pages, expected one image")
    bits = max(getattr(image, "tag_v2", {}).get(_BITS_PER_SAMPLE, (8,)))
    if not is_deep(image.mode) and (image.mode not in _PLAIN or bits > 8):
        raise RemeasureError(
            f"has pixels of mode {image.mode} with {bits} bits a channel, expected grey, or RGB of 8 bits; "
            "save it as 8-bit PNG or JPEG"
        )


def _strips(image) -> Iterator[tuple[int, "object"]]:
    """Yield top row and float64 values of strips of rows; only one is held at a time."""
    import numpy as np

    width, height = image.size
    rows = max(1, _STRIP_PX // width)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        yield top, np.asarray(strip).astype(np.float64)


def _range(image) -> tuple[float, float]:
    """Return the smallest and the largest value.

    Raises:
        RemeasureError: a value is not finite.
    """
    import numpy as np

    low, high = math.inf, -math.inf
    for top, values in _strips(image):
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise RemeasureError(
                f"has a value that is no finite number in row {top + row}, column {column}; correct the image"
            )
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high


def _scaled(image, low: float, high: float):
    """Return an 8-bit grey image: floor(255 (value - low) / (high - low) + 1/2)."""
    import numpy as np
    from PIL import Image

    made = Image.new("L", image.size)
    for top, values in _strips(image) if high > low else ():
        scaled = np.floor(255.0 * (values - low) / (high - low) + 0.5)
        made.paste(Image.fromarray(scaled.clip(0, 255).astype(np.uint8)), (0, top))
    return made
