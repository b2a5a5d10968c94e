"""Which state a step is in, whatever its files, the queue and the drivers say."""

import os
import socket
import subprocess
import sys
import time

import pytest

from processes import wait_until
from remeasure.leases import Lease
from remeasure.status import processes, states
from remeasure.status.endings import Event
from statuskit import (
    ASK,
    ASK_KEY,
    CELL,
    GRADE,
    NOBODY,
    REQUESTS,
    STEPS,
    around,
    finish,
    job,
    job_log,
    log,
    mark,
    seen,
    step,
    write,
)

NOW = time.time()
ERROR = "error: line 2 is wrong; correct it\n"
LIMIT = "slurmstepd: error: *** JOB 7 ON h100-01 CANCELLED AT 2026-11-30T04:42:30 DUE TO TIME LIMIT ***\n"
CANCELLED = "slurmstepd: error: *** JOB 7 ON h100-01 CANCELLED AT 2026-11-30T04:42:30 ***\n"


def event(kind="failed", at=NOW, job_id="7", inputs=(f"{CELL}/requests.jsonl",)) -> dict[str, Event]:
    return {ASK.made.log: Event("ask", kind, at, inputs, ASK.made.outputs, ASK.made.log, job_id)}


def driver(state: str, host: str = "login1", logs=()) -> processes.Local:
    return processes.Local(frozenset(logs), processes.Driver(state, host, None, "", 1.0))


@pytest.fixture
def asked(tmp_path):
    """A cell whose requests are built and whose answers are missing."""
    finish(tmp_path, REQUESTS, at=NOW - 100, requests=4)
    return tmp_path


def test_nothing_there_is_waiting_and_everything_there_is_done(tmp_path):
    assert {one.state for one in states.see(STEPS, around(tmp_path))} == {"waiting"}
    for one in STEPS:
        finish(tmp_path, one)
    assert {one.state for one in states.see(STEPS, around(tmp_path))} == {"done"}


def test_one_missing_file_is_enough_to_wait(asked):
    finish(asked, ASK)
    (asked / f"{CELL}/responses.jsonl").unlink()
    assert seen(asked, ASK).state == "waiting"


@pytest.mark.parametrize(
    ("state", "expected"),
    [("PENDING", "queued"), ("CONFIGURING", "queued"), ("RUNNING", "running"), ("COMPLETING", "running")],
)
def test_a_job_in_the_queue_decides_even_where_old_files_are_still_there(asked, state, expected):
    finish(asked, ASK)
    found = seen(asked, ASK, queue=[job(state)])
    assert (found.state, found.job.job_id) == (expected, "7")


def test_a_job_of_another_cell_or_rule_decides_nothing(asked):
    others = [job(wildcards=f"{ASK_KEY}x"), job(rule="ask_judge")]
    assert seen(asked, ASK, queue=others).state == "waiting"


def test_a_command_that_runs_on_this_host_is_running(asked):
    found = seen(asked, ASK, local=driver("here", logs=[ASK.made.log]))
    assert (found.state, found.note) == ("running", "on this host")


# -- failed ------------------------------------------------------------------------------------------------


def test_a_failure_that_the_driver_noted_is_one_with_its_job_and_lines(asked):
    log(asked, ASK, f"one\n{ERROR}", at=NOW - 10)
    found = seen(asked, ASK, events=event(at=NOW - 9))
    assert found.state == "failed"
    assert (found.ending.job_id, found.ending.why) == ("7", "its command failed")
    assert (found.ending.log, found.ending.lines) == (ASK.made.log, ("one", ERROR.strip()))


@pytest.mark.parametrize("words", ["", "to be continued: 1 of 2 answered", "interrupted", "error: old"])
def test_a_job_that_was_not_taken_failed_whatever_an_earlier_attempt_said(asked, words):
    log(asked, ASK, words, NOW - 100)
    refused = {one: found._replace(refused="Invalid qos") for one, found in event(job_id="").items()}
    found = seen(asked, ASK, events=refused)
    assert (found.state, found.ending.why, found.ending.lines) == (
        "failed",
        "refused by sbatch",
        ("Invalid qos",),
    )


