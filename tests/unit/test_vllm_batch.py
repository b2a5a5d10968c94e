"""``vllm run-batch`` as an executor, with a stand-in for the program and with what a real one has written.

``data/vllm/run_batch.jsonl`` was written by vLLM 0.32.0 with a tiny random model (``record_vllm.py``);
``contract/test_server_contract.py`` runs a real one.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from keeper import MemoryKeeper
from processes import alive, wait_until
from remeasure import images, jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import Call, VllmBatchSettings
from remeasure.executors.vllm_batch import VllmBatchExecutor
from remeasure.files import sha256_bytes
from remeasure.fingerprint import SCRIPTS
from remeasure.records import ImageRef, JournalEntry, Request

TESTS = Path(__file__).resolve().parent.parent
RECORDED = TESTS / "data" / "vllm" / "run_batch.jsonl"
MAGIC = b"\x89PNG\r\n\x1a\n"
PROMPTS = [f"p{n}" for n in range(5)]


def call(prompt: str, content=None, **more) -> Call:
    body = {"model": "toy-slug", "messages": [{"role": "user", "content": content or prompt}]}
    body |= {"max_tokens": 5} | more
    return Call(key=sha256_bytes(prompt.encode()), custom_id=f"q-{prompt}", body=body)


class Node:
    """A folder with the stand-in on the search path, and runs of the executor in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.journal, self.notes = folder, folder / "journal", folder / "notes"
        self.journal.mkdir()
        program = folder / "bin" / "vllm"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {TESTS / "standin_run_batch.py"} "$@"\n')
        program.chmod(0o755)

    def settings(self, timeout_s: float = 30.0, **options) -> dict:
        given = {"notes": str(self.notes)} | options
        return {"dialect": "vllm", "model": "org/model", "options": given, "timeout_s": timeout_s}

    def run(self, calls=None, keeper=None, served_name="toy", **more) -> dict[str, JournalEntry]:
        keeper = keeper or MemoryKeeper()
        settings = VllmBatchSettings(**self.settings(**more))
        executor = VllmBatchExecutor(settings, served_name, self.folder, self.journal)
        executor.run(iter(calls or map(call, PROMPTS)), keeper)
        return {entry.custom_id.removeprefix("q-"): entry for entry in keeper.entries}

    def noted(self) -> dict:
        wait_until(self.notes.exists)
        return json.loads(self.notes.read_text())

    def all_gone(self) -> bool:
        with contextlib.suppress(AssertionError):
            return wait_until(lambda: not any(map(alive, self.noted()["pids"])), 5)
        return False


