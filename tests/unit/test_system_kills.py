"""Steps of systems that are killed: nothing is left running, and nothing that was finished is done again."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

import systemkit
from remeasure import jsonl
from remeasure.records import Response


@pytest.fixture
def scripts(tmp_path, root) -> Path:
    """The scripts of a checkout with a system of its own: one file."""
    copy = tmp_path / "checkout" / "scripts"
    shutil.copytree(root / "scripts", copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(systemkit.TESTS / "toy_adapter.py", copy / "systems" / "toy_adapter.py")
    return copy


def running(where: Path) -> list[str]:
    """Processes whose command line names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(str(where) in word for word in words):
            found.append(" ".join(words))
    return found


def until(condition, limit_s: float = 30.0) -> None:
    """Wait for something."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def ask(scripts: Path, folder: Path, answer_s: float) -> list[str]:
    """Command that asks a conversation of six turns and a question."""
    record = folder / "toy.json"
    turns = [
        systemkit.request(f"c-{n}", *(f"turn {i}" for i in range(1, n + 1)), do="converse")
        for n in range(1, 7)
    ]
    jsonl.write(folder / "requests.jsonl", turns)
    way = systemkit.system(record, options={"answer_s": answer_s}, database=None)
    settings = {"model": "toy", "served_name": "toy", "identity": {}}
    words = [sys.executable, str(scripts / "collect_responses.py"), "--settings", json.dumps(settings)]
    words += ["--executor", msgspec.json.encode(way).decode(), "--requests", str(folder / "requests.jsonl")]
    words += ["--database", str(record), "--journal", str(folder / "journal")]
    return [*words, "--out", str(folder / "responses.jsonl"), "--record", str(folder / "answers.json")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_conversation_that_was_killed_goes_on_with_its_next_turn(tmp_path, scripts, number):
    systemkit.write_database(tmp_path)
    asked = tmp_path / "toy" / "database" / "asked.txt"
    process = subprocess.Popen(ask(scripts, tmp_path, 0.3), stderr=subprocess.DEVNULL)
    until(lambda: len(lines(asked)) == 3)
    process.send_signal(number)
    assert process.wait() == (75 if number == signal.SIGTERM else -9)
    until(lambda: not running(scripts))
    subprocess.run(ask(scripts, tmp_path, 0.0), check=True, stderr=subprocess.DEVNULL)
    found = list(jsonl.read(tmp_path / "responses.jsonl", Response))
    assert [one.text for one in found] == [f"{2 * n} before: turn {n + 1}" for n in range(6)]
    assert [len(one.trace.before) for one in found] == [0, 2, 4, 6, 8, 10]
    # The third was under way when the kill came; it is the only one that may be asked twice.
    assert [turn for turn in lines(asked) if turn != "turn 3"] == [
        "turn 1",
        "turn 2",
        "turn 4",
        "turn 5",
        "turn 6",
    ]


def test_a_finished_cell_starts_nothing(tmp_path, scripts):
    systemkit.write_database(tmp_path)
    subprocess.run(ask(scripts, tmp_path, 0.0), check=True, stderr=subprocess.DEVNULL)
    first = (tmp_path / "responses.jsonl").read_bytes()
    (tmp_path / "responses.jsonl").unlink()
    (scripts / "systems" / "toy_adapter.py").unlink()  # whoever starts it fails
    subprocess.run(ask(scripts, tmp_path, 0.0), check=True, stderr=subprocess.DEVNULL)
    assert (tmp_path / "responses.jsonl").read_bytes() == first


def test_other_documents_in_the_database_ask_again(tmp_path, scripts):
    systemkit.write_database(tmp_path)
    subprocess.run(ask(scripts, tmp_path, 0.0), check=True, stderr=subprocess.DEVNULL)
    systemkit.write_database(tmp_path, {"d1": "Another document."})
    subprocess.run(ask(scripts, tmp_path, 0.0), check=True, stderr=subprocess.DEVNULL)
    assert lines(tmp_path / "toy" / "database" / "asked.txt") == [f"turn {n}" for n in range(1, 7)] * 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_ingest_that_was_killed_gives_the_rest(tmp_path, scripts, number):
    texts = {f"d{n}": f"Document {'abcdefghij'[n] * 8} of ten" for n in range(10)}
    documents = systemkit.write_documents(tmp_path / "documents.jsonl", texts)
    settings = systemkit.ingest_settings(options={"delay_s": 0.3}, batch_documents=1)
    words = [sys.executable, str(scripts / "ingest_documents.py"), "--settings", json.dumps(settings)]
    words += ["--way", msgspec.json.encode(systemkit.part()).decode(), "--documents", str(documents)]
    words += ["--folder", str(tmp_path / "toy"), "--record", str(tmp_path / "toy.json")]
    given = tmp_path / "toy" / "database" / "given.txt"
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    until(lambda: len(lines(given)) == 4)
    process.send_signal(number)
    assert process.wait() == (75 if number == signal.SIGTERM else -9)
    until(lambda: not running(scripts))
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    found = lines(given)
    assert sorted(set(found)) == sorted(texts)
    assert len(found) <= 11  # the one that was under way may be given twice
