"""Real pages in a real Chromium; the bad ones of the issue among them, all in one run of the script."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from PIL import Image

import merge_parts
import render_tiles
from processes import alive, family
from remeasure import archive_record, capture, parts, tiles
from remeasure.errors import RemeasureError
from zimkit import Given, write_pages, write_zim

pytestmark = pytest.mark.browser

SCRIPT = Path(render_tiles.__file__)
SETTINGS = {
    "width_px": 875,
    "tile_height_px": 1024,
    "jpeg_quality": 85,
    "page_timeout_s": 8,
    "max_height_px": 60000,
}
ODD = "100% Straße/wo ist?.html"


def page(body: str, head: str = "") -> str:
    return f"<!DOCTYPE html><html><head><meta charset='utf-8'>{head}</head><body>{body}</body></html>"


def png(colour: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 40), colour).save(stream, "PNG")
    return stream.getvalue()


class Listener:
    """A socket that counts who comes; nobody may."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.calls = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.socket.accept()[0].close()
                self.calls += 1


def network_page(port: int) -> str:
    script = f"""
      fetch('http://127.0.0.1:{port}/a').catch(() => 0);
      fetch('http://localhost:{port}/b', {{mode: 'no-cors'}}).catch(() => 0);
      navigator.sendBeacon('http://127.0.0.1:{port}/c', 'x');
      new WebSocket('ws://127.0.0.1:{port}/d');
      new EventSource('http://[::1]:{port}/e');
      new Worker(URL.createObjectURL(new Blob(["fetch('http://127.0.0.1:{port}/f').catch(() => 0)"])));
      window.open('http://127.0.0.1:{port}/g');
    """
    return page(
        f"<p>text</p><img src='http://127.0.0.1:{port}/h.png'><img src='https://127.0.0.1:{port}/i.png'>"
        f"<iframe src='http://0.0.0.0:{port}/j'></iframe><script>{script}</script>",
        f"<link rel=stylesheet href='http://127.0.0.1:{port}/k.css'>"
        f"<link rel=preconnect href='http://127.0.0.1:{port}'>",
    )


# A file that could be read would make the page 3,000 px higher.
FILE_PAGE = page(
    "<p>text</p><script>const grow = () => { const e = document.createElement('div');"
    "e.style.height = '3000px'; e.textContent = 'leak'; document.body.append(e); };</script>"
    "<iframe src='file:///etc/passwd'></iframe><script src='file:///etc/hostname' onload='grow()'></script>"
    "<script>fetch('file:///etc/passwd').then(grow).catch(() => 0)</script>"
)
TALL_ROWS = "".join(f"<p style='height:50px;margin:0'>Row {n}</p>" for n in range(100))  # 5,000 px