def test_a_failure_before_its_inputs_were_made_again_is_waiting(asked):
    log(asked, ASK, ERROR, at=NOW - 200)
    assert seen(asked, ASK, events=event(at=NOW - 200)).state == "waiting"
    (asked / f"{CELL}/requests.jsonl").unlink()
    assert seen(asked, ASK, events=event(at=NOW)).state == "waiting"


def test_a_failure_that_nobody_noted_is_one_by_the_step_s_own_log(asked):
    """The driver was killed; the step went on and failed."""
    log(asked, ASK, ERROR, at=NOW - 10)
    assert seen(asked, ASK).state == "failed"
    assert seen(asked, ASK, events=event("started", at=NOW - 50)).state == "failed"
    assert seen(asked, ASK, events=event("started", at=NOW - 50, inputs=("results/gone",))).state == "waiting"


def test_a_failure_is_one_before_the_driver_asks_the_queue(asked):
    log(asked, ASK, "04:00:00 remeasure.responses: 2/4 ok=2\n", at=NOW - 10)
    ended = [job("TIMEOUT", reason="TimeLimit")]
    found = seen(asked, ASK, queue=ended, events=event("started", at=NOW - 50))
    assert (found.state, found.ending.why, found.ending.node) == ("failed", "timeout", "h100-01")


def test_a_cancelled_job_whose_driver_has_not_looked_yet_waits(asked):
    found = seen(asked, ASK, queue=[job("CANCELLED")], events=event("started", at=NOW - 50))
    assert found.state == "waiting"


def test_a_time_limit_is_known_by_the_job_s_log_alone(asked):
    log(asked, ASK, "04:00:00 remeasure.responses: 2/4 ok=2\n", at=NOW - 10)
    job_log(asked, 7, LIMIT, at=NOW - 8)
    found = seen(asked, ASK)
    assert (found.state, found.ending.why, found.ending.job_id) == ("failed", "time limit", "7")
    assert found.ending.lines == ("04:00:00 remeasure.responses: 2/4 ok=2", LIMIT.strip())


def test_the_log_of_an_earlier_failed_job_says_nothing_of_a_later_attempt(asked):
    job_log(asked, 7, LIMIT, at=NOW - 80)
    log(asked, ASK, "04:00:00 remeasure.responses: 4 responses\n", at=NOW - 10)
    assert seen(asked, ASK).state == "waiting"


def test_what_ended_well_and_was_removed_waits(asked):
    log(asked, ASK, ERROR, at=NOW - 10)  # whatever it says
    assert seen(asked, ASK, events=event("finished", at=NOW - 9)).state == "waiting"
    log(asked, ASK, ERROR, at=NOW)  # an attempt after it
    assert seen(asked, ASK, events=event("finished", at=NOW - 9)).state == "failed"


def test_what_is_to_be_continued_waits_though_the_driver_noted_a_failure(asked):
    log(asked, ASK, "error: to be continued: 120 of 500 answered; the next attempt goes on\n", at=NOW - 10)
    job_log(asked, 7, LIMIT, at=NOW - 8)
    found = seen(asked, ASK, events=event(at=NOW - 5))
    assert (found.state, found.note) == ("waiting", "to be continued")


def test_what_the_driver_tries_again_waits(asked):
    log(asked, ASK, ERROR, at=NOW - 10)
    assert seen(asked, ASK, events=event("again")).note == "tried again"
    assert seen(asked, ASK, events=event("again"), queue=[job("PENDING", "8")]).state == "queued"


def test_what_was_cancelled_with_its_driver_waits_and_what_was_cancelled_alone_failed(asked):
    log(asked, ASK, "interrupted; finished items are kept, the same command goes on\n", at=NOW - 10)
    job_log(asked, 7, CANCELLED, at=NOW - 9)
    assert seen(asked, ASK, events=event("started", at=NOW - 50)).state == "waiting"
    found = seen(asked, ASK, events=event(at=NOW - 5))
    assert (found.state, found.ending.why) == ("failed", "cancelled")


