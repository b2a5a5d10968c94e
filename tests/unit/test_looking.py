"""Images decoded whole: what is usable and what is not, remembered by content; transparent ones on white."""

import io
import logging
import random
import struct
import threading
import warnings
import zlib
from pathlib import Path

import pytest
from PIL import Image

from imagekit import picture
from remeasure import jsonl, looking, opaque
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.image_check import inspect
from remeasure.looking import Memory, Seen, look, look_at_all
from remeasure.progress import Progress
from remeasure.records import ImageRef, Item

QUIET = Progress(logging.getLogger("test"), "images", None)


class _Nothing:
    """A memory that remembers nothing."""

    def get(self, sha256):
        return None

    def add(self, seen):
        pass


def png(width_px: int, height_px: int, pixels: bytes, colour: int = 0, extra: bytes = b"") -> bytes:
    """Return a PNG of the given compressed pixels, whether or not they fit."""
    header = struct.pack(">IIBBBBB", width_px, height_px, 8, colour, 0, 0, 0)
    parts = [b"IHDR" + header, *([extra] if extra else []), b"IDAT" + pixels, b"IEND"]
    chunks = (struct.pack(">I", len(p) - 4) + p + struct.pack(">I", zlib.crc32(p)) for p in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_a_good_image_is_described_whatever_its_name_says():
    data = picture("JPEG", size=(40, 30))
    assert look(data) == Seen(sha256=sha256_bytes(data), format="jpeg", width_px=40, height_px=30, mode="RGB")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_kind_of_png_is_decoded(mode):
    found = look(picture(mode=mode, size=(16, 12)))
    assert found.problem is None and found.mode == mode and not found.transparent


def test_only_pixels_that_are_not_opaque_make_an_image_transparent():
    image = Image.new("RGBA", (4, 4), (1, 2, 3, 255))
    out = io.BytesIO()
    image.save(out, "PNG")
    assert not look(out.getvalue()).transparent
    image.putpixel((3, 3), (1, 2, 3, 254))
    out = io.BytesIO()
    image.save(out, "PNG")
    assert look(out.getvalue()).transparent
    palette = Image.new("P", (4, 4))
    out = io.BytesIO()
    palette.save(out, "PNG", transparency=0)
    assert look(out.getvalue()).transparent


JPEG, PNG = picture("JPEG", size=(64, 64), seed=3), picture(size=(64, 64), seed=3)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"a caption, no image", "is not a PNG, JPEG, GIF or WebP image"),
        (b"%PDF-1.7", "is not a PNG, JPEG, GIF or WebP image"),
        (JPEG[: len(JPEG) // 2], "cannot be decoded to the end"),
        (JPEG[:30], "is cut off or broken in its jpeg header"),
        (PNG[: len(PNG) // 2], "cannot be decoded to the end"),
        (PNG[:40], "is cut off or broken in its png header"),
        (png(100_000, 100_000, zlib.compress(b"")), "10000 megapixels"),
        (png(0, 5, zlib.compress(b"")), "has no pixels"),
        (png(8, 8, zlib.compress(b"")), "cannot be decoded to the end"),
        (png(8, 8, zlib.compress(bytes(9 * 4))), "has no pixels behind 36 of 72 bytes of its rows"),
        (png(8, 8, zlib.compress(bytes(9 * 7))), "has no pixels behind 63 of 72 bytes of its rows"),
        (png(8, 8, b"no zlib stream"), "cannot be decoded to the end"),
        (png(8, 8, zlib.compress(bytes(72)), colour=5), "cannot be decoded to the end"),
    ],
)
def test_what_is_no_whole_image_says_why(data, said):
    found = look(data)
    assert said in (found.problem or "") and "\n" not in found.problem
    assert found.width_px is None and found.sha256 == sha256_bytes(data)


def test_a_png_with_all_its_rows_is_whole_whatever_follows_them():
    assert look(png(8, 8, zlib.compress(bytes(72)))).problem is None
    assert look(png(8, 8, zlib.compress(bytes(100)))).problem is None
    # Three columns and five rows in seven passes: 1 x 1, none, 1 x 1, 1 x 2, 2 x 1, 1 x 3 and 3 x 2 pixels of
    # a byte, and a byte before each row, are 2 + 0 + 2 + 4 + 3 + 6 + 8 bytes.
    whole = interlaced(3, 5, zlib.compress(bytes(25)))
    assert look(whole).problem is None
    assert "behind 21 of 25 bytes" in (look(interlaced(3, 5, zlib.compress(bytes(21)))).problem or "")


def interlaced(width_px: int, height_px: int, pixels: bytes) -> bytes:
    """As ``png`` of grey, in seven passes."""
    data = bytearray(png(width_px, height_px, pixels))
    data[28] = 1
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def test_a_png_whose_text_unpacks_to_a_bomb_is_not_unpacked():
    bomb = b"zTXtx\0\0" + zlib.compress(bytes(200_000_000))
    found = look(png(1, 1, zlib.compress(bytes(2)), extra=bomb))
    assert found.problem is None or "cannot be decoded" in found.problem


def test_a_large_but_plausible_image_is_decoded_without_a_warning(capfd):
    white = png(12_000, 8_000, zlib.compress(bytes(8_000 * 12_001), 9))  # 96 megapixels: Pillow warns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Warning):
            Image.open(io.BytesIO(white))
    found = look_at_all(["a"], lambda _: white, _Nothing(), QUIET, 1)
    assert found["a"].width_px == 12_000 and capfd.readouterr() == ("", "")


def test_random_damage_never_crashes_and_never_prints(capfd):
    whole = [JPEG, PNG, picture(mode="RGBA"), picture(mode="P"), picture("WEBP"), picture("GIF", "P")]

    def damaged(name: str) -> bytes:
        dice = random.Random(int(name))
        data = bytearray(dice.choice(whole))
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        return bytes(data[: dice.randint(1, len(data))] if dice.random() < 0.3 else data)

    names = [str(n) for n in range(1500)]
    found = look_at_all(names, damaged, _Nothing(), QUIET, 2)
    assert list(found) == names
    assert {one.problem is None for one in found.values()} == {True, False}
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_read_is_a_problem_of_that_image_alone():
    def read(path: str) -> bytes:
        if path == "b":
            raise RemeasureError("cannot be read (Input/output error)")
        return PNG

    found = look_at_all(["a", "b", "c"], read, _Nothing(), QUIET, 2)
    assert list(found) == ["a", "b", "c"]
    assert found["b"] == Seen(sha256=None, problem="cannot be read (Input/output error)")
    assert found["a"].problem is None and found["c"].problem is None


def test_at_most_four_images_per_thread_are_ahead_of_the_results():
    asked: list[str] = []
    done = threading.Event()

    class Slow(_Nothing):
        def add(self, seen):
            # Nothing has been handed over yet but this one: window 4 * 2, and one more after each result.
            if not done.is_set():
                done.wait(0.2)
                assert len(asked) <= 9
                done.set()

    look_at_all([str(n) for n in range(100)], lambda path: asked.append(path) or PNG, Slow(), QUIET, 2)
    assert len(asked) == 100


# -- memory --------------------------------------------------------------------------------------------------


def test_an_image_that_was_seen_is_not_decoded_again(tmp_path, monkeypatch):
    for _ in range(2):
        with Memory(tmp_path / "journal") as memory:
            first = look_at_all(["a", "b"], {"a": PNG, "b": b"no image"}.get, memory, QUIET, 1)
    monkeypatch.setattr(looking, "look", lambda *_: pytest.fail("decoded again"))
    with Memory(tmp_path / "journal") as memory:
        again = look_at_all(["x", "y"], {"x": PNG, "y": b"no image"}.get, memory, QUIET, 1)
    assert [*again.values()] == [*first.values()]
    assert (tmp_path / "journal" / "images.jsonl").read_bytes().count(b"\n") == 2


def test_a_torn_line_is_cut_off_and_a_damaged_file_begun_anew(tmp_path, caplog):
    path = tmp_path / "images.jsonl"
    with Memory(tmp_path) as memory:
        memory.add(look(PNG))
        memory.add(look(JPEG))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with Memory(tmp_path) as memory:
        assert memory.get(sha256_bytes(PNG)) and not memory.get(sha256_bytes(JPEG))
        memory.add(look(JPEG))
    assert path.read_bytes() == whole
    path.write_bytes(b"{broken\n" + whole)
    with Memory(tmp_path) as memory:
        assert memory.get(sha256_bytes(PNG)) is None
    assert "damaged journal line" in caplog.text and path.read_bytes() == b""


def test_what_another_decoder_saw_does_not_count(tmp_path):
    with Memory(tmp_path) as memory:
        memory.add(look(PNG))
    path = tmp_path / "images.jsonl"
    line = jsonl.read(path, looking.Remembered).__next__()
    jsonl.write(path, [looking.Remembered(by="pillow 1.0, way 1", seen=line.seen)])
    with Memory(tmp_path) as memory:
        assert memory.get(sha256_bytes(PNG)) is None


# -- opaque --------------------------------------------------------------------------------------------------


def clear(colour: tuple[int, int, int, int], **options) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (2, 2), colour).save(out, "PNG", **options)
    return out.getvalue()


def pixels(data: bytes) -> set:
    with Image.open(io.BytesIO(data)) as image:
        assert image.mode == "RGB" and image.format == "PNG"
        return {image.getpixel((x, y)) for x in range(2) for y in range(2)}


def test_a_transparent_image_is_laid_on_white():
    assert pixels(opaque.on_white(clear((200, 0, 0, 0)))) == {(255, 255, 255)}
    # 0.2 * 200 + 0.8 * 255 = 244, 0.8 * 255 = 204
    assert pixels(opaque.on_white(clear((200, 0, 0, 51)))) == {(244, 204, 204)}
    assert opaque.on_white(clear((200, 0, 0, 255))) is None
    assert opaque.on_white(PNG) is None and opaque.on_white(JPEG) is None


def test_an_orientation_is_kept_with_the_image_that_it_turns():
    exif = Image.Exif()
    exif[0x0112] = 6
    assert inspect(opaque.on_white(clear((0, 0, 0, 0), exif=exif))).odd == ("exif-rotated",)


@pytest.mark.parametrize(
    ("data", "has_alpha"),
    [
        (picture(mode="RGBA"), True),
        (picture(mode="LA"), True),
        (picture(mode="P", transparency=3), True),
        (picture(mode="P"), False),
        (picture(), False),
        (picture("JPEG"), False),
        (picture("WEBP", lossless=True), False),
        (picture("WEBP", "RGBA", lossless=True, exact=True), False),
        (clear((1, 2, 3, 4)), True),
    ],
)
def test_the_header_says_whether_an_image_may_be_transparent(data, has_alpha):
    assert inspect(data).has_alpha is has_alpha


def test_items_with_transparent_images_name_those_of_the_store(tmp_path):
    files = {
        "a.png": clear((9, 9, 9, 0)),
        "b.png": PNG,
        "c.png": picture(mode="RGBA"),
        "d.png": clear((5, 5, 5, 0)),
    }
    items = []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        ref = ImageRef(sha256=sha256_bytes(data), path=str(tmp_path / name))
        items.append(Item(item_id=name[0], question="", images=(ref,), group="g", meta={"index": 1}))
    on_white = opaque.OnWhite(Path("images.zip"))
    [(name, data)] = on_white.members(items)  # a and d are both all white: one image
    white = ImageRef(sha256=sha256_bytes(data), path="images.zip", member=name)
    assert name == f"{sha256_bytes(data)}.png" and pixels(data) == {(255, 255, 255)}
    found = list(on_white.applied(items))
    assert [one.images[0] for one in found] == [white, items[1].images[0], items[2].images[0], white]
    assert found[0].meta == {"index": 1, "composited": sha256_bytes(files["a.png"])}
    assert found[1:3] == items[1:3]
