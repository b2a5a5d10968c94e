"""A submission goes on after what passes, and only then; what a killed driver left is ended first."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import submit
from clusterkit import job_line, on_path, program, squeue
from remeasure.cluster import submission
from remeasure.cluster.submission import Attempt, Submission, reason_to_go_on
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.leases import Lease

OLD = "old_0a1b2c3d-1111-4222-8333-0123456789ab"


def test_the_words_of_snakemake():
    assert submit.words_for(["a.csv"], []) == ["a.csv", "--profile", "slurm"]
    assert submit.words_for([], ["--config", "run=x"]) == ["--profile", "slurm", "--config", "run=x"]
    assert submit.words_for(["a"], ["--profile=mine"]) == ["a", "--profile=mine"]


def test_the_working_directory_is_the_one_that_snakemake_is_told():
    assert submit.directory_of(["-n", "--directory", "/a"]) == Path("/a")
    assert submit.directory_of(["--directory=/b", "-n"]) == Path("/b")
    assert submit.directory_of(["-d"]) == submit.directory_of([]) == Path()


@pytest.mark.parametrize(
    ("attempt", "n_starts", "n_idle", "expected"),
    [
        (Attempt(status=0), 1, 0, ""),
        (Attempt(status=1), 1, 0, ""),
        (Attempt(status=1, got_on=True), 1, 0, ""),
        (Attempt(status=1, passing="TIMEOUT", got_on=True), 1, 0, "a step may go on (TIMEOUT)"),
        (Attempt(status=1, passing="TIMEOUT"), 1, 1, ""),
        (Attempt(status=1, kind="lost"), 1, 1, "the driver had lost its jobs"),
        (Attempt(status=1, kind="lost"), 2, 2, ""),
        (Attempt(status=1, kind="lost", got_on=True), 20, 0, ""),
        (Attempt(status=2, kind="away"), 1, 1, "the controller was away"),
        (Attempt(status=1, kind="stuck"), 1, 0, ""),
        (Attempt(status=-9), 1, 1, "the driver was killed by signal 9"),
        (Attempt(status=-9), 2, 2, ""),
        (Attempt(status=-9, was_told=True), 1, 0, ""),
        (Attempt(status=1, kind="lost", was_told=True), 1, 0, ""),
        (Attempt(status=1, kind="unheard of"), 1, 0, ""),
    ],
)
def test_another_attempt_is_made_only_where_it_may_get_further(attempt, n_starts, n_idle, expected):
    assert reason_to_go_on(attempt, n_starts, n_idle, max_starts=20) == expected


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """An empty queue, a scancel that empties it, and a Snakemake that is a shell script."""
    (tmp_path / "jobs").write_text("")
    squeue(tmp_path / "bin", tmp_path / "jobs")
    program(tmp_path / "bin", "scancel", f'echo "$*" >> {tmp_path}/cancelled; : > {tmp_path}/jobs')
    on_path(monkeypatch, tmp_path / "bin")
    monkeypatch.setattr(submission, "_POLL_S", 0.05)
    return tmp_path


def snakemake(tmp_path, monkeypatch, body):
    """Let Snakemake be a script; it notes its words."""
    path = program(tmp_path / "fake", "snakemake", f'echo "$*" >> {tmp_path}/called\n{body}')
    monkeypatch.setattr(submission, "_SNAKEMAKE", (str(path),))


def called(tmp_path):
    return (tmp_path / "called").read_text().splitlines()


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_exit_status_is_snakemakes(cluster, monkeypatch, capfdbinary, status):
    snakemake(cluster, monkeypatch, f"echo hello; exit {status}")
    assert Submission(cluster, ["a.csv", "--profile", "slurm"]).run() == status
    assert called(cluster) == ["a.csv --profile slurm"]
    assert capfdbinary.readouterr().out == b"hello\n"
    [log] = (cluster / ".snakemake" / "remeasure").glob("driver-*.log")
    assert log.read_text() == "hello\n"


def test_a_driver_that_lost_its_jobs_is_started_again_until_it_is_through(cluster, monkeypatch):
    ended = cluster / ".snakemake" / "remeasure" / "ended.json"
    snakemake(
        cluster,
        monkeypatch,
        f"""echo 'Finished jobid: 3 (Rule: x)'
        test $(wc -l < {cluster}/called) -ge 4 && exit 0
        echo '{{"kind": "lost"}}' > {ended}; exit 1""",
    )
    assert Submission(cluster, ["a"]).run() == 0
    assert called(cluster) == ["a"] * 4


def test_a_driver_that_gets_nowhere_is_started_twice(cluster, monkeypatch):
    snakemake(cluster, monkeypatch, "kill -9 $$")
    assert Submission(cluster, ["a"]).run() == 137
    assert called(cluster) == ["a"] * 2


def test_attempts_are_bounded(cluster, monkeypatch):
    snakemake(cluster, monkeypatch, "echo 'Finished jobid: 3'; kill -9 $$")
    assert Submission(cluster, ["a"], max_starts=5).run() == 137
    assert called(cluster) == ["a"] * 5


def test_answers_in_a_journal_are_progress_and_a_time_limit_is_gone_on_with(cluster, monkeypatch):
    journal = cluster / "results/paper/pixelrag/nq/base/reader/journal"
    journal.mkdir(parents=True)
    snakemake(
        cluster,
        monkeypatch,
        f"""test $(wc -l < {cluster}/called) -ge 3 || echo '{{}}' >> {journal}/answers.jsonl
        echo "SLURM-job '7' failed, SLURM status is: 'TIMEOUT'. Reason: Unknown."; exit 1""",
    )
    assert Submission(cluster, ["a"]).run() == 1
    assert called(cluster) == ["a"] * 3


@pytest.mark.parametrize(
    ("line", "passing"),
    [
        ("SLURM-job '7' failed, SLURM status is: 'TIMEOUT'. Reason: Unknown.", "TIMEOUT"),
        ("SLURM-job '7' failed, SLURM status is: 'NODE_FAIL'. Reason: x.", "NODE_FAIL"),
        ("SLURM-job '7' failed, SLURM status is: 'BOOT_FAIL'. Reason: x.", "BOOT_FAIL"),
        ("SLURM-job '7' failed, SLURM status is: 'PREEMPTED'. Reason: x.", "PREEMPTED"),
        ("to be continued: 120 of 500 answered", "to be continued: 120 of 500 answered"),
        ("SLURM-job '7' failed, SLURM status is: 'FAILED'. Reason: x.", ""),
        ("SLURM-job '7' failed, SLURM status is: 'OUT_OF_MEMORY'. Reason: x.", ""),
        ("error: 3 of 500 failed", ""),
    ],
)
def test_what_a_further_attempt_may_get_past_is_read_in_the_driver_s_words(line, passing):
    found = Attempt()
    submission._take_in(line.encode(), found)
    assert (found.passing, found.n_finished) == (passing, 0)


def test_a_step_that_was_told_of_its_time_limit_is_gone_on_with(cluster, monkeypatch, caplog):
    journal = cluster / "results/paper/pixelrag/nq/base/reader/journal"
    journal.mkdir(parents=True)
    snakemake(
        cluster,
        monkeypatch,
        f"""echo '{{}}' >> {journal}/answers.jsonl
        test $(wc -l < {cluster}/called) -ge 3 && exit 0
        echo 'to be continued: 120 of 500 answered; the next attempt goes on'
        echo "SLURM-job '7' failed, SLURM status is: 'FAILED'. Reason: Unknown."; exit 1""",
    )
    assert Submission(cluster, ["a"]).run() == 0
    assert called(cluster) == ["a"] * 3
    assert "a step may go on (to be continued: 120 of 500 answered" in caplog.text


def test_what_a_killed_driver_left_is_cancelled_and_unlocked_before_the_first_start(
    cluster, monkeypatch, caplog
):
    folder = cluster / ".snakemake" / "remeasure"
    folder.mkdir(parents=True)
    (folder / "driver.lease").write_text(json.dumps({"host": os.uname().nodename, "pid": "999999"}))
    (cluster / "jobs").write_text(
        job_line(40, name=OLD, work_dir=str(cluster))
        + job_line(41, name=OLD, state="COMPLETED", work_dir=str(cluster))
        + job_line(42, name=OLD, work_dir="/elsewhere")
        + job_line(43, name="my own job", work_dir=str(cluster), comment="(null)")
    )
    snakemake(cluster, monkeypatch, "exit 0")
    assert Submission(cluster, ["a"]).run() == 0
    assert (cluster / "cancelled").read_text() == "40\n"
    assert called(cluster) == ["a --unlock", "a"]
    assert (folder / "driver.lease").read_bytes() == b""


def test_a_lock_of_nobody_that_we_know_is_left_alone(cluster, monkeypatch):
    snakemake(cluster, monkeypatch, "exit 1")
    assert Submission(cluster, ["a"]).run() == 1
    assert called(cluster) == ["a"]


def test_a_driver_that_lives_is_not_disturbed(cluster, monkeypatch):
    folder = cluster / ".snakemake" / "remeasure"
    folder.mkdir(parents=True)
    snakemake(cluster, monkeypatch, "exit 0")
    with Lease(folder / "driver.lease"):
        with pytest.raises(RemeasureError, match=f"process {os.getpid()} .* submits jobs from this folder"):
            Submission(cluster, ["a"]).run()
    assert not (cluster / "called").exists()


def test_two_submissions_of_one_folder_do_not_meet(cluster, monkeypatch):
    folder = cluster / ".snakemake" / "remeasure"
    folder.mkdir(parents=True)
    snakemake(cluster, monkeypatch, "exit 0")
    with Lease(folder / "submit.lease"):
        with pytest.raises(RemeasureError, match="runs scripts/submit.py here right now"):
            Submission(cluster, ["a"]).run()


def test_an_absent_controller_is_waited_for_before_a_start(cluster, monkeypatch, caplog):
    (cluster / "bin" / "squeue").rename(cluster / "bin" / "squeue.real")
    program(
        cluster / "bin",
        "squeue",
        f'test -e {cluster}/up && exec "$0.real" "$@"; touch {cluster}/up; echo no controller >&2; exit 1',
    )
    monkeypatch.setattr(Submission, "_pause", lambda self, seconds: time.sleep(0.1))
    snakemake(cluster, monkeypatch, "exit 0")
    assert Submission(cluster, ["a"]).run() == 0
    assert "no controller" in caplog.text and called(cluster) == ["a"]


RUN = """
import signal, sys
sys.path.insert(0, SCRIPTS)
from remeasure.cluster import submission
submission._SNAKEMAKE = (sys.argv[1],)
import submit
sys.exit(submit.main(["a"]))
""".replace("SCRIPTS", repr(str(SCRIPTS)))
LISTENER = """
import os, signal, sys, time
def told(number, _):
    print("told", signal.Signals(number).name, flush=True)
    sys.exit(5)
