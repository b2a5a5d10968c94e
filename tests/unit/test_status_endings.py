"""How attempts ended is read from three logs, each as it really looks (Snakemake 9.27, SLURM 22.05)."""

import os
import time
from pathlib import Path

import pytest

from remeasure.status import endings
from statuskit import ASK, job, job_log, write

DRIVER = """
SNAKEMAKE
=========
  Date: 2026-11-30 04:41:13
  Host: login1
  Command: snakemake results/table1.csv --profile slurm, and more so that the log is no empty one
Building DAG of jobs...

[Mon Nov 30 04:41:13 2026]
rule make:
    input: results/in.txt, results/other.txt
    output: results/bad.txt, results/bad.json
    log: results/logs/bad.log
    jobid: 2
    wildcards: x=bad
    resources: tmpdir=<TBD>, mem_mb=1000
[Mon Nov 30 04:41:13 2026]
rule make:
    output: results/good.txt
    log: results/logs/good.log
    jobid: 1
[Mon Nov 30 04:41:14 2026]
localrule glue:
    output: results/glue.txt
    log: results/logs/glue.log
    jobid: 3
Job 1 has been submitted with SLURM jobid 60 (log: /w/.snakemake/slurm_logs/rule_make/good/60.log).
Job 2 has been submitted with SLURM jobid 61 (log: /w/.snakemake/slurm_logs/rule_make/bad/61.log).
[Mon Nov 30 04:41:21 2026]
Error in rule make:
    message: SLURM-job '61' failed, SLURM status is: 'FAILED'.
    jobid: 2
    input: results/in.txt, results/other.txt
    output: results/bad.txt, results/bad.json
    log: results/logs/bad.log, /w/.snakemake/slurm_logs/rule_make/bad/61.log (check log file(s))
    shell:
        log: results/logs/wrong.log
        (command exited with non-zero exit code)
    external_jobid: 61
Logfile results/logs/bad.log:
======================================
error: config/x.yaml: wrong; repair it
======================================
Logfile /w/.snakemake/slurm_logs/rule_make/bad/61.log:
============================================================
SNAKEMAKE
=========
[Mon Nov 30 04:41:15 2026]
rule make:
    output: results/nested.txt
    log: results/logs/nested.log
    jobid: 0
Finished jobid: 1 (Rule: make)
============================================================
"""
AT_41_21 = time.mktime((2026, 11, 30, 4, 41, 21, 0, 0, -1))


def driver_log(work_dir, text: str, name: str = "2026-11-30T044113.007271") -> None:
    write(work_dir / ".snakemake/log" / f"{name}.snakemake.log", text)


def test_a_failure_is_known_with_its_job_its_time_and_its_inputs(tmp_path):
    driver_log(tmp_path, DRIVER)
    bad = endings.events(tmp_path)["results/logs/bad.log"]
    assert (bad.rule, bad.kind, bad.job_id, bad.at) == ("make", "failed", "61", AT_41_21)
    assert bad.inputs == ("results/in.txt", "results/other.txt")
    assert bad.outputs == ("results/bad.txt", "results/bad.json")


def test_logs_that_the_driver_shows_are_not_taken_for_its_own_words(tmp_path):
    driver_log(tmp_path, DRIVER)
    assert set(endings.events(tmp_path)) == {f"results/logs/{name}.log" for name in ("bad", "good", "glue")}
    assert endings.events(tmp_path)["results/logs/good.log"].kind == "started"


@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        ("Finished jobid: 1 (Rule: make)", "good", "finished"),
        ("Trying to restart job 2.", "bad", "again"),
        ("Finished jobid: 3 (Rule: glue)", "glue", "finished"),
    ],
)
def test_what_comes_later_counts(tmp_path, line, name, kind):
    driver_log(tmp_path, f"{DRIVER}[Mon Nov 30 04:42:00 2026]\n{line}\n")
    assert endings.events(tmp_path)[f"results/logs/{name}.log"].kind == kind


def test_numbers_of_jobs_hold_within_one_driver_and_the_newest_driver_counts(tmp_path):
    driver_log(tmp_path, DRIVER)
    later = DRIVER.partition("[Mon")[0] + "[Mon Nov 30 05:00:00 2026]\nFinished jobid: 2 (Rule: make)\n"
    driver_log(tmp_path, later, "2026-11-30T050000.000000")
    assert endings.events(tmp_path)["results/logs/bad.log"].kind == "failed"
    driver_log(tmp_path, DRIVER.partition("[Mon Nov 30 04:41:21")[0], "2026-11-30T060000.000000")
    assert endings.events(tmp_path)["results/logs/bad.log"].kind == "started"


