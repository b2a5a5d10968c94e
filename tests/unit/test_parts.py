import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image, ImageDraw

import merge_parts
from remeasure import images, jsonl, parts, rendered, vectors
from remeasure.capture import RenderSettings
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.image_check import Inspector
from remeasure.images import ImageReader
from remeasure.ocr import TileJournal
from remeasure.records import (
    ExtractedPage,
    ImageRef,
    OcrImage,
    Page,
    Passage,
    RenderedPage,
    Stage,
    TileRef,
)
from remeasure.render import Job
from remeasure.spool import Spool

# SHA-256 of the id, first six bytes, modulo 3: fiji 1, laos 1, cuba 2, chad 0, togo 0, oman 1.
PAGES = ("fiji", "laos", "cuba", "chad", "togo", "oman")
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x01D\x00;"


def test_a_page_s_part_is_known_from_its_id_alone():
    assert [parts.part_of(page, 3) for page in PAGES] == [1, 1, 2, 0, 0, 1]
    assert [parts.part_of(page, 1) for page in PAGES] == [0] * 6
    assert parts.Part(2, 3).holds("fiji") and not parts.Part(1, 3).holds("fiji")


def test_parts_are_equal_but_for_chance_and_hold_every_page_once():
    sizes = [0] * 8
    for number in range(16_000):
        sizes[parts.part_of(f"page-{number}", 8)] += 1
    assert sum(sizes) == 16_000 and min(sizes) > 1_850 and max(sizes) < 2_150


def test_twice_as_many_parts_cut_each_part_in_two():
    for number in range(500):
        assert parts.part_of(f"p{number}", 12) % 6 == parts.part_of(f"p{number}", 6)


def test_names_of_parts_are_read_back():
    assert parts.names(3) == ["1of3", "2of3", "3of3"]
    assert parts.read_part("2of3") == parts.Part(2, 3)
    assert (
        parts.page_of("fiji/0003") == parts.page_of("fiji/tile_0003.jpg") == parts.page_of("fiji") == "fiji"
    )


@pytest.mark.parametrize(
    "text", ["4of3", "0of3", "of3", "1of", "1/3", "01of3", " 1of3", "1of1٣", "1of" + "9" * 5000]
)
def test_what_is_no_part_is_refused(text):
    with pytest.raises(RemeasureError, match="expected NofM with N from 1 to M") as caught:
        parts.read_part(text)
    assert len(str(caught.value)) < 120


def streams(*rows: list[str]):
    return [(f"part {number}", ((row, row.upper()) for row in own)) for number, own in enumerate(rows, 1)]


def test_rows_come_in_page_order_whatever_their_number():
    dealt = streams(["chad", "togo"], ["fiji", "fiji", "oman"], [])
    assert list(parts.in_page_order(PAGES, dealt, one_each=False)) == ["FIJI", "FIJI", "CHAD", "TOGO", "OMAN"]


def test_a_page_without_its_row_is_named_with_counts():
    dealt = streams(["chad", "togo"], ["fiji", "oman"], ["cuba"])
    with pytest.raises(RemeasureError, match="part 2: 0 rows for page 'laos' after 1 of other pages"):
        list(parts.in_page_order(PAGES, dealt, one_each=True))


def test_a_row_of_another_part_is_named():
    dealt = streams(["chad", "fiji"], ["laos"], [])
    with pytest.raises(RemeasureError, match=r"part 1: row 2 is of page 'fiji'.*1 rows fit"):
        list(parts.in_page_order(PAGES, dealt, one_each=False))


def test_a_short_part_is_named_with_both_counts():
    with pytest.raises(RemeasureError, match="x.jsonl: holds 2 rows, its stage counted 3"):
        list(parts.counted("ab", 3, "x.jsonl"))
    assert list(parts.counted("ab", 2, "x.jsonl")) == ["a", "b"]


# -- stores ----------------------------------------


def ref_to(page: str) -> ImageRef:
    data = GIF + page.encode()
    return ImageRef(sha256=sha256_bytes(data), path="tiles/tiles.zip", member=f"{page}/tile_0000.gif")


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    """A store of three parts."""
    monkeypatch.chdir(tmp_path)
    stores = [Path(f"parts/{name}/tiles/tiles.zip") for name in parts.names(3)]
    for number, path in enumerate(stores, start=1):
        own = [page for page in PAGES if parts.Part(number, 3).holds(page)]
        images.write_store(path, [(ref_to(page).member, GIF + page.encode()) for page in own])
    images.write_parted_store(Path("tiles/tiles.zip"), stores)
    return tmp_path