PAGES = {
    "plain": page("<h1>Title</h1><p>text</p>"),
    "endless": page("<p>before</p><script>while (true) {}</script>"),
    "alert": page("<p>one</p><script>alert(1); confirm('2'); prompt('3')</script><p>two</p>"),
    "file": FILE_PAGE,
    "leaves": page("<p>bye</p><script>location = 'http://example.org/'</script>"),
    "reloads": page("<p>again</p><script>setTimeout(() => location.reload(), 1)</script>"),
    "high": page("<p>top</p><div style='height:100000px'></div><p>end</p>"),
    "growing": page(
        "<script>setInterval(() => document.body.append(document.createElement('p'), 'more'), 5)</script>"
    ),
    "empty": page(""),
    "pinned": page(f"<div>{TALL_ROWS}</div>", "<style>html,body{height:100%;margin:0}</style>"),
    "inner-scroller": page(
        f"<div style='height:100vh;overflow:auto'>{TALL_ROWS}</div>",
        "<style>html,body{height:100%;margin:0;overflow:hidden}</style>",
    ),
    "lazy": page(
        "<div style='height:4500px'>top</div><img loading=lazy src='red.png' width=200 height=200><p>end</p>",
    ),
    "observed": page(
        "<div style='height:4500px'>top</div><img data-src='red.png' width=200 height=200><p>end</p><script>"
        "const image = document.querySelector('img'); new IntersectionObserver((seen) => {"
        "if (seen[0].isIntersecting) image.src = image.dataset.src; }).observe(image)</script>",
    ),
    "wide": page(
        "<div style='width:2000px;height:1500px;background:linear-gradient(45deg,red,blue)'>w</div>"
    ),
    "right-to-left": page(
        "<div style='width:1740px;height:300px;background:linear-gradient(90deg,red,blue)'>مرحبا</div>"
    ).replace("<html>", "<html dir='rtl'>"),
    "scripts": page("<p>العربية</p><p>中文維基</p><p>हिन्दी</p><p>Ελληνικά Кириллица</p>"),
    "stretch": page("<p>top</p><div style='height:3500px'></div><p>end</p>"),
    "invisible": page(
        "<p>top</p>" + "<p style='color:#fff;height:34px;margin:0'>white on white</p>" * 100 + "<p>end</p>"
    ),
    "covered": page(
        "<p>top</p><div style='position:relative'>"
        + "<p style='height:34px;margin:0'>under a sheet</p>" * 100
        + "<div style='position:absolute;inset:0;background:white'></div></div><p>end</p>"
    ),
    "repeated": page(
        "<div style='font:12px/16px monospace'>" + "<div>again</div>" * 256 + "</div>",
        "<style>body{margin:0}</style>",
    ),
    "tiny": page("<div style='font:10px/12px sans-serif'>x</div>", "<style>body{margin:0}</style>"),
    "remainder": page("<div style='height:1044px;background:#333'>x</div>", "<style>body{margin:0}</style>"),
    "fixed": page(
        "<div style='position:fixed;top:0;left:0;width:100%;height:60px;background:red'></div>" + TALL_ROWS
    ),
    "window-high": page(
        "<div style='height:100vh;background:#cce'>a</div><div style='height:100vh'>b</div>",
        "<style>body{margin:0}</style>",
    ),
    "stores": page(
        "<script>localStorage.setItem('a', '1'); document.cookie = 'a=1; domain=pages.test'</script>x"
    ),
    "reads": page(
        "<script>if (localStorage.getItem('a') || document.cookie) "
        "document.write('<div style=height:2000px>leak</div>')</script>x"
    ),
    "broken-picture": page("<p>text</p><img src='none.png' width=100 height=100>"),
}
ENTRIES = [
    *(Given(name, text) for name, text in PAGES.items()),
    Given(ODD, page("<p>odd name</p><img src='../red.png' width=50 height=40>")),
    Given("red.png", png("red"), "image/png"),
    Given("redirect", redirect="plain"),
    Given("ping", "<meta http-equiv=refresh content='0;url=pong'>"),
    Given("pong", "<meta http-equiv=refresh content='0;url=ping'>"),
]


def options(folder: Path, archive: Path, pages: Path, browsers: int = 2, **changed) -> list[str]:
    return [
        *("--archive", str(archive), "--pages", str(pages)),
        *("--settings", json.dumps(SETTINGS | changed), "--browsers", str(browsers)),
        *("--manifest-out", str(folder / "manifest.jsonl"), "--tiles-out", str(folder / "tiles.zip")),
        *("--record", str(folder / "corpus.json")),
    ]


