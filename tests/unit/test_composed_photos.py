"""Composed photographs: sources of one set only, ground truth, odd files, archives as the published ones."""

import csv
import gzip
import hashlib
import io
import json
import lzma
import random
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image, ImageFile

import compose_photos
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.instances import composing, deb, warping

CONFIG = Path(__file__).resolve().parents[2] / "config" / "scenes.yaml"
# A source is a plain colour: whatever is made from it shows where it comes from.
COLOURS = {
    "data/a1.png": (200, 40, 40),
    "data/a2.png": (180, 60, 40),
    "data/b.png": (40, 200, 40),
    "data/o.png": (40, 40, 200),
    "data/c.png": (200, 200, 40),
    "data/t.png": (40, 200, 200),
    "data/v.png": (200, 40, 200),
    "inside": (120, 60, 20),
    "outside": (230, 230, 230),
}
SETTINGS = {
    "seed": "test",
    "side_px": 64,
    "jpeg_quality": 90,
    "benchmarks": {
        "first": {
            "scenes": {"a": ["data/a1.png", "data/a2.png"], "b": ["data/b.png"]},
            "others": ["data/o.png"],
            "two_queries": ["a"],
            "without_easy": ["b"],
            "odd": {"a": "exif", "b": "grey16"},
            "odd_query": {"a": "exif"},
            "outside": ["b"],
        },
        "second": {"scenes": {"c": ["data/c.png"]}, "without_hard": ["c"], "odd": {"c": "cmyk"}},
    },
    "training": {
        "panoramas": ["inside"],
        "directions": 4,
        "field_of_view_degrees": [30, 40],
        "turn_degrees": 2,
        "photos": {"t": "data/t.png"},
        "n_photos": [6, 8],
        "small": [1],
        "unlisted": 2,
        "missing": 1,
        "odd": ["truncated"],
        "archives": 2,
        "categories": {"inside-0": "Category:A,_old"},
    },
    "views": {
        "archives": [10, 11],
        "panoramas": ["outside"],
        "photos": ["data/v.png"],
        "photo_share": 0.4,
        "field_of_view_degrees": [30, 60],
        "pitch_degrees": [-5, 5],
        "size_px": [32, 24],
        "odd": ["stub", "strip"],
    },
}