def test_images_are_read_through_the_store_that_names_the_parts(store):
    with ImageReader() as reader, Inspector(store) as inspector:
        for page in PAGES:
            assert reader.read(ref_to(page)) == GIF + page.encode()
            assert inspector.size(ref_to(page)) == (1, 1)


def test_the_store_copies_nothing_and_says_where_its_parts_lie(store):
    with zipfile.ZipFile("tiles/tiles.zip") as opened:
        assert opened.namelist() == ["parts.json"]
        assert json.loads(opened.read("parts.json")) == [
            "../parts/1of3/tiles/tiles.zip",
            "../parts/2of3/tiles/tiles.zip",
            "../parts/3of3/tiles/tiles.zip",
        ]


def test_a_missing_part_is_named_and_not_the_store_that_points_to_it(store):
    shutil.rmtree("parts/2of3")
    with ImageReader() as reader:
        assert reader.read(ref_to("chad"))
        with pytest.raises(RemeasureError, match="parts/2of3/tiles/tiles.zip.*restore or replace it"):
            reader.read(ref_to("fiji"))
    with Inspector(store) as inspector, pytest.raises(RemeasureError, match="fiji/tile_0000.gif"):
        inspector.size(ref_to("fiji"))


def test_a_damaged_list_of_parts_is_one_line(store):
    images.write_store(Path("tiles/tiles.zip"), [("parts.json", b"{}")])
    with ImageReader() as reader, pytest.raises(RemeasureError, match="expected a list of paths"):
        reader.read(ref_to("fiji"))


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (b"[" * 100_000, "parts.json: "),
        (b"\xff", "parts.json: "),
        (b'["/etc/passwd"]', "'/etc/passwd' (11 letters) is no place of a part"),
        (b'["../../x"]', "'../../x' (7 letters) is no place of a part"),
        (b'["a/../x"]', "'a/../x' (6 letters) is no place of a part"),
        (b'[""]', "'' (0 letters) is no place of a part"),
        (b'["a\\u0000b"]', "'a\\x00b' (3 letters) is no place of a part"),
        (b'["a\\ud800b"]', "'a\\ud800b' (3 letters) is no place of a part"),
        (b'["' + b"a" * 100_000 + b'"]', f"'{'a' * 80}' (100000 letters) is no place of a part"),
        (b'["../pipe"]', "not a regular file"),
    ],
)
def test_a_list_of_parts_that_leads_elsewhere_is_one_short_line(store, listed, said):
    os.mkfifo("pipe")
    images.write_store(Path("tiles/tiles.zip"), [("parts.json", listed)])
    with ImageReader() as reader, pytest.raises(RemeasureError) as caught:
        reader.read(ref_to("fiji"))
    line = str(caught.value)
    assert said in line and len(line) < 400 and line.isprintable()
    with Inspector(store) as inspector, pytest.raises(RemeasureError):
        inspector.size(ref_to("fiji"))


# -- merging ----------------------------------------


def write_record(path: Path, stage: str, counts: dict[str, int], **facts) -> None:
    outputs = {str(file): sha256_bytes(file.read_bytes()) for file in path.parent.glob("*.*") if file != path}
    jsonl.write_json(
        path,
        Stage(stage=stage, settings={}, code="c", inputs={}, outputs=outputs, counts=counts, facts=facts),
    )


def passage(page: str, index: int) -> Passage:
    return Passage(
        passage_id=f"{page}/{index:04d}",
        page_id=page,
        chunk_index=index,
        char_offset=0,
        n_tokens=1,
        text=f"{page} {index}",
        title=page,
        url=page,
    )


def extracted(page: str) -> ExtractedPage:
    n = len(page) % 4 if page != "cuba" else 2
    return ExtractedPage(page_id=page, status="extracted" if n else "empty", n_chars=n, n_passages=n)