class Result:
    """What one run wrote, by page id."""

    def __init__(self, folder: Path) -> None:
        lines = (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
        self.pages = {line["page_id"]: line for line in map(json.loads, lines)}
        self.order = list(self.pages)
        self.record = json.loads((folder / "corpus.json").read_text())
        with zipfile.ZipFile(folder / "tiles.zip") as store:
            self.tiles = {name: store.read(name) for name in store.namelist()}

    def image(self, page_id: str, index: int) -> Image.Image:
        return Image.open(io.BytesIO(self.tiles[f"{page_id}/tile_{index:04d}.jpg"])).convert("RGB")

    def heights(self, page_id: str) -> list[int]:
        return [tile["height_px"] for tile in self.pages[page_id]["tiles"]]


@pytest.fixture(scope="module")
def listener():
    listener = Listener()
    yield listener
    listener.socket.close()


@pytest.fixture(scope="module")
def result(tmp_path_factory, listener):
    folder = tmp_path_factory.mktemp("render")
    archive = write_zim(folder / "a.zim", [*ENTRIES, Given("network", network_page(listener.port))])
    names = {name: name for name in (*PAGES, "network", "redirect", "ping", "gone")} | {
        "odd": ODD,
        "css": "red.png",
    }
    pages = write_pages(folder / "pages.jsonl", names)
    assert render_tiles.main(options(folder, archive, pages)) == 0
    assert not (folder / "spool").exists()
    found = Result(folder)
    found.names = list(names)
    return found


def test_every_page_of_the_list_is_in_the_manifest_in_order_and_counted(result):
    assert result.order == result.names
    counts = result.record["counts"]
    assert counts["rendered"] + counts["failed"] == len(result.names)
    assert counts["tiles"] == len(result.tiles)


def test_the_record_names_browser_and_fonts(result):
    facts = result.record["facts"]
    assert facts["browser"].count(".") == 3
    assert facts["fonts"]["count"] > 0
    assert facts["renderer"] == "chromium"


@pytest.mark.parametrize(
    ("page_id", "words"),
    [
        ("endless", "not finished within 8 s"),
        ("leaves", "left the archive"),
        ("high", "height of 1000"),
        ("growing", "never settles"),
        ("empty", "empty"),
        ("ping", "ping -> pong -> ping"),
        ("gone", "no entry 'gone'"),
        ("css", "the entry is image/png, not a page"),
    ],
)
def test_a_page_that_cannot_be_rendered_is_recorded_with_its_reason(result, page_id, words):
    found = result.pages[page_id]
    assert (found["status"], found["tiles"]) == ("failed", [])
    assert words in found["reason"]


def test_a_page_that_reloads_itself_for_ever_is_caught_whole_or_recorded(result):
    # Between two of its reloads it may stand still for long enough: then its picture is whole, and right.
    found = result.pages["reloads"]
    if found["status"] == "failed":
        assert "went elsewhere" in found["reason"]
    else:
        assert len(found["tiles"]) == 1


FAILED = {"endless", "leaves", "reloads", "high", "growing", "empty", "ping", "gone", "css"}


def test_all_other_pages_are_rendered_completely(result):
    for page_id in set(result.names) - FAILED:
        found = result.pages[page_id]
        assert found["status"] == "rendered", found
        column = [tile for tile in found["tiles"] if tile["x_px"] == 0]
        missing = found["height_px"] - sum(tile["height_px"] for tile in column)
        assert missing == (20 if page_id == "remainder" else 0), page_id
        for tile in found["tiles"]:
            with Image.open(io.BytesIO(result.tiles[tile["member"]])) as image:
                image.load()
                assert image.size == (tile["width_px"], tile["height_px"])


def test_dialogs_do_not_stop_a_page_and_are_noted(result):
    assert result.pages["alert"]["reason"] == "dialogs were closed"


def test_nobody_outside_the_archive_is_ever_called(result, listener):
    assert result.pages["network"]["status"] == "rendered"
    assert "blocked" in result.pages["network"]["reason"]
    assert listener.calls == 0


def test_files_of_the_computer_cannot_be_read_by_a_page(result):
    assert result.pages["file"]["height_px"] < 400


def test_a_body_pinned_to_the_window_is_not_cut(result):
    assert result.pages["pinned"]["height_px"] == 5000
    assert result.pages["inner-scroller"]["height_px"] == 5000


@pytest.mark.parametrize("page_id", ["lazy", "observed"])
def test_pictures_that_load_when_seen_are_on_their_tile(result, page_id):
    (picture,) = result.pages[page_id]["pictures"]
    assert (picture["width_px"], picture["height_px"]) == (200, 200)
    y = picture["y_px"] + 100
    red, green, blue = result.image(page_id, y // 1024).getpixel((picture["x_px"] + 100, y % 1024))
    assert red > 240 and green < 16 and blue < 16


def test_a_broken_picture_is_no_picture(result):
    assert result.pages["broken-picture"]["pictures"] == []


def test_a_wide_page_is_cut_into_columns_row_by_row(result):
    places = [(t["x_px"], t["y_px"], t["width_px"], t["height_px"]) for t in result.pages["wide"]["tiles"]]
    height = result.pages["wide"]["height_px"] - 1024
    width = result.pages["wide"]["width_px"] - 1750
    assert 250 <= width <= 258
    assert places == [
        *((0, 0, 875, 1024), (875, 0, 875, 1024), (1750, 0, width, 1024)),
        *((0, 1024, 875, height), (875, 1024, 875, height), (1750, 1024, width, height)),
    ]


def test_columns_of_a_wide_page_continue_each_other(result):
    left, right = result.image("wide", 0), result.image("wide", 1)
    assert (
        max(abs(a - b) for a, b in zip(left.getpixel((874, 500)), right.getpixel((0, 500)), strict=True)) <= 6
    )


def test_a_wide_page_from_right_to_left_is_complete_on_its_left_side_too(result):
    found = result.pages["right-to-left"]
    assert found["width_px"] >= 1740
    first, last = result.image("right-to-left", 0), result.image("right-to-left", len(found["tiles"]) - 1)
    assert first.getpixel((20, 150))[0] > 230
    assert last.getpixel((last.width - 40, 150))[2] > 230


def test_other_scripts_are_drawn(result):
    low, high = result.image("scripts", 0).convert("L").getextrema()
    assert high - low > 200


@pytest.mark.parametrize("page_id", ["stretch", "invisible", "covered"])
def test_a_stretch_that_is_really_blank_is_kept_and_not_taken_for_a_fault(result, page_id):
    assert len(result.pages[page_id]["tiles"]) == 4
    assert result.image(page_id, 1).convert("L").getextrema()[0] > 250


def test_blank_and_repeated_tiles_are_counted(result):
    assert result.record["counts"]["blank_tiles"] >= 5
    tiles = result.pages["repeated"]["tiles"]
    assert len({tile["sha256"] for tile in tiles}) == 1
    assert result.record["counts"]["repeated_tiles"] >= len(tiles) - 1


def test_a_page_smaller_than_a_remainder_is_one_tile_and_a_remainder_is_noted(result):
    assert result.heights("tiny") == [12]
    assert result.heights("remainder") == [1024]
    assert "20 px of the height were left out" in result.pages["remainder"]["reason"]


def test_what_is_fixed_to_the_window_is_on_the_first_tile_only(result):
    assert result.image("fixed", 0).getpixel((400, 30))[1] < 40
    for index in range(1, len(result.heights("fixed"))):
        assert result.image("fixed", index).getpixel((800, 30)) == (255, 255, 255)


def test_a_box_as_high_as_the_window_keeps_the_height_of_one_tile(result):
    assert result.pages["window-high"]["height_px"] == 2048


def test_nothing_that_one_page_stores_reaches_another(result):
    assert result.pages["reads"]["height_px"] < 100


def test_odd_names_and_redirects_lead_to_their_pages(result):
    assert result.pages["odd"]["pictures"][0]["width_px"] == 50
    assert result.pages["redirect"]["height_px"] == result.pages["plain"]["height_px"]


def many(folder: Path, count: int) -> tuple[Path, Path]:
    names = [f"page{number:02d}" for number in range(count)]
    text = "<p>Some words that fill a line or two of the page.</p>"
    archive = write_zim(folder / "a.zim", [Given(n, page(f"<h1>{n}</h1>" + text * 60)) for n in names])
    return archive, write_pages(folder / "pages.jsonl", {name: name for name in names})


def start(folder: Path, archive: Path, pages: Path) -> subprocess.Popen:
    words = [sys.executable, str(SCRIPT), *options(folder, archive, pages, browsers=1)]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def finished(folder: Path) -> int:
    return len(list((folder / "spool").glob("*/*.page")))


def wait_for(folder: Path, count: int) -> None:
    end = time.monotonic() + 60
    while finished(folder) < count:
        assert time.monotonic() < end, "no progress"
        time.sleep(0.01)


def browsers_below(pid: int) -> list[int]:
    """Return browser processes, not their helpers, that descend from a process."""
    parents, commands = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
            commands[int(status.parent.name)] = (status.parent / "cmdline").read_bytes()
    found = []
    for number, words in commands.items():
        line = number
        while line in parents and line != pid:
            line = parents[line]
        if line == pid and b"--remote-debugging-pipe" in words and b"--type=" not in words:
            found.append(number)
    return found


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "end", [pytest.param("killed", marks=SLOW), "told", pytest.param("all told", marks=SLOW)]
)
def test_a_script_that_is_ended_goes_on_where_it_stopped_and_ends_with_the_same_bytes(tmp_path, end):
    archive, pages = many(tmp_path, 8)
    process = start(tmp_path / "killed", archive, pages)
    wait_for(tmp_path / "killed", 2)
    browsers = browsers_below(process.pid)
    # A cluster tells every process of a job in one moment.
    for pid in reversed(family(process.pid)) if end == "all told" else [process.pid]:
        os.kill(pid, signal.SIGKILL if end == "killed" else signal.SIGTERM)
    said = process.communicate()[1]
    if end != "killed":
        assert process.returncode == 75 and "Traceback" not in said, said
        assert said.rstrip().split("\n")[-1].startswith("to be continued: told to end before it was done;")
    kept = finished(tmp_path / "killed")
    assert 2 <= kept < 8
    assert not (tmp_path / "killed" / "tiles.zip").exists()
    again = start(tmp_path / "killed", archive, pages)
    said = again.communicate(timeout=60)[1]
    assert again.returncode == 0, said
    assert f" {kept} already rendered, {8 - kept} to render" in said
    assert not (tmp_path / "killed" / "spool").exists()
    whole = tmp_path / "whole"
    assert render_tiles.main(options(whole, archive, pages)) == 0
    for name in ("manifest.jsonl", "tiles.zip"):
        assert (tmp_path / "killed" / name).read_bytes() == (whole / name).read_bytes()
    assert browsers and not any(alive(pid) for pid in browsers)


def test_a_browser_that_dies_is_started_again_and_no_page_is_lost(tmp_path):
    archive, pages = many(tmp_path, 8)
    process = start(tmp_path, archive, pages)
    wait_for(tmp_path, 2)
    for pid in browsers_below(process.pid):
        os.kill(pid, signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    assert "starting it again" in said
    assert Result(tmp_path).record["counts"]["rendered"] == 8


def white(text: str, width_px: int, height_px: int) -> tiles.Capture:
    stream = io.BytesIO()
    Image.new("RGB", (width_px, height_px), "white").save(stream, "JPEG")
    return tiles.check(stream.getvalue(), width_px, height_px)


@pytest.mark.slow
def test_a_capture_that_comes_out_blank_is_tried_again_and_then_recorded_as_failed(tmp_path, monkeypatch):
    names = {"once": "<p>blank once</p>", "always": "<p>always</p>" * 3, "torn": "<p>torn</p>" * 5}
    archive = write_zim(tmp_path / "a.zim", [Given(name, page(text)) for name, text in names.items()])
    pages = write_pages(tmp_path / "pages.jsonl", {name: name for name in names})
    real, heights = capture._decode, []

    def decode(text: str, width_px: int, height_px: int) -> tiles.Capture:
        heights.append(height_px)
        first = heights.count(height_px) == 1
        if height_px > 150:  # five lines
            return real(text[: len(text) // 8 * 4], width_px, height_px)
        if height_px > 80 or first:  # three lines, or one line at the first try
            return white(text, width_px, height_px)
        return real(text, width_px, height_px)

    monkeypatch.setattr(capture, "_decode", decode)
    assert render_tiles.main(options(tmp_path, archive, pages, browsers=1)) == 0
    found = Result(tmp_path).pages
    assert found["once"]["status"] == "rendered"
    assert found["always"]["status"] == "failed"
    assert "tile 0 is blank" in found["always"]["reason"] and "always" in found["always"]["reason"]
    assert "does not decode" in found["torn"]["reason"]
    assert [heights.count(height) for height in sorted(set(heights))] == [2, 2, 2]


@pytest.mark.slow
def test_a_tile_left_over_from_another_place_or_page_is_noticed(tmp_path, monkeypatch, capsys):
    archive = write_zim(
        tmp_path / "a.zim", [Given("long", page(TALL_ROWS)), Given("next", page("<p>next</p>" * 200))]
    )
    pages = write_pages(tmp_path / "pages.jsonl", {"long": "long", "next": "next"})
    real, kept = capture._decode, {}

    def decode(text: str, width_px: int, height_px: int) -> tiles.Capture:
        return kept.setdefault(height_px, real(text, width_px, height_px))  # every full tile is the first one

    monkeypatch.setattr(capture, "_decode", decode)
    with pytest.raises(RemeasureError, match="none of 2 pages"):
        render_tiles.main([*options(tmp_path, archive, pages, browsers=1), "--debug"])
    said = capsys.readouterr().err
    assert "next: the first tile shows the page before (attempt 1)" in said
    assert "long: failed: tile 1 is a copy of tile 0, but the page differs there" in said


def test_pages_that_all_fail_are_an_error_with_the_reason(tmp_path, capsys):
    archive = write_zim(tmp_path / "a.zim", [Given("empty", page(""))])
    pages = write_pages(tmp_path / "pages.jsonl", {"one": "empty", "two": "none"})
    assert render_tiles.main(options(tmp_path / "out", archive, pages)) == 2
    said = capsys.readouterr().err
    assert "none of 2 pages could be rendered" in said
    assert not (tmp_path / "out" / "manifest.jsonl").exists()


def test_an_empty_page_list_and_a_wrong_setting_are_errors(tmp_path, capsys):
    archive = write_zim(tmp_path / "a.zim", [Given("plain", PAGES["plain"])])
    pages = write_pages(tmp_path / "pages.jsonl", {})
    assert render_tiles.main(options(tmp_path, archive, pages)) == 2
    assert "no pages" in capsys.readouterr().err
    assert render_tiles.main(options(tmp_path, archive, pages, quality=3)) == 2
    assert "quality" in capsys.readouterr().err


def test_a_program_that_is_no_browser_ends_in_one_line(tmp_path, capsys):
    archive = write_zim(tmp_path / "a.zim", [Given("plain", PAGES["plain"])])
    pages = write_pages(tmp_path / "pages.jsonl", {"plain": "plain"})
    assert render_tiles.main([*options(tmp_path, archive, pages), "--browser", "/bin/true"]) == 2
    assert "expected a Chromium version" in capsys.readouterr().err


def merged(folder: Path, pages: Path, n_parts: int) -> int:
    records = [str(folder / "parts" / part / "tiles" / "corpus.json") for part in parts.names(n_parts)]
    outs = [str(folder / "tiles" / name) for name in ("manifest.jsonl", "tiles.zip")]
    words = ["--what", "tiles", "--pages", str(pages), "--records", *records, "--outs", *outs]
    return merge_parts.main([*words, "--record", str(folder / "tiles" / "corpus.json")])


def render_parts(folder: Path, archive: Path, pages: Path, n_parts: int, **changed) -> None:
    for part in parts.names(n_parts):
        words = options(folder / "parts" / part / "tiles", archive, pages, **changed)
        words += ["--part", part, "--spool", str(folder / "tiles" / "spool"), "--earlier", str(folder)]
        assert render_tiles.main(words) == 0


def store_of(folder: Path, n_parts: int) -> dict[str, bytes]:
    found = {}
    for part in parts.names(n_parts):
        with zipfile.ZipFile(folder / "parts" / part / "tiles" / "tiles.zip") as store:
            found |= {name: store.read(name) for name in store.namelist()}
    return found


@pytest.mark.slow
def test_parts_have_the_tiles_of_one_job_and_another_number_of_parts_renders_nothing(tmp_path, capsys):
    archive, pages = many(tmp_path, 6)
    whole, corpus = tmp_path / "whole", tmp_path / "corpus"
    assert render_tiles.main(options(whole, archive, pages)) == 0
    render_parts(corpus, archive, pages, 2)
    assert merged(corpus, pages, 2) == 0
    manifest = (whole / "manifest.jsonl").read_bytes()
    assert (corpus / "tiles" / "manifest.jsonl").read_bytes() == manifest
    tiles = Result(whole).tiles
    assert store_of(corpus, 2) == tiles and tiles
    assert not (corpus / "tiles" / "spool").exists()
    counts = json.loads((corpus / "tiles" / "corpus.json").read_text())["counts"]
    assert counts == Result(whole).record["counts"]

    capsys.readouterr()
    render_parts(corpus, archive, pages, 3)
    assert re.findall(r"(\d+) to render", capsys.readouterr().err) == ["0", "0", "0"]
    assert merged(corpus, pages, 3) == 0
    assert (corpus / "tiles" / "manifest.jsonl").read_bytes() == manifest and store_of(corpus, 3) == tiles
    assert json.loads((corpus / "tiles" / "corpus.json").read_text())["counts"] == counts

    again = options(corpus / "tiles", archive, pages)
    assert render_tiles.main([*again, "--earlier", str(corpus)]) == 0
    assert re.findall(r"(\d+) to render", capsys.readouterr().err) == ["0"]
    assert (corpus / "tiles" / "tiles.zip").read_bytes() == (whole / "tiles.zip").read_bytes()

    # Tiles of another quality are not taken for these.
    render_parts(corpus, archive, pages, 1, jpeg_quality=40)
    assert re.findall(r"(\d+) to render", capsys.readouterr().err) == ["6"]


def test_the_archive_s_hash_is_the_one_that_the_record_of_its_pages_tells(tmp_path, monkeypatch):
    """Seventy parts would each read 111 GB for it."""
    archive = write_zim(tmp_path / "a.zim", [Given("plain", page("<p>One page.</p>"))])
    pages = write_pages(tmp_path / "pages.jsonl", {"plain": "plain"})
    told = {pages: {str(archive): "5" * 64}}
    monkeypatch.setattr(archive_record, "known_hash", lambda opened, listed: told[listed])
    assert render_tiles.main(options(tmp_path, archive, pages, browsers=1)) == 0
    assert Result(tmp_path).record["inputs"][str(archive)] == "5" * 64
