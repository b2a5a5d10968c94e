"""Outlines that pictures of cases point at: simple shapes, no anatomy."""

import math
import random
from collections.abc import Callable

from PIL import ImageDraw

Box = tuple[int, int, int, int]
INK = (70, 78, 96)
FILL = (226, 231, 240)
SHADE = (196, 205, 221)


def _at(box: Box, x: float, y: float) -> tuple[float, float]:
    """Return a point of a box by shares of its sides."""
    left, top, right, bottom = box
    return left + x * (right - left), top + y * (bottom - top)


def _part(box: Box, x0: float, y0: float, x1: float, y1: float) -> list[tuple[float, float]]:
    return [_at(box, x0, y0), _at(box, x1, y1)]


def body(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw a standing figure."""
    for x0, y0, x1, y1 in ((0.32, 0.26, 0.68, 0.6), (0.33, 0.58, 0.48, 0.98), (0.52, 0.58, 0.67, 0.98)):
        draw.rounded_rectangle(_part(box, x0, y0, x1, y1), radius=8, fill=FILL, outline=INK, width=2)
    for x0, x1 in ((0.14, 0.3), (0.7, 0.86)):
        draw.rounded_rectangle(_part(box, x0, 0.28, x1, 0.62), radius=7, fill=FILL, outline=INK, width=2)
    draw.ellipse(_part(box, 0.36, 0.02, 0.64, 0.24), fill=FILL, outline=INK, width=2)
    for step in range(4):
        y = 0.31 + 0.07 * step
        draw.line(_part(box, 0.38, y, 0.62, y), fill=SHADE, width=3)


def head(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw a head from the front with folds above."""
    draw.ellipse(_part(box, 0.1, 0.08, 0.9, 0.95), fill=FILL, outline=INK, width=2)
    for step in range(5):
        x = 0.22 + 0.12 * step
        draw.arc(_part(box, x, 0.14, x + 0.14, 0.34), 180, 360, fill=SHADE, width=3)
    for x in (0.3, 0.58):
        draw.ellipse(_part(box, x, 0.44, x + 0.12, 0.52), outline=INK, width=2)
    draw.arc(_part(box, 0.36, 0.66, 0.64, 0.82), 20, 160, fill=INK, width=2)


def brain(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw a slice from above: skull, two halves with folds at the rim, two hollows in the middle."""
    draw.ellipse(_part(box, 0.06, 0.0, 0.94, 1.0), fill=(250, 250, 252), outline=INK, width=3)
    draw.ellipse(_part(box, 0.13, 0.07, 0.87, 0.93), fill=FILL, outline=INK, width=2)
    for step in range(18):
        angle = math.pi * (2 * step + 1) / 18
        x, y = math.cos(angle), math.sin(angle)
        draw.line(
            _part(box, 0.5 + 0.36 * x, 0.5 + 0.42 * y, 0.5 + 0.25 * x, 0.5 + 0.3 * y), fill=SHADE, width=4
        )
    draw.line(_part(box, 0.5, 0.07, 0.5, 0.93), fill=INK, width=2)
    for side in (-1, 1):
        bent = ((0.03, 0.48), (0.13, 0.3), (0.16, 0.36), (0.1, 0.5), (0.16, 0.66), (0.12, 0.7), (0.03, 0.54))
        draw.polygon([_at(box, 0.5 + side * x, y) for x, y in bent], fill=SHADE, outline=INK)


def eye(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw an eye from the front with vessels."""
    draw.ellipse(_part(box, 0.02, 0.22, 0.98, 0.8), fill=(250, 250, 252), outline=INK, width=2)
    for _ in range(7):
        x, y = dice.uniform(0.08, 0.9), dice.uniform(0.35, 0.68)
        draw.line(_part(box, x, y, x + dice.uniform(-0.08, 0.08), y + 0.06), fill=(205, 150, 150), width=1)
    draw.ellipse(_part(box, 0.3, 0.28, 0.7, 0.74), fill=SHADE, outline=INK, width=2)
    draw.ellipse(_part(box, 0.42, 0.42, 0.58, 0.6), fill=INK)


def heart(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw four chambers."""
    for x0, y0, x1, y1 in (
        (0.12, 0.12, 0.5, 0.45),
        (0.5, 0.12, 0.88, 0.45),
        (0.12, 0.45, 0.5, 0.92),
        (0.5, 0.45, 0.88, 0.92),
    ):
        draw.rounded_rectangle(_part(box, x0, y0, x1, y1), radius=14, fill=FILL, outline=INK, width=3)
    draw.line(_part(box, 0.5, 0.12, 0.5, 0.92), fill=SHADE, width=5)


def trunk(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw a cross section with round parts in it."""
    draw.ellipse(_part(box, 0.02, 0.14, 0.98, 0.9), fill=FILL, outline=INK, width=3)
    for x in (0.18, 0.58):
        width, height = dice.uniform(0.2, 0.28), dice.uniform(0.26, 0.4)
        draw.ellipse(_part(box, x, 0.3, x + width, 0.3 + height), fill=SHADE, outline=INK, width=2)
    draw.ellipse(_part(box, 0.42, 0.66, 0.58, 0.82), fill=(250, 250, 252), outline=INK, width=2)


def cells(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw a field of round cells."""
    draw.ellipse(_part(box, 0.0, 0.06, 1.0, 0.94), fill=(247, 240, 245), outline=INK, width=2)
    for number in range(14):
        angle, far = number * 2.4, 0.09 * math.sqrt(number + 0.5)
        x, y = 0.5 + far * math.cos(angle), 0.5 + far * math.sin(angle)
        size = dice.uniform(0.045, 0.065)
        draw.ellipse(_part(box, x - size, y - size, x + size, y + size), fill=(222, 190, 210), outline=INK)
        draw.ellipse(_part(box, x - 0.02, y - 0.02, x + 0.02, y + 0.02), fill=(120, 80, 130))


def hand(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw a palm and five fingers."""
    for number, top in enumerate((0.42, 0.1, 0.04, 0.1, 0.2)):
        x = 0.04 + 0.19 * number
        draw.rounded_rectangle(_part(box, x, top, x + 0.14, 0.66), radius=7, fill=FILL, outline=INK, width=2)
    draw.rounded_rectangle(_part(box, 0.14, 0.5, 0.94, 0.96), radius=16, fill=FILL, outline=INK, width=2)


def waves(draw: ImageDraw.ImageDraw, box: Box, dice: random.Random) -> None:
    """Draw three traces, one above the other."""
    for row in range(3):
        base, points = 0.2 + 0.3 * row, []
        for step in range(41):
            swing = math.sin(step * dice.uniform(0.7, 1.1)) * 0.09 * math.exp(-(((step - 18) / 9) ** 2))
            points.append(_at(box, step / 40, base - swing))
        draw.line(points, fill=INK, width=2)
        draw.line(_part(box, 0, base + 0.12, 1, base + 0.12), fill=SHADE, width=1)


DRAWINGS: dict[str, Callable[[ImageDraw.ImageDraw, Box, random.Random], None]] = {
    "body": body,
    "brain": brain,
    "head": head,
    "eye": eye,
    "heart": heart,
    "trunk": trunk,
    "cells": cells,
    "hand": hand,
    "waves": waves,
}
