"""A driver whose jobs are nowhere is ended; one that has jobs, or nothing to wait for, is not."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from clusterkit import RUN, job_line, program, squeue
from remeasure.cluster import queue, watchdog
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS


def job(state="RUNNING", reason=""):
    return queue.Job(
        *("7", RUN, "me", state, "", "h100", "ask", "", "/w", "", 0, reason, 0, "", "2026-11-30T04:48:58")
    )


def judged(*seen, silent_s=600, away_s=5400):
    """Return the first verdict on what is seen a minute apart, and after how many minutes."""
    judge = watchdog.Judge(silent_s, away_s)
    for minute, (n_running, found) in enumerate(seen):
        if verdict := judge.look(60.0 * minute, n_running, found):
            return minute, *verdict
    return None


def test_jobs_that_are_nowhere_for_ten_minutes_end_the_driver():
    minute, kind, said = judged(*[(3, [])] * 30)
    assert (minute, kind) == (10, "lost")
    assert said == "for 10 min the driver has waited for jobs (3) of which none is in the queue"


def test_ended_jobs_in_the_queue_are_no_jobs():
    assert judged(*[(1, [job("COMPLETED"), job("FAILED")])] * 30)[:2] == (10, "lost")


@pytest.mark.parametrize(
    "seen",
    [
        (1, [job()]),
        (1, [job("PENDING", "Resources")]),
        (1, [job("PENDING", "JobHeldUser")]),
        (1, [job("COMPLETING")]),
        (1, [job("SOMETHING_NEW")]),
        (2, [job("PENDING", "PartitionTimeLimit"), job()]),
        (0, []),
        (0, [job("FAILED")]),
    ],
)
def test_a_driver_with_work_or_nothing_to_wait_for_is_left_alone(seen):
    assert judged(*[seen] * 1000) is None


def test_a_job_in_between_begins_the_time_anew():
    assert judged(*[(1, [])] * 9, (1, [job()]), *[(1, [])] * 20)[0] == 20
    assert judged(*[(1, [])] * 9, (0, []), *[(1, [])] * 20)[0] == 20
    assert judged(*[(1, [])] * 9, (1, None), *[(1, [])] * 20)[0] == 20


def test_an_outage_is_borne_for_an_hour_and_a_half():
    minute, kind, said = judged(*[(1, None)] * 200)
    assert (minute, kind, said) == (90, "away", "the cluster's controller has not answered for 90 min")
    assert judged(*[(1, None)] * 80, (1, [job()]), *[(1, None)] * 80) is None


@pytest.mark.parametrize(
    "reason",
    ["PartitionTimeLimit", "PartitionConfig", "BadConstraints", "QOSMaxCpuPerJobLimit", "AssocMaxGRESPerJob"],
)
def test_jobs_that_wait_for_what_never_comes_end_the_driver(reason):
    minute, kind, said = judged(*[(1, [job("PENDING", reason)])] * 30)
    assert (minute, kind) == (10, "stuck") and said.endswith("slurm/partitions.yaml")
    assert f"job 7 (ask, partition h100) waits for what never comes: {reason};" in said


def test_the_limits_are_ten_and_ninety_minutes_unless_a_test_says_otherwise(monkeypatch):
    monkeypatch.delenv("REMEASURE_WATCHDOG_S", raising=False)
    assert watchdog.limits() == (600, 5400)
    monkeypatch.setenv("REMEASURE_WATCHDOG_S", "2")
    assert watchdog.limits() == (2, 18)
    for wrong in ("soon", "0", "-1", "nan", "1e99"):
        monkeypatch.setenv("REMEASURE_WATCHDOG_S", wrong)
        with pytest.raises(RemeasureError, match="no number of seconds"):
            watchdog.limits()


DRIVER = """
import fcntl, os, signal, sys, time
from pathlib import Path
from remeasure.cluster import driver, watchdog
folder = Path(sys.argv[1])
watchdog.HARD_S = 1.0
driver.catch_signals(folder)
if sys.argv[2] == "full":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
if sys.argv[2] == "broken":
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 2)
if sys.argv[2] == "stopped":
    fcntl.fcntl(2, fcntl.F_SETPIPE_SZ, 4096)
    os.write(2, b"x" * 4096)
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGINT, lambda *_: None)
dog = watchdog.Watchdog("RUN", folder, lambda: (2, ["8", "9"]), watchdog.Judge(0.5, 4.0))
dog.start()
try:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    dog.stop()
    os._exit(3)  # not what a standard error that cannot be flushed comes to