def write_corpus(folder: Path, pages: tuple[str, ...]) -> None:
    """Write all that the stages make of some pages; the passages of cuba only."""
    tile = TileRef(
        tile_id="cuba/0000", member="cuba/tile_0000.jpg", sha256="0" * 64, y_px=0, height_px=1, width_px=1
    )
    for name in ("tiles", "passages", "bge"):
        (folder / name).mkdir(parents=True)
    manifest = [
        RenderedPage(page_id=page, status="rendered", tiles=(tile,) if page == "cuba" else ())
        for page in pages
    ]
    jsonl.write(folder / "tiles/manifest.jsonl", manifest)
    images.write_store(folder / "tiles/tiles.zip", [(tile.member, GIF)] if "cuba" in pages else [])
    write_record(folder / "tiles/corpus.json", "render_tiles", {"rendered": len(pages), "failed": 0})
    found = [passage(page, index) for page in pages for index in range(extracted(page).n_passages)]
    jsonl.write(folder / "passages/passages.jsonl", found)
    jsonl.write(folder / "passages/extraction.jsonl", [extracted(page) for page in pages])
    n_empty = sum(not extracted(page).n_passages for page in pages)
    counts = {"passages": len(found), "empty": n_empty, "extracted": len(pages) - n_empty, "failed": 0}
    write_record(folder / "passages/passages.json", "extract_text", counts)
    identity = vectors.Identity(
        unit="passages", encoder="e", model_sha256="0", dim=2, normalised=True, pooling="cls", input_limit="1"
    )
    rows = np.array([[1, 0], [0, 1]] * len(found), dtype=np.float32)[: len(found)]
    block = ([one.passage_id for one in found], np.roll(rows, len(folder.name), axis=0))
    paths = (folder / "bge/descriptors.h5", folder / "bge/order.txt")
    n = vectors.write_descriptors(*paths, [block], identity, may_be_empty=True)
    write_record(folder / "bge/descriptors.json", "embed", {"passages": n})


@pytest.fixture
def dealt(tmp_path, monkeypatch) -> Path:
    """A corpus in three parts, and the same in one."""
    monkeypatch.chdir(tmp_path)
    jsonl.write(Path("pages.jsonl"), [Page(page_id=page, path=page, title=page, set="all") for page in PAGES])
    write_corpus(Path("whole"), PAGES)
    for number in (1, 2, 3):
        own = tuple(page for page in PAGES if parts.Part(number, 3).holds(page))
        write_corpus(Path(f"parts/{number}of3"), own)
    return tmp_path


OUTS = {
    "tiles": ("tiles", "corpus.json", ("manifest.jsonl", "tiles.zip")),
    "passages": ("passages", "passages.json", ("passages.jsonl", "extraction.jsonl")),
    "vectors": ("bge", "descriptors.json", ("descriptors.h5", "order.txt")),
    "ocr": ("tiles", "ocr.json", ("ocr.jsonl",)),
}


def merge(what: str) -> int:
    folder, record, outs = OUTS[what]
    return merge_parts.main(
        [
            *("--what", what, "--pages", "pages.jsonl"),
            *("--records", *(f"parts/{part}/{folder}/{record}" for part in parts.names(3))),
            *("--outs", *(f"merged/{folder}/{name}" for name in outs)),
            *("--record", f"merged/{folder}/{record}"),
        ]
    )


@pytest.mark.parametrize("what", ["tiles", "passages"])
def test_parts_put_together_have_the_bytes_of_one_job(dealt, what):
    assert merge(what) == 0
    folder, _, outs = OUTS[what]
    for name in outs:
        if name != "tiles.zip":
            assert Path("merged", folder, name).read_bytes() == Path("whole", folder, name).read_bytes()


def test_vectors_put_together_stand_in_page_order_each_with_its_own(dealt):
    assert merge("vectors") == 0
    merged = vectors.read_descriptors(Path("merged/bge/descriptors.h5"), Path("merged/bge/order.txt"))
    assert merged.order == ("cuba/0000", "cuba/0001")
    own = vectors.read_descriptors(Path("parts/3of3/bge/descriptors.h5"), Path("parts/3of3/bge/order.txt"))
    assert (merged.vectors == own.vectors).all()
    # Nothing but cuba has passages: two of the three parts are empty, and that is no error.
    assert Path("parts/1of3/bge/order.txt").read_text() == ""


