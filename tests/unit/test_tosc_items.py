"""Items of image triplets: three per line of the index, or a user's own; one image each, no question."""

import io
import json
import zipfile
from pathlib import Path

import msgspec
import pytest
from PIL import Image

import build_items
from imagekit import OPTIONS, folder, named, picture, store, triplet
from remeasure import graders, items, jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.records import ImageRef, Item, Response
from remeasure.studies import tosc_items
from remeasure.studies.tosc_triplets import Triplet

STATES = ("origin", "removed", "replaced")


def row(index: int = 17, states=STATES, **more) -> Triplet:
    base = {
        "index": index,
        "original_object": "hot dog",
        "replacement_object": "sports car",
        "original_raw": "hot dog",
        "replacement_raw": "sports_car",
        "images": {state: f"{state}/{index}.png" for state in states},
        "sha256": {state: sha256_bytes(state.encode()) for state in states},
        "size": {state: (8, 6) for state in states},
        "o_class": "hot dog",
        "r_class": None,
        "overlap": "none",
    }
    return Triplet(**(base | more))


def ref(path: str, sha256: str) -> ImageRef:
    return ImageRef(sha256=sha256, path="images.zip", member=path)


def test_a_triplet_is_three_items_in_order_without_question_and_answers():
    found = tosc_items.from_row(row(), ref)
    assert [one.item_id for one in found] == ["000017-origin", "000017-removed", "000017-replaced"]
    assert found[1] == Item(
        item_id="000017-removed",
        question="",
        images=(ref("removed/17.png", sha256_bytes(b"removed")),),
        references=(),
        group="000017",
        meta={
            "title": "hot dog → sports car",
            "index": 17,
            "state": "removed",
            "original": "hot dog",
            "replacement": "sports car",
            "overlap": "none",
            "o_class": "hot dog",
            "r_class": None,
        },
    )


def test_the_largest_index_still_makes_ids_that_every_service_takes():
    [*_, last] = tosc_items.from_row(row(10**15 - 1), ref)
    assert items.ITEM_ID.match(last.item_id)


def test_a_triplet_that_lacks_an_image_has_fewer_items():
    found = tosc_items.from_row(row(states=("origin", "replaced")), ref)
    assert [one.meta["state"] for one in found] == ["origin", "replaced"]


def graded(found: tuple[Item, ...], captions: tuple[str, ...], **more):
    options = {"denominator": "complete", "cut_off": "keep", "negation": False}
    options |= {"lexicon": OPTIONS["lexicon"], "unknown_objects": "other", "extra_synonyms": {}}
    told = graders.Unit(
        unit_id="000017",
        items=found,
        responses=tuple(Response(custom_id="x", key="k", status="answered", text=text) for text in captions),
        judge=(None,) * len(found),
        thinking=False,
    )
    return graders.by_name("triplets").begin(options | more)(told)


def test_the_grader_takes_the_three_items_of_a_line_as_one_unit():
    found = tosc_items.from_row(row(), ref)
    assert {graders.by_name("triplets").unit_of(one) for one in found} == {"000017"}
    assert graded(found, ("Two hot dogs.", "A plate.", "A red sports car.")).strict.verdict == "consistent"


def known(reading) -> dict[str, float]:
    scores = reading.scores | {"tosc": reading.score}
    return {name: score for name, score in scores.items() if score is not None}


def test_a_triplet_without_an_image_counts_only_where_each_rate_has_its_own_denominator():
    lacking = {"replacement_object": None, "replacement_raw": None}
    found = tosc_items.from_row(row(states=("origin", "removed"), **lacking), ref)
    captions = ("Two hot dogs.", "A hot dog.")
    for reading in ("published", "strict"):
        assert known(getattr(graded(found, captions), reading)) == {}
        alone = graded(found, captions, denominator="per_rate")
        assert known(getattr(alone, reading)) == {"opa": 1, "rca": 0, "oldpersist_rem": 1, "rca_given_opa": 0}
    assert alone.strict.reason == "no caption: replaced has no image"
    assert [(mark.item_id, mark.start, mark.end) for mark in alone.marks] == [
        ("000017-origin", 4, 12),
        ("000017-removed", 2, 9),
    ]