for number in (signal.SIGINT, signal.SIGTERM):
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler), number
    signal.signal(number, told)
open("up", "w").close()
time.sleep(30)
"""


def start(cluster, environment=None, **more):
    listener = program(cluster / "fake", "snakemake", LISTENER, python=True)
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(listener)],
        cwd=cluster,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def wait_for(path):
    until = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.3)


@pytest.mark.parametrize(
    ("sent", "environment", "expected"),
    [
        (signal.SIGINT, {}, "SIGINT"),
        (signal.SIGTERM, {}, "SIGTERM"),
        (signal.SIGTERM, {"SLURM_JOB_ID": "7"}, "SIGINT"),
    ],
)
def test_signals_are_passed_on_also_from_a_background_shell(cluster, sent, environment, expected):
    def deaf():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = start(cluster, environment, preexec_fn=deaf)
    wait_for(cluster / "up")
    process.send_signal(sent)
    said, _ = process.communicate(timeout=20)
    assert (process.returncode, said) == (5, f"told {expected}\n")


def test_a_driver_that_does_not_end_is_killed_and_its_jobs_cancelled(cluster, monkeypatch):
    monkeypatch.setattr(submission, "_END_S", 0.5)
    snakemake(
        cluster,
        monkeypatch,
        f"test -e {cluster}/up && exit; trap '' INT; touch {cluster}/up; kill -INT $PPID; sleep 30",
    )
    began = time.monotonic()
    submitted = Submission(cluster, ["a"])
    prepare = submitted._prepare

    def prepared():
        found = prepare()
        (cluster / "jobs").write_text(job_line(40, name=OLD, work_dir=str(cluster)))
        return found

    monkeypatch.setattr(submitted, "_prepare", prepared)
    assert submitted.run() == 137
    assert (cluster / "cancelled").read_text() == "40\n" and time.monotonic() - began < 20
    assert called(cluster) == ["a"]


def test_a_closed_terminal_ends_nothing(cluster):
    process = start(cluster)
    wait_for(cluster / "up")
    process.send_signal(signal.SIGHUP)
    process.stdout.close()
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 5
    process.stderr.close()
    [log] = (cluster / ".snakemake" / "remeasure").glob("driver-*.log")
    assert log.read_text() == "told SIGINT\n"


def test_a_driver_that_was_started_by_hand_meanwhile_keeps_its_jobs(cluster, monkeypatch):
    folder = cluster / ".snakemake" / "remeasure"
    snakemake(cluster, monkeypatch, "exit 0")
    submitted, by_hand = Submission(cluster, ["a"]), Lease(folder / "driver.lease")
    await_queue = submitted._await_queue

    def started_meanwhile():
        if not (folder / "driver.lease").exists():
            by_hand.__enter__()
            (cluster / "jobs").write_text(job_line(40, name=OLD, work_dir=str(cluster)))
        return await_queue()

    monkeypatch.setattr(submitted, "_await_queue", started_meanwhile)
    try:
        with pytest.raises(RemeasureError, match=f"process {os.getpid()} .* submits jobs from this folder"):
            submitted.run()
    finally:
        by_hand.__exit__()
    assert not (cluster / "cancelled").exists() and not (cluster / "called").exists()


def test_the_folder_is_held_while_jobs_are_cancelled(cluster, monkeypatch):
    lease = cluster / ".snakemake" / "remeasure" / "driver.lease"
    (cluster / "jobs").write_text(job_line(40, name=OLD, work_dir=str(cluster)))
    program(cluster / "bin", "scancel", f"cp {lease} {cluster}/held; : > {cluster}/jobs")
    snakemake(cluster, monkeypatch, "exit 0")
    assert Submission(cluster, ["a"]).run() == 0
    assert json.loads((cluster / "held").read_text())["pid"] == str(os.getpid())
    assert lease.read_bytes() == b"" and called(cluster) == ["a"]


def test_what_is_in_the_way_is_one_line(cluster):
    (cluster / ".snakemake").mkdir()
    (cluster / ".snakemake" / "remeasure").write_text("")
    with pytest.raises(RemeasureError, match=r"cannot be written \(File exists\); make room, or delete "):
        Submission(cluster, ["a"]).run()
    (cluster / ".snakemake" / "remeasure").unlink()
    (cluster / ".snakemake" / "remeasure" / "submit.lease").mkdir(parents=True)
    with pytest.raises(RemeasureError, match=r"submit.lease: cannot be written \(Is a directory\)"):
        Submission(cluster, ["a"]).run()
