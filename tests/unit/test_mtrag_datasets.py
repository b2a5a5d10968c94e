"""ClapNQ of MTRAG, small and whole.

Source: RAG card 1.5 and the README of the data slice (counts, traps 1 to 8).
"""

import shutil
from pathlib import Path

import pytest

from datasetkit import HEADER, lines, load, loaded, zipped
from remeasure.datasets import mtrag
from remeasure.errors import RemeasureError
from remeasure.records import Document, Question, Turn

MINI = Path(__file__).resolve().parents[2] / "config" / "data" / "clapnq_mini"
CLAPNQ = "mt-rag-clapnq-elser-512-100-20240503"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# -- the mini set --------------------------------------------------------------------------------------------


def test_the_mini_set_has_what_its_readme_counts(tmp_path):
    assert load(tmp_path, "clapnq_mini", {"folder": MINI}) == 0
    documents, questions, counts = loaded(tmp_path)
    # README of the slice: 395 passages; 51 and 83 queries; 5 conversations, 41 turns: 29 answerable, 9 in
    # part, 3 not; 38 with gold passages; 181 labels of MTRAG-UN. Of MTRAG: `wc -l` says 108 and a header.
    expected = {"documents": 395, "queries": 51 + 83, "rewrites": 51, "turns": 41, "conversations": 5}
    expected |= {
        "answerable": 29,
        "partial": 9,
        "unanswerable": 3,
        "answers_with_gold": 38,
        "labels": 108 + 181,
    }
    assert {name: counts[name] for name in expected} == expected
    # 51 and 83 queries and the three turns that cannot be answered.
    assert len(questions) == 137
    assert documents[0].uri == "796426170_8685-16964-0-1952" and documents[0].format == "md"


def test_a_turn_of_the_mini_set(tmp_path):
    assert load(tmp_path, "clapnq_mini", {"folder": MINI}) == 0
    _, questions, _ = loaded(tmp_path)
    conversation = "1534a095279f2cb888fb0bea17bd70da"
    # Lines 1 to 3 of qa_turns.jsonl, lines 1 and 2 of queries_mtrag.jsonl, lines 2 and 3 of qrels_mtrag.tsv.
    assert [one.question_id for one in questions[:3]] == [f"{conversation}-{n}" for n in (1, 2, 3)]
    first, second, third = questions[:3]
    assert first.original_id == f"{conversation}<::>1" and first.group == conversation and first.turn == 1
    assert first.query == first.rewrite == "who takes photos of planes in the air"
    assert first.relevant == ("825986711_374-788-0-414", "825986711_2085-2489-0-404")
    assert second.query == second.turns[-1].text == "No, I meant photos in the air."
    assert second.rewrite == "I meant photos taken of planes in the air while in flight."
    assert [turn.speaker for turn in second.turns] == ["user", "agent", "user"]
    assert (third.answerability, third.query, third.relevant) == ("UNANSWERABLE", None, ())
    assert third.strata == {
        "set": "MTRAG",
        "multi_turn_type": "Follow-up",
        "question_type": "Explanation",
    }


def test_queries_of_mtrag_un_are_searched_for_and_not_answered(tmp_path):
    assert load(tmp_path, "clapnq_mini", {"folder": MINI}) == 0
    _, questions, _ = loaded(tmp_path)
    others = [one for one in questions if one.original_id == "1059dfb42fd753c2fe72ee3fb95a100b<::>2"]
    assert [(one.query, one.turns, one.expected, one.answerability) for one in others] == [
        ("Pride and Prejudice author", (), None, "ANSWERABLE")
    ]
    assert others[0].strata == {"set": "MTRAG-UN"}


def test_questions_say_which_of_the_two_sets_they_are_of(tmp_path):
    assert load(tmp_path, "clapnq_mini", {"folder": MINI}) == 0
    _, questions, _ = loaded(tmp_path)
    # 51 queries and three turns that cannot be answered, `wc -l queries_mtragun.jsonl`.
    sets = [one.strata["set"] for one in questions]
    assert (sets.count("MTRAG"), sets.count("MTRAG-UN")) == (54, 83)


