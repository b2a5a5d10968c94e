"""Items of MRareBench, from an index and of a user's own.

Source: MRareBench card, sections 2.1, 2.3, 3.3, 5, 7; documents of the project: docs/mrarebench.md.
"""

import json
import zipfile
from pathlib import Path

import msgspec
import pytest

import build_items
from casekit import diagnosis_row, evidence_row, images, point, run
from imagekit import picture
from remeasure import items, jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.items import OwnSettings
from remeasure.records import ImageRef, Item
from remeasure.studies import mrarebench_items


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def build(bench: str, *more: str, settings: dict) -> list[Item]:
    words = ["--study", "mrarebench", "--bench", bench, "--settings", json.dumps(settings), *more]
    outs = ["--out", "items.jsonl", "--images-out", "made.zip", "--record", "items.json"]
    assert build_items.main([*words, *outs]) == 0
    return list(items.read(Path("items.jsonl"), check_images=True, with_answers=bench == "diagnosis"))


def from_index(bench: str, n: int = 9) -> list[Item]:
    words = ["--index", f"{bench}.jsonl", "--store", "images.zip"]
    return build(bench, *words, settings={"n_units": n, "source": "images.zip"})


def ref(data: bytes, suffix: str) -> ImageRef:
    digest = sha256_bytes(data)
    return ImageRef(sha256=digest, path="images.zip", member=f"{digest}.{suffix}")


def test_items_of_diagnosis(tmp_path):
    data = picture("JPEG", seed=3)
    rows = [diagnosis_row(1, index="a b", answer=" X ", answer_aliases='["Y ", ""]', image=images(data))]
    assert run(tmp_path, [*rows, diagnosis_row(2)], [evidence_row()]) == 0
    found = from_index("diagnosis", 1)
    assert found == [
        Item(
            item_id="a-b-c8687a08",  # printf 'a b' | sha256sum
            question="What is the diagnosis?",
            images=(ref(data, "jpg"),),
            references=("X", "Y"),
            group="a b",
            meta={"index": "a b", "context": "A 21-year-old man.", "findings": "### CT\nA mass of 1 cm."},
        )
    ]
    assert zipfile.ZipFile("made.zip").namelist() == []


def test_items_of_evidence(tmp_path):
    first, second = picture("PNG", seed=3), picture("JPEG", seed=4)
    row = evidence_row(
        7, image=images(first, second), doc_id="d", row_key="", image_slot_map="", task_type=""
    )
    assert run(tmp_path, [diagnosis_row()], [row]) == 0
    (found,) = from_index("evidence")
    assert (found.question, found.references, found.group) == ("Which findings fit?", (), "PMC7")
    assert found.images == (ref(first, "png"), ref(second, "jpg"))
    assert found.meta == {
        "index": "t4ev_seed:7",
        "context": "Established diagnosis: Fabry disease. A 27-year-old man.\n\nImages: Image 1",
        "diagnosis": "Fabry disease",
        "rationale": "The mass shows it.",
        "points": [point("a mass"), point("a cyst", "Image 2", "optional")],
        "labels": ["Image 1", "Image 2"],
        "n_images": 2,
        "decisive": [1],
        "supporting": [1, 2],
        "task_type": None,
        "pmcid": "PMC7",
        "doc_id": "d",
        "row_key": None,
    }


def test_without_a_column_of_findings_items_have_none(tmp_path):
    assert run(tmp_path, [diagnosis_row(**{"image findings": None})], [evidence_row()]) == 0
    assert from_index("diagnosis")[0].meta["findings"] is None


def test_a_transparent_image_of_a_table_is_shown_on_white(tmp_path):
    clear = picture(mode="RGBA", size=(2, 2))
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGBA", (2, 2), (9, 9, 9, 0)).save(out, "PNG")
    row = diagnosis_row(image=images(clear, out.getvalue()))
    assert run(tmp_path, [row], [evidence_row()]) == 0
    (found,) = from_index("diagnosis")
    assert [one.path for one in found.images] == ["images.zip", "made.zip"]


# -- own items ----------------------------------------------------------------------------------------------


def own_diagnosis(meta: dict | None = None, **changes) -> Item:
    values = {
        "item_id": "q1",
        "question": "What is it?",
        "images": (ImageRef(sha256="0" * 64, path="a.png"),),
        "references": ("Fabry disease",),
        "group": "q1",
        "meta": {"context": "A man.", "findings": None} | (meta or {}),
    }
    return Item(**(values | changes))


def own_evidence(meta: dict | None = None, **changes) -> Item:
    values = {
        "item_id": "q1",
        "question": "Which findings fit?",
        "images": 2 * (ImageRef(sha256="0" * 64, path="a.png"),),
        "group": "q1",
        "meta": {
            "context": "Established diagnosis: Fabry disease. A man.",
            "diagnosis": "Fabry disease",
            "rationale": "Because.",
            "points": [{"point": "a mass", "credit": "required"}],
        }
        | (meta or {}),
    }
    return Item(**(values | changes))


