"""What must hold of every dataset, and files that are hostile.

Source: RAG card, requirements R12 and R14.
"""

import zipfile
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from datasetkit import HEADER, load, zipped
from remeasure.datasets import loading, reading
from remeasure.errors import RemeasureError
from remeasure.records import Document, Question, Turn


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def doc(uri: str = "a", **more) -> Document:
    return Document(uri=uri, title="T", **({"text": "x"} | more))


def asked(name: str = "q", **more) -> Question:
    told = {"original_id": name, "query": "what?", "relevant": ("a",), "group": name}
    return Question(question_id=name, **(told | more))


def turn(group: str, number: int, **more) -> Question:
    turns = (Turn(speaker="user", text="what?"),)
    return asked(f"{group}-{number}", group=group, turn=number, turns=turns, **more)


def check_documents(*found: Document) -> set[str]:
    uris: set[str] = set()
    list(loading.documents(found, "mine", uris, Counter()))
    return uris


def check_questions(*found: Question, uris=("a",), absent=()) -> Counter:
    counts: Counter = Counter()
    list(loading.questions(found, "mine", uris, absent, counts))
    return counts


# -- documents -----------------------------------------------------------------------------------------------


def test_uris_of_documents_are_collected():
    assert check_documents(doc("a"), doc("b c", text=None, path="b.pdf", sha256="0" * 64)) == {"a", "b c"}


@pytest.mark.parametrize(
    "found, said",
    [
        ([], "holds no documents"),
        ([doc(" ")], "document 1, ' ': a uri is one line"),
        ([doc("a\nb")], "a uri is one line of text"),
        ([doc("a\u2028b")], "a uri is one line of text"),
        ([doc("a\0")], "a uri is one line of text"),
        ([doc("a\n")], "a uri is one line of text"),
        ([doc("a\x1b[2J")], "a uri is one line of text"),
        ([doc(), doc("b"), doc()], "document 3, 'a': its uri stands already further above"),
        ([doc(text=None)], "needs either a text, or a file and its hash"),
        ([doc(path="x", sha256="0")], "needs either a text, or a file and its hash"),
        ([doc(text=None, path="x")], "needs either a text, or a file and its hash"),
    ],
)
def test_documents_that_cannot_be_told_apart_or_read_are_refused(found, said):
    with pytest.raises(RemeasureError) as caught:
        check_documents(*found)
    assert str(caught.value).startswith("dataset 'mine': ") and said in str(caught.value)


# -- questions -----------------------------------------------------------------------------------------------


def test_questions_are_counted_by_what_they_are_for():
    counts = check_questions(
        turn("c", 1, relevant=("a", "b"), expected="yes", answerability="ANSWERABLE"),
        turn("c", 3, query=None, relevant=(), answerability="UNANSWERABLE"),
        asked("single", rewrite="what is it?"),
        uris=("a", "b"),
    )
    assert counts == {
        "questions": 3,
        "queries": 2,
        "rewrites": 1,
        "labels": 3,
        "answers": 2,
        "answers_with_gold": 1,
        "answers_without_reference": 1,
        "turns": 2,
        "answerable": 1,
        "unanswerable": 1,
        "labels_of_missing_files": 0,
        "gold_documents": 2,
        "conversations": 1,
    }


@pytest.mark.parametrize(
    "found, said",
    [
        ([], "holds no questions"),
        ([asked(), asked()], "question 2, 'q': its id 'q' stands already"),
        ([asked("a" * 51)], "is not 1 to 50 of A-Z"),
        ([asked("a b")], "is not 1 to 50 of A-Z"),
        ([asked(query=None)], "is neither searched for nor answered"),
        ([asked(query=" ")], "its query or rewrite is blank"),
        ([asked(relevant=())], "is searched for, and no document is right"),
        ([asked(relevant=("a", "a"))], "names a gold document twice"),
        ([asked(turns=(Turn(speaker="agent", text="x"),))], "does not end with a question of the user"),
        ([turn("c", 2), turn("c", 1)], "turns of a conversation stand together and in order"),
        (
            [turn("c", 1), msgspec.structs.replace(turn("c", 1), question_id="c-1b")],
            "turns of a conversation stand together and in order",
        ),
        ([turn("c", 1), turn("d", 1), turn("c", 2)], "turns of a conversation stand together and in order"),
        (
            [asked("q", relevant=("x", "y")), asked("r", relevant=("z", "a"))],
            "3 gold labels name documents that are not among 1, as 'x' of 'q', 'y' of 'q', 'z' of 'r'",
        ),
    ],
)
def test_questions_that_cannot_be_asked_or_graded_are_refused(found, said):
    with pytest.raises(RemeasureError) as caught:
        check_questions(*found)
    assert said in str(caught.value)


def test_labels_may_name_a_document_that_is_allowed_to_be_missing():
    assert check_questions(asked(relevant=("a", "gone")), absent=("gone",))["labels_of_missing_files"] == 1
    with pytest.raises(RemeasureError, match="1 gold labels name documents .* as 'other'"):
        check_questions(asked(relevant=("gone", "other")), absent=("gone",))


# -- hostile files -------------------------------------------------------------------------------------------


class Row(msgspec.Struct):
    text: str