def test_a_turn_that_is_of_both_sets_is_refused(tmp_path, capsys):
    folder = tmp_path / "mini"
    shutil.copytree(MINI, folder)
    with open(folder / "queries_mtragun.jsonl", "a", encoding="utf-8") as stream:
        stream.write('{"_id": "1534a095279f2cb888fb0bea17bd70da<::>3", "lastturn": "again"}\n')
    assert load(tmp_path, "clapnq_mini", {"folder": folder}) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "1 turns are of both sets, as '1534a095279f2cb888fb0bea17bd70da<::>3'" in said


# -- the whole -----------------------------------------------------------------------------------------------


def passage(name: str) -> dict:
    return {"_id": name, "title": "Title", "text": f"Title\nText of {name}.", "url": "ignored"}


def task(name: str, *texts: str, answerability: str = "ANSWERABLE", **more) -> dict:
    speakers = ["user", "agent"] * len(texts)
    turns = [
        {"speaker": who, "text": text, "metadata": {}} for who, text in zip(speakers, texts, strict=False)
    ]
    told = {"task_id": name, "Collection": CLAPNQ, "input": turns, "targets": [{"text": f"answer to {name}"}]}
    kinds = {
        "Answerability": [answerability],
        "Multi-Turn": [],
        "Question Type": ["Factoid", "Summarization"],
    }
    return told | kinds | {"turn": "1", "contexts": [{"document_id": "never-gold"}]} | more


@pytest.fixture
def whole(tmp_path):
    """Write the files of two conversations; return their paths by name."""

    def write(**changed) -> dict[str, Path]:
        rows = {
            "queries": [
                {"_id": "b<::>1", "text": "|user|: who is b"},
                {"_id": "a<::>2", "text": "|user|: and then?"},
                {"_id": "a<::>10", "text": "|user|: who is b"},
            ],
            "tasks": [
                task("a<::>10", "a one", "yes", "who is b"),
                task("other<::>1", "else", Collection="mt-rag-govt-elser-512-100-20240611"),
                task("a<::>2", "a one", "yes", "and then?"),
                task("a<::>3", "a one", "yes", "why?", answerability="UNANSWERABLE"),
                task("b<::>1", "who is b"),
            ],
            "labels": "b<::>1\tp1\t1\na<::>2\tp2\t1\na<::>2\tp1\t1\na<::>10\tp3\t1\n",
            "passages": [passage(name) for name in ("p1", "p2", "p3")],
        } | changed
        rewrites = [row | {"text": row["text"] + ", that is"} for row in rows["queries"]]
        Path("labels.tsv").write_text(HEADER + rows["labels"], encoding="utf-8")
        lines(Path("clapnq.jsonl"), rows["passages"])
        members = {"clapnq.jsonl": Path("clapnq.jsonl").read_text(), "__MACOSX/._clapnq.jsonl": "junk"}
        return {
            "passages": zipped(Path("clapnq.zip"), members),
            "queries": lines(Path("queries.jsonl"), rows["queries"]),
            "rewrites": lines(Path("rewrites.jsonl"), rows.get("rewrites", rewrites)),
            "labels": Path("labels.tsv"),
            "tasks": lines(Path("tasks.jsonl"), rows["tasks"]),
        }

    return write


def load_whole(tmp_path, files, marker="keep", **settings) -> int:
    return load(tmp_path, "clapnq", files, options={"role_marker": marker}, **settings)


def test_queries_tasks_and_labels_are_joined_by_turn_and_never_by_text(tmp_path, whole):
    expected = {"documents": 3, "queries": 3, "rewrites": 3, "labels": 4, "turns": 4, "unanswerable": 1}
    assert load_whole(tmp_path, whole(), expected=expected) == 0
    documents, questions, _ = loaded(tmp_path)
    assert documents[0] == Document(uri="p1", title="Title", text="Title\nText of p1.")
    # Conversations in the order of the tasks, turns by number.
    assert [one.question_id for one in questions] == ["a-2", "a-3", "a-10", "b-1"]
    assert questions[0] == Question(
        question_id="a-2",
        original_id="a<::>2",
        query="|user|: and then?",
        rewrite="|user|: and then?, that is",
        turns=(
            Turn(speaker="user", text="a one"),
            Turn(speaker="agent", text="yes"),
            Turn(speaker="user", text="and then?"),
        ),
        expected="answer to a<::>2",
        relevant=("p2", "p1"),
        group="a",
        turn=2,
        answerability="ANSWERABLE",
        strata={"set": "MTRAG", "multi_turn_type": "N/A", "question_type": "Factoid, Summarization"},
    )
    # Two queries have the same text, and other labels.
    assert [one.relevant for one in questions] == [("p2", "p1"), (), ("p3",), ("p1",)]


