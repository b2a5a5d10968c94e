"""Query pictures: made from flags, always the same, without anything that tells."""

import io
from pathlib import Path

import msgspec
import pytest
import yaml
from PIL import Image, ImageDraw

from remeasure import pictures
from remeasure.errors import RemeasureError
from remeasure.pictures import PictureSettings

CONFIG = Path(__file__).resolve().parents[2] / "config" / "studies" / "pixelrag_questions.yaml"


@pytest.fixture(scope="module")
def settings() -> PictureSettings:
    return msgspec.convert(yaml.safe_load(CONFIG.read_text("utf-8"))["pictures"], PictureSettings)


def flag(*colours: str) -> Image.Image:
    image = Image.new("RGB", (640, 480))
    draw = ImageDraw.Draw(image)
    for number, colour in enumerate(colours):
        height = 480 / len(colours)
        draw.rectangle([0, number * height, 640, (number + 1) * height], fill=colour)
    return image


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_a_photo_is_decided_by_its_seed(settings):
    first = pictures.photograph(flag("red", "white"), "seed", settings)
    assert first == pictures.photograph(flag("red", "white"), "seed", settings)
    assert first != pictures.photograph(flag("red", "white"), "other", settings)


def test_a_photo_has_its_size_and_no_metadata(settings):
    shot = Image.open(io.BytesIO(pictures.photograph(flag("red", "white"), "seed", settings)))
    assert shot.size == settings.size_px
    assert shot.format == "JPEG" and not shot.getexif() and "comment" not in shot.info


def test_the_flag_is_in_the_photo_and_the_ground_around_it(settings):
    shot = Image.open(io.BytesIO(pictures.photograph(flag("red"), "seed", settings))).convert("RGB")
    centre, corner = shot.getpixel((240, 200)), shot.getpixel((2, 2))
    assert centre[0] > 180 and centre[1] < 40 and centre[2] < 40
    assert corner != centre


def test_the_same_flag_of_two_pages_is_too_alike_and_another_is_not():
    flags = {
        "a": png(flag("red", "white")),
        "b": png(flag("#fb0505", "white")),
        "c": png(flag("white", "red")),
    }
    assert pictures.too_alike(flags, 0.06) == {"a": "b", "b": "a"}
    assert pictures.too_alike({}, 0.06) == {}


def test_a_broken_picture_is_one_line():
    with pytest.raises(RemeasureError, match="picture kenya: cannot be decoded"):
        pictures.load_picture(b"no picture", "kenya")
