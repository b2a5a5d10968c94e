"""From items to request files, through the two scripts that a rule calls."""

import json
from pathlib import Path

import pytest

import build_judge_requests
import build_requests
from loopback import prompt_of
from remeasure import images, jsonl
from remeasure.files import sha256_file
from remeasure.records import Item, Passage, Ranked, RenderedPage, Request, Response, TileRef


def prompts_of(folder: Path, **texts: str) -> dict:
    paths = {name: folder / f"{name}.txt" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    return {
        "profile": "own",
        "files": {name: str(path) for name, path in paths.items()},
        "sha256": {name: sha256_file(path) for name, path in paths.items()},
    }


def test_from_items_to_a_judge_through_files_only(tmp_path):
    items = [
        Item(item_id=f"q{n}", question=f"Question {n}?", references=("Ada",), group="g") for n in range(3)
    ]
    jsonl.write(tmp_path / "items.jsonl", items)
    prompts = prompts_of(tmp_path, system_naive="Answer.", judge_simpleqa="Grade.\n{{answer_json}}")
    asked = {
        "model": "toy-slug",
        "evidence": "none",
        "n_shown": 3,
        "grader": "judge_simpleqa",
        "thinking": None,
    }
    asked |= {"max_tokens": 9, "sampling": {"temperature": 0.0}, "instruction": None, "layout": None}
    common = ["--study", "pixelrag", "--items", str(tmp_path / "items.jsonl")]
    out = ["--out", str(tmp_path / "requests.jsonl"), "--record", str(tmp_path / "ask.json")]
    assert build_requests.main(["--settings", json.dumps(asked | {"prompts": prompts}), *common, *out]) == 0
    record = json.loads((tmp_path / "ask.json").read_text())
    assert record["counts"] == {"evidence_parts": 0, "items_without_evidence": 0, "requests": 3}
    answers = [("answered", "<think>so</think>It is Ada"), ("refused", None), ("cut_off", None)]
    rows = [
        Response(custom_id=f"q{n}", key="k", status=status, text=text)
        for n, (status, text) in enumerate(answers)
    ]
    jsonl.write(tmp_path / "responses.jsonl", rows)
    judge = {"model": "toy-slug", "grader": "judge_simpleqa", "gold": "first", "max_tokens": 9}
    judge |= {"sampling": {"temperature": 0.0, "seed": 42}, "prompts": prompts}
    (tmp_path / "judge").mkdir()
    out = ["--out", str(tmp_path / "judge/requests.jsonl"), "--record", str(tmp_path / "judge/ask.json")]
    words = ["--settings", json.dumps(judge), *common, "--responses", str(tmp_path / "responses.jsonl"), *out]
    assert build_judge_requests.main(words) == 0
    requests = list(jsonl.read(tmp_path / "judge/requests.jsonl", Request))
    assert [request.custom_id for request in requests] == ["q0", "q2"]
    last = prompt_of(requests[0].body).split("\n")[-1]
    assert json.loads(last) == {"question": "Question 0?", "gold": "Ada", "answer": "It is Ada"}


@pytest.mark.parametrize("change", [{"study": "nostudy"}, {"colour": 1}, {"evidence": "text"}])
def test_wrong_words_to_the_request_builder_are_one_line(tmp_path, capsys, change):
    jsonl.write(tmp_path / "items.jsonl", [Item(item_id="q", question="?", references=("x",), group="g")])
    given = {
        "model": "m",
        "evidence": "none",
        "n_shown": 3,
        "grader": "em",
        "thinking": None,
        "max_tokens": 9,
    }
    given |= {"sampling": {}, "instruction": None, "layout": None}
    given |= {"prompts": {"profile": "own", "files": {}, "sha256": {}}}
    study = change.pop("study", "pixelrag")
    words = [
        "--settings",
        json.dumps(given | change),
        "--study",
        study,
        "--items",
        str(tmp_path / "items.jsonl"),
    ]
    words += ["--out", str(tmp_path / "r.jsonl"), "--record", str(tmp_path / "r.json")]
    assert build_requests.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1
    assert not (tmp_path / "r.jsonl").exists()


def corpus(folder: Path) -> list[str]:
    """Write three items with a corpus of two tiles and two passages; return the options that name it."""
    items = (Item(item_id=f"q{n}", question="?", references=("x",), group="g") for n in range(3))
    jsonl.write(folder / "items.jsonl", items)
    tiles = tuple(
        TileRef(tile_id=f"p/{n:04}", member=f"{n}.jpg", sha256=str(n) * 64, y_px=0, height_px=1, width_px=1)
        for n in range(2)
    )
    jsonl.write(folder / "manifest.jsonl", [RenderedPage(page_id="p", status="rendered", tiles=tiles)])
    images.write_store(folder / "tiles.zip", [("0.jpg", b"x"), ("1.jpg", b"y")])
    passages = (
        Passage(
            passage_id=f"p/{n:04}",
            page_id="p",
            chunk_index=n,
            char_offset=0,
            n_tokens=1,
            text=f"chunk {n}",
            title="",
            url="",
        )
        for n in range(2)
    )
    jsonl.write(folder / "passages.jsonl", passages)
    names = {"items": "items.jsonl", "ranking": "ranking.jsonl", "manifest": "manifest.jsonl"}
    names |= {"tiles": "tiles.zip", "passages": "passages.jsonl", "out": "r.jsonl", "record": "r.json"}
    return [word for name, file in names.items() for word in (f"--{name}", str(folder / file))]


@pytest.mark.parametrize(("kind", "shows"), [("tiles", "remeasure-image:1111"), ("text", "chunk 1")])
def test_evidence_of_a_ranking_reaches_every_request(tmp_path, capsys, kind, shows):
    words = corpus(tmp_path)
    prompts = prompts_of(tmp_path, system_evidence="Answer.")
    given = {"model": "m", "evidence": kind, "n_shown": 2, "grader": "em", "thinking": False}
    given |= {"max_tokens": 9, "sampling": {}, "instruction": None, "layout": None, "prompts": prompts}
    words += ["--study", "pixelrag", "--settings", json.dumps(given)]
    hits = [Ranked(item_id=f"q{n}", ids=("p/0001", "p/0000"), scores=(2.0, 1.0)) for n in range(3)]
    jsonl.write(tmp_path / "ranking.jsonl", hits)
    assert build_requests.main(words) == 0
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["counts"] == {"evidence_parts": 6, "items_without_evidence": 0, "requests": 3}
    assert all(shows in json.dumps(request.body) for request in jsonl.read(tmp_path / "r.jsonl", Request))
    before = (tmp_path / "r.jsonl").read_bytes(), (tmp_path / "r.json").read_bytes()
    assert build_requests.main(words) == 0
    assert before == ((tmp_path / "r.jsonl").read_bytes(), (tmp_path / "r.json").read_bytes())


def with_ranking(folder: Path, *hits: Ranked, kind: str = "text", tolerance: float = 0.0) -> int:
    """Build requests for the three items of ``corpus`` with these ranked lists; return the exit status."""
    prompts = prompts_of(folder, system_evidence="Answer.", system_naive="Answer.")
    given = {"model": "m", "evidence": kind, "n_shown": 2, "grader": "em", "thinking": False}
    given |= {"max_tokens": 9, "sampling": {}, "instruction": None, "layout": None, "prompts": prompts}
    given |= {"max_share_without_evidence": tolerance}
    words = [*corpus(folder), "--study", "pixelrag", "--settings", json.dumps(given)]
    jsonl.write(folder / "ranking.jsonl", hits)
    return build_requests.main(words)


def hit(name: str) -> Ranked:
    return Ranked(item_id=name, ids=("p/0001",), scores=(1.0,))


@pytest.mark.parametrize("kind", ["text", "tiles"])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["q0", "q2"], "no evidence for 1 of 3 items (first 'q1')"),
        ([], "no evidence for 3 of 3 items (first 'q0')"),
        (["q0", "q1", "q2", "q9"], "1 lists belong to no item (first 'q9')"),
        (["q9", "q8", "q0", "q1", "q2"], "2 lists belong to no item (first 'q8')"),
        (["q1", "q0", "q2"], "the list of item 'q0' stands out of item order"),
        (["q0", "q1", "q1", "q2"], "line 3: item_id 'q1' stands already in line 2"),
        (["q2", "q0", "q0"], "line 3: item_id 'q0' stands already in line 2"),
    ],
)
def test_a_ranking_that_does_not_fit_the_items_is_one_line_and_writes_nothing(
    tmp_path, capsys, kind, names, said
):
    assert with_ranking(tmp_path, *map(hit, names), kind=kind) == 2
    err = capsys.readouterr().err
    assert said in err and str(tmp_path / "ranking.jsonl") in err and err.count("\n") == 1
    assert not (tmp_path / "r.jsonl").exists() and not (tmp_path / "r.json").exists()