def test_what_may_be_left_out_of_own_items_is_filled_in():
    ((found,),) = mrarebench_items.units([own_diagnosis({"title": "T"})])
    assert found.meta == {"context": "A man.", "findings": None, "index": "q1", "title": "T"}
    ((found,),) = mrarebench_items.units([own_evidence({"pmcid": "P"})])
    assert found.meta == {
        "context": "Established diagnosis: Fabry disease. A man.",
        "diagnosis": "Fabry disease",
        "rationale": "Because.",
        "points": [{"point": "a mass", "image": "", "credit": "required", "category": ""}],
        "labels": ["Image 1", "Image 2"],
        "n_images": 2,
        "decisive": [],
        "supporting": [],
        "task_type": None,
        "index": "q1",
        "pmcid": "P",
    }


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (own_diagnosis(meta={"context": " "}), "meta.context is empty"),
        (
            own_diagnosis(meta={"findings": ""}),
            "meta.findings is empty, expected the imaging findings, or null",
        ),
        (own_diagnosis(meta={"findings": 3}), "Expected `str | null`, got `int` - at `meta.findings`"),
        (own_diagnosis(references=()), "has no references"),
        (own_diagnosis(images=()), "has 0 images and question 'What is it?', needs both"),
        (own_diagnosis(question=" "), "has 1 images and question ' ', needs both"),
        (own_evidence({"diagnosis": ""}), "meta.diagnosis is empty"),
        (own_evidence({"rationale": None}), "Expected `str`, got `null` - at `meta.rationale`"),
        (own_evidence({"points": []}), "none of its 0 points is required"),
        (
            own_evidence({"points": [{"point": "a", "credit": "optional"}]}),
            "none of its 1 points is required",
        ),
        (own_evidence({"points": [{"point": "a", "credit": "must"}]}), "at `meta.points[0].credit`"),
        (
            own_evidence({"points": [{"point": " ", "credit": "required"}]}),
            "meta.points has one without text",
        ),
        (own_evidence({"points": [{"credit": "required"}]}), "missing required field `point`"),
        (own_evidence({"labels": ["Image 1"]}), "has 2 images, 1 labels and meta.n_images None"),
        (own_evidence({"labels": ["Image 1", " "]}), "meta.labels: label 2 is empty"),
        (own_evidence({"labels": ["Image 1", "\u200b"]}), "or one without width"),
        (own_evidence({"labels": ["A", "a "]}), "is that of image 1, too"),
        (own_evidence({"labels": ["A", "fabry disease"]}), "holds meta.diagnosis, and NoDx shows it, too"),
        (own_evidence({"labels": ["A", "b\r"]}), "meta.labels: label 2 ('b\\r') holds a line break"),
        (own_evidence({"labels": ["A", "b" * 41]}), "has 41 characters, at most 40 are shown"),
        (own_evidence({"supporting": [2, 3]}), "meta.supporting names image 3, there are 1 to 2"),
        (own_evidence(references=("Fabry disease",)), "has 1 references, which nothing reads"),
        (
            own_evidence({"points": [{"point": "a", "credit": "required", "image": "Image 3"}]}),
            "meta.points has a required point about image 3, there are images 1 to 2",
        ),
        (own_diagnosis(references=("?",)), "its first reference '?' has no letter and no digit"),
        (own_evidence({"n_images": 3}), "has 2 images, 2 labels and meta.n_images 3"),
        (own_evidence({"decisive": [3]}), "meta.decisive names image 3, there are 1 to 2"),
        (own_evidence({"decisive": [0]}), "meta.decisive names image 0, there are 1 to 2"),
        (
            own_evidence({"context": "A man."}),
            "meta.context does not begin with 'Established diagnosis: NAME.'",
        ),
        (
            own_evidence({"context": "Established diagnosis: X. A man with fabry disease"}),
            "meta.context still holds meta.diagnosis after the NoDx cut",
        ),
        (own_evidence(question="Fabry disease?"), "the question holds meta.diagnosis"),
    ],
)
def test_own_items_that_messages_or_graders_cannot_use_are_one_line(item, said):
    with pytest.raises(RemeasureError) as caught:
        list(mrarebench_items.units([item]))
    assert said in str(caught.value) and "\n" not in str(caught.value) and "'q1'" in str(caught.value)


def test_missing_keys_are_named():
    for key in ("context", "diagnosis", "rationale"):
        item = own_evidence()
        with pytest.raises(RemeasureError, match=f"missing required field `{key}`"):
            list(mrarebench_items.units([msgspec.structs.replace(item, meta=without(item.meta, key))]))
    item = own_diagnosis()
    with pytest.raises(RemeasureError, match="missing required field `findings`"):
        list(mrarebench_items.units([msgspec.structs.replace(item, meta=without(item.meta, "findings"))]))


def without(meta: dict, key: str) -> dict:
    return {name: value for name, value in meta.items() if name != key}


def test_a_file_has_one_kind_of_items():
    second = own_evidence(item_id="q2")
    with pytest.raises(RemeasureError, match="item 'q2': has meta.points, other than the first item 'q1'"):
        list(mrarebench_items.units([own_diagnosis(), second]))


def test_own_items_go_through_the_stage(tmp_path):
    data = picture("PNG")
    Path("a.png").write_bytes(data)
    image = ImageRef(sha256=sha256_bytes(data), path="a.png")
    jsonl.write(Path("own.jsonl"), [own_evidence(images=(image, image))])
    settings = OwnSettings(own="own.jsonl", with_answers=False)
    (found,) = build("evidence", "--own", "own.jsonl", settings=msgspec.to_builtins(settings))
    assert found.meta["labels"] == ["Image 1", "Image 2"]