def test_the_record_counts_all_parts_and_names_every_file_of_them(dealt):
    assert merge("passages") == 0
    record = jsonl.read_json(Path("merged/passages/passages.json"), Stage)
    assert record.stage == "merge_passages" and record.settings == {"parts": 3}
    assert record.counts == {"passages": 2, "empty": 5, "extracted": 1, "failed": 0}
    assert {"pages.jsonl", "parts/3of3/passages/passages.jsonl", "parts/2of3/passages/passages.json"} <= set(
        record.inputs
    )


def test_a_part_that_lost_rows_stops_the_merge_with_counts(dealt, capsys):
    path = Path("parts/3of3/passages/passages.jsonl")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert merge("passages") == 2
    assert "parts/3of3/passages/passages.jsonl: holds 1 rows, its stage counted 2" in capsys.readouterr().err
    assert not Path("merged/passages/passages.json").exists()


def test_a_missing_part_is_one_line(dealt, capsys):
    shutil.rmtree("parts/2of3")
    assert merge("tiles") == 2
    assert "parts/2of3/tiles/corpus.json: cannot be read" in capsys.readouterr().err


def test_a_part_that_was_rendered_by_another_browser_is_refused(dealt, capsys):
    write_record(
        Path("parts/2of3/tiles/corpus.json"), "render_tiles", {"rendered": 3, "failed": 0}, browser="2"
    )
    assert merge("tiles") == 2
    assert "parts/2of3/tiles/corpus.json: made with other facts than parts/1of3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            {"settings": {"jpeg_quality": 84}},
            "other settings than parts/1of3/tiles/corpus.json (jpeg_quality)",
        ),
        (
            {"packages": {"playwright": "1.49"}},
            "other packages than parts/1of3/tiles/corpus.json (playwright)",
        ),
        ({"stage": "read_tiles"}, "other stage than parts/1of3/tiles/corpus.json (read_tiles)"),
    ],
)
def test_parts_that_were_made_in_different_ways_are_refused(dealt, capsys, other, said):
    for part in parts.names(3):
        path = Path(f"parts/{part}/tiles/corpus.json")
        usual = {"settings": {"jpeg_quality": 85}, "packages": {"playwright": "1.48"}}
        more = usual | other if part == "3of3" else usual
        jsonl.write_json(path, msgspec.structs.replace(jsonl.read_json(path, Stage), **more))
    assert merge("tiles") == 2
    assert f"parts/3of3/tiles/corpus.json: made with {said}" in capsys.readouterr().err
    assert not Path("merged/tiles/corpus.json").exists()


def test_parts_without_anything_in_them_are_refused(dealt, capsys):
    for part in parts.names(3):
        folder = Path("parts", part, "passages")
        jsonl.write(folder / "passages.jsonl", [])
        n = len((folder / "extraction.jsonl").read_text().splitlines())
        write_record(
            folder / "passages.json", "extract_text", {"passages": 0, "empty": n, "extracted": 0, "failed": 0}
        )
    assert merge("passages") == 2
    assert "3 parts and nothing in them" in capsys.readouterr().err
    assert not list(Path("merged/passages").iterdir())


# -- tiles of another number of parts ----------------------------------------

SETTINGS = RenderSettings(
    width_px=100, tile_height_px=300, jpeg_quality=85, page_timeout_s=30.0, max_height_px=9000
)
FACTS = {"archive": "a-1", "browser": "131", "fonts": {"DejaVu Sans": "2.37"}}
JOBS = {page: Job(page_id=page, path=page, key=f"{number}" * 64) for number, page in enumerate(PAGES)}


def jpeg(text: str) -> bytes:
    image = Image.new("RGB", (100, 300), "white")
    ImageDraw.Draw(image).text((20, 50), text, fill="black")
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return stream.getvalue()


