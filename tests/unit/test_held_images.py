"""Images inside tables: lists of base64 taken apart slot by slot, checked whole, stored once, made 8-bit.

Source: MRareBench card, section 2.2; issue 6, bad input.
"""

import io
import json
import pickle
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from casekit import b64, deep, images
from imagekit import picture
from remeasure import eight_bits, held_images
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.held_images import Images, slots


def saved(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def take(data: bytes) -> tuple[held_images.Held, bytes]:
    """What an image becomes, and the bytes in the store."""
    found = Images()
    held = found.take(b64(data), 3)
    ((name, stored),) = found.new()
    assert (held.slot, held.member, held.sha256) == (3, name, sha256_bytes(stored))
    return held, stored


def refused(entry) -> str:
    found = Images()
    with pytest.raises(RemeasureError) as caught:
        found.take(entry, 1)
    assert list(found.new()) == [] and found.n_images == 0 and "\n" not in str(caught.value)
    return str(caught.value)


# -- lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "entries"),
    [
        ("[]", []),
        (" [ ] \n", []),
        ('["a"]', ["a"]),
        ('["a" ,\n"b", "", null, 3, ["x"], {"y": 1}]', ["a", "b", "", None, 3, ["x"], {"y": 1}]),
        ('["\\u0061\\/"]', ["a/"]),
    ],
)
def test_a_list_gives_its_entries_in_order(cell, entries):
    assert list(slots(cell)) == entries


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("", "is no JSON list (begins with nothing)"),
        ("iVBORw0KGgo=", "is no JSON list (begins with 'iVBORw0KGgo=')"),
        ('"abc"', "is no JSON list (begins with"),
        ('{"a": 1}', "is no JSON list (begins with"),
        ("['a']", "is no JSON list (Expecting value"),
        ("['a'].__class__", "is no JSON list (Expecting value"),
        ('["a"', "after an entry comes nothing"),
        ('["a",]', "is no JSON list (Expecting value"),
        ('["a" "b"]', "after an entry comes '\"b\"]'"),
        ('["a"] x', "behind its end comes 'x'"),
        ('["a"]["b"]', "behind its end comes"),
        ('["a\n', "is no JSON list (Invalid control character"),
        ("[" * 100_000, "nested too deep"),
        ("[" + "9" * 5000 + "]", "is no JSON list (Exceeds the limit"),
    ],
)
def test_what_is_no_list_is_said_without_evaluating_it(cell, said):
    with pytest.raises(RemeasureError) as caught:
        list(slots(cell))
    assert said in str(caught.value) and len(str(caught.value)) < 300


def test_entries_are_parsed_one_at_a_time():
    found = slots('["a", "b" rubbish')
    assert [next(found), next(found)] == ["a", "b"]
    with pytest.raises(RemeasureError, match="after an entry comes 'rubbish'"):
        next(found)


# -- slots --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "suffix"),
    [("PNG", {}, "png"), ("JPEG", {}, "jpg"), ("WEBP", {"lossless": True}, "webp"), ("GIF", {}, "gif")],
)
def test_images_that_servers_take_keep_their_bytes(kind, options, suffix):
    data = picture(kind, size=(8, 6), **options)
    held, stored = take(data)
    assert stored == data and held.member == f"{sha256_bytes(data)}.{suffix}"
    assert (held.width_px, held.height_px, held.format, held.converted) == (8, 6, kind.lower(), None)


def test_equal_images_are_stored_once_and_forgotten():
    first, second = picture(seed=1), picture(seed=2)
    found = Images()
    held = [found.take(entry, n) for n, entry in enumerate(json.loads(images(first, second, first)), start=1)]
    assert [one.slot for one in held] == [1, 2, 3]
    assert [sha256_bytes(data) for _, data in found.new()] == [held[0].sha256, held[1].sha256]
    assert held[2].sha256 == held[0].sha256 and list(found.new()) == []
    assert (found.n_images, found.n_slots) == (2, 3)


def test_white_space_in_base64_does_not_count():
    data = picture()
    wrapped = "\r\n".join(b64(data)[at : at + 76] for at in range(0, len(b64(data)), 76)) + "\n"
    assert Images().take(wrapped, 1).sha256 == sha256_bytes(data)


BOMB = b"\x89PNG\r\n\x1a\n" + b"".join(
    struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    for kind, body in (
        (b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(10**6))),
        (b"IEND", b""),
    )
)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("", "is empty: the image is missing"),
        ("  ", "is empty: the image is missing"),
        (None, "is empty: the image is missing"),
        (7, "is no text but int, expected base64"),
        (["a"], "is no text but list, expected base64"),
        ("data:image/png;base64,iVBORw0K", "expected base64 alone: leave out all up to the comma"),
        ("DATA:image/png;base64,iVBORw0K", "expected base64 alone"),
        ("abc", "is no base64 (Incorrect padding"),
        ("ab\u00e9=", "is no base64 (letters outside its alphabet"),
        ("a-_b", "is no base64 ("),
        ("aGVsbG8=aGVsbG8=", "is no base64 ("),
        ("aGVsbG8=", "is not a PNG, JPEG, GIF or WebP image (starts with b'hello')"),
        (b64(pickle.dumps({"a": 1})), "is not a PNG, JPEG, GIF or WebP image"),
        ("__import__('os').system('true')", "is no base64 ("),
        (b64(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "is not a PNG, JPEG, GIF or WebP image"),
        (b64(picture("JPEG", size=(64, 64))[:-400]), "cannot be decoded to the end"),
        (b64(picture("PNG", size=(64, 64))[:-40]), "cannot be decoded to the end"),
        (b64(picture("PNG")[:20]), "is cut off or broken in its png header"),
        (b64(BOMB), "has 100000 x 100000 = 10000 megapixels, at most 150"),
    ],
)
def test_a_slot_that_holds_no_whole_image_is_refused(entry, said):
    assert said in refused(entry)


