"""Replay hands over what older runs have kept, unchanged, and asks nothing."""

import json

import pytest

import collect_responses
from keeper import MemoryKeeper
from loopback import Loopback
from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import Call, ReplaySettings
from remeasure.executors.replay import ReplayExecutor
from remeasure.records import JournalEntry, Request, Response


def key(n: int) -> str:
    return f"{n:064x}"


def entry(n: int, status: str = "answered", text: str | None = "yes") -> JournalEntry:
    return JournalEntry(
        key=key(n), custom_id=f"old-{n}", status=status, text=text, attempts=3, seconds=1.5, raw={"id": n}
    )


def write(path, *entries: JournalEntry, tail: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(jsonl.encode(one) + b"\n" for one in entries) + tail)


def replay(keeper: MemoryKeeper, folder, *numbers: int) -> None:
    calls = (Call(key=key(n), custom_id=f"q-{n}", body={}) for n in numbers)
    ReplayExecutor(ReplaySettings(folder=str(folder))).run(calls, keeper)


@pytest.fixture
def keeper() -> MemoryKeeper:
    return MemoryKeeper()


def test_every_journal_below_the_folder_is_read_and_entries_come_back_as_they_were(tmp_path, keeper):
    write(tmp_path / "nq/base/m/journal/answers.jsonl", entry(1), entry(2, "cut_off"))
    write(tmp_path / "nq/base/m/judge/journal/1of2.jsonl", entry(3, "refused", None))
    write(tmp_path / "nq/base/m/responses.jsonl", entry(4))
    # What OCR read is kept in a journal of its own kind.
    (tmp_path / "tiles/journal").mkdir(parents=True)
    (tmp_path / "tiles/journal/ocr.jsonl").write_text('{"engine": 1}\n')
    replay(keeper, tmp_path, 3, 1, 2)
    assert keeper.entries == [entry(3, "refused", None), entry(1), entry(2, "cut_off")]
    assert not keeper.n_sent


def test_of_several_outcomes_the_best_counts_and_of_equal_ones_the_last(tmp_path, keeper):
    write(
        tmp_path / "a/journal/answers.jsonl", entry(1, text="first"), entry(1, "cut_off"), entry(2, "refused")
    )
    write(tmp_path / "b/journal/answers.jsonl", entry(1, text="last"), entry(1, "failed", None), entry(2))
    replay(keeper, tmp_path, 1, 2)
    assert keeper.entries == [entry(1, text="last"), entry(2)]


def test_what_is_missing_or_failed_is_one_error_and_what_is_there_is_kept(tmp_path, keeper):
    write(tmp_path / "journal/answers.jsonl", entry(1), entry(2, "failed", None))
    with pytest.raises(RemeasureError) as error:
        replay(keeper, tmp_path, 3, 2, 1)
    assert keeper.entries == [entry(1)]
    assert str(error.value) == (
        f"{tmp_path}: its journals have no answer for 2 of 3 requests; first request 'q-3', key "
        "000000000000…: its text, its images, the model's name or what identifies the model (weights, code, "
        "revision) is not that of the older run; the other answers are kept, take `replay` off the model to "
        "ask for these"
    )
    with pytest.raises(RemeasureError, match="1 of 1 requests; first request 'q-2'.*…: it failed there;"):
        replay(keeper, tmp_path, 2)


def test_a_torn_last_line_is_passed_over(tmp_path, keeper):
    write(tmp_path / "journal/answers.jsonl", entry(1), tail=jsonl.encode(entry(2))[:-9])
    replay(keeper, tmp_path, 1)
    assert keeper.entries == [entry(1)]


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"key": 1}', b'{"key": NaN}', b""])
def test_a_damaged_line_is_named_before_anything_is_handed_over(tmp_path, keeper, line):
    path = tmp_path / "journal/answers.jsonl"
    write(path, entry(1), tail=line + b"\n" + jsonl.encode(entry(2)) + b"\n")
    with pytest.raises(RemeasureError) as error:
        replay(keeper, tmp_path, 1)
    assert str(error.value).startswith(f"{path} line 2: damaged journal line (")
    assert "\n" not in str(error.value) and keeper.entries == []


@pytest.mark.parametrize(("name", "problem"), [("gone", "is not a folder"), ("", "holds no journal/*.jsonl")])
def test_a_folder_without_journals_is_named(tmp_path, keeper, name, problem):
    with pytest.raises(RemeasureError) as error:
        replay(keeper, tmp_path / name, 1)
    assert str(error.value).startswith(f"{tmp_path / name}: {problem}; `replay` of the model must name")


def ask(folder, executor: dict, prompts: list[str], **settings) -> int:
    """Ask prompts in a folder of their own by the script."""
    folder.mkdir(exist_ok=True)
    bodies = [
        {"model": "slug", "messages": [{"role": "user", "content": prompt}], "max_tokens": 9}
        for prompt in prompts
    ]
    rows = [Request(custom_id=f"q-{n}", body=body) for n, body in enumerate(bodies)]
    jsonl.write(folder / "requests.jsonl", rows)
    given = {"model": "slug", "served_name": "toy", "identity": {"weights": "1"}} | settings
    words = ["--requests", folder / "requests.jsonl", "--settings", json.dumps(given)]
    words += ["--executor", json.dumps(executor), "--journal", folder / "journal"]
    words += ["--out", folder / "responses.jsonl", "--record", folder / "answers.json"]
    return collect_responses.main([str(word) for word in words])


def test_a_run_is_repeated_byte_by_byte_without_a_server_and_a_changed_question_is_not(tmp_path, capsys):
    with Loopback() as server:
        http = {"kind": "http", "base_url": server.base_url, "dialect": "embedded", "concurrency": 2}
        assert ask(tmp_path / "old", http | {"timeout_s": 10}, ["a", "b", "c"]) == 0
    old = {"kind": "replay", "folder": str(tmp_path / "old")}
    assert ask(tmp_path / "new", old, ["a", "b", "c"]) == 0
    assert (tmp_path / "new/responses.jsonl").read_bytes() == (tmp_path / "old/responses.jsonl").read_bytes()
    assert ask(tmp_path / "changed", old, ["a", "B", "c"]) == 2
    assert "its journals have no answer for 1 of 3 requests" in capsys.readouterr().err
    kept = list(jsonl.read(tmp_path / "changed/journal/answers.jsonl", JournalEntry))
    assert [one.text for one in kept] == ["answer to a", "answer to c"]
    assert ask(tmp_path / "other", old, ["a"], identity={"weights": "2"}) == 2


def test_an_answer_is_replayed_under_the_id_that_asks_for_it_now(tmp_path):
    with Loopback() as server:
        http = {"kind": "http", "base_url": server.base_url, "dialect": "embedded", "concurrency": 2}
        assert ask(tmp_path / "old", http | {"timeout_s": 10}, ["a", "b"]) == 0
    assert ask(tmp_path / "new", {"kind": "replay", "folder": str(tmp_path / "old")}, ["b"]) == 0
    responses = list(jsonl.read(tmp_path / "new/responses.jsonl", Response))
    assert [(row.custom_id, row.text) for row in responses] == [("q-0", "answer to b")]