def test_a_triplet_without_its_first_image_keeps_the_captions_of_the_others_apart():
    found = tosc_items.from_row(row(states=("removed", "replaced")), ref)
    told = graded(found, ("A plate.", "A sports car and a hot dog."), denominator="per_rate")
    assert known(told.published) == {
        **{"rca": 1, "oldpersist_rem": 0, "rua": 0, "oldpersist_rep": 1, "repfail": 0, "cc": 0, "mixconf": 1}
    }


# -- own items ----------------------------------------------------------------------------------------------


def own(states=STATES, group: str = "t1", **more) -> list[Item]:
    return [
        Item(
            item_id=f"{group}-{state}",
            question=more.get("question", ""),
            images=more.get("images", (ImageRef(sha256="0" * 64, path="a.png"),)),
            group=group,
            meta={"state": state, "original": "dog", "replacement": "cat"} | more.get("meta", {}),
        )
        for state in states
    ]


def test_own_triplets_pass_whole():
    assert list(tosc_items.units([*own(), *own(group="t2")])) == [tuple(own()), tuple(own(group="t2"))]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            own(("origin", "removed")),
            "triplet 't1': the states of its items .* are origin, removed; expected",
        ),
        (own(("removed", "origin", "replaced")), "are removed, origin, replaced; expected"),
        (own(("origin", "origin", "removed", "replaced")), "are origin, origin, removed, replaced; expected"),
        ([*own(), *own(group="t2"), *own(("origin",))], "other items of triplet 't1' stand further above"),
        (own(question="What is it?"), "expected one image, an empty question"),
        (own(images=()), "found 0 images"),
        (own(images=2 * (ImageRef(sha256="0" * 64, path="a.png"),)), "found 2 images"),
        (own(meta={"original": ""}), r"objects \['', 'cat'\]"),
        (own(meta={"replacement": None}), r"objects \['dog', None\]"),
        ([*own()[:2], *own(("replaced",), meta={"original": "cow"})], "names other objects than 't1-origin'"),
    ],
)
def test_own_items_that_are_no_triplet_are_one_line_before_anything_is_asked(found, said):
    with pytest.raises(RemeasureError, match=said) as caught:
        list(tosc_items.units(found))
    assert "\n" not in str(caught.value)


# -- the stage ----------------------------------------------------------------------------------------------


def build(*more: str, settings: dict, study: str = "tosc") -> int:
    told = ["--study", study, "--bench", "triplets", "--settings", json.dumps(settings), *more]
    return build_items.main(
        [*told, "--out", "items.jsonl", "--images-out", "images.zip", "--record", "items.json"]
    )


