"""The report: counts of answers, its text, its values, and how everything is gathered."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

import status as script
from clusterkit import job_line, on_path, program, squeue
from remeasure.status import counts, endings, failures, gather, processes, report, states
from remeasure.status.counts import Count
from statuskit import (
    ASK,
    ASK_KEY,
    CELL,
    REQUESTS,
    ROOT,
    STEPS,
    around,
    finish,
    job,
    job_log,
    log,
    seen,
    write,
)

NOW = time.time()
DRIVER = processes.Driver("here", "login1", 4242, ".snakemake/log/x.log", 12.0)


def entry(key: str, status: str = "answered") -> str:
    return json.dumps({"key": key, "status": status, "custom_id": "q", "text": "t"}) + "\n"


# -- answers -----------------------------------------------------------------------------------------------


def counted(work_dir) -> Count:
    found = states.see([REQUESTS, ASK], around(work_dir))
    return counts.answers(found, work_dir)[f"{CELL}/responses.jsonl"]


def test_final_outcomes_of_all_parts_of_a_cell_are_counted_once(tmp_path):
    finish(tmp_path, REQUESTS, requests=5)
    journal = tmp_path / CELL / "journal"
    write(journal / "1of2.jsonl", entry("a") + entry("b", "failed") + entry("b") + entry("c", "not_sent"))
    write(journal / "2of2.jsonl", entry("a") + entry("d", "refused") + entry("e", "failed") + '{"key": "torn')
    assert counted(tmp_path) == Count(3, 5)


def test_answers_to_questions_that_were_changed_do_not_count(tmp_path):
    finish(tmp_path, REQUESTS, requests=5)
    write(tmp_path / CELL / "journal/answers.jsonl", "".join(map(entry, "abc")))
    log(tmp_path, ASK, "04:00:00 x: 2 further outcomes belong to no request of this file and are kept\n")
    assert counted(tmp_path) == Count(1, 5)


def test_there_are_never_more_answers_than_questions(tmp_path):
    finish(tmp_path, REQUESTS, requests=2)
    write(tmp_path / CELL / "journal/1of2.jsonl", "".join(map(entry, "abc")))
    assert counted(tmp_path) == Count(2, 2)


def test_a_finished_cell_has_counted_itself(tmp_path):
    finish(tmp_path, REQUESTS, requests=5)
    finish(tmp_path, ASK, answered=3, cut_off=1, failed=1)
    assert counted(tmp_path) == Count(4, 5)


def test_before_its_questions_are_built_a_cell_has_no_total(tmp_path):
    assert counted(tmp_path) == Count(0, None)
    write(tmp_path / CELL / "journal/answers.jsonl", entry("a"))
    assert counted(tmp_path) == Count(1, None)


def test_a_damaged_journal_is_left_to_asking(tmp_path):
    finish(tmp_path, REQUESTS, requests=5)
    write(tmp_path / CELL / "journal/answers.jsonl", entry("a") + "{}\n" + entry("b"))
    assert counted(tmp_path) == Count(1, 5)


# -- text --------------------------------------------------------------------------------------------------


def made_up(tmp_path, **over) -> report.Status:
    """One cell in every state: its questions done, one part running, one queued, one failed."""
    finish(tmp_path, REQUESTS, requests=5)
    shown = [step for step in STEPS if step.rows == ("pixelrag/nq/base",) or step.block == "corpus"]
    found = {one.step.made.log: one for one in states.see(shown, around(tmp_path))}
    found[ASK.made.log] = seen(tmp_path, ASK, queue=[job(elapsed_s=3725)])
    tiles = next(step for step in shown if step.column == "tiles")
    found[tiles.made.log] = states.Seen(tiles, "queued", job("PENDING", "8", n_gpus=0, partition="cpu"))
    text = next(step for step in shown if step.column == "text")
    ending = endings.Ending("time limit", "6", "cpu01", text.made.log, ("one", "x" * 120, "error: a"))
    found[text.made.log] = states.Seen(text, "failed", ending=ending)
    plain = {
        "run": "ci",
        "why_run": "",
        "work_dir": "/work",
        "seen": list(found.values()),
        "counts": {f"{CELL}/responses.jsonl": Count(3, 5)},
        "others": [],
        "queue_says": "",
        "has_cluster": True,
        "driver": DRIVER,
        "last_lines": {ASK.made.log: "04:00:00 remeasure.responses: 3/5 ok=3"},
    }
    return report.Status(**plain | over)


TEXT = f"""run ci, 2026-01-01 00:00:00, /work
driver: process 4242 on this host, said something 12 s ago