def test_items_without_questions_are_one_line(tmp_path, capsys):
    words = corpus(tmp_path)
    (tmp_path / "items.jsonl").write_text("")
    prompts = {"profile": "own", "files": {}, "sha256": {}}
    given = {"model": "m", "evidence": "text", "n_shown": 2, "grader": "em", "thinking": False}
    given |= {"max_tokens": 9, "sampling": {}, "instruction": None, "layout": None, "prompts": prompts}
    jsonl.write(tmp_path / "ranking.jsonl", [])
    assert build_requests.main([*words, "--study", "pixelrag", "--settings", json.dumps(given)]) == 2
    assert "holds no questions" in capsys.readouterr().err


def test_a_ranking_with_an_empty_list_fails_the_cell_and_writes_nothing(tmp_path, capsys):
    words = corpus(tmp_path)
    prompts = prompts_of(tmp_path, system_evidence="Answer.", system_naive="Answer.")
    given = {"model": "m", "evidence": "tiles", "n_shown": 2, "grader": "em", "thinking": False}
    given |= {"max_tokens": 9, "sampling": {}, "instruction": None, "layout": None, "prompts": prompts}
    words += ["--study", "pixelrag", "--settings", json.dumps(given)]
    hits = [
        Ranked(item_id=f"q{n}", ids=("p/0001",) if n else (), scores=(1.0,) if n else ()) for n in range(3)
    ]
    jsonl.write(tmp_path / "ranking.jsonl", hits)
    assert build_requests.main(words) == 2
    assert "no evidence for 1 of 3 items (first 'q0')" in capsys.readouterr().err
    assert not (tmp_path / "r.jsonl").exists()
