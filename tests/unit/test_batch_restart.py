"""A cell that a batch service answers, killed at each moment that matters and started again."""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

import collect_responses
from loopback_batches import BatchLoopback
from remeasure import jsonl
from remeasure.records import JournalEntry, Request, Response

PROMPTS = [f"p{n}" for n in range(12)]
# Processes that can be killed, from one that has loaded what takes a second to load.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["pytest", "openai.resources.batches", "openai.resources.files", "collect_responses", "loopback_batches"]
    + ["remeasure.executors.batch"]
)


@pytest.fixture(scope="module", autouse=True)
def _processes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the forking process finds what it loads there
        forkserver.ensure_running()
        yield


def collect(arguments: list[str], log_path: Path) -> None:
    """Be the script in a process of its own."""
    with open(log_path, "a") as sys.stderr:
        code = collect_responses.main(arguments)
    os._exit(code)


class Cell:
    """A cell's files and its service."""

    def __init__(self, folder: Path, service: BatchLoopback, prompts: list[str]) -> None:
        self.folder, self.service = folder, service
        self.write(prompts)

    def write(self, prompts: list[str]) -> None:
        self.prompts = prompts
        rows = [
            Request(
                custom_id=f"q-{prompt.strip('x ')}",
                body={
                    "model": "toy-slug",
                    "messages": [{"role": "user", "content": prompt}],
                    "max_tokens": 9,
                },
            )
            for prompt in prompts
        ]
        jsonl.write(self.folder / "requests.jsonl", rows)

    def arguments(self, **more) -> list[str]:
        settings = {"model": "toy-slug", "served_name": "toy", "identity": {"weights": "1"}}
        base = {"kind": "batch", "base_url": self.service.base_url, "dialect": "openai", "poll_s": 0.03}
        words = ["--requests", self.folder / "requests.jsonl", "--settings", json.dumps(settings)]
        words += ["--executor", json.dumps(base | {"max_requests": 5} | more), "--images-root", self.folder]
        words += ["--journal", self.folder / "journal", "--out", self.folder / "responses.jsonl"]
        return [str(word) for word in [*words, "--record", self.folder / "answers.json"]]

    def start(self, **more) -> multiprocessing.Process:
        process = PROCESSES.Process(
            target=collect, args=(self.arguments(**more), self.folder / "log"), daemon=True
        )
        process.start()
        return process

    def finish(self, **more) -> str:
        """Run until the end; return what was logged in all starts."""
        process = self.start(**more)
        process.join(60)
        said = (self.folder / "log").read_text()
        assert process.exitcode == 0, said
        return said

    def check(self, undisturbed: bool = True) -> None:
        """Every request was handed in once and is answered once, in the order of the requests."""
        responses = list(jsonl.read(self.folder / "responses.jsonl", Response))
        assert [row.text for row in responses] == [f"answer to {prompt}" for prompt in self.prompts]
        journal = list(jsonl.read(self.folder / "journal" / "answers.jsonl", JournalEntry))
        assert len(journal) == len(self.prompts) == len({entry.key for entry in journal})
        # A sending is noted before it happens: a kill just then leaves one more than the service has seen.
        assert all(entry.attempts == 1 for entry in journal) or not undisturbed
        assert self.service.handed_in == dict.fromkeys(self.prompts, 1)

    def left(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "journal" / "batches").iterdir())


@pytest.fixture
def cell(tmp_path):
    with BatchLoopback() as service:
        yield Cell(tmp_path, service, PROMPTS)


def test_a_cell_is_answered_through_the_script_and_asks_nothing_again(cell, capsys):
    assert collect_responses.main(cell.arguments()) == 0
    cell.check()
    (cell.folder / "responses.jsonl").unlink()
    before = cell.service.calls.total()
    assert collect_responses.main(cell.arguments()) == 0 and cell.service.calls.total() == before
    assert capsys.readouterr().err.rstrip().endswith("12 responses answered=12, 0 asked this time")


def test_a_failure_of_the_service_is_one_line_and_exit_status_2(cell, capsys):
    cell.service.faults["POST /batches"] = ["quota"]
    assert collect_responses.main(cell.arguments()) == 2
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith("error: ") and "the quota is spent" in last
    assert collect_responses.main(cell.arguments()) == 0
    cell.check()


def kill_at(cell: Cell, when: str, endpoint: str, nth: int) -> None:
    """Start, kill at the nth call of an endpoint, before or after its work, and wait for the end."""
    started = []
    calls = []

    def kill() -> None:
        calls.append(1)
        if len(calls) == nth:
            while not started:
                time.sleep(0.001)
            os.kill(started[0].pid, signal.SIGKILL)

    getattr(cell.service, when)[endpoint] = kill
    started.append(cell.start())
    started[0].join(60)
    assert started[0].exitcode == -signal.SIGKILL, (cell.folder / "log").read_text()
    assert not (cell.folder / "responses.jsonl").exists()