corpus    pages    tiles   ocr      text
factbook  waiting  queued  waiting  failed

cell     items  ranking  requests  answers      judge  grade
nq/base  -      waiting  done      running 3/5  -      waiting

running (1)
  7        h100-01 h100 gpu:h100:1    1:02 h  ask pixelrag/nq/base
           04:00:00 remeasure.responses: 3/5 ok=3

queued (1)
  8        - cpu                         0 s  render_tiles factbook (Resources)

failed (1)
  extract_text factbook, job 6 on cpu01: time limit
    results/ci/corpora/factbook/logs/extract_text.log
      one
      {"x" * 94}
      {"x" * 26}
      error: a

8 steps: 1 done, 1 running, 1 queued, 1 failed, 4 waiting
next: what is not failed goes on; repair what the logs say, then start the command again
"""


def test_the_whole_text(tmp_path):
    said = report.text(made_up(tmp_path))
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-01 00:00:00", said) == TEXT


def test_what_must_be_brought_by_hand_and_steps_of_many_jobs_are_summed_up(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status = gather.gather(ROOT, tmp_path, "paper")
    tiles = [one for one in status.seen if one.step.rows == ("news",) and one.step.column == "tiles"]
    for one in tiles[:3]:
        finish(tmp_path, one.step)
    lines = report.text(gather.gather(ROOT, tmp_path, "paper")).splitlines()
    # 23 by hand; two tables and a module from addresses, two packages, and the wording taken from the module.
    # Of systems: 19 by hand; from addresses four files of OpenRAG Bench, one of HotpotQA, five of MTRAG, and
    # three that wording stands in; one package with wording; four steps that take it from these four. Of
    # landmarks: 18 by hand, two files of classes from addresses.
    assert lines[3].startswith(f"sources: 0 of {29 + 19 + 13 + 1 + 4 + 20} ")
    (by_hand,) = [line for line in lines if "to be put in place by hand" in line]
    assert by_hand.startswith("  to be put in place by hand, see `snakemake preflight`: wikipedia_en_all")
    # Nine parts, and the step that puts them together.
    (news,) = [line for line in lines if line.startswith("news ")]
    assert re.split(r" {2,}", news) == ["news", "waiting", "waiting 3/10 jobs", "-", "waiting 0/10 jobs"]
    (cell,) = [line for line in lines if line.startswith("pixelrag/livevqa/base ")]
    assert "/" not in cell.removeprefix("pixelrag/livevqa/base")


def test_lines_fit_and_long_lists_are_cut(tmp_path):
    status = made_up(tmp_path, work_dir="/" + "w" * 200, queue_says="squeue cannot say " + "y" * 150)
    many = [status.seen[0]._replace(state="queued", job=job("PENDING", str(n))) for n in range(40)]
    said = report.text(status._replace(seen=[*status.seen, *many])).splitlines()
    assert max(map(len, said)) <= 100
    assert "  … and 29 more; --json lists all" in said
    assert "What follows is what the files say: jobs may have begun or ended since." in said


@pytest.mark.parametrize(
    ("state", "driver", "words"),
    [
        ("failed", "none", "repair what the logs say, then start the command again; finished answers stay"),
        ("waiting", "none", "start the command again"),
        ("waiting", "here", "nothing; it goes on by itself"),
        ("running", "none", "nobody waits for these jobs on this host"),
        ("running", "gone", "jobs of a killed driver are under way: let them end, then scripts/submit.py"),
        ("waiting", "gone", "or after `snakemake --unlock`"),
        ("done", "none", "nothing; everything is there"),
    ],
)
def test_the_last_line_says_what_to_do(tmp_path, state, driver, words):
    one = states.Seen(ASK, state, note="by me")
    status = made_up(tmp_path, seen=[one], driver=DRIVER._replace(state=driver))
    assert words in report.text(status).splitlines()[-1]


def test_the_values_hold_everything(tmp_path):
    values = report.as_values(made_up(tmp_path))
    assert values["counts"] == {"done": 1, "running": 1, "queued": 1, "failed": 1, "waiting": 4}
    (ask,) = [one for one in values["steps"] if one["rule"] == "ask"]
    assert (ask["state"], ask["answers"]) == ("running", {"n": 3, "total": 5})
    assert ask["job"] == {
        "job_id": "7",
        "state": "RUNNING",
        "node": "h100-01",
        "partition": "h100",
        "gpus": 1,
        "gpu_model": "h100",
        "elapsed_s": 3725,
        "reason": None,
    }
    (failed,) = [one["failure"] for one in values["steps"] if one["failure"]]
    assert (failed["why"], failed["job_id"], failed["node"]) == ("time limit", "6", "cpu01")
    assert values["queue"] == {"asked": True, "reason": None}


def test_the_last_line_of_a_running_step_is_not_that_of_an_earlier_attempt(tmp_path):
    running = [states.Seen(ASK, "running", job(elapsed_s=30))]
    log(tmp_path, ASK, f"{CELL}/responses.jsonl: 3 of 5\n", at=NOW - 600)
    assert report.last_lines(running, tmp_path) == {}
    log(tmp_path, ASK, f"{CELL}/responses.jsonl: 3 of 5\n")
    assert report.last_lines(running, tmp_path) == {ASK.made.log: "…/responses.jsonl: 3 of 5"}


# -- gathering ---------------------------------------------------------------------------------------------


def queue_of(work_dir, tmp_path, monkeypatch) -> None:
    comment = f"rule_ask_wildcards_{ASK_KEY}"
    lines = job_line(12, comment=comment, work_dir=str(work_dir))
    lines += job_line(13, comment=comment.replace("_base_", "_lora_"), work_dir="/elsewhere")
    squeue(tmp_path / "bin", write(tmp_path / "jobs", lines))
    on_path(monkeypatch, tmp_path / "bin")


def states_of(status: report.Status) -> dict[str, str]:
    return {one.step.made.log: one.state for one in status.seen}


def test_jobs_of_this_folder_alone_count(tmp_path, monkeypatch):
    work_dir = tmp_path / "w"
    finish(work_dir, REQUESTS, requests=5)
    queue_of(work_dir, tmp_path, monkeypatch)
    status = gather.gather(ROOT, work_dir, "ci")
    assert (status.has_cluster, status.queue_says) == (True, "")
    assert states_of(status)[ASK.made.log] == "running"
    assert states_of(status)[ASK.made.log.replace("/base/", "/lora/")] == "waiting"


def test_a_controller_that_is_away_is_said_and_the_files_are_shown(tmp_path, monkeypatch, capsys):
    program(tmp_path / "bin", "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm' >&2; exit 1")
    on_path(monkeypatch, tmp_path / "bin")
    finish(tmp_path, REQUESTS, requests=5)
    assert script.main(["--run", "ci", "--directory", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert (
        "The queue cannot be asked: squeue cannot say what is queued (slurm_load_jobs error: Unable" in said
    )
    assert re.search(r"^pixelrag/nq/base +waiting +waiting +done +waiting 0/5 ", said, re.MULTILINE)


def test_without_a_cluster_nothing_is_said_of_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.main(["--run", "ci", "--directory", str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["queue"] == {"asked": False, "reason": None}
    assert values["counts"]["waiting"] == len(STEPS)


def test_the_run_is_the_one_that_was_worked_on_last(tmp_path):
    assert gather.gather(ROOT, tmp_path).run == "embedded"
    for name, run in (("2026-01-01", "tuning"), ("2026-01-02", "ci"), ("2026-01-03", "forgotten")):
        text = f"rule x:\n    wildcards: run={run}, study=pixelrag\n" + "x" * 300
        write(tmp_path / f".snakemake/log/{name}.snakemake.log", text)
    found = gather.gather(ROOT, tmp_path)
    assert (found.run, found.why_run) == ("ci", "worked on last; --run names another")


def test_failures_behind_no_table_are_shown_but_not_those_of_another_run(tmp_path):
    text = "SNAKEMAKE\n" + "x" * 200 + "\n"
    for number, run in enumerate(("ci", "embedded")):
        text += f"[Mon Nov 30 04:41:21 2026]\nError in rule make_estimate:\n    jobid: {number}\n"
        text += f"    output: results/{run}/tables/table1.estimate.csv\n"
        text += (
            f"    log: results/{run}/tables/logs/table1.estimate.log (check log file(s) for error details)\n"
        )
    write(tmp_path / ".snakemake/log/2026-01-01.snakemake.log", text)
    write(tmp_path / "results/ci/tables/logs/table1.estimate.log", "error: no price; add one\n")
    (other,) = gather.gather(ROOT, tmp_path, "ci").others
    assert (other.rule, other.ending.lines) == ("make_estimate", ("error: no price; add one",))
    write(tmp_path / "results/ci/tables/table1.estimate.csv")
    assert gather.gather(ROOT, tmp_path, "ci").others == []


@pytest.mark.parametrize("words", [["--run", "cii"], ["--run", "ci", "--table", "x"]])
def test_a_wrong_name_is_one_line(tmp_path, capsys, words):
    assert script.main([*words, "--directory", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1


@pytest.mark.parametrize("name", ["none", "a file", "x" * 5000])
def test_a_directory_that_is_none_is_one_line(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a file")
    assert script.main(["--run", "ci", "-d", name]) == 2
    assert capsys.readouterr().err == (
        f"error: --directory {name[:200]!r}: no such folder; give the working directory of the workflow\n"
    )


def test_what_files_and_the_queue_say_cannot_move_the_cursor(tmp_path):
    evil = "\x1b[2J"
    ending = endings.Ending("failed", evil, evil, evil, ())
    under_way = job("PENDING", evil, node=evil, partition=evil, reason=evil)
    status = made_up(
        tmp_path,
        seen=[
            states.Seen(ASK, "queued", under_way),
            states.Seen(ASK, "running", note=f"process 9 on host {evil}"),
            states.Seen(ASK, "failed", ending=ending),
        ],
        driver=DRIVER._replace(state="elsewhere", pid=None, host=evil),
    )
    said = report.text(status)
    assert said.count(" [2J") == 9 and said.replace("\n", "").isprintable()


def test_pipes_and_deep_records_are_passed_over(tmp_path):
    write(tmp_path / CELL / "journal/1of2.jsonl", entry("a"))
    os.mkfifo(tmp_path / CELL / "journal/2of2.jsonl")
    os.mkfifo(log(tmp_path, ASK, "").with_name("pipe"))
    os.replace(tmp_path / ASK.made.log.replace("ask.log", "pipe"), tmp_path / ASK.made.log)
    assert counted(tmp_path) == Count(1, None)
    for output in REQUESTS.made.outputs:
        write(tmp_path / output, "[" * 100_000)
    assert counted(tmp_path) == Count(1, None)
    (tmp_path / REQUESTS.made.outputs[-1]).unlink()
    os.mkfifo(tmp_path / REQUESTS.made.outputs[-1])
    assert counted(tmp_path) == Count(1, None)


def test_it_can_be_watched_until_ctrl_c(tmp_path):
    command = [sys.executable, str(ROOT / "scripts/status.py"), "--run", "ci", "--watch", "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    watching = subprocess.Popen(command, cwd=tmp_path, **pipes)
    heads = 0
    while heads < 2 and (line := watching.stdout.readline()):
        heads += line.startswith("run ci, ")
    watching.send_signal(signal.SIGINT)
    _, complaint = watching.communicate(timeout=20)
    assert (heads, watching.returncode, complaint) == (2, 0, "")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    command = f"{sys.executable} {ROOT}/scripts/status.py --run ci --json | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"counts":', "")


# -- at the driver's end -----------------------------------------------------------------------------------


def failed(rule="ask", log="results/a.log", **wildcards):
    return SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards=_Values(wildcards), log=[log])


class _Values(dict):
    """Wildcards as Snakemake's jobs have them: iterated by value."""

    def __iter__(self):
        return iter(self.values())


