"""The report on a run beside what Snakemake itself says and does."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from remeasure.plan import Plan
from remeasure.status import steps
from remeasure.status.rule_files import RuleFiles
from remeasure.wiring import Wiring

READER = "page-reader-smollm2"
EVQA_BASE = f"results/ci/pixelrag/evqa/base/{READER}"
TARGETS = ("results/ci/tables/table1.csv", "results/ci/tables/judges.csv")
# Made for every model of a study in a second; a report on each would hide the rest.
UNREPORTED = {"describe_executor"}


def status(checkout, *words: str) -> dict:
    """Return what the report says, as values."""
    command = [
        sys.executable,
        str(checkout.project / "scripts/status.py"),
        "--directory",
        str(checkout.directory),
    ]
    done = subprocess.run([*command, "--json", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def states(values: dict, rule: str, *wildcards: str) -> set[str]:
    """Return the states of a rule's steps that have all of these wildcards."""
    found = [one for one in values["steps"] if one["rule"] == rule]
    return {one["state"] for one in found if set(wildcards) <= set(one["wildcards"].values())}


def planned_jobs(text: str) -> dict[str, tuple[str, str, set[str]]]:
    """Return rule, wildcards and outputs of every job of a dry run, by log."""
    found = {}
    for block in re.split(r"\n(?=(?:local)?rule \w+:\n)", text)[1:]:
        rule = re.match(r"(?:local)?rule (\w+):", block)[1].removesuffix("_on_login")
        said = dict(re.findall(r"^    (\w+): (.*)$", block.partition("\n[")[0], re.MULTILINE))
        if "output" in said:
            pairs = [pair.partition("=")[2] for pair in said.get("wildcards", "").split(", ")]
            found[said["log"]] = (rule, "_".join(pairs), set(said["output"].split(", ")))
    return found


@pytest.mark.parametrize(("run", "n_least"), [("ci", 140), ("paper", 400)])
def test_the_steps_of_the_report_are_the_jobs_of_snakemake_s_own_plan(finished, run, n_least):
    """Rules, wildcards in their order, logs and outputs: nothing too many, nothing missing."""
    plan = Plan(finished.project / "config")
    targets = [f"results/{run}/tables/{table}.csv" for table in steps.tables(plan, run)]
    done = finished.call(*targets, "--dry-run", "--forceall", "--config", f"run={run}")
    assert done.returncode == 0, done.stderr
    planned = planned_jobs(done.stdout + done.stderr)
    planned = {log: job for log, job in planned.items() if job[0] not in UNREPORTED}
    rules = RuleFiles(finished.project / "rules", Wiring(plan), plan.index_stages(), plan.catalogue.makings())
    mine = {one.made.log: (*one.made.key, set(one.made.outputs)) for one in steps.steps(plan, rules, run)}
    assert len(planned) > n_least
    assert mine == planned


def test_a_finished_run_is_done_with_all_its_answers(finished):
    values = status(finished, "--run", "ci")
    assert values["counts"] == {
        "done": len(values["steps"]),
        "running": 0,
        "queued": 0,
        "failed": 0,
        "waiting": 0,
    }
    answers = [one["answers"] for one in values["steps"] if one["rule"] == "ask"]
    assert answers == (
        [{"n": 4, "total": 4}] * 24
        + [{"n": 30, "total": 30}] * 2
        + [{"n": 6, "total": 6}] * 6
        # Of systems: five cells that search, two that answer, three with a conversation of five turns.
        + [{"n": 8, "total": 8}] * 7
        + [{"n": 5, "total": 5}] * 3
    )
    assert [one["answers"] for one in values["steps"] if one["rule"] == "ask_calibration"] == [
        {"n": 4, "total": 4}
    ] * 2
    assert [one["answers"] for one in values["steps"] if one["rule"] == "ask_agreement"] == [
        {"n": 6, "total": 6}
    ] * 2


def test_a_deleted_file_waits_with_what_follows_and_nothing_else(checkout):
    checkout.path(f"{EVQA_BASE}/responses.jsonl").unlink()
    values = status(checkout, "--run", "ci", "--table", "table1")
    waiting = [one["rule"] for one in values["steps"] if one["state"] == "waiting"]
    assert sorted(waiting) == ["ask", "ask_judge", "build_judge_requests", "grade", "make_table"]


def test_a_step_that_fails_is_named_by_the_driver_and_by_the_report_until_its_inputs_change(checkout):
    requests = checkout.path(f"{EVQA_BASE}/requests.jsonl")
    before = requests.read_text(encoding="utf-8")
    for name in ("responses.jsonl", "answers.json", "journal/answers.jsonl"):
        checkout.path(f"{EVQA_BASE}/{name}").unlink()
    requests.write_text(before.replace("{", "{{", 1), encoding="utf-8")
    done = checkout.call(TARGETS[0], "--config", "run=ci", "--rerun-triggers", "mtime")
    assert done.returncode == 1
    end = done.stderr[done.stderr.index("Failed jobs (1):") :].splitlines()
    assert end[1:3] == ["  ask pixelrag/evqa/base: its command failed", f"    {EVQA_BASE}/logs/ask.log"]
    assert end[3].startswith(f"      error: {EVQA_BASE}/requests.jsonl line 1: not a valid")
    values = status(checkout)
    assert (values["run"], values["counts"]["failed"]) == ("ci", 1)
    (failure,) = [one["failure"] for one in values["steps"] if one["failure"]]
    assert failure["log"] == f"{EVQA_BASE}/logs/ask.log" and failure["lines"][-1].startswith("error: ")
    assert states(values, "grade", "evqa", "base") == {"waiting"}
    requests.write_text(before, encoding="utf-8")
    Path(requests).touch()
    assert states(status(checkout), "ask", "evqa", "base") == {"waiting"}