def test_a_time_that_there_is_not_leaves_the_one_before(tmp_path):
    for stamp in ("Mon Feb 30 04:42:00 2026", "Xxx Foo 99 99:99:99 9999", "Mon Nov 30 04:42:00 0000"):
        driver_log(tmp_path, f"{DRIVER}[{stamp}]\nFinished jobid: 1 (Rule: make)\n")
        good = endings.events(tmp_path)["results/logs/good.log"]
        assert (good.kind, good.at) == ("finished", AT_41_21)


def test_a_device_or_a_pipe_says_nothing_as_a_log(tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    assert endings.tail(tmp_path / "pipe.log") == [] and endings.tail(Path("/dev/zero")) == []
    driver_log(tmp_path, DRIVER)
    os.mkfifo(tmp_path / ".snakemake/log/2099.snakemake.log")
    assert [path.name for path in endings.driver_logs(tmp_path)] == ["2026-11-30T044113.007271.snakemake.log"]


def test_without_a_driver_nothing_is_known(tmp_path):
    assert endings.events(tmp_path) == {} and endings.driver_logs(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("04:00:00 remeasure.grade: 4 items\n", "nothing"),
        ("04:00:00 remeasure.x: y\nerror: config/runs/x.yaml: no model 'a'; name one\n", "error"),
        ("error: early\n04:00:00 remeasure.x: and yet it went on\n", "nothing"),
        ("error: to be continued: 120 of 500 answered; the next attempt goes on\n", "continued"),
        ("interrupted; finished items are kept, the same command goes on\n", "stopped"),
        ('Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 1\n', "error"),
        (
            'Traceback (most recent call last):\n  File "a.py"\nKeyError: 1\n04:00:00 remeasure.x: 2\n',
            "nothing",
        ),
        ("", "nothing"),
    ],
)
def test_the_last_line_of_a_step_s_log_tells_how_it_ended(tmp_path, text, said):
    assert endings.said_of(write(tmp_path / "x.log", text)) == said


def test_a_log_that_is_not_there_says_nothing(tmp_path):
    assert endings.said_of(tmp_path / "x.log") == "nothing" and endings.tail(tmp_path / "x.log") == []


def test_the_last_lines_of_a_long_log_cannot_move_the_cursor(tmp_path):
    text = "x" * 100_000 + "\nfirst\n\n[###] 10 %\r[####] 20 %\nlast \x1b[2J\x07line\n\n"
    assert endings.tail(write(tmp_path / "x.log", text)) == ["first", "[####] 20 %", "last  [2J line"]


@pytest.mark.parametrize(
    ("line", "why", "is_cancelled", "node"),
    [
        (
            "*** JOB 62 ON cpu01 CANCELLED AT 2026-11-30T04:42:30 DUE TO TIME LIMIT ***",
            "time limit",
            "",
            "cpu01",
        ),
        ("*** JOB 62 ON h100-02 CANCELLED AT 2026-11-30T04:42:30 ***", "cancelled", "by hand", "h100-02"),
        ("*** JOB 62 ON a1 CANCELLED AT 2026 DUE TO NODE FAILURE, SEE x ***", "node failure", "", "a1"),
        ("Step 62.0 exceeded memory limit (900 > 500), being killed", "out of memory", "", ""),
        ("Detected 1 oom_kill event in StepId=62.0.", "out of memory", "", ""),
        ("x\nError in rule ask:\nsrun: error: cpu02: task 0: Exited", "its command failed", "", "cpu02"),
        ("Building DAG of jobs...", "", "", ""),
    ],
)
def test_the_log_that_the_cluster_keeps_tells_why_and_where(tmp_path, line, why, is_cancelled, node):
    path = job_log(tmp_path, 62, f"Building DAG of jobs...\nslurmstepd: error: {line}\n")
    kept = endings.job_log(path.parent)
    assert (kept.why, kept.is_cancelled, kept.node, kept.job_id) == (why, bool(is_cancelled), node, "62")


def test_of_several_attempts_the_newest_counts(tmp_path):
    job_log(tmp_path, 9, "Error in rule ask:", at=1000)
    folder = job_log(tmp_path, 10, "DUE TO TIME LIMIT", at=2000).parent
    assert (endings.job_log(folder).job_id, endings.job_log(folder).why) == ("10", "time limit")
    assert endings.job_log(tmp_path / "nothing") is None


