"""A made-up tree of results for the report on a run's state."""

import json
import os
from base64 import urlsafe_b64encode
from pathlib import Path

from remeasure.cluster.queue import Job
from remeasure.plan import Plan
from remeasure.status import processes, states, steps
from remeasure.status.rule_files import RuleFiles
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[1]
PLAN = Plan(ROOT / "config")
RULES = RuleFiles(ROOT / "rules", Wiring(PLAN), PLAN.index_stages(), PLAN.catalogue.makings())
STEPS = steps.steps(PLAN, RULES, "ci")
CELL = "results/ci/pixelrag/nq/base/page-reader-smollm2"
ASK_KEY = "ci_pixelrag_nq_base_page-reader-smollm2"
NOBODY = processes.Local(frozenset(), processes.Driver("none", "", None, "", None))


def step(first_output: str) -> steps.Step:
    """Return the step whose first output is named."""
    return next(one for one in STEPS if one.made.outputs[0] == first_output)


ASK = step(f"{CELL}/responses.jsonl")
REQUESTS = step(f"{CELL}/requests.jsonl")
GRADE = step(f"{CELL}/graded.jsonl")


def write(path: Path, text: str = "", at: float | None = None) -> Path:
    """Write a file, with a time of change in seconds since 1970 where one is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if at is not None:
        os.utime(path, (at, at))
    return path


def finish(work_dir: Path, one: steps.Step, at: float | None = None, inputs=(), **counts: int) -> None:
    """Write the files of a step, its record last."""
    for output in one.made.outputs[:-1]:
        write(work_dir / output, "x", at)
    record = {"counts": counts, "inputs": dict.fromkeys(inputs, "0" * 64)}
    write(work_dir / one.made.outputs[-1], json.dumps(record), at)


def log(work_dir: Path, one: steps.Step, text: str, at: float | None = None) -> Path:
    """Write the log of a step."""
    return write(work_dir / one.made.log, text, at)


def job_log(work_dir: Path, number: int, text: str, at: float | None = None, key: str = ASK_KEY) -> Path:
    """Write the log that the cluster keeps of a job that asks the cell."""
    return write(work_dir / f".snakemake/slurm_logs/rule_ask/{key}/{number}.log", text, at)


def mark(work_dir: Path, one: steps.Step, number: str | None, at: float | None = None) -> None:
    """Leave Snakemake's mark that a step was begun."""
    name = urlsafe_b64encode(one.made.outputs[0].encode()).decode()
    write(work_dir / ".snakemake/incomplete" / name, json.dumps({"external_jobid": number}), at)


def job(
    state: str = "RUNNING", job_id: str = "7", rule: str = "ask", wildcards: str = ASK_KEY, **over
) -> Job:
    """Return a job as the queue has it."""
    plain = {
        "run_name": "remeasure_0a1b",
        "user": "me",
        "node": "" if state == "PENDING" else "h100-01",
        "partition": "h100",
        "work_dir": "/work",
        "log": "",
        "elapsed_s": 0 if state == "PENDING" else 65,
        "reason": "Resources" if state == "PENDING" else "",
        "n_gpus": 1,
        "gpu_model": "h100",
        "submitted": "2026-11-30T04:48:58",
    }
    return Job(job_id=job_id, state=state, rule=rule, wildcards=wildcards, **(plain | over))


def around(work_dir: Path, queue=(), local=NOBODY, events=None) -> states.Surroundings:
    """Return what decides about steps; ``queue=None``: it cannot be asked."""
    return states.Surroundings(work_dir, None if queue is None else list(queue), local, events or {})


def seen(work_dir: Path, one: steps.Step, **surroundings) -> states.Seen:
    """Return one step with its state."""
    return states.see([one], around(work_dir, **surroundings))[0]
