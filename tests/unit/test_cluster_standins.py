"""The programs before SLURM's own: the driver is answered through outages, and no job goes twice."""

import os
import subprocess
import time

import pytest

from clusterkit import DATA, RUN, job_line, on_path, program, squeue
from remeasure.cluster import standins
from remeasure.cluster.standins import sacct

# What snakemake-executor-plugin-slurm 2.8.0 asks.
QUESTION = (
    *("sacct", "-X", "--parsable2", "--clusters", "all", "--noheader", "--format=JobIdRaw,State"),
    *("--starttime", "2026-11-28T04:00", "--endtime", "now", "--name", RUN),
)
_FAILED = "echo 'sbatch: error: Batch job submission failed: {}' >&2"
AWAY = _FAILED.format("Unable to contact slurm controller (connect failure)")
LATE = _FAILED.format("Socket timed out on send/recv operation")
# Fails at the first call, answers at the second.
ONCE_AWAY = f"test -e {{0}}/up && {{{{ echo 42; exit; }}}}; touch {{0}}/up; {AWAY}; exit 1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with launchers, first on the PATH; behind it an empty one for SLURM's programs."""
    found = tmp_path / "standins"
    found.mkdir()
    standins.install(found)
    standins.write(found / "settings.json", {"accounting": False, "sacct_wait_s": 5, "sbatch_wait_s": 20})
    on_path(monkeypatch, tmp_path / "bin")
    on_path(monkeypatch, found / "bin")
    return found


def ask(*words, timeout=30):
    return subprocess.run(
        words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False
    )


def jobs(tmp_path, *lines):
    (tmp_path / "jobs").write_text("".join(lines))
    squeue(tmp_path / "bin", tmp_path / "jobs")


def test_the_executors_question_is_answered_from_the_queue_without_accounting(folder, tmp_path):
    squeue(tmp_path / "bin", DATA / "squeue_22.05.txt")
    program(tmp_path / "bin", "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    done = ask(*QUESTION)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == [
        "12|RUNNING",
        "13|FAILED",
        "14|RUNNING",
        "15|PENDING",
        "16|PENDING",
    ]


def test_a_cancelled_job_is_told_in_the_executors_word(folder, tmp_path):
    jobs(tmp_path, job_line(7, state="CANCELLED"))
    assert ask(*QUESTION).stdout == "7|CANCELLED\n"


def test_an_outage_is_waited_out(folder, tmp_path):
    jobs(tmp_path, job_line(7, state="COMPLETED"))
    (tmp_path / "bin" / "squeue").rename(tmp_path / "bin" / "squeue.real")
    program(
        tmp_path / "bin",
        "squeue",
        f'test -e {tmp_path}/up || {{ touch {tmp_path}/up; exit 1; }}; "$0.real" "$@"',
    )
    assert ask(*QUESTION).stdout == "7|COMPLETED\n"


def test_a_long_outage_ends_with_a_failure_before_the_executors_minute(folder, tmp_path):
    program(tmp_path / "bin", "squeue", "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1")
    began = time.monotonic()
    done = ask(*QUESTION)
    assert (done.returncode, done.stdout) == (1, "") and "Unable to contact" in done.stderr
    assert time.monotonic() - began < 7
    assert sacct._CALL_S + 5 < 60


def test_a_driver_that_ends_does_not_wait_for_an_outage(folder, tmp_path):
    program(tmp_path / "bin", "squeue", "exit 1")
    (folder / "ending").touch()
    began = time.monotonic()
    assert ask(*QUESTION).returncode == 1 and time.monotonic() - began < 2


def test_a_job_that_the_queue_forgot_is_told_as_ended_at_the_second_answer(folder, tmp_path):
    jobs(tmp_path, job_line(7))
    standins.write(folder / "waited.json", {"run": RUN, "ids": ["6", "7"]})
    assert ask(*QUESTION).stdout == "7|RUNNING\n"
    assert ask(*QUESTION).stdout.split() == ["7|RUNNING", "6|UNKNOWN"]


def test_a_job_that_is_missing_once_is_not_told_as_ended(folder, tmp_path):
    standins.write(folder / "waited.json", {"run": RUN, "ids": ["7"]})
    for state in ((), (job_line(7),), (), (job_line(7),)):
        jobs(tmp_path, *state)
        assert ask(*QUESTION).stdout == "7|RUNNING\n" * len(state)


