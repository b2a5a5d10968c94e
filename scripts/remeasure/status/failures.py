"""What the driver says at its end about jobs that failed: a few lines each, with the last of their logs."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from remeasure.cluster import queue
from remeasure.errors import RemeasureError
from remeasure.status import endings, report

_MOST = 20
_QUEUE_S = 5.0


def said_at_end(failed: Iterable[Any], started: float, is_cluster: bool) -> None:
    """Print all failed jobs to standard error; nothing where none failed.

    Snakemake shows whole logs when a job fails, hundreds of lines ago by now, and of a cluster job none at
    all where the step's own log is empty.

    Args:
        failed: Snakemake's jobs, groups of jobs included.
        started: when the driver was started, seconds since 1970.
        is_cluster: whether jobs were sent to a cluster.
    """
    jobs = [job for one in failed for job in getattr(one, "jobs", [one]) if job.rule.name != "preflight"]
    if not jobs:
        return
    known = _queue() if is_cluster else {}
    refused = _refused(started) if is_cluster else {}
    lines = ["", f"Failed jobs ({len(jobs)}):"]
    for job in sorted(jobs, key=lambda job: (job.rule.name, list(job.wildcards)))[:_MOST]:
        at = {name: value for name, value in job.wildcards.items() if name not in ("run", "model")}
        event = refused.get(str(job.log[0]) if job.log else "")
        ending = endings.refused(event) if event else _ending(job, started, known)
        lines += report.failure(" ".join([job.rule.name, "/".join(at.values())]).strip(), ending)
    if len(jobs) > _MOST:
        lines.append(f"  … and {len(jobs) - _MOST} more")
    lines.append("scripts/status.py says what else is missing.")
    print("\n".join(map(endings.printable, lines)), file=sys.stderr, flush=True)


def _ending(job: Any, started: float, known: dict[str, queue.Job]) -> endings.Ending:
    key = "_".join(job.wildcards).replace("/", "_")
    kept = endings.job_log(endings.SLURM_LOGS / f"rule_{job.rule.name}" / key)
    kept = kept if kept is not None and kept.at >= started - 1 else None
    job_id = kept.job_id if kept else ""
    log = str(job.log[0]) if job.log else ""
    return endings.described(log, Path(), kept, known.get(job_id), job_id)


def _refused(started: float) -> dict[str, endings.Event]:
    """Return the jobs that the scheduler did not take, by log, as the driver's own log has them."""
    return {
        log: event
        for log, event in endings.events(Path()).items()
        if event.refused and event.kind == "failed" and event.at >= started - 1
    }


def _queue() -> dict[str, queue.Job]:
    """Return what the queue remembers, by job; nothing where it cannot be asked: it only adds nodes."""
    try:
        return {job.job_id: job for job in queue.jobs(timeout_s=_QUEUE_S)}
    except RemeasureError:
        return {}