def write_earlier(folder: Path) -> None:
    """Write finished tiles: fiji has the same text twice and is white twice; laos failed; cuba is damaged."""
    drawn = {
        "fiji": [jpeg("word"), jpeg(""), jpeg("word"), jpeg("")],
        "laos": [jpeg("half")],
        "cuba": [jpeg("whole")],
    }
    pages, members = [], []
    for page, captures in drawn.items():
        tiles = tuple(
            TileRef(
                tile_id=f"{page}/{number:04d}",
                member=f"{page}/tile_{number:04d}.jpg",
                sha256=sha256_bytes(data if page != "cuba" else b"other"),
                y_px=300 * number,
                height_px=300,
                width_px=100,
            )
            for number, data in enumerate(captures)
        )
        members += [(tile.member, data) for tile, data in zip(tiles, captures, strict=True)]
        status = "failed" if page == "laos" else "rendered"
        # 27 px more than the tiles hold: fewer than 28 are left out.
        height_px = 300 * len(tiles) + 27
        pages.append(
            RenderedPage(page_id=page, status=status, width_px=100, height_px=height_px, tiles=tiles)
        )
    folder.mkdir(parents=True)
    images.write_store(folder / "tiles.zip", members)
    jsonl.write(folder / "manifest.jsonl", pages)
    write_record(folder / "corpus.json", "render_tiles", {"rendered": 2, "failed": 1}, **FACTS)
    change_record(folder, settings=msgspec.to_builtins(SETTINGS))


def change_record(folder: Path, **fields) -> None:
    path = folder / "corpus.json"
    jsonl.write_json(path, msgspec.structs.replace(jsonl.read_json(path, Stage), **fields))


def taken_over(corpus: Path, own: str = "parts/1of3/tiles/tiles.zip", facts=FACTS) -> tuple[int, Spool]:
    spool = Spool(corpus / "spool")
    return rendered.take_over(corpus, corpus / own, SETTINGS, facts, JOBS, spool), spool


def test_whole_pages_of_another_number_of_parts_are_taken_over_with_their_counts(tmp_path):
    write_earlier(tmp_path / "parts/1of2/tiles")
    n_taken, spool = taken_over(tmp_path)
    assert n_taken == 1
    page = spool.get("0" * 64)
    assert page.page.page_id == "fiji" and page.tiles == (jpeg("word"), jpeg(""), jpeg("word"), jpeg(""))
    assert (page.n_blank, page.n_repeated) == (2, 1)
    assert (page.dropped_bottom_px, page.dropped_right_px) == (27, 0)
    # A page that failed is tried again, and so is one whose bytes are not those of its hash.
    assert spool.get(JOBS["laos"].key) is None and spool.get(JOBS["cuba"].key) is None
    assert taken_over(tmp_path)[0] == 0  # the spool has it already


def test_tiles_of_the_whole_corpus_serve_its_parts_and_a_store_does_not_serve_itself(tmp_path):
    write_earlier(tmp_path / "tiles")
    assert taken_over(tmp_path, own="tiles/tiles.zip")[0] == 0
    assert taken_over(tmp_path)[0] == 1


@pytest.mark.parametrize(
    "other",
    [
        {"facts": FACTS | {"browser": "132"}},
        {"facts": FACTS | {"fonts": {"DejaVu Sans": "2.36"}}},
        {"facts": FACTS | {"archive": "a-2"}},
        {"facts": {}},
        {"settings": msgspec.to_builtins(SETTINGS) | {"jpeg_quality": 84}},
        {"settings": msgspec.to_builtins(SETTINGS) | {"width_px": 101}},
        {"stage": "merge_tiles"},
    ],
    ids=["browser", "fonts", "archive", "no facts", "quality", "width", "stage"],
)
def test_tiles_that_were_made_in_another_way_are_not_taken_over(tmp_path, other):
    write_earlier(tmp_path / "parts/1of2/tiles")
    change_record(tmp_path / "parts/1of2/tiles", **other)
    n_taken, spool = taken_over(tmp_path)
    assert n_taken == 0 and spool.get(JOBS["fiji"].key) is None


REDO = "delete it and run again, only this part is made again"


def edit(path: str, **fields) -> None:
    """Change fields of a record."""
    jsonl.write_json(Path(path), json.loads(Path(path).read_bytes()) | fields)