def index(source: Path) -> None:
    import index_images

    names = ["TOSC_dataset.jsonl", "insertions.jsonl", "index_report.json"]
    told = json.dumps({"files": names, "options": OPTIONS})
    options = ["--study", "tosc", "--settings", told, "--source", str(source), "--threads", "1"]
    assert (
        index_images.main([*options, "--journal", "j", "--out", *names, "--record", "index_images.json"]) == 0
    )


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_items_are_made_from_the_first_lines_of_an_index(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    files = triplet(12) | triplet(3) | triplet(4, "cup", "vase")
    source = folder(Path("images"), files) if kind == "folder" else store(Path("images.tosc.zip"), files)
    index(source)
    settings = {"n_units": 2, "source": str(source)}
    assert build("--index", "TOSC_dataset.jsonl", settings=settings) == 0
    found = list(items.read(Path("items.jsonl"), check_images=True, with_answers=False))
    assert [one.item_id for one in found] == [f"{n:06d}-{state}" for n in (3, 4) for state in STATES]
    here = named("4_masked_cup_insert_vase.png")
    place = (f"images/{here}", None) if kind == "folder" else ("images.tosc.zip", here)
    assert (found[5].images[0].path, found[5].images[0].member) == place
    assert zipfile.ZipFile("images.zip").namelist() == []
    record = jsonl.read_json(Path("items.json"))
    assert record["counts"] == {"items": 6, "with_picture": 6}
    assert list(record["inputs"]) == ["TOSC_dataset.jsonl"]
    first = Path("items.jsonl").read_bytes()
    assert build("--index", "TOSC_dataset.jsonl", settings=settings) == 0
    assert Path("items.jsonl").read_bytes() == first


def test_fewer_lines_than_asked_for_are_said_and_no_crash(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    index(folder(Path("images"), triplet(1)))
    assert build("--index", "TOSC_dataset.jsonl", settings={"n_units": 5969, "source": "images"}) == 0
    assert "has 1 lines, 5969 were asked for; all are taken" in capsys.readouterr().err
    assert len(list(jsonl.read(Path("items.jsonl"), Item))) == 3


def test_a_transparent_image_is_shown_on_white(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    Image.new("RGBA", (8, 6), (200, 0, 0, 0)).save(out, "PNG")
    clear = out.getvalue()
    files = triplet(1) | {named("1_masked_dog_repair.png"): clear}
    files[named("1_masked_dog_insert_cat.png")] = picture(mode="RGBA")  # opaque: shown as it is
    index(folder(Path("images"), files))
    assert build("--index", "TOSC_dataset.jsonl", settings={"n_units": 1, "source": "images"}) == 0
    found = list(items.read(Path("items.jsonl"), check_images=True, with_answers=False))
    assert [one.images[0].path for one in found] == [
        *(f"images/{named('1.jpg')}", "images.zip", f"images/{named('1_masked_dog_insert_cat.png')}")
    ]
    assert found[1].meta["composited"] == sha256_bytes(clear)
    with zipfile.ZipFile("images.zip") as made, made.open(found[1].images[0].member) as stream:
        image = Image.open(stream)
        assert image.mode == "RGB" and image.getcolors() == [(48, (255, 255, 255))]


def test_an_image_that_changed_after_the_index_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    images = folder(Path("images"), triplet(1) | {named("1.jpg"): picture(mode="RGBA")})
    index(images)
    (images / named("1.jpg")).write_bytes(picture(mode="RGBA", seed=9))
    assert build("--index", "TOSC_dataset.jsonl", settings={"n_units": 1, "source": "images"}) == 2
    assert "image has SHA-256" in capsys.readouterr().err


def test_own_items_need_no_pages_and_no_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.png").write_bytes(picture())
    image = ImageRef(sha256=sha256_bytes(picture()), path="a.png")
    jsonl.write(Path("own.jsonl"), [one for group in "abc" for one in own(group=group, images=(image,))])
    settings = {"own": "questions", "n_items": 2, "with_answers": False}
    assert build("--own", "own.jsonl", settings=settings) == 0
    assert [one.item_id for one in jsonl.read(Path("items.jsonl"), Item)] == [
        f"{group}-{state}" for group in "ab" for state in STATES
    ]


@pytest.mark.parametrize(
    ("options", "study", "said"),
    [
        ([], "tosc", "give one of --own, --facts, --index"),
        (["--own", "x", "--index", "y"], "tosc", "give one of --own, --facts, --index"),
        (["--facts", "x"], "tosc", "study 'tosc' makes no items in this way"),
        (["--index", "x"], "pixelrag", "study 'pixelrag' makes no items in this way"),
    ],
)
def test_a_way_that_is_missing_doubled_or_not_the_study_s_is_one_line(
    tmp_path, monkeypatch, capsys, options, study, said
):
    monkeypatch.chdir(tmp_path)
    assert build(*options, settings={}, study=study) == 2
    assert said in capsys.readouterr().err


def test_a_row_of_the_index_is_what_the_index_writes():
    assert tosc_items.Row is Triplet and msgspec.json.decode(jsonl.encode(row()), type=Triplet) == row()