def test_the_driver_names_what_failed_with_job_node_and_last_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    comment = "rule_ask_wildcards_ci_nq"
    squeue(tmp_path / "bin", write(tmp_path / "jobs", job_line(12, comment=comment)))
    on_path(monkeypatch, tmp_path / "bin")
    write(tmp_path / "results/a.log", "one\nerror: a is wrong; correct it\n")
    job_log(tmp_path, 12, "Error in rule ask:\n", key="ci_nq")
    evil = failed("grade", "results/\x1b[2J.log", run="ci")
    group = SimpleNamespace(jobs=[failed(run="ci", bench="nq"), evil])
    failures.said_at_end([group, failed("preflight")], NOW - 60, is_cluster=True)
    assert capsys.readouterr().err.splitlines() == [
        "",
        "Failed jobs (2):",
        "  ask nq, job 12 on cpu01: its command failed",
        "    results/a.log",
        "      one",
        "      error: a is wrong; correct it",
        "  grade: its command failed",
        "    results/ [2J.log",
        "scripts/status.py says what else is missing.",
    ]


def test_the_log_of_an_earlier_driver_s_job_is_not_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    job_log(tmp_path, 11, "Error in rule ask:\n", key="ci_nq", at=NOW - 500)
    failures.said_at_end([failed(run="ci", bench="nq")], NOW - 60, is_cluster=False)
    assert "  ask nq: its command failed" in capsys.readouterr().err.splitlines()


def test_nothing_is_said_where_only_the_preflight_failed(capsys):
    failures.said_at_end([failed("preflight")], NOW, is_cluster=False)
    assert capsys.readouterr().err == ""
