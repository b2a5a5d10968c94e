import io

import pytest
from PIL import Image, ImageDraw

from remeasure.tiles import Rectangle, check, cut, is_flat


def jpeg(height: int, *texts: int, width: int = 875) -> bytes:
    """A white tile with a word at each given height."""
    image = Image.new("RGB", (width, height), "white")
    for y in texts:
        ImageDraw.Draw(image).text((20, y), "word", fill="black")
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("height", "expected", "dropped"),
    [
        (1, [1], 0),
        (27, [27], 0),
        (1024, [1024], 0),
        (1051, [1024], 27),
        (1052, [1024, 28], 0),
        (2500, [1024, 1024, 452], 0),
    ],
)
def test_rows_below_28_pixels_are_left_out_unless_they_are_all(height, expected, dropped):
    grid = cut(875, height, 875, 1024)
    assert [place.height_px for place in grid.rectangles] == expected
    assert grid.dropped_bottom_px == dropped


def test_a_wide_page_is_cut_row_by_row_and_narrow_columns_are_left_out():
    grid = cut(1776, 1100, 875, 1024)
    assert grid.rectangles == (
        Rectangle(0, 0, 875, 1024),
        Rectangle(875, 0, 875, 1024),
        Rectangle(0, 1024, 875, 76),
        Rectangle(875, 1024, 875, 76),
    )
    assert (grid.dropped_bottom_px, grid.dropped_right_px) == (0, 26)


def test_a_tile_with_one_word_is_not_blank_but_has_flat_stretches():
    capture = check(jpeg(1024, 300), 875, 1024)
    assert (capture.problem, capture.blank) == (None, False)
    assert capture.flat == ((0, 256), (512, 512))


def test_a_white_tile_is_blank_in_one_stretch():
    capture = check(jpeg(1000), 875, 1000)
    assert (capture.blank, capture.flat) == (True, ((0, 1000),))


@pytest.mark.parametrize("height", [1, 5, 12, 257])
def test_small_tiles_are_looked_at_too(height):
    assert check(jpeg(height), 875, height).blank


def test_torn_bytes_and_other_sizes_are_problems():
    data = jpeg(1024, 300)
    assert "does not decode" in check(data[: len(data) // 2], 875, 1024).problem
    assert "does not decode" in check(b"", 875, 1024).problem
    assert check(data, 875, 1000).problem == "is 875 x 1024 px, expected 875 x 1000"


def test_a_faint_word_is_seen_at_full_resolution():
    image = Image.new("RGB", (875, 1024), "white")
    image.putpixel((400, 600), (200, 200, 200))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=95)
    assert not is_flat(stream.getvalue(), 512, 256)
    assert is_flat(stream.getvalue(), 0, 256)
