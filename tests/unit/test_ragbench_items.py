"""Items of the RAG benchmarks, from datasets and of a user's own.

Source: RAG card, sections 1.5, 2.3, 2.5, 2.6; documents of the project: docs/ragbench-data.md.
"""

import json
from pathlib import Path

import pytest

import build_items
from datasetkit import lines, load
from imagekit import picture
from remeasure import items, jsonl
from remeasure.files import sha256_bytes
from remeasure.records import Document, Item, Question, Turn

SEARCH = {"do": "search", "query": "query", "limit": 10}
MINI = Path(__file__).resolve().parents[2] / "config" / "data" / "clapnq_mini"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def build(option: str, path: Path, task: dict, n: int | None = 9, *more: str, **settings) -> int:
    told = {"n_items": n, "task": task} | settings
    words = ["--study", "ragbench", "--bench", "x", "--settings", json.dumps(told), f"--{option}", str(path)]
    outs = ["--out", "items.jsonl", "--images-out", "made.zip", "--record", "items.json"]
    return build_items.main([*words, *more, *outs])


def built() -> list[Item]:
    return list(items.read(Path("items.jsonl"), with_answers=False))


def said(capsys) -> str:
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    return error


# -- of a dataset --------------------------------------------------------------------------------------------


def asked(group: str, number: int, **more) -> Question:
    turns = (
        Turn(speaker="user", text="first"),
        Turn(speaker="agent", text="yes"),
        Turn(speaker="user", text=f"{group}{number}?"),
    )
    told = {"query": f"|user|: {group}{number}?", "rewrite": f"{group}{number}, whole?", "turns": turns}
    told |= {"expected": f"{group}{number}!", "relevant": ("p2", "p1"), "answerability": "ANSWERABLE"}
    told |= {"group": group, "turn": number, "strata": {"kind": "x"}}
    original = f"{group}<::>{number}"
    return Question(question_id=f"{group}-{number}", original_id=original, **(told | more))


@pytest.fixture
def questions() -> Path:
    """Two conversations, one turn without a gold document, one query that is not answered."""
    bare = asked("b", 3, query=None, rewrite=None, relevant=(), answerability="UNANSWERABLE")
    other = asked("c", 1, turns=(), expected=None, rewrite=None)
    found = [asked("a", 1), asked("a", 2), asked("b", 1), bare, other]
    jsonl.write(Path("questions.jsonl"), found)
    return Path("questions.jsonl")


def test_an_item_that_is_searched_for(questions):
    assert build("dataset", questions, SEARCH) == 0
    found = built()
    assert found[0] == Item(
        item_id="a-1",
        question="|user|: a1?",
        references=("a1!",),
        relevant=("p2", "p1"),
        group="a",
        meta={"turn": 1, "answerability": "ANSWERABLE", "original_id": "a<::>1", "strata": {"kind": "x"}},
    )
    assert [one.item_id for one in found] == ["a-1", "a-2", "b-1", "c-1"]
    assert found[3].references == ()


def test_rewrites_are_searched_for_under_the_same_ids(questions):
    assert build("dataset", questions, SEARCH | {"query": "rewrite"}) == 0
    assert [(one.item_id, one.question) for one in built()] == [
        ("a-1", "a1, whole?"),
        ("a-2", "a2, whole?"),
        ("b-1", "b1, whole?"),
    ]


def test_an_item_that_is_answered_ends_with_its_question(questions):
    assert build("dataset", questions, {"do": "answer"}) == 0
    found = built()
    assert [one.item_id for one in found] == ["a-1", "a-2", "b-1", "b-3"]
    assert found[3].question == "b3?" and found[3].relevant == ()
    assert found[3].meta == {
        "turns": [
            {"speaker": "user", "text": "first"},
            {"speaker": "agent", "text": "yes"},
            {"speaker": "user", "text": "b3?"},
        ],
        "turn": 3,
        "answerability": "UNANSWERABLE",
        "original_id": "b<::>3",
        "strata": {"kind": "x"},
    }