def test_a_local_step_that_was_interrupted_waits(asked):
    log(asked, ASK, "interrupted; finished items are kept, the same command goes on\n", at=NOW - 10)
    found = seen(asked, ASK, events=event(at=NOW - 9, job_id=""))
    assert (found.state, found.note) == ("waiting", "stopped")


def test_a_local_step_that_the_kernel_killed_failed_by_the_driver_s_word(asked):
    log(asked, ASK, "04:00:00 remeasure.responses: 2/4 ok=2\n", at=NOW - 10)
    assert seen(asked, ASK).state == "waiting"
    found = seen(asked, ASK, events=event(at=NOW - 9, job_id=""))
    assert (found.state, found.ending.job_id) == ("failed", "")


# -- marks, leases, other hosts ----------------------------------------------------------------------------


def test_files_whose_end_nobody_noted_are_made_again(asked):
    finish(asked, ASK)
    mark(asked, ASK, "7")
    assert seen(asked, ASK, local=driver("gone")).state == "waiting"
    assert seen(asked, ASK, local=driver("here")).state == "done"
    assert seen(asked, ASK, local=driver("gone"), queue=[job("COMPLETED")]).state == "waiting"


def test_where_the_queue_cannot_be_asked_marks_and_logs_tell(asked):
    mark(asked, ASK, "7", at=NOW - 50)
    log(asked, ASK, "of an earlier attempt\n", at=NOW - 90)
    found = seen(asked, ASK, queue=None)
    assert (found.state, found.note) == ("queued", "job 7, as submitted")
    log(asked, ASK, "04:00:00 2/4 ok=2\n", at=NOW - 40)
    assert seen(asked, ASK, queue=None).state == "running"
    # A queue that answers and does not have it knows better.
    assert seen(asked, ASK, queue=[]).state == "waiting"


def test_who_asks_is_known_by_the_cell_s_lease(asked):
    mark(asked, ASK, None)
    folder = asked / CELL / "journal"
    folder.mkdir(parents=True)
    with Lease(folder / "answers.lock"):
        found = seen(asked, ASK)
        assert found.state == "running"
        assert found.note == f"process {os.getpid()} on host {socket.gethostname()}"
    assert seen(asked, ASK).state == "waiting"


