"""What a photographer, a scanner or a web site does to a photograph: crops, slants, light, coarse JPEG.

All that is random comes from the ``random.Random`` that is given, so equal dice give equal bytes.
"""

import io
import math
import random
from dataclasses import dataclass

import numpy as np
from PIL import Image

Range = tuple[float, float]


def fitted(picture: Image.Image, side_px: int) -> Image.Image:
    """Return a picture whose longer side is at most so long; a smaller one is not enlarged."""
    share = side_px / max(picture.size)
    if share >= 1:
        return picture.copy()
    width, height = (max(1, round(side * share)) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=3.0)


def cropped(picture: Image.Image, area_share: float, dice: random.Random) -> Image.Image:
    """Return a part of a picture, of the same shape and this share of its area, somewhere in it."""
    side = area_share**0.5
    width, height = (max(1, round(length * side)) for length in picture.size)
    left = dice.randint(0, picture.width - width)
    top = dice.randint(0, picture.height - height)
    return picture.crop((left, top, left + width, top + height))


def slanted(picture: Image.Image, strength: float, dice: random.Random) -> Image.Image:
    """Return a picture seen from aside, of the same size: a four-sided part of it, drawn as the whole.

    Args:
        picture: RGB.
        strength: how far a corner moves inwards at most, as a share of the sides, below 0.5.
        dice: where the corners go.
    """
    width, height = picture.size
    corners = [(0, 0), (width, 0), (width, height), (0, height)]
    moved = [
        (
            x + (1 if x == 0 else -1) * dice.uniform(0, strength) * width,
            y + (1 if y == 0 else -1) * dice.uniform(0, strength) * height,
        )
        for x, y in corners
    ]
    return picture.transform(
        picture.size, Image.Transform.PERSPECTIVE, _projection(corners, moved), Image.Resampling.BILINEAR
    )


def _projection(seen: list[tuple[float, float]], drawn_from: list[tuple[float, float]]) -> tuple[float, ...]:
    """Return the eight numbers of the projection from points of the result to those of the source."""
    rows, values = [], []
    for (x, y), (u, v) in zip(seen, drawn_from, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return tuple(float(number) for number in np.linalg.solve(np.array(rows, float), np.array(values, float)))


def lit(picture: Image.Image, factor: float) -> Image.Image:
    """Return a picture in other light: every value times a factor, at most 255."""
    return picture.point([min(255, round(value * factor)) for value in range(256)] * len(picture.getbands()))


def tilted(picture: Image.Image, degrees: float) -> Image.Image:
    """Return the middle of a picture, turned, with nothing in it that the picture does not show."""
    turned = picture.rotate(degrees, Image.Resampling.BILINEAR)
    # The largest part of the same shape that fits into the turned picture.
    angle = math.radians(abs(degrees))
    width, height = picture.size
    longer, shorter = max(width, height), min(width, height)
    share = shorter / (longer * math.sin(angle) + shorter * math.cos(angle))
    left, top = round(width * (1 - share) / 2), round(height * (1 - share) / 2)
    return turned.crop((left, top, width - left, height - top))


def grained(picture: Image.Image, deviation: float, dice: random.Random) -> Image.Image:
    """Return a picture with the noise of a sensor: independent, of this standard deviation, of 255."""
    noise = np.random.RandomState(dice.randrange(2**31)).normal(0, deviation, (*picture.size[::-1], 3))
    return Image.fromarray(np.clip(np.rint(np.asarray(picture) + noise), 0, 255).astype(np.uint8))


def jpeg(picture: Image.Image, quality: int, **options) -> bytes:
    """Return a picture as JPEG."""
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality, **options)
    return out.getvalue()


def png(picture: Image.Image) -> bytes:
    """Return a picture as PNG."""
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=6)
    return out.getvalue()


@dataclass(frozen=True)
class Another:
    """Another photograph of the same, within limits."""

    area_share: Range
    slant: float
    light: Range
    tilt_degrees: float = 0

    def of(self, picture: Image.Image, dice: random.Random) -> Image.Image:
        """Return one."""
        part = cropped(picture, dice.uniform(*self.area_share), dice)
        tilt = dice.uniform(-1, 1) * self.tilt_degrees
        part = tilted(part, tilt) if tilt else part
        return lit(slanted(part, self.slant, dice), dice.uniform(*self.light))


MILD = Another(area_share=(0.8, 0.95), slant=0.06, light=(0.85, 1.15))
VARIED = Another(area_share=(0.25, 1.0), slant=0.25, light=(0.15, 1.5), tilt_degrees=30)


HARD = ("part", "aside", "dark", "coarse")
"""Views that are hard to recognise: a small part, tilted and from far aside, in the dark, tiny."""


def seen(picture: Image.Image, kind: str, dice: random.Random) -> Image.Image:
    """Return a view of one kind: one of ``HARD``, ``junk`` (too small a part), ``easy`` or ``varied``."""
    match kind:
        case "part":
            return cropped(picture, dice.uniform(0.14, 0.24), dice)
        case "aside":
            return slanted(tilted(picture, dice.choice((-1, 1)) * dice.uniform(25, 45)), 0.42, dice)
        case "dark":
            return grained(lit(picture, 0.18), 10, dice)
        case "coarse":
            return lit(fitted(picture, 48), 1.5)
        case "junk":
            return cropped(picture, 0.05, dice)
        case "varied":
            return VARIED.of(picture, dice)
    return MILD.of(picture, dice)


def turned_tag(picture: Image.Image, quality: int) -> bytes:
    """Return a JPEG whose EXIF says "turn me by 90 degrees" (orientation 6), which its pixels do not need."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return jpeg(picture, quality, exif=exif)


def odd_form(picture: Image.Image, form: str, quality: int) -> bytes:
    """Return a picture in one of the forms that real collections hold under the name ``.jpg``.

    Args:
        picture: RGB.
        form: ``exif`` (orientation 6), ``truncated`` (half of the bytes), ``stub`` (0.5 % of the bytes,
            nothing can be decoded), ``cmyk``, ``grey``, ``grey16`` and ``palette`` (PNG), ``strip`` (1 x 40
            pixels).
        quality: of JPEG.
    """
    data = jpeg(picture, quality)
    match form:
        case "exif":
            return turned_tag(picture, quality)
        case "truncated":
            return data[: len(data) // 2]
        case "stub":
            return data[: max(1, len(data) // 200)]
        case "cmyk":
            return jpeg(picture.convert("CMYK"), quality)
        case "grey":
            return png(picture.convert("L"))
        case "grey16":
            grey = np.asarray(picture.convert("L"), dtype=np.uint16) * 257
            return png(Image.fromarray(grey))
        case "palette":
            return png(picture.quantize(64))
        case "strip":
            return jpeg(picture.resize((1, 40)), quality)
    raise ValueError(form)