def test_a_line_that_is_too_long_is_not_held(monkeypatch):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 20)
    Path("rows.jsonl").write_text('{"text": "short"}\n\n' + '{"text": "' + "x" * 30 + '"}\n')
    rows = reading.read_records(Path("rows.jsonl"), Row)
    assert next(rows) == (1, Row("short"))
    with pytest.raises(RemeasureError, match=r"rows.jsonl line 3: has more than 20 bytes"):
        next(rows)


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"text": "\xff"}', b'{"text": NaN}', b"{", b'{"text": 3}']
)
def test_lines_that_are_no_records_are_refused(text):
    Path("rows.jsonl").write_bytes(text + b"\n")
    with pytest.raises(RemeasureError, match="rows.jsonl line 1: not a valid record"):
        list(reading.read_records(Path("rows.jsonl"), Row))


def test_a_document_that_is_too_large_or_nested_is_refused(monkeypatch):
    Path("one.json").write_text("[" * 200_000)
    with pytest.raises(RemeasureError, match="one.json: not what is expected"):
        reading.read_json(Path("one.json"), dict)
    monkeypatch.setattr(reading, "MAX_JSON_BYTES", 1000)
    with pytest.raises(RemeasureError, match="one.json: has more than 1000 bytes"):
        reading.read_json(Path("one.json"), dict)


def read_zip(path: Path) -> list:
    with reading.zipped(path, ".jsonl") as (stream, where):
        return list(reading.records(stream, Row, where))


def test_an_archive_with_one_such_member_is_read():
    assert read_zip(zipped(Path("a.zip"), {"x/rows.jsonl": '{"text": "a"}\n', "readme.txt": ""})) == [
        (1, Row("a"))
    ]


@pytest.mark.parametrize(
    "members, said",
    [
        ({"a.txt": ""}, "has 0 members that end in .jsonl, expected one"),
        ({"a.jsonl": "", "b.jsonl": ""}, "has 2 members that end in .jsonl, expected one"),
        ({"a.jsonl": " " * 5_000_000}, "its member says to have 5000000 bytes unpacked"),
        ({"a.jsonl": '{"text": 3}'}, "a.zip:a.jsonl line 1: not a valid record"),
    ],
)
def test_archives_that_hold_something_else_are_refused(members, said):
    with pytest.raises(RemeasureError) as caught:
        read_zip(zipped(Path("a.zip"), members))
    assert said in str(caught.value)


def test_torn_archives_are_refused():
    path = zipped(Path("a.zip"), {"a.jsonl": "".join(f'{{"text": "{n * n}"}}\n' for n in range(2000))})
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(RemeasureError, match="no zip archive that can be read"):
        read_zip(path)
    path.write_bytes(whole[:200] + bytes(byte ^ 255 for byte in whole[200:260]) + whole[260:])
    with pytest.raises(RemeasureError, match="no zip archive that can be read"):
        read_zip(path)
    with zipfile.ZipFile("b.zip", "w") as store:
        store.writestr("a.jsonl", '{"text": "a"}')
    data = bytearray(Path("b.zip").read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1  # flag of the central directory: encrypted
    Path("b.zip").write_bytes(bytes(data))
    with pytest.raises(RemeasureError, match="no zip archive that can be read"):
        read_zip(Path("b.zip"))


@pytest.mark.parametrize(
    "text", ["", "query\tdoc\n", HEADER + "q\ta\n", HEADER + "q\ta\t0\n", HEADER + "q\t\t1\n"]
)
def test_labels_in_another_form_are_refused(text):
    Path("labels.tsv").write_text(text)
    with pytest.raises(RemeasureError, match="labels.tsv"):
        reading.read_labels(Path("labels.tsv"))


def test_labels_may_have_the_line_ends_of_windows():
    Path("labels.tsv").write_bytes((HEADER + "q\ta\t1\nq\tb\t1\n\n").replace("\n", "\r\n").encode())
    assert reading.read_labels(Path("labels.tsv")) == {"q": ("a", "b")}


# -- the step ------------------------------------------------------------------------------------------------


def test_wrong_settings_of_the_step_are_refused_in_one_line(tmp_path, capsys):
    for loader, files, settings, said in (
        (
            "clapnq_mimi",
            {"folder": "x"},
            {},
            "loader 'clapnq_mimi' is not known (did you mean 'clapnq_mini'?)",
        ),
        ("clapnq_mini", {"files": "x"}, {}, "reads folder, and is given files"),
        ("clapnq_mini", {"folder": ""}, {}, "--files 'folder=': expected <name>=<path>"),
        (
            "clapnq_mini",
            {"folder": "x"},
            {"options": {"a": 1}},
            "loader 'clapnq_mini': Object contains unknown",
        ),
        (
            "clapnq",
            dict.fromkeys(("passages", "queries", "rewrites", "labels", "tasks"), "x"),
            {},
            "role_marker",
        ),
        ("clapnq_mini", {"folder": "nowhere"}, {}, "nowhere/passages.jsonl: cannot be read"),
    ):
        assert load(tmp_path, loader, files, **settings) == 2
        lines = capsys.readouterr().err.splitlines()
        assert lines[-1].startswith("error: ") and said in lines[-1]


@pytest.mark.parametrize("found", [7, 9])
def test_fewer_and_more_than_expected_are_both_refused(found):
    with pytest.raises(RemeasureError, match=f"{found} labels, expected 8"):
        loading.check_counts({"labels": found}, {"labels": 8}, "mine")
    loading.check_counts({"labels": 8}, {"labels": 8, "missing_files": 0}, "mine")


def test_labels_are_counted_where_something_is_searched_for():
    # A question that is only answered may have gold documents for its citations; they are no labels.
    counts = check_questions(asked("q"), turn("c", 1, query=None, relevant=("a",)))
    assert (counts["labels"], counts["queries"], counts["answers_with_gold"]) == (1, 1, 1)