def png(colour: tuple[int, int, int], size=(160, 120)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def ar(members: dict[str, bytes]) -> bytes:
    """The archive form of ar(5), written from its description."""
    found = b"!<arch>\n"
    for name, data in members.items():
        found += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}".encode() + b"`\n"
        found += data + b"\n" * (len(data) % 2)
    return found


def tar(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def package(folder: Path, members: dict[str, bytes], pack=lzma.compress, **links) -> Path:
    path = folder / "photos.deb"
    inner = tar({f"./usr/share/{name}": data for name, data in members.items()}, **links)
    path.write_bytes(ar({"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": pack(inner)}))
    return path


def sources(folder: Path) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    photos = {name: png(colour) for name, colour in COLOURS.items() if "/" in name}
    wheel = folder / "panoramas.zip"
    with zipfile.ZipFile(wheel, "w") as store:
        for name in ("inside", "outside"):
            store.writestr(f"p/hdri/{name}.jpg", png(COLOURS[name], (128, 64)))
    return package(folder, photos), wheel


def compose(folder: Path, *, threads: int = 1, settings: dict = SETTINGS) -> int:
    opencv, panoramas = sources(folder / "sources")
    words = ["--settings", json.dumps(settings), "--opencv", str(opencv), "--panoramas", str(panoramas)]
    words += [
        "--threads",
        str(threads),
        "--out",
        str(folder / "out"),
        "--record",
        str(folder / "record.json"),
    ]
    return compose_photos.main(words)


@pytest.fixture(scope="module")
def composed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("composed")
    assert compose(folder) == 0
    return folder / "out"


def pictures(out: Path, name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(out / f"{name}.zip") as store:
        return {member: store.read(member) for member in store.namelist()}


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def shown(data: bytes, monkeypatch) -> set[str]:
    """Sources whose colour a photograph has, in whatever light; nothing where nothing can be decoded."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    try:
        picture = Image.open(io.BytesIO(data)).convert("RGB")
    except OSError:
        return set()
    # Of the upper part: the lower half of a truncated one is grey. The mean: dark ones are grainy.
    pixel = np.asarray(picture)[: max(1, picture.height // 4)].mean((0, 1))
    share = {name: sum(p * c for p, c in zip(pixel, colour, strict=True)) for name, colour in COLOURS.items()}
    length = {name: sum(c * c for c in colour) ** 0.5 for name, colour in COLOURS.items()}
    return {max(COLOURS, key=lambda name: share[name] / length[name])}


def test_what_is_shown_of_one_set_is_shown_in_no_other(composed, monkeypatch):
    archives = [composed / f"images_00{n}.tar" for n in range(2)]
    views = [composed / f"views.{n}.tar.gz" for n in (1, 2)]
    found = {
        "first": pictures(composed, "first").values(),
        # CMYK and 16-bit files say nothing about colours that the others do not say as well.
        "second": [data for name, data in pictures(composed, "second").items() if name != "c_000003.jpg"],
        "training": [data for path in archives for data in members(path).values()],
        "views": [data for path in views for data in members(path).values()],
    }
    seen = {
        name: set().union(*(shown(data, monkeypatch) for data in photos)) for name, photos in found.items()
    }
    # Grey photographs have no colour of their own; the nearest to grey is `outside`.
    assert seen["first"] - {"outside"} == {"data/a1.png", "data/a2.png", "data/b.png", "data/o.png"}
    assert seen["second"] == {"data/c.png"}
    assert seen["training"] == {"data/t.png", "inside"}
    assert seen["views"] == {"data/v.png", "outside"}


def test_sources_of_the_embedded_sets_are_disjoint():
    found = composing.read_settings(json.dumps(yaml.safe_load(CONFIG.read_text("utf-8"))["composed-photos"]))
    sets = found.sources()
    assert set(sets) == {"buildings", "objects", "training", "views"}
    assert len({file for files in sets.values() for file in files}) == sum(len(set(f)) for f in sets.values())
    # Two photographs of one scene stay together, whatever they are called.
    assert {"data/leuvenA.jpg", "data/leuvenB.jpg"} <= set(sets["buildings"])


def test_a_source_in_two_sets_is_refused():
    settings = json.loads(json.dumps(SETTINGS))
    settings["views"]["photos"] = ["data/b.png"]
    with pytest.raises(RemeasureError, match="data/b.png is in first and in views"):
        composing.read_settings(json.dumps(settings))


def test_ground_truth_names_rows_of_a_gallery_without_queries(composed):
    labels = json.loads((composed / "first.json").read_text("utf-8"))
    assert labels["qimlist"] == ["a_000001", "a_000002", "b_000001"]
    assert labels["imlist"][:7] == [f"a_00000{n}" for n in range(3, 10)]
    # a: two plain views, four hard ones, a part; b is never seen plainly.
    a, again, b = labels["gnd"]
    assert (a["easy"], a["hard"], a["junk"]) == ([0, 1], [2, 3, 4, 5], [6])
    assert again["easy"] == a["easy"] and again["bbx"] != a["bbx"]
    assert (b["easy"], b["hard"], b["junk"]) == ([], [7, 8, 9, 10, 11, 12], [13])
    assert b["bbx"][0] == -3.2
    stems = {name.removesuffix(".jpg") for name in pictures(composed, "first")}
    assert stems == {*labels["imlist"], *labels["qimlist"]}


def test_without_hard_views_only_plain_ones_are_found(composed):
    (truth,) = json.loads((composed / "second.json").read_text("utf-8"))["gnd"]
    assert (truth["easy"], truth["hard"], truth["junk"]) == ([0, 1], [], [2])


def test_odd_files_are_as_odd_as_they_should_be(composed):
    first = pictures(composed, "first")
    for name in ("a_000001.jpg", "a_000003.jpg"):
        assert Image.open(io.BytesIO(first[name])).getexif()[0x0112] == 6
    grey = Image.open(io.BytesIO(first["b_000003.jpg"]))
    assert (grey.format, grey.mode) == ("PNG", "I;16")
    assert Image.open(io.BytesIO(pictures(composed, "second")["c_000003.jpg"])).mode == "CMYK"
    assert Image.open(io.BytesIO(first["other_000901.jpg"])).size == (1, 40)
    with pytest.raises(OSError):
        Image.open(io.BytesIO(first["other_000902.jpg"])).load()


def test_classes_are_packed_as_those_of_the_published_set(composed):
    with (composed / "train_clean.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    listed = {image: int(row["landmark_id"]) for row in rows for image in row["images"].split()}
    stored = {}
    for number in range(2):
        path = composed / f"images_00{number}.tar"
        found = members(path)
        digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        assert (composed / f"md5.images_00{number}.txt").read_text("ascii").split() == [digest, path.name]
        for name in found:
            a, b, c, file = name.split("/")
            assert file == f"{(a, b, c) and file[:16]}.jpg" and file[:3] == a + b + c
            assert (int(a, 16) >= 8) == (number == 1)
        stored |= {Path(name).stem: data for name, data in found.items()}
    # One is listed and nowhere; two are there and not listed.
    assert (len(set(listed) - set(stored)), len(set(stored) - set(listed))) == (1, 2)
    sizes = sorted(len(row["images"].split()) for row in rows)
    assert len(sizes) == 5 and sizes[0] == 1 and min(sizes[1:]) >= 6
    with (composed / "train_label_to_category.csv").open(newline="", encoding="utf-8") as stream:
        names = [row["category"] for row in csv.DictReader(stream)]
    assert "http://commons.wikimedia.org/wiki/Category:A,_old" in names
    assert len(names) == 5


def test_distractors_are_listed_in_another_order_than_they_are_packed(composed):
    listed = (composed / "views.txt").read_text("utf-8").splitlines()
    packed = [list(members(composed / f"views.{n}.tar.gz")) for n in (1, 2)]
    assert [len(names) for names in packed] == [10, 11]
    assert sorted(listed) == sorted(packed[0] + packed[1])
    assert (composed / "views.1.txt").read_text("utf-8").splitlines() == listed[:10]
    assert listed[:10] != packed[0] and sorted(listed[:10]) == sorted(packed[0])
    with gzip.open(composed / "views.1.tar.gz") as stream:
        stream.read()  # whole to its checksum


def test_several_threads_give_the_same_bytes(composed, tmp_path):
    assert compose(tmp_path, threads=3) == 0
    names = sorted(path.name for path in composed.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert all(sha256_file(composed / name) == sha256_file(tmp_path / "out" / name) for name in names)


def test_the_record_says_what_is_shown_where(composed):
    record = json.loads((composed.parent / "record.json").read_text("utf-8"))
    assert record["facts"]["sources"]["training"] == ["data/t.png", "inside"]
    assert record["facts"]["shown"]["first"]["a_000004"] == "a"
    assert record["counts"]["first_queries"] == 3 and record["counts"]["views"] == 21


def test_a_file_of_a_package_is_found_by_the_end_of_its_path(tmp_path):
    path = package(tmp_path, {"x/data/a.png": b"one", "x/other/a.png": b"two"})
    assert deb.read_members(path, {"a": "other/a.png", "b": "data/a.png"}) == {"a": b"two", "b": b"one"}


def test_a_package_may_be_packed_with_gzip(tmp_path):
    path = package(tmp_path, {"data/a.png": b"one"}, pack=gzip.compress)
    assert deb.read_members(path, {"a": "data/a.png"}) == {"a": b"one"}


def test_a_link_is_not_a_file(tmp_path):
    path = package(tmp_path, {}, links={"./usr/data/a.png": "/etc/passwd"})
    with pytest.raises(RemeasureError, match="holds no data/a.png"):
        deb.read_members(path, {"a": "data/a.png"})


def test_a_file_too_large_for_a_photograph_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(deb, "MAX_FILE_BYTES", 2)
    with pytest.raises(RemeasureError, match="data/a.png has 3 bytes, at most 2 are read"):
        deb.read_members(package(tmp_path, {"data/a.png": b"one"}), {"a": "data/a.png"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\3\4",
        b"!<arch>\n",
        b"!<arch>\n" + b"x" * 60,
        ar({"data.tar.xz": b"not packed"}),
        ar({"control.tar.xz": b"nothing else"}),
        ar({"data.tar.xz": lzma.compress(tar({"data/a.png": b"one" * 9999}))[:-60]}),
    ],
)
def test_what_is_no_package_is_told_in_one_line(tmp_path, data):
    path = tmp_path / "photos.deb"
    path.write_bytes(data)
    with pytest.raises(RemeasureError, match="fetch it again"):
        deb.read_members(path, {"a": "data/a.png"})


def test_a_source_that_is_no_picture_is_named():
    with pytest.raises(RemeasureError, match="data/a1.png: cannot be decoded"):
        composing.decoded(b"no picture", "data/a1.png")


def test_a_tilted_photograph_shows_nothing_that_is_not_in_it():
    red = Image.new("RGB", (100, 100), (200, 40, 40))
    tilted = warping.tilted(red, 45)
    # The upright square in one that stands on its corner: 1 / (sin 45° + cos 45°) = 0.7071 of its side.
    assert tilted.size == (70, 70)
    assert tilted.getcolors() == [(tilted.width * tilted.height, (200, 40, 40))]


def test_a_slanted_photograph_shows_nothing_that_is_not_in_it():
    red = Image.new("RGB", (100, 80), (200, 40, 40))
    slanted = warping.slanted(red, 0.42, random.Random(3))
    assert slanted.size == (100, 80) and slanted.getcolors() == [(8000, (200, 40, 40))]


def test_light_is_a_factor_that_ends_at_white():
    picture = warping.lit(Image.new("RGB", (1, 1), (10, 100, 200)), 1.5)
    assert picture.getpixel((0, 0)) == (15, 150, 255)


def test_grain_has_the_deviation_that_was_asked_for():
    grey = warping.grained(Image.new("RGB", (200, 200), (128, 128, 128)), 10, random.Random(3))
    values = np.asarray(grey)
    # Of 120,000 numbers the standard errors are 0.03 and 0.02.
    assert abs(values.mean() - 128) < 0.15 and abs(values.std() - 10) < 0.1