def test_units_are_questions_and_of_live_benches_conversations(questions):
    assert build("dataset", questions, {"do": "answer"}, 1) == 0
    assert [one.item_id for one in built()] == ["a-1"]
    assert build("dataset", questions, {"do": "converse", "compact": True}, 1) == 0
    assert [one.item_id for one in built()] == ["a-1", "a-2"]
    assert build("dataset", questions, {"do": "converse", "compact": True}) == 0
    assert [one.item_id for one in built()] == ["a-1", "a-2", "b-1", "b-3"]


def test_the_four_benches_of_the_mini_set_have_the_same_ids(tmp_path):
    assert load(tmp_path, "clapnq_mini", {"folder": MINI}) == 0
    ids = {}
    tasks = {"all": SEARCH, "search": SEARCH | {"set": "MTRAG"}, "other": SEARCH | {"set": "MTRAG-UN"}}
    tasks |= {"rewrite": SEARCH | {"query": "rewrite"}, "answer": {"do": "answer"}}
    for name, task in (tasks | {"live": {"do": "converse", "compact": False}}).items():
        assert build("dataset", tmp_path / "questions.jsonl", task, 200) == 0
        ids[name] = [one.item_id for one in built()]
    # README of the mini set: 134 queries, 51 rewrites, 41 turns; 38 have gold passages, all among the 51.
    assert [len(found) for found in ids.values()] == [134, 51, 83, 51, 41, 41]
    assert ids["search"] == ids["rewrite"] and not {*ids["search"]} & {*ids["other"]}
    assert ids["answer"] == ids["live"]
    assert len({*ids["answer"]} & {*ids["rewrite"]}) == 38 and {*ids["rewrite"]} < {*ids["all"]}


@pytest.mark.parametrize(
    "task, words",
    [
        ({"do": "sing"}, "task.do is 'sing', expected search, answer or converse"),
        ({"do": "search"}, "task.query is None, expected query or rewrite"),
    ],
)
def test_a_task_that_nothing_can_be_made_for_is_refused(questions, capsys, task, words):
    assert build("dataset", questions, task) == 2
    assert words in said(capsys)


@pytest.mark.parametrize("name", ["MTRAG-X", "", None, ["MTRAG"]])
def test_a_set_that_the_dataset_has_not_is_refused_with_those_it_has(capsys, name):
    found = [asked("a", 1, strata={"set": "MTRAG"}), asked("b", 1, strata={"set": "MTRAG-UN"})]
    jsonl.write(Path("questions.jsonl"), found)
    assert build("dataset", Path("questions.jsonl"), SEARCH | {"set": name}) == 2
    line = said(capsys)
    assert f"task.set is {name!r}, expected a set of the dataset's questions (it has MTRAG, MTRAG-UN)" in line


def test_a_set_of_a_dataset_without_sets_is_refused(questions, capsys):
    assert build("dataset", questions, SEARCH | {"set": "MTRAG"}) == 2
    assert "task.set is 'MTRAG', expected a set of the dataset's questions (it has none)" in said(capsys)


def test_only_questions_of_the_set_are_taken_and_counted(capsys):
    found = [asked("a", 1, strata={"set": "MTRAG-UN"}), asked("b", 1, strata={"set": "MTRAG"})]
    jsonl.write(Path("questions.jsonl"), found)
    assert build("dataset", Path("questions.jsonl"), {"do": "answer", "set": "MTRAG"}, 1) == 0
    assert [one.item_id for one in built()] == ["b-1"]


def test_a_dataset_without_questions_for_a_bench_is_refused(capsys):
    jsonl.write(Path("questions.jsonl"), [asked("a", 1, rewrite=None)])
    assert build("dataset", Path("questions.jsonl"), SEARCH | {"query": "rewrite"}) == 2
    assert "the dataset has no question for task" in said(capsys)


