"""Query pictures: a flag photographed, as it were, and how alike two flags are."""

import io
import random
from collections.abc import Mapping

import msgspec

from remeasure.errors import RemeasureError


class PictureSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a query picture is made from a flag."""

    size_px: tuple[int, int]
    """Width and height of the query picture."""
    flag_share: float
    """Width of the flag as a share of the picture's width, 0 to 1."""
    warp: float
    """How far a corner moves at most, as a share of the flag's width."""
    turn_degrees: float
    light: float
    """Largest relative change of brightness."""
    blur_px: float
    jpeg_quality: int
    alike_below: float
    """Flags whose mean colour distance (0 to 1) is below this are too alike to be asked about."""
    skip: tuple[str, ...] = ()
    """Pages whose flag is not pictured, for example because words are written on it."""


def load_picture(data: bytes, name: str):
    """Decode a picture to RGB.

    Raises:
        RemeasureError: the bytes are no picture; ``name`` says whose.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise RemeasureError(
            f"picture {name}: cannot be decoded ({error}); delete the picture store and rerun"
        ) from None


def photograph(flag, seed: str, settings: PictureSettings) -> bytes:
    """Paste a flag on a plain coloured ground as a careless photographer would, deterministically.

    Args:
        flag: RGB picture.
        seed: text that decides everything random.
        settings: strengths.

    Returns:
        JPEG bytes without any metadata.
    """
    from PIL import Image, ImageEnhance, ImageFilter

    dice = random.Random(seed)
    width, height = settings.size_px
    ground = Image.new("RGB", (width, height), tuple(dice.randrange(70, 190) for _ in range(3)))
    flag_width = round(width * settings.flag_share)
    flag_height = round(flag_width * flag.height / flag.width)
    flag = flag.resize((flag_width, flag_height), Image.Resampling.LANCZOS).convert("RGBA")
    left, top = (width - flag_width) / 2, (height - flag_height) / 2
    reach = settings.warp * flag_width
    corners = [
        (
            left + x * flag_width + dice.uniform(-reach, reach),
            top + y * flag_height + dice.uniform(-reach, reach),
        )
        for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    corners = _turned(corners, (width / 2, height / 2), dice.uniform(-1, 1) * settings.turn_degrees)
    inverse = _projection(corners, [(0, 0), (flag_width, 0), (flag_width, flag_height), (0, flag_height)])
    warped = flag.transform((width, height), Image.Transform.PERSPECTIVE, inverse, Image.Resampling.BICUBIC)
    ground.paste(warped, (0, 0), warped)
    shot = ImageEnhance.Brightness(ground).enhance(1 + dice.uniform(-1, 1) * settings.light)
    shot = shot.filter(ImageFilter.GaussianBlur(dice.uniform(0.3, 1) * settings.blur_px))
    out = io.BytesIO()
    shot.save(out, "JPEG", quality=settings.jpeg_quality)
    return out.getvalue()


def _turned(points, centre, degrees: float):
    from math import cos, radians, sin

    turn = radians(degrees)
    return [
        (
            centre[0] + (x - centre[0]) * cos(turn) - (y - centre[1]) * sin(turn),
            centre[1] + (x - centre[0]) * sin(turn) + (y - centre[1]) * cos(turn),
        )
        for x, y in points
    ]


def _projection(source, target) -> list[float]:
    """Return the eight numbers of the projection that takes four source points to four target points."""
    import numpy as np

    rows, values = [], []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return [float(number) for number in np.linalg.solve(np.array(rows), np.array(values))]


def too_alike(flags: Mapping[str, bytes], below: float) -> dict[str, str]:
    """Return every page whose flag looks nearly like another page's, with that other page.

    Args:
        flags: page id to encoded picture, of all pages of the archive.
        below: mean absolute colour distance, 0 to 1, on 32 x 24 pixels.
    """
    import numpy as np
    from PIL import Image

    names = sorted(flags)
    if not names:
        return {}
    thumbs = (load_picture(flags[name], name).resize((32, 24), Image.Resampling.BOX) for name in names)
    small = np.stack([np.asarray(thumb, dtype=np.float32).ravel() / 255 for thumb in thumbs])
    found: dict[str, str] = {}
    for row, name in enumerate(names):
        distances = np.abs(small - small[row]).mean(axis=1)
        distances[row] = np.inf
        nearest = int(distances.argmin())
        if distances[nearest] < below:
            found[name] = names[nearest]
    return found
