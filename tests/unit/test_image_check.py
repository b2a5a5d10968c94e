import io
import os
import random
import struct
import time
import zipfile
import zlib
from pathlib import Path

import pytest
from PIL import Image

from remeasure import images, jsonl
from remeasure.errors import RemeasureError
from remeasure.image_check import ImageFacts, Inspector, inspect
from remeasure.records import ImageRef


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30), **options) -> bytes:
    out = io.BytesIO()
    noise = random.Random(1).randbytes(size[0] * size[1])
    Image.frombytes("L", size, noise).convert(mode).save(out, kind, **options)
    return out.getvalue()


def animated(kind: str) -> bytes:
    first, *rest = (Image.new("RGB", (20, 10), colour) for colour in ("red", "blue", "green"))
    out = io.BytesIO()
    first.save(out, kind, save_all=True, append_images=rest)
    return out.getvalue()


def exif(orientation: int, byte_order: str = "<") -> bytes:
    block = Image.Exif()
    block.endian = byte_order
    block[0x0112] = orientation
    return block.tobytes()


def png_header(width_px: int, height_px: int) -> bytes:
    """Return a PNG that claims a size and has nearly no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width_px, height_px, 8, 2, 0, 0, 0)
    pixels = b"IDAT" + zlib.compress(b"")
    parts = (
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in (header, pixels)
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def jpeg_header(width_px: int, height_px: int) -> bytes:
    return b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 8 + 3 * 3, 8, height_px, width_px, 3) + bytes(9)


SAMPLES = {
    "png": encoded("PNG"),
    "png-palette": encoded("PNG", "P"),
    "png-16": encoded("PNG", "I;16"),
    "png-turned": encoded("PNG", exif=exif(8)),
    "png-moving": animated("PNG"),
    "jpeg": encoded("JPEG"),
    "jpeg-progressive": encoded("JPEG", progressive=True),
    "jpeg-cmyk": encoded("JPEG", "CMYK"),
    "jpeg-turned": encoded("JPEG", exif=exif(6)),
    "jpeg-turned-big-endian": encoded("JPEG", exif=exif(3, ">")),
    "jpeg-upright": encoded("JPEG", exif=exif(1)),
    "gif": encoded("GIF"),
    "gif-moving": animated("GIF"),
    "webp": encoded("WEBP"),
    "webp-lossless": encoded("WEBP", lossless=True),
    "webp-alpha": encoded("WEBP", "RGBA"),
    "webp-turned": encoded("WEBP", exif=exif(6)),
    "webp-moving": animated("WEBP"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_format_and_size_are_those_that_pillow_sees(name):
    with Image.open(io.BytesIO(SAMPLES[name])) as opened:
        found = inspect(SAMPLES[name])
        assert (found.format, found.width_px, found.height_px) == (opened.format.lower(), *opened.size)


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("png", ()),
        ("png-16", ("16-bit",)),
        ("png-turned", ("exif-rotated",)),
        ("png-moving", ("animated",)),
        ("jpeg", ()),
        ("jpeg-cmyk", ("cmyk",)),
        ("jpeg-turned", ("exif-rotated",)),
        ("jpeg-turned-big-endian", ("exif-rotated",)),
        ("jpeg-upright", ()),
        ("gif", ()),
        ("gif-moving", ("animated",)),
        ("webp", ()),
        ("webp-lossless", ()),
        ("webp-turned", ("exif-rotated",)),
        ("webp-moving", ("animated",)),
    ],
)
def test_what_servers_treat_differently_is_told(name, odd):
    assert inspect(SAMPLES[name]).odd == odd


def test_a_suffix_that_lies_is_told_and_one_that_says_nothing_is_not():
    assert inspect(SAMPLES["jpeg"], "photo.png").odd == ("wrong-suffix",)
    assert inspect(SAMPLES["jpeg-cmyk"], "a/photo.tiff").odd == ("cmyk", "wrong-suffix")
    for name in ("photo.JPG", "photo.jpeg", "photo", None):
        assert inspect(SAMPLES["jpeg"], name).odd == ()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty (0 bytes)"),
        (b"<html>Please log in</html>", "is not a PNG, JPEG, GIF or WebP image (starts with b'<html>Pl')"),
        (b"BM" + bytes(100), "is not a PNG"),
        (SAMPLES["png"][:20], "is cut off or broken in its png header (ends too early)"),
        (SAMPLES["png"][:33], "is cut off or broken in its png header (ends too early)"),
        (SAMPLES["png"][:18] + b"\x07" + SAMPLES["png"][19:], "first chunk is no whole IHDR"),
        (SAMPLES["jpeg"][:30], "is cut off or broken in its jpeg header (ends too early)"),
        (b"\xff\xd8\xff\xd9", "is cut off or broken in its jpeg header"),
        (b"\xff\xd8\xff\xe0\x00\x02" + bytes(70_000), "no marker where one belongs"),
        (SAMPLES["gif"][:13], "is cut off or broken in its gif header (ends too early)"),
        (SAMPLES["webp"][:25], "is cut off or broken in its webp header (ends too early)"),
        (b"RIFF\0\0\0\0WEBPXXXX" + bytes(20), "no frame header in its first chunk"),
        (png_header(0, 10), "has no pixels (0 x 10)"),
        (jpeg_header(10, 0), "has no pixels (10 x 0)"),
    ],
)
def test_what_is_no_image_is_one_line(data, said):
    with pytest.raises(RemeasureError) as error:
        inspect(data)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "bomb",
    [
        png_header(12_248, 12_248),  # 150,013,504 pixels, the limit is 150,000,000
        png_header(2_000_000_000, 2_000_000_000),
        jpeg_header(65_535, 65_535),
        b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0) + SAMPLES["gif"][13 + 768 :],
        # The screen is small, the picture on it is not.
        b"GIF89a"
        + struct.pack("<HHBBB", 1, 1, 0, 0, 0)
        + struct.pack("<cHHHHB", b",", 0, 0, 65_535, 65_535, 0)
        + b"\x02\0;",
        b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\xff" * 6,
    ],
)
def test_an_image_bomb_is_refused_by_what_it_claims_and_nothing_of_its_size_is_made(bomb):
    began = time.process_time()
    with pytest.raises(RemeasureError, match="megapixels, at most 150 are read"):
        inspect(bomb)
    assert time.process_time() - began < 0.2 and len(bomb) < 3000


def test_the_largest_allowed_image_passes():
    assert inspect(png_header(15_000, 10_000)) == ImageFacts(format="png", width_px=15_000, height_px=10_000)


def test_broken_headers_end_in_a_fact_or_in_one_line():
    chance = random.Random(20261130)
    seeds = list(SAMPLES.values())
    for _ in range(5000):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.choice((1, 2, 9))):
            at = chance.randrange(min(len(data), 100))
            data[at : at + chance.randrange(2)] = bytes(
                chance.randrange(256) for _ in range(chance.randrange(3))
            )
        try:
            inspect(bytes(data[: chance.randrange(1, len(data) + 1)]))
        except RemeasureError as error:
            assert "\n" not in str(error)


def reference(path: str, member: str | None = None) -> ImageRef:
    return ImageRef(sha256="0" * 64, path=path, member=member)


def refusal(root: Path, ref: ImageRef) -> str:
    with Inspector(root) as inspector, pytest.raises(RemeasureError) as error:
        inspector.facts(ref, "request 'q1'")
    assert str(error.value).startswith(f"request 'q1': image {ref.path}") and "\n" not in str(error.value)
    return str(error.value)


def test_files_and_members_of_stores_are_read(tmp_path):
    (tmp_path / "a.jpg").write_bytes(SAMPLES["jpeg"])
    images.write_store(tmp_path / "s.zip", [("p/1.png", SAMPLES["png"]), ("p/2.jpg", SAMPLES["webp"])])
    with zipfile.ZipFile(tmp_path / "packed.zip", "w", zipfile.ZIP_DEFLATED) as store:
        store.writestr("1.png", SAMPLES["png-16"])
    with Inspector(tmp_path) as inspector:
        assert inspector.facts(reference("a.jpg")).format == "jpeg"
        assert inspector.size(reference("s.zip", "p/1.png")) == (40, 30)
        assert inspector.facts(reference("s.zip", "p/2.jpg")).odd == ("wrong-suffix",)
        assert inspector.facts(reference("packed.zip", "1.png")).odd == ("16-bit",)


def test_what_cannot_be_read_names_request_place_and_fix(tmp_path):
    (tmp_path / "empty.png").touch()
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "torn.zip").write_bytes(b"PK\x03\x04 and no directory")
    images.write_store(tmp_path / "s.zip", [("1.png", b"")])
    os.mkfifo(tmp_path / "pipe.png")
    said = refusal(tmp_path, reference("empty.png"))
    assert (
        "empty.png is empty (0 bytes); restore or replace it; where it changed after it was listed, delete"
        in said
    )
    assert "delete empty.png" not in said
    (tmp_path / "results/run").mkdir(parents=True)
    images.write_store(tmp_path / "results/run/s.zip", [("1.png", b"")])
    said = refusal(tmp_path, reference("results/run/s.zip", "1.png"))
    assert "; delete results/run/s.zip and rerun, it will be made again" in said
    assert "member '1.png' is empty (0 bytes)" in refusal(tmp_path, reference("s.zip", "1.png"))
    assert "member '2.png' is not there" in refusal(tmp_path, reference("s.zip", "2.png"))
    assert "cannot be read (No such file or directory)" in refusal(tmp_path, reference("gone.png"))
    assert "cannot be read (No such file or directory)" in refusal(tmp_path, reference("gone.zip", "1.png"))
    assert "cannot be read (File is not a zip file)" in refusal(tmp_path, reference("torn.zip", "1.png"))
    assert "is no file" in refusal(tmp_path, reference("folder.png"))
    assert "is no file" in refusal(tmp_path, reference("pipe.png"))


def test_a_member_that_unpacks_to_very_much_more_is_refused_unread(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.zip", "w", zipfile.ZIP_DEFLATED) as store:
        store.writestr("1.png", SAMPLES["png"][:40].ljust(20_000_000, b"\0"))
    said = refusal(tmp_path, reference("s.zip", "1.png"))
    assert "to 20000000 bytes: a zip bomb, not an image" in said


def test_a_member_that_is_larger_than_any_endpoint_takes_is_refused(tmp_path):
    with open(tmp_path / "a.png", "wb") as stream:
        stream.write(SAMPLES["png"])
        stream.truncate(150_000_001)
    assert "has 150000001 bytes, at most 150000000 can be sent" in refusal(tmp_path, reference("a.png"))


def test_each_image_is_looked_at_once_and_many_references_take_seconds(tmp_path):
    members = [(f"{n}.jpg", SAMPLES["jpeg"] + str(n).encode()) for n in range(5000)]
    images.write_store(tmp_path / "s.zip", members)
    urls = [images.to_url(reference("s.zip", name)) for name, _ in members]
    began = time.perf_counter()
    with Inspector(tmp_path) as inspector:
        for n in range(81_000):
            assert inspector.size(images.from_url(urls[n % 5000])) == (40, 30)
    assert time.perf_counter() - began < 8  # measured: 0.6 s


def test_facts_are_a_record():
    found = inspect(SAMPLES["jpeg-cmyk"])
    assert jsonl.encode(found) == (
        b'{"format":"jpeg","has_alpha":false,"height_px":30,"odd":["cmyk"],"width_px":40}'
    )


@pytest.mark.parametrize(
    ("path", "is_ours"),
    [
        ("results/ci/a/images.zip", True),
        ("./results/sources/composed.zip", True),
        ("results/../mine/17.jpg", False),
        ("/home/me/results/17.jpg", False),
        ("mine/17.jpg", False),
    ],
)
def test_only_files_of_the_workflow_are_said_to_be_made_again(path, is_ours):
    assert (images.redo(path) == f"delete {path} and rerun, it will be made again") == is_ours
    assert ("delete results/<run>/<study>/index" in images.redo(path)) != is_ours