def test_jobs_of_another_driver_are_not_waited_for(folder, tmp_path):
    jobs(tmp_path)
    standins.write(folder / "waited.json", {"run": "other", "ids": ["6"]})
    assert ask(*QUESTION).stdout == ask(*QUESTION).stdout == ""


def test_a_forgotten_job_is_told_as_the_accounting_has_it(folder, tmp_path):
    jobs(tmp_path)
    program(tmp_path / "bin", "sacct", "echo '6|CANCELLED by 1000'; echo '8|TIMEOUT'")
    standins.write(folder / "settings.json", {"accounting": True})
    standins.write(folder / "waited.json", {"run": RUN, "ids": ["6", "8", "9"]})
    ask(*QUESTION)
    assert ask(*QUESTION).stdout.split() == ["6|CANCELLED", "8|TIMEOUT", "9|UNKNOWN"]


def test_a_node_failure_that_the_scheduler_repairs_is_not_told(folder, tmp_path):
    jobs(tmp_path, job_line(7, state="NODE_FAIL"))
    assert ask(*QUESTION).stdout == "7|PENDING\n"
    jobs(tmp_path, job_line(7, state="PENDING"))
    assert ask(*QUESTION).stdout == "7|PENDING\n"
    jobs(tmp_path, job_line(7, state="NODE_FAIL"), job_line(8, state="PREEMPTED"))
    assert ask(*QUESTION).stdout.split() == ["7|PENDING", "8|PENDING"]
    assert ask(*QUESTION).stdout.split() == ["7|NODE_FAIL", "8|CANCELLED"]


def test_questions_about_a_failed_job_are_answered_from_the_queue(folder, tmp_path):
    squeue(tmp_path / "bin", DATA / "squeue_22.05.txt")
    assert ask("sacct", "-j", "13.0", "--format=Reason", "--noheader").stdout == "NonZeroExitCode\n"
    assert ask("sacct", "-j", "13.1", "--format=Reason", "--noheader").stdout == ""
    assert ask("sacct", "-j", "14", "-n", "-X", "-o", "nodelist%-256").stdout == "a10g-01\n"


def test_other_questions_reach_the_real_program_where_it_works(folder, tmp_path):
    program(tmp_path / "bin", "sacct", 'echo "real $*"')
    assert ask("sacct").stdout == ask("sacct", "-nu", "me", "-o", "Account%256").stdout == ""
    standins.write(folder / "settings.json", {"accounting": True})
    assert ask("sacct", "-nu", "me", "-o", "Account%256").stdout == "real -nu me -o Account%256\n"


def test_a_broken_small_file_is_taken_for_none(folder, tmp_path):
    jobs(tmp_path, job_line(7))
    for name in ("settings.json", "waited.json", "doubts.json"):
        (folder / name).write_text("[" * 100_000)
    assert ask(*QUESTION).stdout == "7|RUNNING\n"


# -- sbatch ------------------------------------------------------------------------------------------------


def submit(*more, comment="rule_ask_wildcards_nq"):
    words = ["sbatch", "--parsable", "--job-name", RUN, "--comment", comment, *more, "--wrap=true"]
    return ask(*words, timeout=60)


def test_a_job_is_submitted_once_and_its_environment_has_no_standins(folder, tmp_path):
    program(
        tmp_path / "bin", "sbatch", f'echo "$*" > {tmp_path}/words; echo "$PATH" > {tmp_path}/path; echo 42'
    )
    done = submit("--mem", "1000")
    assert (done.returncode, done.stdout) == (0, "42\n")
    assert (tmp_path / "words").read_text().endswith("--mem 1000 --wrap=true\n")
    assert str(folder) not in (tmp_path / "path").read_text()
    assert (folder / "submitted").read_text() == "42\n"


