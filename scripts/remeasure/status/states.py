"""What state each step of a run is in, decided from files, processes and the queue.

A file that is there is *done*: whether a changed setting or program would make it again, only Snakemake's
plan knows (``snakemake -n``).
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from remeasure import gaps, leases
from remeasure.cluster.queue import Job
from remeasure.files import is_regular
from remeasure.status import endings, processes, stage_files
from remeasure.status.endings import Ending, Event
from remeasure.status.processes import FRESH_S, Local
from remeasure.status.steps import SOURCES, Step

State = Literal["done", "running", "queued", "failed", "waiting"]


class Seen(NamedTuple):
    """A step with its state."""

    step: Step
    state: State
    job: Job | None = None
    """The cluster job that is under way."""
    note: str = ""
    """What else is to be known: who asks, that it is to be continued."""
    ending: Ending | None = None
    """Only where it failed."""


class Surroundings(NamedTuple):
    """Everything that decides about a step."""

    work_dir: Path
    queue: list[Job] | None
    """Jobs of this working directory; null where the queue cannot be asked or there is none."""
    local: Local
    events: dict[str, Event]


def see(steps: Iterable[Step], around: Surroundings) -> list[Seen]:
    """Return every step with its state, in their order."""
    alive: dict[tuple[str, str], Job] = {}
    over: dict[tuple[str, str], Job] = {}
    for job in around.queue or ():  # in order of their numbers: the last counts
        (alive if job.is_alive else over)[job.rule, job.wildcards] = job
    seen = [_see(step, around, alive.get(step.made.key), over.get(step.made.key)) for step in steps]
    return _with_followers(seen, around.work_dir)


def _with_followers(seen: list[Seen], work_dir: Path) -> list[Seen]:
    """Let what was made from files that are to be made again wait too; verified downloads rerun nothing."""
    inputs = {
        one.step.made.outputs[0]: stage_files.read(work_dir / one.step.made.outputs[-1]).inputs
        for one in seen
        if one.state == "done" and one.step.block != SOURCES
    }
    open_ = {
        path
        for one in seen
        if one.state != "done" and one.step.block != SOURCES
        for path in one.step.made.outputs
    }
    is_new = True
    while is_new:
        is_new = False
        for i, one in enumerate(seen):
            first = one.step.made.outputs[0]
            if (
                one.state == "done"
                and first in inputs
                and not open_.isdisjoint((*inputs[first], *one.step.behind))
            ):
                seen[i], is_new = Seen(one.step, "waiting"), True
                open_.update(one.step.made.outputs)
    return seen


def _see(step: Step, around: Surroundings, job: Job | None, over: Job | None) -> Seen:
    if job is not None:
        return Seen(step, "queued" if job.is_waiting else "running", job)
    if step.made.log in around.local.logs:
        return Seen(step, "running", note="on this host")
    outputs = [around.work_dir / path for path in step.made.outputs]
    mark = processes.mark(around.work_dir, step.made.outputs[0])
    log_at = processes.changed_at(around.work_dir / step.made.log)
    # Where the driver was killed before it noted the end of a step, the next one makes the step again.
    is_noted = mark is None or around.local.driver.state in ("here", "elsewhere")
    if is_noted and all(os.path.exists(path) for path in outputs):
        return Seen(step, "done")
    if mark is not None and (holder := _asked_by(step, around)):
        return Seen(step, "running", note=holder)
    if mark is not None and mark[1] and around.queue is None:
        has_begun = log_at is not None and log_at > mark[0]
        return Seen(step, "running" if has_begun else "queued", note=f"job {mark[1]}, as submitted")
    if mark is not None and not mark[1] and _is_made_elsewhere(step, around):
        return Seen(step, "running", note=f"on {around.local.driver.host}")
    return _not_under_way(step, around, over, log_at)


def _asked_by(step: Step, around: Surroundings) -> str | None:
    """Return who asks a cell right now, as its journals' leases say."""
    answers = [path for path in step.made.outputs if path.endswith("responses.jsonl")]
    if not answers:
        return None
    folder = around.work_dir / gaps.journal_of(Path(answers[0]))
    place = folder / "answers.lock"
    holder = leases.seen(place) if is_regular(place) else None
    return holder.name if holder and holder.is_alive else None


def _is_made_elsewhere(step: Step, around: Surroundings) -> bool:
    """Return whether a driver on another host runs a step itself, as far as the step's log tells."""
    age = leases.age_s(around.work_dir / step.made.log)
    return around.local.driver.state == "elsewhere" and age is not None and age < FRESH_S


def _not_under_way(step: Step, around: Surroundings, over: Job | None, log_at: float | None) -> Seen:
    """Decide between failed and waiting for a step that lacks files and that nobody makes."""
    said = endings.said_of(around.work_dir / step.made.log)
    event = around.events.get(step.made.log)
    kept = endings.job_log(around.work_dir / endings.SLURM_LOGS / f"rule_{step.made.rule}" / step.made.key[1])
    if event is not None and event.kind == "failed" and event.refused:  # older logs tell nothing of it
        if _is_newer(event.inputs, event.at, around.work_dir):
            return Seen(step, "waiting")
        return Seen(step, "failed", ending=endings.refused(event))
    if said == "continued":
        return Seen(step, "waiting", note="to be continued")
    if event is not None and event.kind == "again":
        return Seen(step, "waiting", note="tried again")
    last = max(log_at or 0.0, kept.at if kept else 0.0)
    if event is not None and event.kind == "finished" and last <= event.at + 2:
        return Seen(step, "waiting")  # it ended well and its files were removed
    # A job's log is written until after the step's own: an older one is of an earlier attempt.
    if kept is not None and log_at is not None and kept.at < log_at - 1:
        kept = None
    has_failed = event is not None and event.kind == "failed"
    if has_failed:
        is_bad, at = event.job_id != "" or said != "stopped", event.at
    else:  # nobody has noticed yet, or nobody is there who could
        is_bad = said == "error" or (kept is not None and not kept.is_cancelled and kept.why != "")
        is_bad = is_bad or (over is not None and over.state not in ("COMPLETED", "CANCELLED"))
        at = last
    if not is_bad or (event is not None and _is_newer(event.inputs, at, around.work_dir)):
        return Seen(step, "waiting", note="stopped" if said == "stopped" else "")
    job_id = event.job_id if has_failed else over.job_id if over else kept.job_id if kept else ""
    same = over if over is not None and over.job_id == job_id else None
    return Seen(step, "failed", ending=endings.described(step.made.log, around.work_dir, kept, same, job_id))


def _is_newer(inputs: tuple[str, ...], at: float, work_dir: Path) -> bool:
    """Return whether an attempt is out of date: an input is missing or was made after it."""
    times = [processes.changed_at(work_dir / path) for path in inputs]
    return any(time is None or time > at + 1 for time in times)