NESTED = """Using shell: /usr/bin/bash
[Mon Nov 30 04:41:17 2026]
localrule make:
    output: results/bad.txt
RuleException:
CalledProcessError in file "/tmp/st/try1/Snakefile", line 12:
Command 'set -euo pipefail;  exit 1' returned non-zero exit status 1.
[Mon Nov 30 04:41:17 2026]
Error in rule make:
    jobid: 0
Shutting down, this might take some time.
Exiting because a job execution failed. Look above for error messages
Storing output in storage.
Elapsed time: 0:00:00.166855
WorkflowError:
At least one job did not complete successfully.
srun: error: cpu01: task 0: Exited with exit code 1
"""
LIMIT = "slurmstepd: error: *** JOB 62 ON cpu01 CANCELLED AT 2026-11-30T04:42:30 DUE TO TIME LIMIT ***"


def test_the_lines_that_are_shown_are_those_that_tell(tmp_path):
    own = ASK.made.log
    write(tmp_path / own, "one\ntwo\nthree\n")
    text = f"{LIMIT}\nAt least one job did not complete successfully.\n"
    kept = endings.job_log(job_log(tmp_path, 62, text).parent)
    shown = endings.described(own, tmp_path, kept, None, "62")
    assert shown == endings.Ending("time limit", "62", "cpu01", own, ("two", "three", LIMIT))
    write(tmp_path / own, "one\ntwo\nerror: a word\n")
    assert endings.described(own, tmp_path, kept, None, "62").lines == ("one", "two", "error: a word")


def test_where_the_step_s_own_log_is_empty_the_job_s_log_is_shown(tmp_path):
    write(tmp_path / ASK.made.log, "")
    path = job_log(tmp_path, 63, NESTED)
    shown = endings.described(ASK.made.log, tmp_path, endings.job_log(path.parent), job("FAILED", "63"), "63")
    assert shown.log == os.path.relpath(path, tmp_path)
    assert shown.lines == (
        "the command returned non-zero exit status 1.",
        "srun: error: cpu01: task 0: Exited with exit code 1",
    )
    assert (shown.why, shown.node) == ("its command failed", "h100-01")


def test_what_only_the_queue_knows_is_said(tmp_path):
    shown = endings.described(ASK.made.log, tmp_path, None, job("OUT_OF_MEMORY", "64"), "64")
    assert (shown.why, shown.node, shown.lines) == ("out of memory", "h100-01", ())


REFUSED = """
[Mon Nov 30 06:16:41 2026]
rule ask:
    output: results/a.jsonl
    log: LOG
    jobid: 4
[Mon Nov 30 06:16:42 2026]
Error in rule ask:
    message: SLURM sbatch failed. The error message was 'sbatch: error: QOSMaxSubmitJobPerUserLimit
sbatch: error: Batch job submission failed: Job's account "lab" is refused'.
    sbatch call:
        sbatch --parsable --comment rule_ask --wrap="python -m snakemake"
For further error details see the cluster/cloud log and the log files of the involved rule(s).
    jobid: 4
    output: results/a.jsonl
    log: LOG (check log file(s) for error details)
    shell:
        (command exited with non-zero exit code)
Shutting down, this might take some time.
"""
SAID = 'Batch job submission failed: Job\'s account "lab" is refused'


def test_a_job_that_was_not_taken_is_known_with_the_scheduler_s_last_sentence(tmp_path):
    text = DRIVER + REFUSED.replace("LOG", ASK.made.log)
    write(tmp_path / ".snakemake/log/2026-11-30T061640.snakemake.log", text)
    event = endings.events(tmp_path)[ASK.made.log]
    assert (event.kind, event.job_id, event.outputs) == ("failed", "", ("results/a.jsonl",))
    assert event.refused == SAID
    assert endings.refused(event) == endings.Ending("refused by sbatch", "", "", ASK.made.log, (SAID,))


def test_a_log_that_breaks_off_in_the_middle_of_a_refusal_is_borne(tmp_path):
    text = DRIVER + REFUSED.partition("    sbatch call")[0]
    write(tmp_path / ".snakemake/log/2026-11-30T061640.snakemake.log", text.replace("LOG", ASK.made.log))
    assert endings.events(tmp_path)[ASK.made.log].kind == "started"
    again = "[Mon Nov 30 06:20:00 2026]\nrule make:\n    log: results/logs/bad.log\n    jobid: 9\n"
    write(tmp_path / ".snakemake/log/2026-11-30T061640.snakemake.log", text + again)
    assert endings.events(tmp_path)["results/logs/bad.log"].kind == "started"