def test_a_refused_job_is_refused_at_once(folder, tmp_path):
    program(tmp_path / "bin", "sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    began = time.monotonic()
    done = submit()
    assert (done.returncode, done.stderr) == (1, "sbatch: error: invalid partition specified: x\n")
    assert time.monotonic() - began < 3


@pytest.mark.slow
def test_an_absent_controller_is_waited_for(folder, tmp_path):
    jobs(tmp_path)
    program(
        tmp_path / "bin",
        "sbatch",
        ONCE_AWAY.format(tmp_path),
    )
    done = submit()
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_nothing_is_sent_again_before_the_queue_was_seen(folder, tmp_path):
    program(tmp_path / "bin", "squeue", "exit 1")
    standins.write(folder / "settings.json", {"sbatch_wait_s": 4})
    program(tmp_path / "bin", "sbatch", f"echo >> {tmp_path}/calls; {LATE}; exit 1")
    done = submit()
    assert done.returncode == 1 and "Socket timed out" in done.stderr
    assert (tmp_path / "calls").read_text() == "\n"


def test_a_job_whose_answer_was_lost_is_found_by_name_and_comment(folder, tmp_path):
    odd = 'rule_ask_wildcards_a "b" <c>\n12 x'
    jobs(
        tmp_path,
        job_line(40, comment=odd),
        job_line(41, comment="rule_ask_wildcards_other"),
        job_line(43, comment=odd),
    )
    (folder / "submitted").write_text("40\n")
    program(tmp_path / "bin", "sbatch", f"echo >> {tmp_path}/calls; {LATE}; exit 1")
    done = submit(comment=odd)
    assert (done.returncode, done.stdout) == (0, "43\n")
    assert (tmp_path / "calls").read_text() == "\n"
    assert (folder / "submitted").read_text() == "40\n43\n"


def test_a_job_that_was_submitted_while_the_driver_ends_is_cancelled(folder, tmp_path):
    program(tmp_path / "bin", "sbatch", f"touch {folder}/ending; echo 42")
    program(tmp_path / "bin", "scancel", f'echo "$*" > {tmp_path}/cancelled')
    assert submit().returncode == 130
    assert (tmp_path / "cancelled").read_text() == "42\n"


@pytest.mark.slow
def test_a_script_on_standard_input_is_sent_again_whole(folder, tmp_path):
    jobs(tmp_path)
    program(
        tmp_path / "bin",
        "sbatch",
        f"cat >> {tmp_path}/seen; {ONCE_AWAY.format(tmp_path)}",
    )
    done = subprocess.run(
        ["sbatch", "--job-name", RUN, "--comment", "rule_x", "/dev/stdin"],
        input="#!/bin/sh\ntrue\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "42\n"
    assert (tmp_path / "seen").read_text() == "#!/bin/sh\ntrue\n" * 2


def test_the_launchers_work_from_a_folder_with_odd_characters(tmp_path, monkeypatch):
    odd = tmp_path / "a 'b' $c"
    odd.mkdir()
    standins.install(odd)
    program(tmp_path / "bin", "sbatch", "echo 42")
    monkeypatch.setenv("PATH", f"{odd / 'bin'}{os.pathsep}{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert submit().stdout == "42\n"


def test_a_child_that_holds_the_pipe_and_endless_talk_end_in_time(folder, tmp_path):
    standins.write(folder / "settings.json", {"sacct_wait_s": 1})
    for body, said in (("sleep 20 & echo '5|RUNNING'", "no answer within"), ("exec yes", "says too much")):
        program(tmp_path / "bin", "squeue", body)
        began = time.monotonic()
        done = ask(*QUESTION)
        assert (done.returncode, done.stdout) == (1, "") and said in done.stderr
        assert time.monotonic() - began < 6


def test_small_files_of_another_shape_are_taken_for_none(folder, tmp_path):
    jobs(tmp_path, job_line(7))
    standins.write(folder / "settings.json", {"sacct_wait_s": "nan"})
    for ids in (None, 5, "abc", {"a": 1}):
        standins.write(folder / "waited.json", {"run": RUN, "ids": ids})
        done = ask(*QUESTION)
        assert (done.returncode, done.stdout, done.stderr) == (0, "7|RUNNING\n", "")


def test_an_answer_without_a_number_is_no_job(folder, tmp_path):
    program(tmp_path / "bin", "sbatch", "printf 'welcome\\007 back\\n'")
    done = submit()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "sbatch: its answer ('welcome back') holds no job id; look whether a wrapper of that name comes "
        "first on the PATH\n"
    )
    assert not (folder / "submitted").exists()