MOMENTS = {
    "before a file has arrived": ("before", "POST /files", 2),
    "after an upload, its reply lost": ("after", "POST /files", 2),
    "before a submission has arrived": ("before", "POST /batches", 2),
    "between a submission and its being written down": ("after", "POST /batches", 2),
    "while a batch is asked for": ("before", "GET /batches/id", 3),
    "when all have ended": ("after", "GET /batches/id", 6),
    "before a download": ("before", "GET /files/content", 2),
    "during a download": ("after", "GET /files/content", 3),
    "before the input file is removed": ("before", "DELETE /files", 2),
    "after the input file is removed": ("after", "DELETE /files", 2),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_loses_nothing_and_pays_nothing_twice(cell, moment):
    kill_at(cell, *MOMENTS[moment])
    cell.finish()
    cell.check()
    uploads = [len(lines) for lines in cell.service.uploads()]
    # A file that was on its way when its sender was killed is found; one that never arrived is sent again.
    assert sorted(uploads) == [2, 5, 5] and len(cell.service.batches) == 3
    assert cell.left() == ["lock"]


def test_a_kill_after_the_last_answer_leaves_nothing_that_the_next_question_stumbles_over(cell):
    kill_at(cell, "after", "DELETE /files", 3)
    cell.finish()
    cell.check()
    assert len(cell.left()) > 1  # all answers were there: no service was asked for anything
    cell.service.deleted += cell.service.files  # results have expired
    cell.write([*PROMPTS, "new"])
    cell.finish()
    cell.check()
    assert cell.left() == ["lock"]


def test_where_files_cannot_be_listed_only_the_upload_is_repeated(cell):
    cell.service.lists_files = False
    kill_at(cell, *MOMENTS["after an upload, its reply lost"])
    cell.finish()
    cell.check()
    assert len(cell.service.uploads()) == 4 and len(cell.service.batches) == 3


def test_where_batches_cannot_be_listed_a_person_is_asked_before_anything_is_paid_twice(cell):
    kill_at(cell, *MOMENTS["between a submission and its being written down"])
    cell.service.faults["GET /batches"] = ["status 404"] * 4
    process = cell.start()
    process.join(60)
    said = (cell.folder / "log").read_text()
    assert process.exitcode == 2 and "if you see none there, set the status of part" in said
    assert cell.service.handed_in == dict.fromkeys(PROMPTS[:10], 1)
    cell.finish()
    cell.check()


def test_kills_at_random_moments_pay_nothing_twice(tmp_path):
    chance = random.Random(1)
    prompts = [f"p{n}" for n in range(60)]
    with BatchLoopback(n_polls=4) as service:
        cell = Cell(tmp_path, service, prompts)
        for _ in range(6):
            process = cell.start(max_requests=7, max_open=3)
            time.sleep(chance.uniform(0.03, 0.4))
            process.kill()
            process.join(60)
        cell.finish(max_requests=7, max_open=3)
        cell.check(undisturbed=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_kills_at_random_moments_of_a_service_that_stumbles_at_every_step(tmp_path, seed):
    chance = random.Random(seed)
    prompts = [f"p{n}" for n in range(60)]
    words = ["ok", "ok", "ok", "status 500", "status 429 0.01", "reset", "reset_after", "html"]
    limits = {"max_requests": 7, "max_open": 3, "poll_s": 0.3}
    with BatchLoopback(n_polls=3, page_size=3) as service:
        service.fate = lambda nth: "expire 3" if nth == 2 else "complete"
        for endpoint in ("POST /files", "POST /batches", "GET /batches", "GET /batches/id"):
            service.faults[endpoint] = chance.choices(words, k=400)
        service.faults["GET /files/content"] = chance.choices([*words, "cut"], k=400)
        cell = Cell(tmp_path, service, prompts)
        for _ in range(9):
            process = cell.start(**limits)
            time.sleep(chance.uniform(0.1, 0.7))
            process.kill()
            process.join(60)
        service.faults.clear()
        cell.finish(**limits)
        assert service.answered == dict.fromkeys(prompts, 1)
        # Of the second batch four requests expired, and they alone were handed in again.
        assert service.handed_in.total() == 64
        assert [row.text for row in jsonl.read(tmp_path / "responses.jsonl", Response)] == [
            f"answer to {prompt}" for prompt in prompts
        ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_run_leaves_its_batches_at_the_service_and_says_so(cell, number):
    cell.service.fate = lambda nth: "late"
    process = cell.start()
    while cell.service.calls["GET /batches/id"] < 4 and process.is_alive():
        time.sleep(0.005)
    os.kill(process.pid, number)
    process.join(10)
    said = (cell.folder / "log").read_text()
    assert process.exitcode == (75 if number == signal.SIGTERM else 130)
    assert "3 batches stay at the service; the same command picks them up" in said
    cell.service.release()
    assert "picked up 12 requests of earlier starts, 12 of them in open batches" in cell.finish()
    cell.check()


def test_memory_stays_flat_with_large_files(tmp_path):
    peaks = {}
    for n_requests in (4, 150):
        folder = tmp_path / str(n_requests)
        folder.mkdir()
        with BatchLoopback(n_polls=1) as service:
            prompts = [f"{n} ".ljust(200_000, "x") for n in range(n_requests)]
            cell = Cell(folder, service, prompts)
            process = PROCESSES.Process(
                target=collect_and_measure, args=(cell.arguments(max_requests=1000), folder / "peak")
            )
            process.start()
            process.join(60)
            assert process.exitcode == 0 and len(service.batches) == 1
            peaks[n_requests] = int((folder / "peak").read_text())
    # 30 MB are written, sent and fetched back.
    assert peaks[150] - peaks[4] < 10_000, peaks


def collect_and_measure(arguments: list[str], peak_path: Path) -> None:
    """Be the script, and write down the highest resident memory, kilobytes."""
    # The peak of this process alone: the counter is inherited.
    Path("/proc/self/clear_refs").write_text("5")
    code = collect_responses.main(arguments)
    status = Path("/proc/self/status").read_text()
    peak_path.write_text(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    os._exit(code)
