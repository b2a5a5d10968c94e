"""A file of captions that another system has written becomes a graded cell of TOSC."""

import json
from pathlib import Path

import pytest

import collect_responses
import grade
from imagekit import LEXICON
from remeasure import jsonl
from remeasure.files import sha256_file
from remeasure.records import Graded, ImageRef, Request, Response, Score
from remeasure.studies.tosc_items import from_row
from remeasure.studies.tosc_triplets import STATES, Triplet

# Two triplets of the TOSC card, section 3.2.
TRIPLETS = (("dog", "cat"), ("car", "bus"))
CAPTIONS = (
    ("A dog naps on a couch.", "An empty couch by a window.", "A cat naps on a couch."),
    ("Two cars wait at a light.", "A car stands on the street.", "A bus waits at a light."),
)


def names(number: int) -> list[tuple[str, str, str]]:
    """Return the ids of a triplet's three images in the three forms that files have: file name and keys."""
    o, r = TRIPLETS[number - 1]
    files = (f"{number}.jpg", f"{number}_masked_{o}_repair.png", f"{number}_masked_{o}_insert_{r}.png")
    return [
        (f"benchmark/images/{file}", f"{number:06}/{state}", f"{number}-{state}")
        for file, state in zip(files, STATES, strict=True)
    ]


def reference(path: str, sha256: str) -> ImageRef:
    return ImageRef(path=path, sha256=sha256)


def graded(folder: Path, form: int) -> tuple[list[Graded], Score]:
    """Grade captions from a file that names its images in one of the three forms."""
    rows = [
        Triplet(
            index=number,
            original_object=o,
            replacement_object=r,
            original_raw=o,
            replacement_raw=r,
            images=dict.fromkeys(STATES, "x.png"),
            sha256=dict.fromkeys(STATES, "a" * 64),
            size=dict.fromkeys(STATES, (8, 6)),
            o_class=o,
            r_class=r,
            overlap="none",
        )
        for number, (o, r) in enumerate(TRIPLETS, start=1)
    ]
    items = [item for row in rows for item in from_row(row, reference)]
    jsonl.write(folder / "items.jsonl", items)
    requests = [
        Request(
            custom_id=item.item_id,
            body={"model": "m", "messages": [{"role": "user", "content": f"{n}"}], "max_tokens": 9},
        )
        for n, item in enumerate(items)
    ]
    jsonl.write(folder / "requests.jsonl", requests)
    found = [
        {("question_id", "key", "key")[form]: ids[form], "text": text}
        for number in (2, 1)
        for ids, text in zip(names(number), CAPTIONS[number - 1], strict=True)
    ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found))
    asked = {"model": "m", "served_name": "m", "identity": {}, "max_failed_share": 0.0}
    executor = {"kind": "import", "format": "tosc", "path": str(folder / "captions.jsonl")}
    words = ["--requests", folder / "requests.jsonl", "--settings", json.dumps(asked)]
    words += ["--executor", json.dumps(executor), "--journal", folder / "journal"]
    words += ["--out", folder / "responses.jsonl", "--record", folder / "answers.json"]
    assert collect_responses.main(list(map(str, words))) == 0
    settings = {
        "study": "tosc",
        "bench": "triplets",
        "arm": "describe",
        "model": "m",
        "grader": "triplets",
        "options": {
            "lexicon": {
                "name": "coco",
                "path": "config/lexicons/coco.tsv",
                "sha256": sha256_file(LEXICON),
            },
            "unknown_objects": "error",
            "extra_synonyms": {},
            "denominator": "complete",
            "cut_off": "keep",
            "negation": False,
        },
        "k": None,
        "thinking": False,
        "reader": "Theirs",
        "judge": None,
        "corpus": None,
        "bootstrap": {"n": 10, "seed": 1},
        "max_judge_failed_share": 0.0,
    }
    words = ["--settings", json.dumps(settings), "--items", folder / "items.jsonl"]
    words += ["--responses", folder / "responses.jsonl", "--out", folder / "graded.jsonl"]
    words += ["--score", folder / "score.json", "--record", folder / "grade.json"]
    assert grade.main(list(map(str, words))) == 0
    return list(jsonl.read(folder / "graded.jsonl", Graded)), jsonl.read_json(folder / "score.json", Score)


@pytest.mark.parametrize("form", [0, 1, 2], ids=["file name", "key with a slash", "key with a hyphen"])
def test_captions_find_their_images_and_are_graded(tmp_path, form):
    lines, score = graded(tmp_path, form)
    assert not (tmp_path / "journal" / "unmatched.txt").exists()
    answers = jsonl.read(tmp_path / "responses.jsonl", Response)
    assert [row.text for row in answers] == [text for three in CAPTIONS for text in three]
    # The car is still there after it was removed.
    assert [(line.item_id, line.strict.verdict) for line in lines] == [
        ("000001", "consistent"),
        ("000002", "inconsistent"),
    ]
    rates = {name: metric.strict.value for name, metric in score.metrics.items()}
    assert [rates[name] for name in ("opa", "rca", "rua", "tosc")] == [1.0, 0.5, 1.0, 0.5]
    assert score.statuses == {"answered": 6}