@pytest.mark.parametrize(
    ("what", "name", "old", "new"),
    [
        ("passages", "passages/passages.jsonl", b"cuba 1", b"cuba 7"),
        ("passages", "passages/extraction.jsonl", b'"n_chars":2', b'"n_chars":3'),
        ("tiles", "tiles/manifest.jsonl", b'"y_px":0', b'"y_px":5'),
        ("vectors", "bge/order.txt", b"cuba/0001", b"cuba/0007"),
        ("vectors", "bge/order.txt", b"cuba/0001\n", b"cuba/0001"),
    ],
)
def test_text_that_was_changed_since_its_stage_wrote_it_is_refused(dealt, capsys, what, name, old, new):
    path = Path("parts/3of3", name)
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    assert merge(what) == 2
    said = capsys.readouterr().err
    assert f"error: parts/3of3/{name}: has SHA-256 " in said and said.endswith(f"changed since; {REDO}\n")
    assert not Path("merged", OUTS[what][0], OUTS[what][1]).exists()


def test_a_tile_that_its_store_lacks_is_named(dealt, capsys):
    images.write_store(Path("parts/3of3/tiles/tiles.zip"), [("cuba/tile_0001.jpg", GIF)])
    assert merge("tiles") == 2
    assert capsys.readouterr().err == (
        "error: parts/3of3/tiles/tiles.zip: lacks 'cuba/tile_0000.jpg', which manifest.jsonl beside it names "
        f"(1 tiles are there); {REDO}\n"
    )


def test_a_store_that_is_none_is_named(dealt, capsys):
    path = Path("parts/2of3/tiles/tiles.zip")
    path.write_bytes(b"PK")
    assert merge("tiles") == 2
    assert f"error: {path}: not a store of tiles (File is not a zip file); {REDO}" in capsys.readouterr().err
    path.unlink()
    os.mkfifo(path)
    assert merge("tiles") == 2
    assert f"{path}: not a store of tiles (not a regular file); {REDO}" in capsys.readouterr().err


@pytest.mark.parametrize("foreign", ["/etc/passwd", "parts/1of3/bge/order.txt", "parts/1of3/tiles/../x/y"])
def test_hashes_of_files_elsewhere_are_refused(dealt, capsys, foreign):
    edit("parts/1of3/tiles/corpus.json", outputs={foreign: "0" * 64})
    assert merge("tiles") == 2
    assert capsys.readouterr().err == (
        f"error: parts/1of3/tiles/corpus.json: says that it made {foreign!r}, expected files beside it in "
        f"parts/1of3/tiles; {REDO}\n"
    )


def test_a_record_without_hashes_or_counts_is_one_line(dealt, capsys):
    edit("parts/2of3/tiles/corpus.json", outputs={"parts/2of3/tiles/manifest.jsonl": "0" * 64})
    assert merge("tiles") == 2
    assert capsys.readouterr().err == (
        f"error: parts/2of3/tiles/corpus.json: tells no hash of tiles.zip beside it; {REDO}\n"
    )
    edit("parts/2of3/passages/passages.json", counts={"extracted": 1})
    assert merge("passages") == 2
    said = capsys.readouterr().err
    assert said == f"error: parts/2of3/passages/passages.json: lacks its counts of passages; {REDO}\n"
    edit("parts/1of3/bge/descriptors.json", counts={})
    assert merge("vectors") == 2
    assert "parts/1of3/bge/descriptors.json: lacks its counts of passages" in capsys.readouterr().err


def test_a_part_of_another_stage_is_refused(dealt, capsys):
    edit("parts/2of3/tiles/corpus.json", stage="read_tiles")
    assert merge("tiles") == 2
    assert "made with other stage than parts/1of3/tiles/corpus.json (read_tiles)" in capsys.readouterr().err


# -- journals of OCR ----------------------------------------


def test_a_part_knows_what_other_parts_have_read_and_writes_only_its_own_journal(tmp_path):
    def read(name: str) -> OcrImage:
        return OcrImage(sha256=name, tile_id=f"{name}/0000", width_px=1, height_px=1, lines=())

    with TileJournal(tmp_path, "v1") as whole:
        whole.add(read("a"))
    with TileJournal(tmp_path, "v1", "1of2") as first, TileJournal(tmp_path, "v1", "2of2") as second:
        first.add(read("b"))
        second.add(read("c"))
        assert "a" in first and "a" in second and "b" not in second
    with TileJournal(tmp_path, "v1", "1of3") as third:
        assert [third.get(name, "t").sha256 for name in "abc"] == ["a", "b", "c"]
    assert (tmp_path / "ocr.1of3.jsonl").read_bytes() == b""
    with TileJournal(tmp_path, "v2", "1of3") as other:
        assert "a" not in other