@pytest.fixture
def node(tmp_path, monkeypatch) -> Node:
    found = Node(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return found


def test_every_request_is_answered_and_nothing_but_the_log_is_left(node):
    keeper = MemoryKeeper()
    entries = node.run(keeper=keeper)
    assert {prompt: entry.text for prompt, entry in entries.items()} == {
        "p0": "answer to p0",
        "p1": "answer to p1",
        "p2": "answer to p2",
        "p3": "answer to p3",
        "p4": "answer to p4",
    }
    assert set(keeper.n_sent.values()) == {1} and len(keeper.n_sent) == 5
    assert entries["p0"].attempts == 1 and entries["p0"].server.startswith("vllm 0.32.0, ")
    assert [path.name for path in node.journal.iterdir()] == ["vllm-batch.log"]
    assert "vLLM batch processing API version" in (node.journal / "vllm-batch.log").read_text()


def test_what_a_real_vllm_has_written_is_understood(node):
    names = [
        "stopped",
        "cut_off",
        "image",
        "schema",
        "too_long",
        "no_image",
        "unknown_model",
        "never_answered",
    ]
    calls = [msgspec.structs.replace(call(name), key=name) for name in names]
    entries = node.run(calls, served_name="slug", results=str(RECORDED))
    assert {name: (entry.status, entry.text) for name, entry in entries.items()} == {
        "stopped": ("answered", "D"),
        "cut_off": ("cut_off", "T9D\\9"),
        "image": ("cut_off", "P+dud"),
        "schema": ("answered", '"no"'),
        "too_long": ("failed", None),
        "no_image": ("failed", None),
        "unknown_model": ("failed", None),
        "never_answered": ("failed", None),
    }
    assert entries["stopped"].usage == {"prompt_tokens": 23, "total_tokens": 25, "completion_tokens": 2}
    assert entries["cut_off"].error == "cut_off: 5 tokens" and entries["cut_off"].model == "slug"
    assert entries["too_long"].error.startswith(
        "context_overflow: status 400: This model's maximum context length is"
    )
    assert entries["unknown_model"].error == (
        "wrong_model: status 404: The model `other` does not exist. Valid aliases: slug."
    )
    assert entries["never_answered"].error == "missing: vllm run-batch has written no line for the request"


def test_the_command_line_and_the_environment(node, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    node.run(max_model_len=512, enforce_eager=True, lora=False)
    place = str((node.journal / "vllm-batch").resolve())
    noted = node.noted()
    assert noted["argv"] == [
        *["run-batch", "-i", f"{place}/requests.jsonl", "-o", f"{place}/results.jsonl"],
        *["--model", "org/model", "--served-model-name", "toy"],
        *["--allowed-local-media-path", f"{place}/images"],
        *["--notes", str(node.notes), "--max-model-len", "512", "--enforce-eager"],
    ]
    assert "OPENAI_API_KEY" not in noted["environment"] and "OMP_NUM_THREADS" not in noted["environment"]
    assert noted["environment"]["VLLM_NO_USAGE_STATS"] == "1" and node.all_gone()


def test_images_are_files_that_vllm_may_read_whether_they_come_from_a_file_or_a_store(node):
    data = {name: MAGIC + name.encode() for name in ("one", "two")}
    (node.folder / "a b%20.jpg").write_bytes(data["one"])
    images.write_store(node.folder / "store.zip", [("t.png", data["two"])])
    refs = [
        ImageRef(sha256=sha256_bytes(data["one"]), path="a b%20.jpg"),
        ImageRef(sha256=sha256_bytes(data["two"]), path="store.zip", member="t.png"),
    ]
    parts = [{"type": "image_url", "image_url": {"url": images.to_url(ref)}} for ref in refs]
    content = [{"type": "text", "text": "look"}, *parts, parts[0]]
    assert node.run([call("p", content)])["p"].text == "answer to look [one] [two] [one]"
    assert (node.folder / "a b%20.jpg").read_bytes() == data["one"]


@pytest.mark.parametrize(("content", "digest"), [(MAGIC + b"x", "0" * 64), (b"plain text", None)])
def test_a_wrong_image_is_one_line_before_vllm_is_started(node, content, digest):
    (node.folder / "a.png").write_bytes(content)
    ref = ImageRef(sha256=digest or sha256_bytes(content), path="a.png")
    with pytest.raises(RemeasureError, match="a.png: image has SHA-256|not an image"):
        node.run([call("p", [{"type": "image_url", "image_url": {"url": images.to_url(ref)}}])])
    assert not node.notes.exists() and not list(node.journal.iterdir())


def test_status_0_with_failures_only_is_not_believed(node, caplog):
    entries = node.run(all_fail=True)
    assert {entry.error for entry in entries.values()} == {"server_error: status 500: EngineCore died"}
    assert "vllm run-batch ended with status 0, and none of 5 requests was answered" in caplog.text


def test_a_request_without_a_line_has_failed(node):
    entries = node.run(n_lines=3)
    assert [entry.status for entry in entries.values()] == ["answered"] * 3 + ["failed"] * 2
    assert entries["p3"].error == "missing: vllm run-batch has written no line for the request"


def test_what_was_written_before_vllm_died_is_kept_and_the_rest_is_left_to_ask(node, caplog):
    keeper = MemoryKeeper()
    match = "ended with exit status 1; its log .*vllm-batch.log ends: .*CUDA out of memory"
    with pytest.raises(RemeasureError, match=match):
        node.run(keeper=keeper, n_lines=3, ends="in the middle")
    assert [entry.custom_id for entry in keeper.entries] == ["q-p0", "q-p1", "q-p2"]
    assert "1 unreadable (first line 4)" in caplog.text
    assert "3 of 5 requests were answered before the end" in caplog.text and node.all_gone()


@pytest.mark.parametrize(
    ("ends", "match"),
    [
        ("at a bad line", "ended with exit status 1; its log .* 1 validation error for BatchRequestInput"),
        ("without results", "ended with exit status 0 and wrote no results; its log .* version 0.32.0"),
    ],
)
def test_an_end_without_results_is_one_line_with_the_end_of_the_log(node, ends, match):
    keeper = MemoryKeeper()
    with pytest.raises(RemeasureError, match=match):
        node.run(keeper=keeper, ends=ends)
    assert not keeper.entries


def test_a_run_that_takes_too_long_is_ended_and_what_it_has_written_is_kept(node):
    keeper = MemoryKeeper()
    with pytest.raises(RemeasureError, match="did not end within 1.5 s .`timeout_s`."):
        node.run(keeper=keeper, ends="never", timeout_s=1.5)
    assert len(keeper.entries) == 5 and node.all_gone()


def test_there_is_no_vllm(node, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RemeasureError, match="no program `vllm` .*envs/vllm.yaml"):
        node.run()


@pytest.mark.parametrize(
    "name", ["input_file", "served-model-name", "served_model", "model", "allowed_local"]
)
def test_an_option_that_is_ours_to_set_is_one_line(node, name):
    with pytest.raises(RemeasureError, match=f"option '{name}': files, model and names .* are set here"):
        node.run(**{name: "x"})
    assert not node.notes.exists()


def test_a_limit_that_is_reached_starts_nothing(node):
    with pytest.raises(RemeasureError, match="spent"):
        node.run(keeper=MemoryKeeper(lambda: "spent 1.00 of 1.00 USD"))
    assert not node.notes.exists()


def test_what_a_killed_run_left_is_removed(node):
    left = node.journal / "vllm-batch" / "images"
    left.mkdir(parents=True)
    (left / "old").write_bytes(b"old")
    assert len(node.run()) == 5 and not left.parent.exists()


def start(node: Node, **options) -> subprocess.Popen:
    """Start the script that asks a cell."""
    rows = [Request(custom_id=f"q-{prompt}", body=call(prompt).body) for prompt in PROMPTS]
    jsonl.write(node.folder / "requests.jsonl", rows)
    settings = {"model": "toy-slug", "served_name": "toy", "identity": {"weights": "1"}}
    executor = {"kind": "vllm-batch"} | node.settings(**options)
    words = ["--requests", node.folder / "requests.jsonl", "--settings", json.dumps(settings)]
    words += ["--executor", json.dumps(executor), "--images-root", node.folder, "--journal", node.journal]
    words += ["--out", node.folder / "responses.jsonl", "--record", node.folder / "answers.json"]
    words = [sys.executable, SCRIPTS / "collect_responses.py", *words]
    return subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True)


def test_a_cell_is_answered_through_the_script_and_a_missing_line_asked_again(node):
    run = start(node, n_lines=3)
    assert run.communicate()[1].rstrip().split("\n")[-1].startswith("error: 2 of 5 requests failed")
    run = start(node)
    said = run.communicate()[1]
    assert run.returncode == 0 and "2 requests for vllm run-batch, which does not resume" in said, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_run_keeps_what_was_written_and_leaves_no_engine(node, number):
    run = start(node, ends="never", n_lines=3)
    wait_until(lambda: (node.journal / "vllm-batch.log").exists() and "2/7" in log(node))
    run.send_signal(number)
    said = run.communicate()[1]
    assert run.returncode == (75 if number == signal.SIGTERM else 130)
    assert "3 of 5 requests were answered before the end" in said, said
    assert len(list(jsonl.read(node.journal / "answers.jsonl", JournalEntry))) == 3
    assert node.all_gone() and not (node.journal / "vllm-batch").exists()


def test_not_even_a_kill_leaves_an_engine(node):
    run = start(node, ends="never")
    pids = node.noted()["pids"]
    assert all(map(alive, pids))
    run.kill()
    run.communicate()
    assert node.all_gone()


def log(node: Node) -> str:
    return (node.journal / "vllm-batch.log").read_text()


def test_progress_is_passed_on_now_and_then(node, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("remeasure.executors.vllm_batch._SAY_EVERY_S", 0.0)
    node.run()
    assert any(message.startswith("vllm: ") and "Completed | " in message for message in caplog.messages)
