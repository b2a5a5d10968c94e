import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest

import read_tiles
from processes import family
from remeasure import images, jsonl, ocr
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.ocr import OcrEngine, TileJournal
from remeasure.records import OcrImage, OcrLine, RenderedPage, Stage, TileRef


def png(*texts, size=(120, 420)):
    canvas = np.full((*size, 3), 255, np.uint8)
    for row, text in enumerate(texts):
        cv2.putText(
            canvas, text, (10, 35 + 45 * row), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (0, 0, 0), 2, cv2.LINE_AA
        )
    return cv2.imencode(".png", canvas)[1].tobytes()


def record(sha256="s", tile_id="p/0000", *texts):
    lines = tuple(OcrLine(text=text, box=(0, 0, 1, 1), confidence=1.0) for text in texts)
    return OcrImage(sha256=sha256, tile_id=tile_id, width_px=2, height_px=2, lines=lines)


@pytest.fixture(scope="module")
def engine():
    return OcrEngine()


def test_lines_are_read_from_top_to_bottom_with_boxes_inside_the_image(engine):
    found = engine.read(png("Capital: Lima", "Area: 1234"), "s", "peru/0000")
    assert [line.text for line in found.lines] == ["Capital: Lima", "Area: 1234"]
    assert (found.width_px, found.height_px, found.tile_id) == (420, 120, "peru/0000")
    for line in found.lines:
        left, top, right, bottom = line.box
        assert 0 <= left < right <= 420 and 0 <= top < bottom <= 120 and 0.8 < line.confidence <= 1
    assert ocr.text_of(found) == "Capital: Lima\nArea: 1234"


def test_a_blank_image_has_no_lines_and_twice_the_same_image_gives_the_same_record(engine):
    assert engine.read(png(), "s", "t").lines == ()
    assert engine.read(png("Lima 17"), "s", "t") == engine.read(png("Lima 17"), "s", "t")


@pytest.mark.parametrize("data", [b"", b"no image", png("Lima")[:60]])
def test_bytes_that_are_no_image_are_an_error_that_names_the_tile(engine, data):
    with pytest.raises(RemeasureError, match="tile peru/0000: cannot be decoded"):
        engine.read(data, "s", "peru/0000")


def test_a_low_strip_is_read_as_it_is(engine):
    """The last tile of a page can be a few pixels high."""
    assert [line.text for line in engine.read(png("Lima 17", size=(48, 420)), "s", "t").lines] == ["Lima 17"]
    assert engine.read(png(size=(3, 420)), "s", "t").lines == ()


def test_corners_are_kept_inside_the_image():
    quad = np.float32([[-1.5, 2.2], [30.1, 2.0], [30.5, 9.7], [-1, 9.9]])
    assert ocr._corners(quad, 20, 30) == (0, 2, 20, 10)


def test_journal_remembers_by_content_and_engine(tmp_path):
    with TileJournal(tmp_path, "v1") as journal:
        journal.add(record("a", "p/0000", "Lima"))
    with TileJournal(tmp_path, "v1") as journal:
        assert "a" in journal and "b" not in journal
        assert journal.get("a", "q/0003") == record("a", "q/0003", "Lima")
    with TileJournal(tmp_path, "v2") as journal:
        assert "a" not in journal


def test_a_torn_last_line_is_set_aside_and_nothing_else_is_lost(tmp_path):
    with TileJournal(tmp_path, "v1") as journal:
        journal.add(record("a"))
        journal.add(record("b"))
    path = tmp_path / "ocr.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with TileJournal(tmp_path, "v1") as journal:
        assert "a" in journal and "b" not in journal
        journal.add(record("c"))
    assert len((tmp_path / "ocr.torn").read_text().splitlines()) == 1
    with TileJournal(tmp_path, "v1") as journal:
        assert "a" in journal and "c" in journal


def test_a_damaged_line_inside_the_journal_is_named(tmp_path):
    (tmp_path / "ocr.jsonl").write_text("{}\n")
    with pytest.raises(RemeasureError, match="ocr.jsonl line 1: damaged"):
        TileJournal(tmp_path, "v1")


def test_two_processes_never_share_a_journal(tmp_path):
    with TileJournal(tmp_path, "v1"):
        with pytest.raises(RemeasureError, match="another process"):
            TileJournal(tmp_path, "v1")


def corpus(folder: Path, tiles: dict[str, bytes]) -> None:
    """Write tiles (id to bytes) of one page each, and a failed page first."""
    members = {name.replace("/", "-") + ".png": data for name, data in tiles.items()}
    images.write_store(folder / "tiles.zip", members.items())
    pages = [RenderedPage(page_id="broken", status="failed", reason="time limit")]
    for (name, data), member in zip(tiles.items(), members, strict=True):
        ref = TileRef(
            tile_id=name, member=member, sha256=sha256_bytes(data), y_px=0, height_px=120, width_px=420
        )
        pages.append(RenderedPage(page_id=name.split("/")[0], status="rendered", tiles=(ref,)))
    jsonl.write(folder / "manifest.jsonl", pages)


