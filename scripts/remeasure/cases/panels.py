"""Pictures of cases: a heading and labels, beside bars against a reference range, an outline, or ruled lines.

The typeface is the one inside Pillow, so that one version of it gives the same bytes on every computer.
"""

import io
import random
from collections.abc import Callable, Iterable

from PIL import Image, ImageDraw, ImageFont

from remeasure.cases.case import Picture
from remeasure.cases.drawings import DRAWINGS, INK
from remeasure.cases.settings import CaseSettings, Kind
from remeasure.errors import RemeasureError

PAPER, TEXT, RULE = (252, 252, 250), (28, 30, 38), (205, 208, 214)
_MARGIN_PX = 14
_HEAD_PX = 24
_LABEL_PX = (18, 17, 16, 15, 14)
_MARK = (190, 60, 50)
_IN_RANGE, _OUT_OF_RANGE, _BAND = (96, 120, 150), (198, 96, 66), (208, 226, 208)


def _fitting(texts: Iterable[str], width_px: float) -> ImageFont.FreeTypeFont:
    """Return the largest of the sizes of labels in which all of them fit into a line.

    Raises:
        RemeasureError: one fits in none.
    """
    texts = list(texts)
    for size in _LABEL_PX:
        font = ImageFont.load_default(size)
        if max(font.getlength(text) for text in texts) <= width_px:
            return font
    longest = max(texts, key=len)
    raise RemeasureError(
        f"config/cases.yaml: label {longest!r} does not fit into {width_px:.0f} px; lower label_letters or "
        "raise size_px"
    )


class Painter:
    """Draws the pictures of one set of cases.

    Args:
        settings: sizes and kinds of examinations.
        side: tells of a label whether it says above (true) or below its range (false).
    """

    def __init__(self, settings: CaseSettings, side: Callable[[str], bool | None]) -> None:
        self._settings, self._side = settings, side

    def png(self, picture: Picture, seed: str) -> bytes:
        """Return a picture as PNG; the same seed gives the same bytes."""
        kind, dice = self._settings.kinds[picture.kind], random.Random(seed)
        image = Image.new("RGB", self._settings.size_px, PAPER)
        draw = ImageDraw.Draw(image)
        draw.text((_MARGIN_PX, 9), kind.title, font=ImageFont.load_default(_HEAD_PX), fill=TEXT)
        draw.line((_MARGIN_PX, 46, image.width - _MARGIN_PX, 46), fill=RULE, width=2)
        labels = [finding.label for finding in picture.findings]
        {"bars": self._bars, "figure": self._figure, "card": self._card}[kind.layout](
            draw, kind, labels, dice
        )
        out = io.BytesIO()
        image.save(out, "PNG", compress_level=6)
        return out.getvalue()

    def _bars(self, draw: ImageDraw.ImageDraw, kind: Kind, labels: list[str], dice: random.Random) -> None:
        """Draw one bar per label, and one of a value within its range; the band is the reference range."""
        width, height = self._settings.size_px
        rows = dice.sample([*labels, dice.choice(kind.normal)], len(labels) + 1)
        font = _fitting(rows, width - 2 * _MARGIN_PX)
        left, right, step = _MARGIN_PX, width - _MARGIN_PX, (height - 62) // len(rows)
        low, high = left + 0.35 * (right - left), left + 0.6 * (right - left)
        for number, label in enumerate(rows):
            top = 56 + number * step
            draw.text((left, top), label, font=font, fill=TEXT)
            track = top + 26
            draw.rectangle((left, track, right, track + 14), fill=(238, 239, 243))
            draw.rectangle((low, track, high, track + 14), fill=_BAND)
            is_high = self._side(label) if label in labels else None
            share = {True: (0.7, 0.95), False: (0.08, 0.28), None: (0.4, 0.55)}[is_high]
            end = left + dice.uniform(*share) * (right - left)
            colour = _IN_RANGE if is_high is None else _OUT_OF_RANGE
            draw.rectangle((left, track + 3, end, track + 11), fill=colour)

    def _figure(self, draw: ImageDraw.ImageDraw, kind: Kind, labels: list[str], dice: random.Random) -> None:
        """Draw an outline on the left and a call-out from it for each label."""
        width, height = self._settings.size_px
        bottom = height - _MARGIN_PX
        side = min(130, bottom - 60)
        top = 60 + (bottom - 60 - side) // 2
        box = (_MARGIN_PX, top, _MARGIN_PX + side, top + side)
        DRAWINGS[kind.drawing or ""](draw, box, dice)
        start = box[2] + 26
        font = _fitting(labels, width - _MARGIN_PX - start)
        step = (bottom - 60) / len(labels)
        for number, label in enumerate(labels):
            y = 60 + step * (number + 0.5)
            spot = (box[0] + dice.uniform(0.25, 0.75) * side, top + dice.uniform(0.25, 0.75) * side)
            draw.line((*spot, start - 6, y), fill=_MARK, width=2)
            draw.ellipse((spot[0] - 4, spot[1] - 4, spot[0] + 4, spot[1] + 4), fill=_MARK, outline=INK)
            draw.text((start, y), label, font=font, fill=TEXT, anchor="lm")

    def _card(self, draw: ImageDraw.ImageDraw, kind: Kind, labels: list[str], dice: random.Random) -> None:
        """Draw ruled lines with a ticked box before each label."""
        width, height = self._settings.size_px
        font = _fitting(labels, width - 2 * _MARGIN_PX - 34)
        step = (height - 70) / len(labels)
        for number, label in enumerate(labels):
            y = 58 + step * (number + 0.5)
            left = _MARGIN_PX + 4
            draw.rectangle((left, y - 8, left + 16, y + 8), outline=INK, width=2)
            draw.line((left + 3, y, left + 7, y + 5, left + 14, y - 6), fill=_MARK, width=2)
            draw.text((left + 28, y), label, font=font, fill=TEXT, anchor="lm")
            draw.line((_MARGIN_PX, y + 24, width - _MARGIN_PX, y + 24), fill=RULE, width=1)
