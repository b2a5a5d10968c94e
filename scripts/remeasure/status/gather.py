"""Put together what the report says: ask the queue, look at processes and files, decide."""

import os
import re
import shutil
import threading
from pathlib import Path

from remeasure.cluster import queue
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.status import counts, endings, processes, report, states, steps
from remeasure.status.rule_files import RuleFiles
from remeasure.wiring import Wiring
from remeasure.yaml_files import read_yaml

# A controller that is away lets squeue wait for minutes.
_QUEUE_S = 8.0
_RUN = re.compile(r"^    wildcards: run=([a-z0-9][a-z0-9_-]*)", re.MULTILINE)


class _Asking(threading.Thread):
    """Asks the queue while files are read."""

    def __init__(self, work_dir: Path) -> None:
        super().__init__(daemon=True)
        self._work_dir = work_dir
        self.jobs: list[queue.Job] | None = None
        self.complaint = ""
        self.has_cluster = shutil.which("squeue") is not None

    def run(self) -> None:
        if not self.has_cluster:
            return
        here = {os.path.abspath(self._work_dir), os.path.realpath(self._work_dir)}
        try:
            found = queue.jobs(timeout_s=_QUEUE_S)
        except RemeasureError as error:
            self.complaint = str(error)
            return
        self.jobs = [job for job in found if job.rule and job.work_dir in here]


def gather(project: Path, work_dir: Path, run: str | None = None, table: str | None = None) -> report.Status:
    """Return the state of a run.

    Args:
        project: the checkout whose settings and rules are meant.
        work_dir: working directory of the workflow.
        run: null: the run that was worked on last here.
        table: one table; null: all that the run makes.

    Raises:
        RemeasureError: no such run or table, or settings that are wrong.
    """
    asking = _Asking(work_dir)
    asking.start()
    plan = Plan(project / "config")
    why = ""
    if run is None:
        run, why = _latest(plan, project, work_dir)
    rules = RuleFiles(project / "rules", Wiring(plan), plan.index_stages(), plan.catalogue.makings())
    found = steps.steps(plan, rules, run, table)
    local = processes.look(work_dir)
    events = endings.events(work_dir)
    asking.join()
    around = states.Surroundings(work_dir, asking.jobs, local, events)
    seen = states.see(found, around)
    return report.Status(
        run=run,
        why_run=why,
        work_dir=os.path.abspath(work_dir),
        seen=seen,
        counts=counts.answers(seen, work_dir),
        others=[] if table else _others(around, seen, {*plan.runs()} - {run}),
        queue_says=asking.complaint,
        has_cluster=asking.has_cluster,
        driver=local.driver,
        last_lines=report.last_lines(seen, work_dir),
    )


def _latest(plan: Plan, project: Path, work_dir: Path) -> tuple[str, str]:
    """Return the run that the newest driver worked on, else the configured one; and why."""
    for log in reversed(endings.driver_logs(work_dir)):
        try:
            found = _RUN.findall(log.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if found and found[-1] in plan.runs():
            return found[-1], "worked on last; --run names another"
    return str(read_yaml(project / "config" / "config.yaml").get("run")), "configured; --run names another"


def _others(around: states.Surroundings, seen: list[states.Seen], runs: set[str]) -> list[report.Other]:
    """Return failed jobs behind no table whose files are still missing; other runs are left out."""
    known = {one.step.made.log for one in seen}
    found = []
    for event in around.events.values():
        is_missing = any(not os.path.exists(around.work_dir / path) for path in event.outputs)
        is_ours = Path(event.log).parts[1:2] != () and Path(event.log).parts[1] not in runs
        if event.kind == "failed" and event.log not in known and is_missing and is_ours:
            lines = endings.tail(around.work_dir / event.log)
            ending = endings.Ending("its command failed", event.job_id, "", event.log, tuple(lines))
            ending = endings.refused(event) if event.refused else ending
            found.append(report.Other(event.rule, ending))
    return found