# -- own -----------------------------------------------------------------------------------------------------


def own(name: str, **more) -> dict:
    told = {"item_id": name, "question": f"{name}?", "images": [], "references": ["yes"], "relevant": ["p1"]}
    return told | {"group": name, "meta": {}} | more


def build_own(rows: list[dict], task: dict, n: int | None = None) -> int:
    documents = [Document(uri=uri, title="T", text="x") for uri in ("p1", "p2")]
    jsonl.write(Path("documents.jsonl"), documents)
    lines(Path("own.jsonl"), rows)
    options = ("--documents", "documents.jsonl")
    return build("own", Path("own.jsonl"), task, n, *options, own="own", with_answers=False)


def test_what_may_be_left_out_of_own_questions_is_filled_in():
    assert build_own([own("q1"), own("q2", meta={"note": "kept"})], {"do": "answer"}) == 0
    found = built()
    filled = {"turn": None, "answerability": None, "original_id": "q1", "strata": {}}
    assert found[0].meta == filled | {"turns": [{"speaker": "user", "text": "q1?"}]}
    assert found[1].meta["note"] == "kept"
    assert build_own([own("q1")], SEARCH) == 0
    assert built()[0].meta == filled


def test_own_conversations_count_as_units():
    rows = [own("a1", group="a", meta={"turn": 1}), own("a2", group="a", meta={"turn": 2})]
    rows += [own("b1", group="b", meta={"turn": 1})]
    assert build_own(rows, {"do": "converse", "compact": True}, 1) == 0
    assert [one.item_id for one in built()] == ["a1", "a2"]


LIVE = {"do": "converse", "compact": True}


@pytest.mark.parametrize(
    "rows, task, words",
    [
        (
            [own("q", relevant=["p9"])],
            SEARCH,
            "names document 'p9', which is not among the 2 documents of the run",
        ),
        ([own("q", relevant=[])], SEARCH, "item 'q': is searched for, and `relevant` names no document"),
        ([own("q" * 51)], SEARCH, "its id is longer than 50"),
        ([own("q", meta={"turn": "1"})], SEARCH, "Expected `int | null`, got `str` - at `meta.turn`"),
        ([own("q", meta={"turns": []})], {"do": "answer"}, "meta.turns does not end with the question"),
        (
            [own("q", meta={"turns": [{"speaker": "user", "text": "else"}]})],
            {"do": "answer"},
            "meta.turns does not end with the question",
        ),
        (
            [own("q", meta={"turns": [{"speaker": "bot", "text": "q?"}]})],
            {"do": "answer"},
            "Invalid enum value 'bot'",
        ),
        ([own("a1", group="a")], LIVE, "its conversation has the turns [None], expected rising numbers"),
        (
            [own("a1", group="a", meta={"turn": 1}), own("a1b", group="a", meta={"turn": 1})],
            LIVE,
            "its conversation has the turns [1, 1], expected rising numbers",
        ),
        (
            [own("a2", group="a", meta={"turn": 2}), own("a1", group="a", meta={"turn": 1})],
            LIVE,
            "its conversation has the turns [2, 1], expected rising numbers",
        ),
        (
            [own(n, group=n[0], meta={"turn": int(n[1])}) for n in ("a1", "b1", "a2")],
            LIVE,
            "item 'a2': other turns of conversation 'a' stand further above",
        ),
    ],
)
def test_own_questions_that_cannot_be_asked_are_refused(capsys, rows, task, words):
    assert build_own(rows, task) == 2
    assert words in said(capsys)


def test_a_question_with_a_picture_is_refused(capsys):
    Path("a.png").write_bytes(data := picture("PNG"))
    shown = {"sha256": sha256_bytes(data), "path": "a.png", "member": None}
    assert build_own([own("q", images=[shown])], SEARCH) == 2
    assert "has 1 images, and a system is asked in words alone" in said(capsys)
