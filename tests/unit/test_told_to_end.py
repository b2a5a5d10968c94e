"""A job that is told to end (SIGTERM) keeps what it has, leaves nothing behind, and is continued."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cellkit import LOOPBACK, PROMPTS, Cell
from keeper import MemoryKeeper
from loopback import Loopback
from processes import alive, wait_until
from remeasure import cli, interruption
from remeasure.executors import Call, HttpSettings, http
from remeasure.fingerprint import SCRIPTS

TOY = str(Path(__file__).resolve().parent.parent / "toy_server.py")


@pytest.fixture
def cell(tmp_path) -> Cell:
    return Cell(tmp_path, PROMPTS)


@pytest.fixture
def server():
    with Loopback() as running:
        yield running


def last_line(run: subprocess.Popen) -> str:
    said = run.communicate(timeout=30)[1]
    assert "Traceback" not in said, said
    return said.rstrip().split("\n")[-1]


def kept(cell: Cell) -> int:
    journal = cell.folder / "journal" / "answers.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def not_sent(n_answered: int, n: int = 12) -> str:
    return (
        f"to be continued: {n_answered} of {n} answered, {n - n_answered} not sent; "
        "the next attempt goes on from here"
    )


def test_the_next_attempt_asks_only_what_is_missing(cell, server):
    server.behave = lambda prompt, nth: "slow 0.3"
    executor = {"kind": "http", "base_url": server.base_url, "concurrency": 5}
    run = cell.start(executor)
    wait_until(lambda: server.n_calls == 5)
    run.terminate()
    assert last_line(run) == not_sent(5) and run.returncode == 75
    server.behave = lambda prompt, nth: "ok"
    assert cell.start(executor).wait() == 0
    assert server.n_calls == 12 and [row.status for row in cell.responses()] == ["answered"] * 12


def test_a_shard_says_how_far_it_is_and_goes_on(cell, server):
    server.behave = lambda prompt, nth: "slow 0.3"
    executor = {"kind": "http", "base_url": server.base_url, "concurrency": 1}
    run = cell.start(executor, shard="1of2")
    wait_until(lambda: server.n_calls == 1)
    run.terminate()
    said = last_line(run)
    n_all = int(said.split()[5])
    assert said == not_sent(1, n_all) and run.returncode == 75 and 1 < n_all < 12
    assert not (cell.folder / "answers.json").exists()
    server.behave = lambda prompt, nth: "ok"
    assert cell.start(executor, shard="1of2").wait() == 0 and server.n_calls == n_all


def told_at_once(cell: Cell, program: str, **options) -> subprocess.Popen:
    """Tell server and collector in one moment, the server first, as a cluster may."""
    files = {"pid_file": str(cell.folder / "pid")}
    run = cell.start(
        {"kind": "server", "program": program, "files": files, "options": options, "concurrency": 3}
    )
    wait_until(lambda: kept(cell) >= 2)
    for pid in (int((cell.folder / "pid").read_text()), run.pid):
        os.kill(pid, signal.SIGTERM)
    return run


def test_a_server_of_ours_that_is_told_too_finishes_what_it_has_in_hand(cell, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS))
    run = told_at_once(cell, TOY, threads=1, delay_s=0.4)
    n_before = kept(cell)
    said = last_line(run)
    n_kept = len(cell.journal())
    assert said == not_sent(n_kept) and run.returncode == 75
    # Three were in flight, and the server answers one at a time.
    assert n_before + 2 <= n_kept < 12
    assert not alive(int((cell.folder / "pid").read_text()))


def test_a_server_that_goes_at_once_makes_no_failures(cell):
    run = told_at_once(cell, LOOPBACK, delay=0.4)
    said = last_line(run)
    entries = cell.journal()
    assert said == not_sent(len(entries)) and run.returncode == 75
    assert {entry.status for entry in entries} == {"answered"}


@pytest.mark.parametrize("behaviour", ["status 500", "status 400", "reset", "abort", "no_choices"])
def test_whatever_a_server_says_after_the_telling_is_no_failure_of_the_model(cell, server, behaviour):
    server.delay_s, server.behave = 0.4, lambda prompt, nth: behaviour
    executor = {"kind": "http", "base_url": server.base_url, "concurrency": 2, "attempts": {"connection": 1}}
    run = cell.start(executor)
    wait_until(lambda: server.n_calls == 2)
    run.terminate()
    assert last_line(run) == not_sent(0) and run.returncode == 75
    assert cell.journal() == [] and server.n_calls == 2


def test_a_pause_before_the_next_try_is_not_waited_out(cell, server):
    server.behave = lambda prompt, nth: "status 500"
    executor = {"kind": "http", "base_url": server.base_url, "base_wait_s": 60, "max_wait_s": 60}
    run = cell.start(executor)
    wait_until(lambda: server.n_calls == 8)  # four in flight, and four more in the place of those that wait
    time.sleep(0.3)
    began = time.monotonic()
    run.terminate()
    assert last_line(run) == not_sent(0) and run.returncode == 75
    assert time.monotonic() - began < 3 and cell.journal() == []


def test_what_is_told_twice_in_one_moment_is_told_once(cell, server):
    server.behave = lambda prompt, nth: "slow 1"
    run = cell.start({"kind": "http", "base_url": server.base_url, "concurrency": 3})
    wait_until(lambda: server.n_calls == 3)
    run.terminate()
    time.sleep(0.2)
    run.terminate()
    assert last_line(run) == not_sent(3) and run.returncode == 75


def test_told_again_while_the_server_is_being_stopped_it_is_stopped_all_the_same(cell):
    files = {"pid_file": str(cell.folder / "pid")}
    options = {"delay": 0.2, "stubborn": True}
    run = cell.start(
        {"kind": "server", "program": LOOPBACK, "files": files, "options": options, "concurrency": 1}
    )
    wait_until(lambda: kept(cell) >= 1)
    run.terminate()
    # The server hears neither its input nor SIGTERM: it is killed after five seconds.
    for _ in range(8):
        time.sleep(0.3)
        run.terminate()
    said = last_line(run)
    assert said == not_sent(kept(cell)) and run.returncode == 75
    assert not alive(int((cell.folder / "pid").read_text()))


def test_told_while_the_server_loads_nothing_is_left(cell):
    files = {"pid_file": str(cell.folder / "pid")}
    run = cell.start({"kind": "server", "program": LOOPBACK, "files": files, "options": {"health_after": 60}})
    wait_until((cell.folder / "pid").exists)
    run.terminate()
    assert last_line(run) == not_sent(0) and run.returncode == 75
    assert not alive(int((cell.folder / "pid").read_text()))
    assert [path.name for path in cell.folder.rglob("*.part")] == []


def test_a_server_that_is_told_alone_ends_in_the_end():
    # Its input stays open: nobody who waits for it was told.
    read, write = os.pipe()
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); from remeasure.ending import Ending\n"
        "ending = Ending(0.5); print('ready', flush=True); ending.wait()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=read, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    began = time.monotonic()
    process.terminate()
    process.wait(10)
    assert process.returncode == 0 and 0.4 < time.monotonic() - began < 3
    process.stdout.close()
    os.close(read), os.close(write)


@pytest.mark.parametrize(
    ("keeps", "again"),
    [
        (True, "finished items are kept, the same command goes on"),
        (False, "the same command starts it anew"),
    ],
)
def test_any_step_ends_with_one_line_and_a_status_of_its_own(tmp_path, keeps, again):
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "import argparse, time; from remeasure import cli, files\n"
        "from pathlib import Path\n"
        "def work(args):\n"
        f"    with files.atomic_open(Path({str(tmp_path / 'out')!r})):\n"
        "        print('ready', flush=True); time.sleep(60)\n"
        f"sys.exit(cli.run(argparse.ArgumentParser(), work, [], keeps={keeps}))"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout.readline() == "ready\n"
    run.terminate()
    said = run.communicate(timeout=10)[1]
    assert said == f"to be continued: told to end before it was done; {again}\n"
    assert run.returncode == 75 == cli.TO_BE_CONTINUED and list(tmp_path.iterdir()) == []


def test_a_server_that_is_gone_a_moment_before_we_are_told_is_no_error(server, monkeypatch):
    monkeypatch.setattr(http, "_MOMENT_S", 2.0)

    def behave(prompt, nth):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return "reset"

    server.behave = behave
    given = HttpSettings(
        base_url=server.base_url, dialect="embedded", concurrency=1, timeout_s=5, base_wait_s=0.01
    )
    executor = http.HttpExecutor(given, "toy", None, server.base_url, died=lambda: "model server ended")
    body = {"model": "toy-slug", "messages": [{"role": "user", "content": "p"}], "max_tokens": 5}
    keeper = MemoryKeeper()
    found = None
    with interruption.terminable():
        try:
            executor.run(iter([Call(key="ab" * 32, custom_id="q", body=body)]), keeper)
        except BaseException as error:
            found = error
            with contextlib.suppress(interruption.Terminated):
                time.sleep(0.5)  # the signal must not come to somebody else
    assert isinstance(found, interruption.Terminated) and keeper.entries == []


def test_cleaning_up_is_not_interrupted_by_a_second_telling():
    done = []
    with pytest.raises(interruption.Terminated):
        with interruption.terminable():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.05)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.05)
                done.append("cleaned")
    assert done == ["cleaned"]


def test_a_block_that_must_not_be_left_half_done_is_not():
    done = []
    with pytest.raises(interruption.Terminated):
        with interruption.terminable():
            with interruption.postponed():
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.05)
                done.append("all")
            done.append("more")
    assert done == ["all"]


def test_handlers_are_as_before_when_a_step_has_ended(cell, server):
    def mine(*_):
        pass

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, mine) for number in numbers]
    try:
        assert cell.ask(server) == 0
        assert [signal.getsignal(number) for number in numbers] == [mine, mine]
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_the_shell_of_a_rule_waits_for_its_script(root):
    """A job's end reaches the shell too; where it went at once, the script would be killed in its drain."""
    prefix = next(
        line.strip() for line in (root / "rules" / "common.smk").read_text().split("\n") if "trap" in line
    )
    trap = prefix.removeprefix('f"').partition(";")[0]
    script = "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(0.5), sys.exit(75)))\n"
    script += "print('ready', flush=True); time.sleep(60)"
    shell = subprocess.Popen(
        ["bash", "-c", f'set -euo pipefail; {trap}; {sys.executable} -c "$1" 2> /dev/null', "x", script],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert shell.stdout.readline() == b"ready\n"
    os.killpg(shell.pid, signal.SIGTERM)
    assert shell.wait(10) == 75
    shell.stdout.close()
