"""Answers of another system become the outcomes of a cell; what has no counterpart is listed."""

import json
from pathlib import Path

import pytest

import collect_responses
from imagekit import picture
from keeper import MemoryKeeper
from remeasure import executors, jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import Call, ImportSettings
from remeasure.executors.importing import ImportExecutor
from remeasure.files import sha256_file
from remeasure.records import JournalEntry, Request, Response

DATA = Path(__file__).resolve().parents[1] / "data" / "imports"
JPEG = picture("JPEG")
ANSWERED = {"success": True, "usage": {}, "run_metadata": {}}


def write(path: Path, *rows: tuple[str, str | None]) -> Path:
    """Write a PixelRAG file of (id, answer); no answer is a failure."""
    lines = [
        {"example_id": name, "final_response": text, **ANSWERED}
        if text is not None
        else {"example_id": name, "final_response": None, "success": False, "error": "x", "error_type": "E"}
        for name, text in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def take(
    keeper: MemoryKeeper, path: Path, *ids: str, format: str = "pixelrag", folder: Path | None = None
) -> None:
    calls = (Call(key=f"{n:064x}", custom_id=custom_id, body={}) for n, custom_id in enumerate(ids))
    ImportExecutor(ImportSettings(format=format, path=str(path)), folder or path.parent / "journal").run(
        calls, keeper
    )


@pytest.fixture
def keeper() -> MemoryKeeper:
    return MemoryKeeper()


def test_an_entry_says_where_its_answer_stood_and_that_nothing_was_sent(tmp_path, keeper):
    take(keeper, DATA / "pixelrag.jsonl", "nq-1", "nq-validation-17-e8ec969376da8b2b", folder=tmp_path)
    first, second = keeper.entries
    sha = sha256_file(DATA / "pixelrag.jsonl")[:12]
    assert (first.custom_id, first.server) == (
        "nq-validation-17-e8ec969376da8b2b",
        f"pixelrag pixelrag.jsonl {sha}",
    )
    assert (second.custom_id, second.key, second.text) == ("nq-1", f"{0:064x}", "Exact Answer: 42")
    assert (second.attempts, second.seconds) == (0, 0.0)
    assert first.raw == {"id": "nq/validation:17", "place": "line 1"}
    assert second.usage == {"prompt_tokens": 2700, "completion_tokens": 9, "total_tokens": 2709}
    assert not keeper.n_sent


def test_what_has_no_counterpart_is_counted_named_and_listed(tmp_path, keeper, caplog):
    path = write(tmp_path / "a.jsonl", ("q1", "a"), *[(f"extra/{n}", "b") for n in range(12)])
    take(keeper, path, "q1", "q2", "q3")
    assert [one.custom_id for one in keeper.entries] == ["q1"]
    first, second = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    listed = tmp_path / "journal/unmatched.txt"
    assert first == f"{path}: 2 requests have no answer: q2, q3; all in {listed}"
    assert second.startswith(f'{path}: 12 answers have no request: "extra/0" (line 2), "extra/1" (line 3), ')
    assert second.endswith(f'"extra/9" (line 11), …; all in {listed}')
    lines = listed.read_text().splitlines()
    assert len(lines) == 14 and lines[1].endswith(": q3")
    assert lines[13] == 'answer without a request: "extra/11" (line 13)'


def test_the_list_goes_when_everything_fits(tmp_path, keeper):
    listed = tmp_path / "journal/unmatched.txt"
    listed.parent.mkdir()
    listed.write_text("old")
    take(keeper, write(tmp_path / "a.jsonl", ("q1", "a")), "q1")
    assert not listed.exists()


def test_a_doubled_id_stops_before_anything_is_taken(tmp_path, keeper):
    path = write(tmp_path / "a.jsonl", ("q1", "a"), ("q2", "b"), ("q1", "c"))
    with pytest.raises(RemeasureError) as error:
        take(keeper, path, "q1", "q2")
    assert str(error.value) == (
        f"{path} line 3: id 'q1' stands already in line 1, and which of the two counts is not known; "
        "remove one"
    )
    assert keeper.entries == []


def test_a_broken_last_line_stops_before_anything_is_taken(tmp_path, keeper):
    path = write(tmp_path / "a.jsonl", ("q1", "a"))
    path.write_bytes(path.read_bytes() + b'{"example_id": "q2"')
    with pytest.raises(RemeasureError, match="line 2: is not JSON"):
        take(keeper, path, "q1", "q2")
    assert keeper.entries == []


def test_a_file_in_which_nothing_fits_says_how_both_sides_are_called(tmp_path, keeper):
    path = write(tmp_path / "a.jsonl", ("nq/1", "a"), ("nq/2", "b"))
    with pytest.raises(RemeasureError) as error:
        take(keeper, path, "q1", "q2")
    assert str(error.value).startswith(
        f"{path}: has no answer for any request; requests are called like 'q1', its 2 answers like "
        '"nq/1" (line 1); give the items the ids of the original system'
    )
    with pytest.raises(RemeasureError, match="a.jsonl: holds no answer"):
        take(keeper, write(tmp_path / "a.jsonl"), "q1")


def test_a_file_that_changed_after_it_was_hashed_is_not_read(tmp_path):
    path = write(tmp_path / "a.jsonl", ("q1", "a"))
    settings = ImportSettings(format="pixelrag", path=str(path), sha256=sha256_file(path))
    write(path, ("q1", "b"))
    with pytest.raises(RemeasureError, match="has changed while it was read"):
        with executors.opened(settings, "served", tmp_path, tmp_path):
            pass


class Cell:
    """A cell's files and the command that fills it from a file."""

    def __init__(self, folder: Path, ids: list[str]) -> None:
        self.folder = folder
        messages = [{"role": "user", "content": "?"}]
        jsonl.write(
            folder / "requests.jsonl",
            [
                Request(custom_id=name, body={"model": "m", "messages": messages, "max_tokens": n + 1})
                for n, name in enumerate(ids)
            ],
        )

    def take(self, path: str, format: str = "pixelrag", more: tuple = (), **settings) -> int:
        given = {"model": "m", "served_name": "m", "identity": {}, "max_failed_share": 0.0} | settings
        words = ["--requests", self.folder / "requests.jsonl", "--settings", json.dumps(given)]
        words += ["--executor", json.dumps({"kind": "import", "format": format, "path": str(path)}), *more]
        words += ["--journal", self.folder / "journal", "--out", self.folder / "responses.jsonl"]
        return collect_responses.main(
            [str(word) for word in [*words, "--record", self.folder / "answers.json"]]
        )

    def outcomes(self) -> list[tuple]:
        rows = jsonl.read(self.folder / "responses.jsonl", Response)
        return [(row.custom_id, row.status, row.text) for row in rows]


def test_a_cell_is_filled_in_request_order_and_missing_answers_stay_visible(tmp_path, capsys):
    cell = Cell(tmp_path, ["q1", "q2", "q3"])
    path = write(tmp_path / "a.jsonl", ("q3", "c"), ("q2", None))
    assert cell.take(path) == 2
    assert (
        "error: 2 of 3 requests failed, allowed is a share of 0; first 'q1': not sent"
        in capsys.readouterr().err
    )
    assert cell.take(path, max_failed_share=0.7) == 0
    assert cell.outcomes() == [("q1", "not_sent", None), ("q2", "failed", None), ("q3", "answered", "c")]
    record = json.loads((tmp_path / "answers.json").read_text())
    assert record["inputs"][str(path)] == sha256_file(path)
    assert record["settings"]["identity"]["imported"]["sha256"] == sha256_file(path)


def test_what_an_earlier_try_has_taken_is_no_answer_without_a_request(tmp_path):
    cell = Cell(tmp_path, ["q1", "q2"])
    path = write(tmp_path / "a.jsonl", ("q1", "a"), ("other", "b"))
    assert cell.take(path, max_failed_share=0.5) == 0
    before = (tmp_path / "journal/unmatched.txt").read_text()
    assert cell.take(path, max_failed_share=0.5) == 0
    assert (tmp_path / "journal/unmatched.txt").read_text() == before
    assert before.splitlines()[1:] == ['answer without a request: "other" (line 2)']


def test_a_changed_file_is_read_anew_and_an_unchanged_one_is_not(tmp_path, capsys):
    cell = Cell(tmp_path, ["q1"])
    path = write(tmp_path / "a.jsonl", ("q1", "a"))
    assert cell.take(path) == 0
    assert cell.take(path) == 0 and "0 asked this time" in capsys.readouterr().err
    write(path, ("q1", "corrected"))
    assert cell.take(path) == 0
    assert cell.outcomes() == [("q1", "answered", "corrected")]
    kept = list(jsonl.read(tmp_path / "journal/answers.jsonl", JournalEntry))
    assert [one.text for one in kept] == ["a", "corrected"] and kept[0].key != kept[1].key


def test_the_same_answers_under_another_name_of_the_file_are_the_same(tmp_path):
    cell = Cell(tmp_path, ["q1"])
    write(tmp_path / "b.jsonl", ("q1", "a"))
    assert cell.take(write(tmp_path / "a.jsonl", ("q1", "a"))) == 0
    before = (tmp_path / "responses.jsonl").read_bytes()
    assert cell.take("{bench}.jsonl", more=("--imported", tmp_path / "b.jsonl")) == 0
    assert (tmp_path / "responses.jsonl").read_bytes() == before


def test_two_questions_that_are_the_same_have_each_the_answer_of_its_own_row(tmp_path):
    cell = Cell(tmp_path, [])
    shown = [{"type": "image_url", "image_url": {"url": f"remeasure-image:{'a' * 64}?path=1.jpg"}}]
    body = {"model": "m", "messages": [{"role": "user", "content": shown}], "max_tokens": 9}
    again = json.loads(json.dumps(body).replace("1.jpg", "2.jpg"))
    rows = [Request(custom_id="q1", body=body), Request(custom_id="q2", body=again)]
    jsonl.write(tmp_path / "requests.jsonl", rows)
    path = write(tmp_path / "a.jsonl", ("q2", "A cat."), ("q1", "A dog."))
    (tmp_path / "1.jpg").write_bytes(JPEG)
    (tmp_path / "2.jpg").write_bytes(JPEG)
    more = ("--images-root", tmp_path)
    assert cell.take(path, more=more) == 0
    assert cell.outcomes() == [("q1", "answered", "A dog."), ("q2", "answered", "A cat.")]
    assert cell.take(path, more=more) == 0
    assert cell.outcomes() == [("q1", "answered", "A dog."), ("q2", "answered", "A cat.")]
    assert len((tmp_path / "journal/answers.jsonl").read_text().splitlines()) == 2


def test_a_failed_row_keeps_the_marker_text_for_the_published_reading(tmp_path):
    cell = Cell(tmp_path, ["1", "2"])
    path = tmp_path / "table.tsv"
    path.write_text("index\tprediction\n1\tA\n2\tFailed to obtain answer via API.\n")
    assert cell.take(path, format="vlmevalkit", max_failed_share=0.5) == 0
    assert cell.outcomes()[1] == ("2", "failed", "Failed to obtain answer via API.")


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("", "pixelrag", "is a folder"),
        ("gone.jsonl", "pixelrag", "cannot be read (No such file or directory)"),
        ("a.jsonl", "pixel", "format 'pixel' is not known (did you mean 'pixelrag'?)"),
        (
            "a.jsonl",
            "../../x",
            "format '../../x' is not known; formats are haiku, pixelrag, tosc, vlmevalkit",
        ),
    ],
)
def test_a_wrong_file_or_format_is_one_line_and_status_2(tmp_path, capsys, name, format, message):
    cell = Cell(tmp_path, ["q1"])
    write(tmp_path / "a.jsonl", ("q1", "a"))
    assert cell.take(tmp_path / name, format=format) == 2
    last = capsys.readouterr().err.rstrip().splitlines()[-1]
    assert last.startswith("error: ") and message in last
