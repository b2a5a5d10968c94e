"""What would stop a plan later: said in one list before its first job, not after days of rendering."""

import sys
from collections.abc import Iterable
from typing import Any

from remeasure import encoders
from remeasure.plan import Plan

# Stages that run an encoder.
_ENCODING = ("embed", "embed_part", "train_adapter")


def unwritten(plan: Plan, run: str, names: Iterable[str]) -> list[str]:
    """Return a sentence for every encoder of a run that this version cannot run yet."""
    found = (encoders.unwritten(name, plan.encoder(run, name).backend) for name in names)
    return [problem for problem in found if problem]


def find(jobs: Iterable[Any], plan: Plan) -> list[str]:
    """Return what stands in the way of jobs, each once: sources to bring or to pin, missing backends.

    Args:
        jobs: Snakemake's jobs that are about to run.
        plan: all settings.
    """
    lacking = plan.catalogue.by_hand() | plan.catalogue.unpinned()
    sources, backends = [], []
    for job in jobs:
        sources += [lacking[path].problem() for path in map(str, job.output) if path in lacking]
        if job.rule.name in _ENCODING:
            backends += unwritten(plan, job.wildcards.run, [job.wildcards.encoder])
        elif job.rule.name == "search":
            arm = plan.study(job.wildcards.study).arms[job.wildcards.arm]
            encoder = plan.encoder_of(job.wildcards.run, job.wildcards.study, arm.retriever)
            backends += unwritten(plan, job.wildcards.run, [encoder])
    return list(dict.fromkeys([*sorted(sources), *sorted(backends)]))


def stop(workflow: Any, plan: Plan) -> None:
    """End a call whose plan cannot come to its end, with all that is missing in one list and exit code 2.

    Only the process that plans looks; those that it starts for single jobs do not.
    """
    if not workflow.is_main_process:
        return
    found = find(workflow.dag.needrun_jobs(), plan)
    if not found:
        return
    for number, problem in enumerate(found, start=1):
        print(f"{number:>3}. {problem}", file=sys.stderr)
    what = "1 thing" if len(found) == 1 else f"{len(found)} things"
    print(
        f"error: {what} must be there before this can run, named above; nothing was started", file=sys.stderr
    )
    raise SystemExit(2)