def test_a_pipe_in_a_file_s_place_is_not_waited_for(asked):
    mark(asked, ASK, None)
    for path in (f"{CELL}/journal/answers.lock", ASK.made.log, ".snakemake/remeasure/driver.lease"):
        (asked / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(asked / path)
    assert seen(asked, ASK).state == "waiting"
    write(asked / ".snakemake/locks/0.input.lock")
    assert processes.look(asked).driver.state == "gone"


def test_a_local_step_of_another_host_runs_while_its_log_grows(asked):
    mark(asked, ASK, None)
    log(asked, ASK, "1/4\n", at=time.time() - 5)
    assert seen(asked, ASK, local=driver("elsewhere", "login2")).note == "on login2"
    assert seen(asked, ASK, local=NOBODY).state == "waiting"
    log(asked, ASK, "1/4\n", at=time.time() - 60)
    assert seen(asked, ASK, local=driver("elsewhere", "login2")).state == "waiting"


# -- what follows ------------------------------------------------------------------------------------------


def test_what_was_made_from_missing_files_waits_too_and_downloads_rerun_nothing(tmp_path):
    table = step("results/ci/tables/table1.csv")
    pages = step("results/ci/corpora/factbook/pages.jsonl")
    tokenizer = next(
        one for one in STEPS if "results/sources/bge-small-en-v1.5.tokenizer.json" in one.made.outputs
    )
    judged = step("results/ci/pixelrag/sqa/base/page-reader-smollm2/graded.jsonl")
    made_from = {ASK.made.log: REQUESTS, GRADE.made.log: ASK, pages.made.log: tokenizer}
    for one in STEPS:
        before = made_from.get(one.made.log)
        finish(tmp_path, one, inputs=before.made.outputs if before else ())
    (tmp_path / f"{CELL}/requests.jsonl").unlink()
    (tmp_path / tokenizer.made.outputs[0]).unlink()
    found = {one.step.made.log: one.state for one in states.see(STEPS, around(tmp_path))}
    assert [found[one.made.log] for one in (REQUESTS, ASK, GRADE, table)] == ["waiting"] * 4
    assert [found[one.made.log] for one in (tokenizer, pages, judged)] == ["waiting", "done", "done"]


# -- processes of this host --------------------------------------------------------------------------------


def test_nobody_works_in_an_empty_folder(tmp_path):
    assert processes.look(tmp_path) == processes.Local(
        frozenset(), processes.Driver("none", "", None, "", None)
    )


def test_a_lock_without_a_process_is_of_a_killed_driver_here_or_of_one_elsewhere(tmp_path):
    write(tmp_path / ".snakemake/locks/0.input.lock", "results/a")
    text = "SNAKEMAKE\n  Host: {}\n" + "x" * 300
    path = ".snakemake/log/2026-11-30T044113.007271.snakemake.log"
    write(tmp_path / path, text.format(socket.gethostname()))
    assert processes.look(tmp_path).driver.state == "gone"
    write(tmp_path / path, text.format("login9"))
    found = processes.look(tmp_path).driver
    assert (found.state, found.host, found.log) == ("elsewhere", "login9", path)
    lease = write(tmp_path / ".snakemake/remeasure/driver.lease", '{"host": "login9", "pid": "1"}')
    assert processes.look(tmp_path).driver.state == "elsewhere"
    os.utime(lease, (NOW - 600, NOW - 600))
    assert processes.look(tmp_path).driver.state == "gone"


def test_commands_of_steps_that_run_here_are_found_and_what_only_reads_their_logs_is_not(tmp_path):
    quiet = {"cwd": tmp_path, "stdin": subprocess.PIPE}
    step_ = subprocess.Popen(["bash", "-c", "read; true --out x 2> results/a/logs/ask.log"], **quiet)
    reader = subprocess.Popen([sys.executable, "-c", "input()", "2> results/b.log"], **quiet)
    try:
        found = wait_until(lambda: processes.look(tmp_path).logs)
        assert found == {"results/a/logs/ask.log"}
        assert processes.look(tmp_path.parent).logs == frozenset()
    finally:
        for one in (step_, reader):
            one.kill()
            one.communicate()


@pytest.mark.parametrize(
    ("words", "is_driver"),
    [
        ("/v/bin/python /v/bin/snakemake results/table1.csv --profile slurm", True),
        ("python -m snakemake -c all", True),
        ("python -m snakemake --target-jobs ask: --mode remote", False),
        ("/v/bin/python /v/bin/snakemake -n", False),
        ("python -m snakemake results/table1.csv --unlock", False),
        ("tail -f .snakemake/log/x.snakemake.log", False),
    ],
)
def test_a_driver_plans_and_its_helpers_do_not(words, is_driver):
    assert processes._is_driver(words.split()) is is_driver


def test_marks_of_long_names_are_found(tmp_path):
    from base64 import urlsafe_b64encode

    long = "results/" + "a" * 300 + "/b.txt"
    name = urlsafe_b64encode(long.encode()).decode()
    path = tmp_path / ".snakemake/incomplete" / f"@{name[:254]}" / name[254:]
    write(path, '{"external_jobid": "12"}', at=1000)
    assert processes.mark(tmp_path, long) == (1000.0, "12")
    assert processes.mark(tmp_path, "results/other") is None


def test_a_mark_that_says_nothing_readable_is_none(asked):
    mark(asked, ASK, "12")
    (path,) = (asked / ".snakemake/incomplete").iterdir()
    for said in (b"[" * 60_000, b"\xff", b'{"external_jobid": ' + b"9" * 5000 + b"}"):
        path.write_bytes(said)
        assert processes.mark(asked, ASK.made.outputs[0]) is None
    path.unlink()
    os.mkfifo(path)
    assert processes.mark(asked, ASK.made.outputs[0]) is None
