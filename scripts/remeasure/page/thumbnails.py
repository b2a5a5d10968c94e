"""Pictures of a page: small, inside the file, and made from the bytes alone."""

import base64
import io
import warnings
from collections.abc import Sequence

from remeasure import image_check
from remeasure.errors import RemeasureError
from remeasure.images import ImageReader
from remeasure.records import ImageRef

SIDE_PX = 240
_QUALITY = 80
FRAME, FRAME_PX = (230, 40, 40), 3
"""Colour and width of a box that is drawn."""


def data_url(reader: ImageReader, ref: ImageRef) -> str:
    """Return an image as a small JPEG in a ``data:`` address; empty where it cannot be decoded.

    Raises:
        RemeasureError: the image is missing or is not the one that was asked about.
    """
    return small_url(reader.read(ref), SIDE_PX)


def small_url(data: bytes, side_px: int, box: Sequence[float] = ()) -> str:
    """Return an image as a small JPEG in a ``data:`` address; empty where it cannot be decoded.

    Args:
        data: the image's bytes.
        side_px: longest side of the small one.
        box: left, top, right, bottom in pixels of the image: is drawn as a frame; empty for none.
    """
    from PIL import Image, ImageDraw

    try:
        image_check.inspect(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                width, height = image.size
                image.draft("RGB", (2 * side_px, 2 * side_px))
                image.thumbnail((side_px, side_px))
                small = image.convert("RGBA")
    except (RemeasureError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return ""
    ground = Image.new("RGB", small.size, "white")
    ground.paste(small, mask=small.getchannel("A"))
    if box:
        across, down = small.width / width, small.height / height
        corners = [box[0] * across, box[1] * down, box[2] * across - 1, box[3] * down - 1]
        ImageDraw.Draw(ground).rectangle(_ordered(corners), outline=FRAME, width=FRAME_PX)
    out = io.BytesIO()
    ground.save(out, "JPEG", quality=_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def _ordered(corners: Sequence[float]) -> list[float]:
    """Return corners of a box of at least one pixel."""
    left, top, right, bottom = corners
    return [left, top, max(left, right), max(top, bottom)]