def test_a_broken_image_is_refused_as_often_as_it_is_there():
    found = Images()
    for _ in range(2):
        with pytest.raises(RemeasureError, match="is not a PNG"):
            found.take("aGVsbG8=", 1)


def test_a_slot_beyond_the_limit_is_not_decoded(monkeypatch):
    monkeypatch.setattr(held_images, "_MAX_LETTERS", 10)
    assert "has 12 letters, at most 10 are read" in refused("A" * 12)


# -- 8 bits -------------------------------------------------------------------------------------------------


def grey(data: bytes) -> list[list[int]]:
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.mode) == ("PNG", "L")
        return np.asarray(image).tolist()


# By hand, 255 (v - min) / (max - min) + 1/2 rounded down:
# 1000 -> 0; 2000 -> 255 * 1000 / 4000 = 63.75 -> 64; 3000 -> 127.5 -> 128; 5000 -> 255
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bit_grey_is_spread_over_its_own_range(kind):
    data = deep(np.array([[1000, 2000], [3000, 5000]], np.uint16), kind)
    held, stored = take(data)
    assert grey(stored) == [[0, 64], [128, 255]]
    assert held.format == "png" and held.odd == ()
    assert held.converted == eight_bits.Converted(
        rule="linear from the image's own minimum (0) to its maximum (255), halves rounded up, "
        "8-bit grey PNG",
        sha256=sha256_bytes(data),
        mode="I;16",
        minimum=1000.0,
        maximum=5000.0,
    )


# -0.5 -> 0; 0 -> 255 * 0.5 / 1.5 = 85; 0.25 -> 127.5 -> 128; 1 -> 255
def test_floating_point_grey_is_spread_over_its_own_range():
    held, stored = take(deep(np.array([[-0.5, 0.0], [0.25, 1.0]], np.float32), "TIFF"))
    assert grey(stored) == [[0, 85], [128, 255]]
    assert (held.converted.mode, held.converted.minimum, held.converted.maximum) == ("F", -0.5, 1.0)


def test_32_bit_grey_is_spread_over_its_own_range():
    stored = take(deep(np.array([[0, 2**31 - 1]], np.int32), "TIFF"))[1]
    assert grey(stored) == [[0, 255]]


@pytest.mark.parametrize("value", [0, 7, 65535])
def test_an_image_of_one_value_becomes_black(value):
    held, stored = take(deep(np.full((2, 3), value, np.uint16)))
    assert grey(stored) == [[0, 0, 0], [0, 0, 0]]
    assert (held.converted.minimum, held.converted.maximum) == (value, value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_finite_number_is_an_error(value):
    values = np.zeros((3, 4), np.float32)
    values[2, 1] = value
    said = refused(b64(deep(values, "TIFF")))
    assert said == "has a value that is no finite number in row 2, column 1; correct the image"


def test_a_large_image_is_converted_in_strips_to_the_same_values(monkeypatch):
    values = np.random.default_rng(1).integers(0, 65536, (37, 23)).astype(np.uint16)
    whole = take(deep(values))[1]
    monkeypatch.setattr(eight_bits, "_STRIP_PX", 50)
    assert take(deep(values))[1] == whole
    low, high = int(values.min()), int(values.max())
    assert grey(whole)[5][7] == int(255 * (int(values[5, 7]) - low) / (high - low) + 0.5)


def test_an_8_bit_tiff_becomes_a_png_of_the_same_pixels():
    image = Image.frombytes("RGB", (2, 1), bytes((1, 2, 3, 4, 5, 6)))
    held, stored = take(saved(image, "TIFF"))
    with Image.open(io.BytesIO(stored)) as made:
        assert (made.format, made.mode, made.tobytes()) == ("PNG", "RGB", bytes((1, 2, 3, 4, 5, 6)))
    assert held.converted.rule == "pixels as they are, as PNG" and held.converted.minimum is None


def test_a_tiff_of_several_pages_other_colours_or_too_many_pixels_is_refused(monkeypatch):
    one = Image.new("L", (4, 4))
    assert (
        refused(b64(saved(one, "TIFF", save_all=True, append_images=[one])))
        == "has 2 pages, expected one image"
    )
    assert "has pixels of mode CMYK" in refused(b64(saved(one.convert("CMYK"), "TIFF")))
    monkeypatch.setattr(eight_bits, "MAX_PIXELS", 15)
    assert "has 4 x 4 = 0 megapixels" in refused(b64(saved(one, "TIFF")))


@pytest.mark.parametrize("cut", [8, 40, 100])
def test_a_broken_tiff_is_refused(cut):
    data = deep(np.arange(400, dtype=np.uint16).reshape(20, 20), "TIFF")
    assert "cannot be decoded to the end" in refused(b64(data[:-cut] if cut != 8 else data[:8]))


def test_a_converted_image_is_stored_once_too():
    data = deep(np.array([[1000, 2000]], np.uint16))
    found = Images()
    assert found.take(b64(data), 1).sha256 == found.take(b64(data), 2).sha256
    assert len(list(found.new())) == 1


def test_colours_of_16_bits_are_kept_and_called_odd():
    # Pillow writes none: two RGB pixels of 16 bits by hand.
    body = b"\0" + struct.pack(">6H", 0, 1000, 65535, 5, 6, 7)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(body)),
        (b"IEND", b""),
    )
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
        for kind, part in chunks
    )
    held, stored = take(data)
    assert stored == data and held.odd == ("16-bit",) and held.converted is None