def test_of_several_targets_and_labels_of_a_task_the_first_count(tmp_path, whole):
    # RAG card 1.5, as haiku.rag has it.
    kinds = {"Answerability": ["PARTIAL", "ANSWERABLE"], "Multi-Turn": ["Follow-up", "Clarification"]}
    several = task("b<::>1", "who is b", targets=[{"text": "first"}, {"text": "second"}], **kinds)
    queries = [{"_id": "b<::>1", "text": "|user|: who is b"}]
    files = whole(tasks=[several], queries=queries, labels="b<::>1\tp1\t1\n")
    assert load_whole(tmp_path, files) == 0
    (one,) = loaded(tmp_path)[1]
    assert (one.expected, one.answerability, one.strata["multi_turn_type"]) == (
        "first",
        "PARTIAL",
        "Follow-up",
    )


def test_the_role_marker_is_taken_away_where_the_run_says_so(tmp_path, whole):
    assert load_whole(tmp_path, whole(), "strip") == 0
    assert [one.query for one in loaded(tmp_path)[1]] == ["and then?", None, "who is b", "who is b"]


@pytest.mark.parametrize(
    "changed, said",
    [
        (
            {"labels": "b<::>1\tp1\t1\na<::>2\tp9\t1\na<::>10\tp3\t1\n"},
            "1 gold labels name documents that are not",
        ),
        ({"labels": "b<::>1\tp1\t1\na<::>2\tp2\t1\n"}, "1 queries have no gold label, as 'a<::>10'"),
        (
            {"labels": "b<::>1\tp1\t1\na<::>2\tp2\t1\na<::>10\tp3\t1\nc<::>1\tp1\t1\n"},
            "1 labelled ids are no queries and no tasks, as 'c<::>1'",
        ),
        ({"labels": "b<::>1\tp1\t2\n"}, "labels.tsv line 2: is 'b<::>1\\tp1\\t2', expected query"),
        ({"labels": "b<::>1\tp1\t1\nb<::>1\tp1\t1\n"}, "labels.tsv line 3: names 'p1' twice"),
        ({"queries": [{"_id": "b<::>1", "text": "who is b"}]}, "line 1: query 'b<::>1' does not begin with"),
        ({"queries": [{"_id": "b", "text": "|user|: x"}]}, "id 'b' is not <conversation><::><turn>"),
        ({"rewrites": [{"_id": "b<::>1", "text": "|user|: x"}]}, "has other queries than"),
        ({"tasks": [task("a<::>1", "q", "r")]}, "line 1: the conversation does not end with the user"),
        ({"tasks": [task("a<::>1", "q", targets=[])]}, "line 1: has no target"),
        ({"tasks": [task("a<::>1", "q"), task("a::1", "q")]}, "line 2: id 'a::1' stands already"),
        ({"passages": [passage("p1"), passage("p1")]}, "document 2, 'p1': its uri stands already"),
        ({"passages": [{"_id": "p1"}]}, "line 1: not a valid record (Object missing required field `title`"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, whole, capsys, changed, said):
    assert load_whole(tmp_path, whole(**changed)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and said in error
    assert not (tmp_path / "dataset.json").exists()


def test_another_count_is_refused(tmp_path, whole, capsys):
    assert load_whole(tmp_path, whole(), expected={"documents": 183408, "querys": 2}) == 2
    error = capsys.readouterr().err
    assert "3 documents, expected 183408; 0 querys, expected 2 (did you mean 'queries'?)" in error


@pytest.mark.parametrize("text, turn", [("c<::>7", 7), ("c::7", 7), ("c<::>007", 7)])
def test_both_separators_and_every_spelling_of_a_turn_are_one(text, turn):
    assert mtrag.key_of(text, "here") == ("c", turn)


@pytest.mark.parametrize("text", ["c", "c<::>", "<::>3", "c<::>x", "c<::>12345", "c<::>3\n"])
def test_what_is_no_task_id_is_refused(text):
    with pytest.raises(RemeasureError, match="here: id .* is not <conversation><::><turn>"):
        mtrag.key_of(text, "here")