""".replace("RUN", RUN)


def drive(tmp_path, how, **more):
    return subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), how],
        env={"PYTHONPATH": str(SCRIPTS), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


def test_the_driver_is_interrupted_with_one_sentence_even_where_its_shell_made_it_deaf(tmp_path):
    (tmp_path / "jobs").write_text(job_line(9, state="COMPLETED"))
    squeue(tmp_path / "bin", tmp_path / "jobs")
    deaf = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    done = drive(tmp_path, "hears", preexec_fn=deaf)
    assert (done.returncode, done.stdout) == (3, "interrupted\n")
    assert done.stderr.startswith("error: watchdog: for ") and done.stderr.count("\n") == 1
    assert "the driver has waited for jobs (2) of which none is in the queue" in done.stderr
    assert json.loads((tmp_path / "ended.json").read_text())["kind"] == "lost"
    assert json.loads((tmp_path / "waited.json").read_text()) == {"run": RUN, "ids": ["8", "9"]}
    assert (tmp_path / "ending").exists()


def test_the_stand_in_learns_of_every_job_that_comes_and_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(queue, "jobs", lambda name: [job()])
    waited = [(1, ["7"])]
    dog = watchdog.Watchdog(RUN, tmp_path, lambda: waited[-1], watchdog.Judge(0.4, 60.0))
    dog.start()
    try:
        assert json.loads((tmp_path / "waited.json").read_text()) == {"run": RUN, "ids": ["7"]}
        for ids in (["7", "8"], ["8"], []):
            waited.append((len(ids), ids))
            until = time.monotonic() + 60
            while json.loads((tmp_path / "waited.json").read_text())["ids"] != ids:
                assert time.monotonic() < until, f"{ids} were never told"
                time.sleep(0.02)
    finally:
        dog.stop()


def test_a_driver_that_does_not_listen_is_killed_and_its_jobs_with_it(tmp_path):
    (tmp_path / "jobs").write_text("")
    squeue(tmp_path / "bin", tmp_path / "jobs")
    program(tmp_path / "bin", "scancel", f'echo "$*" > {tmp_path}/cancelled')
    began = time.monotonic()
    done = drive(tmp_path, "deaf")
    assert done.returncode == 1 and "`snakemake --unlock`" in done.stderr
    assert (tmp_path / "cancelled").read_text() == f"--name={RUN}\n"
    assert time.monotonic() - began < 15


def test_a_controller_that_never_answers_ends_the_driver_too(tmp_path):
    program(tmp_path / "bin", "squeue", "echo away >&2; exit 1")
    done = drive(tmp_path, "hears")
    assert done.returncode == 3 and "has not answered" in done.stderr
    assert json.loads((tmp_path / "ended.json").read_text())["kind"] == "away"


@pytest.mark.parametrize("stderr", ["full", "broken"])
def test_the_driver_is_interrupted_where_nothing_can_be_said(tmp_path, stderr):
    (tmp_path / "jobs").write_text("")
    squeue(tmp_path / "bin", tmp_path / "jobs")
    done = drive(tmp_path, stderr)
    assert (done.returncode, done.stdout, done.stderr) == (3, "interrupted\n", "")


def test_the_driver_is_interrupted_where_nobody_reads_what_it_says(tmp_path):
    (tmp_path / "jobs").write_text("")
    squeue(tmp_path / "bin", tmp_path / "jobs")
    read, write = os.pipe()
    driven = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path), "stopped"],
        env={"PYTHONPATH": str(SCRIPTS), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
        stderr=write,
    )
    try:
        assert driven.wait(timeout=20) == 3
    finally:
        driven.kill()
        os.close(read)
        os.close(write)


def test_whatever_goes_wrong_in_looking_counts_as_no_answer(tmp_path, monkeypatch, capsys):
    def breaks(**_):
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(watchdog.queue, "jobs", breaks)
    monkeypatch.setattr(watchdog, "_NOTE_S", 0.05)
    ended = []
    dog = watchdog.Watchdog(RUN, tmp_path, lambda: (1, ["5"]), watchdog.Judge(0.2, 0.5))
    monkeypatch.setattr(dog, "_end", lambda kind, said: ended.append(kind))
    dog.start()
    dog._thread.join(10)
    assert ended == ["away"] and capsys.readouterr().err == "watchdog: odd (the driver waits)\n"