def arguments(folder, processes=1):
    named = {"manifest": "manifest.jsonl", "tiles": "tiles.zip", "journal": "journal", "out": "ocr.jsonl"}
    paths = [word for name, path in named.items() for word in (f"--{name}", str(folder / path))]
    settings = '{"engine": "rapidocr", "tiles_per_page": 1}'
    return [
        *paths,
        "--record",
        str(folder / "ocr.json"),
        "--settings",
        settings,
        "--processes",
        str(processes),
    ]


def test_every_distinct_tile_is_read_once_and_the_output_has_manifest_order(tmp_path):
    corpus(tmp_path, {"b/0000": png("Lima"), "a/0000": png("Quito"), "c/0000": png("Lima")})
    assert read_tiles.main(arguments(tmp_path)) == 0
    found = list(jsonl.read(tmp_path / "ocr.jsonl", OcrImage))
    assert [(image.tile_id, ocr.text_of(image)) for image in found] == [
        ("b/0000", "Lima"),
        ("a/0000", "Quito"),
        ("c/0000", "Lima"),
    ]
    journal = tmp_path / "journal" / "ocr.jsonl"
    assert len(journal.read_text().splitlines()) == 2
    counts = jsonl.read_json(tmp_path / "ocr.json", Stage).counts
    assert counts == {"tiles": 3, "distinct": 2, "without_text": 0, "lines": 3}


def test_two_processes_give_the_same_bytes_as_one(tmp_path):
    tiles = {f"p{n}/0000": png(f"Number {n}") for n in range(4)}
    made = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        corpus(folder, tiles)
        assert read_tiles.main(arguments(folder, processes)) == 0
        made.append((folder / "ocr.jsonl").read_bytes())
    assert made[0] == made[1]


def test_after_an_interruption_only_what_is_missing_is_read(tmp_path, monkeypatch):
    corpus(tmp_path, {"a/0000": png("Lima"), "b/0000": png("Quito")})
    assert read_tiles.main(arguments(tmp_path)) == 0
    undisturbed = (tmp_path / "ocr.jsonl").read_bytes()
    journal = tmp_path / "journal" / "ocr.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    calls = []
    read = OcrEngine.read
    monkeypatch.setattr(OcrEngine, "read", lambda self, *a: calls.append(a[2]) or read(self, *a))
    assert read_tiles.main(arguments(tmp_path)) == 0
    assert calls == ["b/0000"] and (tmp_path / "ocr.jsonl").read_bytes() == undisturbed
    assert read_tiles.main(arguments(tmp_path)) == 0
    assert calls == ["b/0000"]


def test_a_tile_that_cannot_be_read_is_named_and_finished_tiles_are_kept(tmp_path, capsys):
    corpus(tmp_path, {"a/0000": png("Lima"), "b/0000": b"not an image"})
    assert read_tiles.main(arguments(tmp_path)) == 2
    assert "error: tile b/0000: cannot be decoded" in capsys.readouterr().err
    assert not (tmp_path / "ocr.jsonl").exists()
    assert len((tmp_path / "journal" / "ocr.jsonl").read_text().splitlines()) == 1


def test_a_corpus_without_tiles_is_an_error(tmp_path, capsys):
    corpus(tmp_path, {})
    assert read_tiles.main(arguments(tmp_path)) == 2
    assert "no page has a tile" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("end", ["killed", "told", "all told"])
def test_after_its_end_no_worker_is_left_and_the_next_run_goes_on(tmp_path, end):
    tiles = {f"p{n}/0000": png(*(f"{n} {row}" for row in range(6)), size=(300, 420)) for n in range(10)}
    corpus(tmp_path, tiles)
    script = Path(read_tiles.__file__)
    run = subprocess.Popen(
        [sys.executable, script, *arguments(tmp_path, 2)],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = tmp_path / "journal" / "ocr.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.05)
    # A cluster tells every process of a job in one moment.
    for pid in reversed(family(run.pid)) if end == "all told" else [run.pid]:
        os.kill(pid, signal.SIGKILL if end == "killed" else signal.SIGTERM)
    said = run.communicate()[1]
    if end != "killed":
        assert run.returncode == 75 and "Traceback" not in said, said
        assert said.rstrip().split("\n")[-1].startswith("to be continued: ")
    kept = len(journal.read_text().splitlines())
    while time.monotonic() < deadline and members_of(run.pid):
        time.sleep(0.1)
    assert kept >= 1 and not members_of(run.pid)
    assert read_tiles.main(arguments(tmp_path, 1)) == 0
    assert len(list(jsonl.read(tmp_path / "ocr.jsonl", OcrImage))) == 10


def members_of(group: int) -> list[int]:
    """Return the living processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_settings_with_an_unknown_engine_are_refused(tmp_path, capsys):
    words = arguments(tmp_path)
    words[words.index("--settings") + 1] = '{"engine": "tesseract", "tiles_per_page": 1}'
    assert read_tiles.main(words) == 2
    assert "tesseract" in capsys.readouterr().err


def test_records_pass_through_json_unchanged():
    image = record("a", "p/0000", "Lima")
    assert msgspec.json.decode(jsonl.encode(image), type=OcrImage) == image
