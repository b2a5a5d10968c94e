import io
import struct
import threading
import zlib

import numpy as np
import pytest
from PIL import Image

from remeasure.instances.decode import OK, TRUNCATED, UNDECODABLE, decode, decode_cv

BOTH = pytest.mark.parametrize("way", [decode, decode_cv])


def saved(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def noise(width=64, height=48, seed=0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@BOTH
def test_pixels_are_rows_of_red_green_blue(way):
    image = Image.new("RGB", (3, 2), (10, 20, 30))
    image.putpixel((2, 0), (200, 100, 50))
    found = way(saved(image))
    assert (found.status, found.size, found.problem) == (OK, (3, 2), None)
    assert found.pixels.dtype == np.uint8
    assert found.pixels.tolist() == [
        [[10, 20, 30], [10, 20, 30], [200, 100, 50]],
        [[10, 20, 30], [10, 20, 30], [10, 20, 30]],
    ]


# Landmark card, pitfall 10: OpenCV gives 600 x 868 for a file of 868 x 600 with tag 6 unless told otherwise.
@BOTH
def test_the_orientation_of_exif_is_ignored(way):
    exif = Image.Exif()
    exif[0x0112] = 6
    found = way(saved(Image.new("RGB", (868, 600), (9, 9, 9)), "JPEG", exif=exif))
    assert found.size == (868, 600)
    assert found.pixels.shape == (600, 868, 3)


@BOTH
def test_a_cut_off_photograph_is_decoded_as_far_as_it_goes(way):
    whole = saved(noise(320, 240), "JPEG", quality=90)
    found = way(whole[: len(whole) // 2])
    assert found.status == TRUNCATED
    assert found.size == (320, 240)
    assert "truncated" in found.problem
    # The upper third is there already.
    assert np.array_equal(found.pixels[:80], way(whole).pixels[:80])


@BOTH
@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\xff\xd8\xff", b"plain text" * 30])
def test_what_is_no_photograph_has_a_status_and_no_pixels(way, data):
    found = way(data)
    assert (found.pixels, found.status, found.size) == (None, UNDECODABLE, (0, 0))
    assert found.problem


@BOTH
def test_below_its_header_a_photograph_cannot_be_decoded(way):
    whole = saved(noise(320, 240), "JPEG", quality=90)
    assert way(whole[:200]).status == UNDECODABLE


@BOTH
def test_a_bomb_is_refused_by_the_size_that_it_claims(way):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )
    found = way(data)
    assert found.status == UNDECODABLE


def test_grey_palette_and_transparent_pictures_become_red_green_blue():
    assert decode(saved(Image.new("L", (1, 1), 77))).pixels.tolist() == [[[77, 77, 77]]]
    assert decode(saved(Image.new("RGBA", (1, 1), (1, 2, 3, 0)))).pixels.tolist() == [[[1, 2, 3]]]
    assert decode(saved(Image.new("1", (1, 1), 1))).pixels.tolist() == [[[255, 255, 255]]]
    palette = Image.new("P", (1, 1), 1)
    palette.putpalette([0, 0, 0, 40, 50, 60])
    assert decode(saved(palette)).pixels.tolist() == [[[40, 50, 60]]]


@BOTH
def test_of_16_bits_the_upper_8_are_kept(way):
    # 0x1234 -> 0x12, 0xFFFF -> 0xFF, 0x00FF -> 0.
    deep = Image.fromarray(np.array([[0x1234, 0xFFFF, 0x00FF]], dtype=np.uint16))
    assert way(saved(deep)).pixels.tolist() == [[[0x12] * 3, [0xFF] * 3, [0] * 3]]


@BOTH
def test_cmyk_becomes_red_green_blue(way):
    found = way(saved(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=100))
    assert found.status == OK
    red, green, blue = found.pixels[8, 8].tolist()
    assert red > 240 and green < 15 and blue < 15


@BOTH
@pytest.mark.parametrize("size", [(1, 40), (40, 1), (1, 1)])
def test_lines_and_dots_are_photographs(way, size):
    found = way(saved(Image.new("RGB", size, (5, 6, 7)), "JPEG"))
    assert (found.status, found.size) == (OK, size)


def test_leniency_of_one_thread_is_not_that_of_others():
    whole = saved(noise(320, 240), "JPEG")
    cut, statuses = whole[: len(whole) // 2], []

    def work(data):
        statuses.extend((data is cut, decode(data).status) for _ in range(30))

    threads = [threading.Thread(target=work, args=(data,)) for data in (cut, whole, cut, whole)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {(True, TRUNCATED), (False, OK)}


def test_other_readers_of_the_process_stay_strict():
    whole = saved(noise(320, 240), "JPEG")
    decode(whole[: len(whole) // 2])
    with pytest.raises(OSError, match="truncated"):
        Image.open(io.BytesIO(whole[: len(whole) // 2])).load()
