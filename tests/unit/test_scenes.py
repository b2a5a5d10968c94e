"""Composed triplets: names, what is shown, what differs between the three pictures, equal bytes."""

import io
import json
import re
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image, ImageDraw

import compose_triplets
from remeasure import scenes
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file

CONFIG = Path(__file__).resolve().parents[2] / "config" / "scenes.yaml"
ORIGINAL = re.compile(r"benchmark/original/images/(\d+)\.jpg")
REMOVED = re.compile(r"benchmark/repair/images/(\d+)_masked_([^/]+)_repair\.png")
REPLACED = re.compile(r"benchmark/insert/images/(\d+)_masked_([^/]+)_insert_([^/]+)\.png")


def given(**changes) -> dict:
    return yaml.safe_load(CONFIG.read_text("utf-8"))["composed-triplets"] | changes


def settings(**changes) -> scenes.SceneSettings:
    return scenes.read_settings(json.dumps(given(**changes)))


def png(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def disc(colour: str) -> bytes:
    """An object: a disc with transparent space around it."""
    picture = Image.new("RGBA", (72, 72))
    ImageDraw.Draw(picture).ellipse([10, 10, 61, 61], fill=colour)
    return png(picture)


def wheels(folder: Path, wanted: scenes.SceneSettings) -> tuple[Path, Path]:
    """Two data wheels with grey panoramas and red objects."""
    places, objects = folder / "panoramas.zip", folder / "objects.zip"
    grey = png(Image.new("RGB", (128, 64), "grey"))
    with zipfile.ZipFile(places, "w") as store:
        for name in wanted.places:
            store.writestr(zipfile.ZipInfo(f"p/_assets/hdri/{name}.jpg"), grey)
    with zipfile.ZipFile(objects, "w") as store:
        for code in wanted.objects.values():
            store.writestr(zipfile.ZipInfo(f"t/assets/72x72/{code}.png"), disc("red"))
    return places, objects


def run(folder: Path, name: str = "out", **changes) -> int:
    places, objects = wheels(folder, settings(**changes))
    words = ["--settings", json.dumps(given(**changes)), "--panoramas", places, "--objects", objects]
    words += ["--out", folder / f"{name}.zip", "--record", folder / f"{name}.json"]
    return compose_triplets.main([str(word) for word in words])


def test_every_triplet_has_three_names_of_the_grammar_that_agree(tmp_path):
    assert run(tmp_path, n_triplets=24) == 0
    with zipfile.ZipFile(tmp_path / "out.zip") as store:
        names = store.namelist()
        assert all(info.compress_type == zipfile.ZIP_STORED for info in store.infolist())
        assert {info.date_time for info in store.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert len(names) == 3 * 24
    shown = json.loads((tmp_path / "out.json").read_text())["facts"]["shown"]
    for number, triplet in enumerate(shown, start=1):
        first, second, third = names[3 * number - 3 : 3 * number]
        assert ORIGINAL.fullmatch(first).groups() == (str(number),)
        old, new = REMOVED.fullmatch(second)[2], REPLACED.fullmatch(third)[3]
        assert REPLACED.fullmatch(third).groups() == (str(number), old, new)
        assert re.sub("[_-]", " ", old) == triplet["original"].replace("-", " ")
        assert re.sub("[_-]", " ", new) == triplet["replacement"].replace("-", " ")


def test_names_have_spaces_underscores_and_hyphens_and_the_worked_example_is_there():
    names = {name for triplet in scenes.plan(settings()) for name in triplet.names(settings())}
    assert "benchmark/insert/images/17_masked_hot dog_insert_sports car.png" in names
    objects = "\n".join(name.partition("_masked_")[2] for name in names)
    assert re.search(r"\w \w", objects) and re.search(r"t-shirt", objects)
    assert re.search(r"(?m)^\w+_\w+_repair", objects) and re.search(r"\w-\w+_insert", objects)


def test_objects_change_evenly_and_nothing_is_replaced_by_itself():
    plan = scenes.plan(settings(fixed={}))
    assert set(Counter(triplet.original for triplet in plan).values()) == {3}
    assert set(Counter(triplet.replacement for triplet in plan).values()) == {3}
    for triplet in plan:
        assert len({triplet.original, triplet.replacement, triplet.bystander}) == 3
    assert 10 < sum(triplet.bystander is not None for triplet in plan) < 35
    assert {triplet.place for triplet in plan} == set(settings().places)


def test_a_triplet_does_not_depend_on_how_many_there_are_and_another_seed_gives_others():
    assert scenes.plan(settings(n_triplets=30)) == scenes.plan(settings())[:30]
    assert scenes.plan(settings(seed="tuning"))[:5] != scenes.plan(settings())[:5]


def test_equal_settings_give_equal_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", "x"), ("b", "x"), ("c", "y")):
        assert run(tmp_path, name, n_triplets=4, seed=seed, fixed={}) == 0
    a, b, c = (sha256_file(tmp_path / f"{name}.zip") for name in "abc")
    assert a == b != c
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text().replace("b.zip", "a.zip")


def test_the_object_is_in_the_first_picture_gone_in_the_second_another_in_the_third():
    wanted = settings(n_triplets=1, fixed={}, bystander_share=0, light=0, noise=0)
    (triplet,) = scenes.plan(wanted)
    places = {name: png(Image.new("RGB", (128, 64), "grey")) for name in wanted.places}
    objects = {triplet.original: disc("red"), triplet.replacement: disc("blue")}
    pictures = [
        np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        for _, data in scenes.Composer(wanted, places, objects).pictures(triplet)
    ]
    red = [(picture[..., 0] - picture[..., 2] > 60).sum() for picture in pictures]
    blue = [(picture[..., 2] - picture[..., 0] > 60).sum() for picture in pictures]
    assert red[0] > 5000 and red[1:] == [0, 0]
    assert blue[2] > 5000 and blue[:2] == [0, 0]
    assert (pictures[1] == 128).all(), "neither object nor shadow is left"
    assert [picture.shape for picture in pictures] == [(336, 448, 3)] * 3


def test_a_bystander_is_in_all_three_pictures():
    wanted = settings(n_triplets=1, fixed={}, bystander_share=1)
    (triplet,) = scenes.plan(wanted)
    places = {name: png(Image.new("RGB", (128, 64), "grey")) for name in wanted.places}
    objects = {name: disc("grey") for name in wanted.objects} | {triplet.bystander: disc("red")}
    for _, data in scenes.Composer(wanted, places, objects).pictures(triplet):
        picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        assert (picture[..., 0] - picture[..., 2] > 60).sum() > 1000


def test_the_edge_is_soft_and_no_dark_rim_is_left():
    wanted = settings(light=0, noise=0, shadow=0)
    scene = np.full((200, 300, 3), 128, np.float32)
    found = scenes.place_object(scene, disc("white"), "disc", scenes.Stand(150, 180, 100, 1.0, 1), wanted)
    assert (scene == 128).all()
    assert found.min() >= 127.5, "white on grey is nowhere darker than grey"
    assert len(np.unique(found.round())) > 20


def test_a_view_looks_where_it_is_told():
    """A panorama that is red in the middle, blue behind, and white above."""
    panorama = np.zeros((90, 180, 3), np.uint8)
    panorama[:, :, 2], panorama[:, 60:120] = 255, (255, 0, 0)
    panorama[:10] = 255
    assert scenes.view(panorama, (40, 30), 60, 0, 0)[15, 20].tolist() == [255, 0, 0]
    assert scenes.view(panorama, (40, 30), 60, 180, 0)[15, 20].tolist() == [0, 0, 255]
    assert scenes.view(panorama, (40, 30), 60, -180, 0)[15, 20].tolist() == [0, 0, 255]
    assert scenes.view(panorama, (40, 30), 60, 0, -89)[15, 20].tolist() == [255, 255, 255]
    assert scenes.view(panorama, (40, 30), 60, 0, 60)[15, 20].tolist() == [255, 0, 0]


def test_a_view_has_left_and_right_above_and_below_and_no_seam():
    panorama = np.zeros((90, 180, 3), np.uint8)
    panorama[:, :90, 2], panorama[:, 90:, 0] = 255, 255  # blue left of the middle, red right of it
    panorama[45:, :, 1] = 255  # green below the horizon
    ahead = scenes.view(panorama, (40, 30), 60, 0, 0)
    assert [ahead[0, column].tolist() for column in (0, 39)] == [[0, 0, 255], [255, 0, 0]]
    assert [ahead[29, column].tolist() for column in (0, 39)] == [[0, 255, 255], [255, 255, 0]]
    behind = scenes.view(panorama, (40, 30), 60, 180, 0)
    assert [behind[0, column].tolist() for column in (0, 39)] == [[255, 0, 0], [0, 0, 255]]
    # Straight down is the last row, straight up the first.
    panorama[:], panorama[-1], panorama[0] = 100, 255, 7
    assert scenes.view(panorama, (2, 2), 0.1, 0, 90).min() >= 250
    assert scenes.view(panorama, (2, 2), 0.1, 0, -90).max() == 7


def test_every_other_object_comes_in_the_place_of_each():
    """In a round all are replaced by the one so many steps further; no number of steps is left out."""
    five = {name: name for name in "abcde"}
    found = scenes.plan(settings(objects=five, fixed={}, n_triplets=5 * 60))
    rounds = [found[at : at + 5] for at in range(0, len(found), 5)]
    steps = []
    for one in rounds:
        order = [triplet.original for triplet in one]
        places = {(order.index(triplet.replacement) - at) % 5 for at, triplet in enumerate(one)}
        assert len(places) == 1
        steps += places
    assert set(steps) == {1, 2, 3, 4}
    assert {(t.original, t.replacement) for t in found} == {(a, b) for a in five for b in five if a != b}
    assert {triplet.bystander for triplet in found} == {None, *five}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"n_triplets": 0}, "n_triplets"),
        ({"noisy": 1}, "unknown field"),
        ({"objects": {"a": "1", "b": "2"}}, "at least three objects"),
        ({"fixed": {3: ["hot dog", "unicorn"]}}, "unicorn"),
        ({"fixed": {3: ["hot dog", "hot dog"]}}, "two different names"),
        ({"objects": {"a/b": "1", "b": "2", "c": "3"}, "fixed": {}}, "cannot stand in a file name"),
        ({"objects": {"a_insert_b": "1", "b": "2", "c": "3"}, "fixed": {}}, "cannot stand in a file name"),
    ],
)
def test_wrong_settings_are_named(changes, problem):
    with pytest.raises(RemeasureError, match=problem):
        settings(**changes)


def test_a_wheel_without_the_picture_is_named(tmp_path, capsys):
    places, objects = wheels(tmp_path, settings())
    text = json.dumps(given(objects=given()["objects"] | {"cat": "1f9999"}))
    words = ["--settings", text, "--panoramas", places, "--objects", objects]
    words += ["--out", tmp_path / "x.zip", "--record", tmp_path / "x.json"]
    assert compose_triplets.main([str(word) for word in words]) == 2
    assert "holds no 72x72/1f9999.png; correct config/scenes.yaml" in capsys.readouterr().err
    places.write_bytes(b"no wheel")
    assert compose_triplets.main([str(word) for word in words]) == 2
    assert "pictures cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "x.zip").exists()


def test_an_object_that_cannot_be_seen_or_decoded_is_named():
    for data in (png(Image.new("RGBA", (72, 72))), b"no picture"):
        with pytest.raises(RemeasureError, match="object 'ghost'"):
            scenes.cut_out(data, "ghost", 50)
