"""What makes the driver, the Snakemake process that submits jobs, safe on a cluster. Called by ``onstart:``.

``onstart`` is the first place where the executor is known and the last before a job is submitted; Snakemake
calls it in the main process of a real run only, never in a job, a dry run or for ``--lint`` and ``--unlock``.
"""

import asyncio
import atexit
import contextlib
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from remeasure.cluster import commands, hazards, queue, site, standins, watchdog
from remeasure.errors import RemeasureError
from remeasure.leases import Lease, holder_of

FOLDER = Path(".snakemake/remeasure")
LEASE = "driver.lease"
# One call of the stand-in waits 50 s, so this many survive an outage of most of an hour.
_STATUS_ATTEMPTS = 60
# What the executor waits at most between two rounds of questions.
LONGEST_ROUND_S = 180
# How late an end may be noticed.
_NAP_S = 0.5
RUN_NAME = re.compile(r"([A-Za-z0-9_-]{1,50}_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def end_promptly() -> None:
    """Let an executor that is told to end do so at once, not after its pause between two rounds of questions.

    That pause is 40 s where there is nothing to submit, and up to 180 s after an interruption. It begins
    before ``onstart:``, so this is called when the workflow is read. Not public: a test shows that it works.
    """
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    async def sleep(executor) -> None:
        until = time.monotonic() + executor.next_seconds_between_status_checks
        while executor.wait and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _NAP_S))

    RemoteExecutor.sleep = sleep


def usual(defaults: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the words of a profile's default-resources that rules must not beat, as they are written.

    Args:
        defaults: ``workflow.resource_settings.default_resources``.
    """
    raw = {
        name: getattr((defaults or {}).get(name), "raw", None) for name in ("slurm_partition", "constraint")
    }
    return {name: value.strip("'\"") for name, value in raw.items() if isinstance(value, str) and value}


def note_on_killed() -> None:
    """Say what a driver left that was killed here: Snakemake itself will only speak of its lock."""
    lease = FOLDER / LEASE
    with contextlib.suppress(OSError, RemeasureError):
        if not lease.stat().st_size or holder_of(lease) is not None:
            return
        left = left_over(Path.cwd())
        print(
            "note: a driver was killed here. "
            + (f"{_about_left_over(left)}. " if left else "None of its jobs is left. ")
            + "Give its lock back with `snakemake --unlock`; scripts/submit.py does all of it",
            file=sys.stderr,
            flush=True,
        )


def attach(workflow) -> None:
    """Check what must hold, put the stand-ins before SLURM's programs, start the watchdog.

    Does nothing where jobs do not go to SLURM. Ends the process with 2 and one line where a hazard stands in
    the way; locks are given back.

    Args:
        workflow: Snakemake's, after the scheduler was made.
    """
    if not workflow.is_main_process or workflow.dryrun:
        return
    try:
        hazards.check_profiles(workflow, is_slurm(workflow))
        if is_slurm(workflow):
            _attach(workflow)
    except RemeasureError as error:
        _refuse(error)
    except OSError as error:
        _refuse(unwritable(error))


def _refuse(error: RemeasureError) -> NoReturn:
    with contextlib.suppress(OSError):
        print(f"error: {error}", file=sys.stderr, flush=True)
    sys.exit(2)


def unwritable(error: OSError) -> RemeasureError:
    """Return what is said where our files below ``.snakemake`` cannot be written or are in the way."""
    return RemeasureError(
        f"{error.filename or FOLDER}: cannot be written ({error.strerror}); make room, or delete {FOLDER}"
    )


def partitions_file(workflow) -> Path | None:
    """Return the site's file that the executor reads; null where jobs do not go to SLURM, or it has none."""
    if not is_slurm(workflow):
        return None
    named = getattr(workflow.executor_settings, "partition_config", None)
    named = named or os.environ.get("SNAKEMAKE_SLURM_PARTITIONS")
    return Path(named) if named else None


def preflight_options(workflow, resources) -> str:
    """Return what the profile says about the cluster as options of ``scripts/preflight.py``; "" for none.

    Args:
        workflow: Snakemake's, when its executor is known.
        resources: of a rule that names nothing of this itself: it has what the profile gives to every job.
    """
    if not is_slurm(workflow):
        return ""
    file = partitions_file(workflow)
    words = ["--cluster", *(["--partitions", str(file)] if file else [])]
    for name, option in (("slurm_account", "account"), ("qos", "qos"), ("constraint", "constraint")):
        if isinstance(resources.get(name), str):
            words.append(f"--sbatch=--{option}={resources.get(name)}")
    if isinstance(resources.get("scratch"), str):
        words.append(f"--scratch={resources.get('scratch')}")
    return shlex.join(words)


def is_slurm(workflow) -> bool:
    """Return whether jobs go to SLURM; known when the executor is."""
    return workflow.executor_plugin is not None and workflow.executor_plugin.name == "slurm"


def _attach(workflow) -> None:
    hazards.check_settings(workflow)
    jobs = [job for job in workflow.dag.needrun_jobs() if not job.is_local]
    if not jobs:
        return
    file = partitions_file(workflow)
    here = site.load(file) if file is not None else None
    if here is not None:
        hazards.check_needs(jobs, here, file)
    silent_s, away_s = watchdog.limits()
    run = _run_name(workflow)
    folder = FOLDER.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    _hold(folder / LEASE)
    for name in ("ended.json", "ending", "doubts.json", "waited.json", "submitted"):
        (folder / name).unlink(missing_ok=True)
    try:
        left = left_over(Path.cwd(), run)
    except RemeasureError as error:
        standins.write(folder / "ended.json", {"kind": "away", "said": str(error)})
        raise
    if left:
        raise RemeasureError(_about_left_over(left))
    if here is not None:
        hazards.check_refused(jobs, here)
    standins.write(folder / "settings.json", {"accounting": _has_accounting()})
    standins.install(folder)
    os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    # Whatever the profile says: only these two together survive an outage (and a site without accounting).
    workflow.executor_settings.status_command = "sacct"
    workflow.executor_settings.status_attempts = max(
        workflow.executor_settings.status_attempts or 0, _STATUS_ATTEMPTS
    )
    _hint_about_memory()
    catch_signals(folder)
    judge = watchdog.Judge(silent_s, away_s)
    dog = watchdog.Watchdog(run, folder, _Waited(workflow), judge)
    dog.start()
    atexit.register(dog.stop)
    print(
        f"cluster: jobs to submit: {len(jobs)} or more, as {run}; to cancel them all: scancel --name={run}",
        file=sys.stderr,
        flush=True,
    )


def left_over(work_dir: Path, run: str | None = None) -> list[queue.Job]:
    """Return jobs of other drivers in this working directory that still wait or run.

    Args:
        work_dir: the folder that holds ``.snakemake``.
        run: name of this driver's own jobs.

    Raises:
        RemeasureError: the queue cannot be asked.
    """
    here = os.path.realpath(work_dir)
    return [
        job
        for job in queue.jobs()
        if job.is_alive
        and job.run_name != run
        and job.rule
        and RUN_NAME.match(job.run_name)
        and os.path.realpath(job.work_dir) == here
    ]


def _about_left_over(left: list[queue.Job]) -> str:
    shown = ", ".join(f"{job.job_id} ({job.rule}, {job.state})" for job in left[:5])
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    runs = " ".join(f"scancel --name={run};" for run in sorted({job.run_name for job in left}))
    return (
        f"jobs of a driver that was killed still run in this folder: {shown}{more}; they would write the "
        f"same files: wait for them, or `{runs}` then the same command (scripts/submit.py does it itself)"
    )


def _hold(path: Path) -> None:
    """Hold this working directory as long as the process lives."""
    stack = ExitStack()
    try:
        stack.enter_context(Lease(path))
    except RemeasureError:
        raise in_use(path) from None
    atexit.register(stack.close)


def in_use(lease: Path, holder: str | None = None) -> RemeasureError:
    """Return what is said where somebody else holds a working directory."""
    who = holder or holder_of(lease) or "another process"
    return RemeasureError(
        f"{lease.parent.parent.parent}: {who} submits jobs from this folder right now; wait for it or stop it"
    )


# -- the cluster ---------------------------------------------------------------------------------------------


def _run_name(workflow) -> str:
    """Return the name that all jobs of this driver bear."""
    executor = getattr(workflow.scheduler, "_executor", None)
    run = getattr(executor, "run_uuid", None)
    if not isinstance(run, str) or not RUN_NAME.match(run):
        raise RemeasureError(
            "snakemake-executor-plugin-slurm: its run id was not found; another version than the pinned one "
            "is installed: run `make setup`"
        )
    return run


class _Waited:
    """How many submitted jobs the scheduler holds for running, and the ids that SLURM gave them."""

    def __init__(self, workflow) -> None:
        self._scheduler = workflow.scheduler
        self._ids: dict = {}

    def __call__(self) -> tuple[int, list[str]]:
        running = {job for job in self._scheduler.running.copy() if not job.is_local}
        # The executor's list is empty while it asks, so what was seen before counts until the job is done.
        for info in list(self._scheduler._executor.active_jobs):
            if info.external_jobid:
                self._ids[info.job] = info.external_jobid
        self._ids = {job: found for job, found in self._ids.items() if job in running}
        return len(running), sorted(self._ids.values())


def _has_accounting() -> bool:
    """Return whether the real sacct answers."""
    try:
        return commands.ask(["sacct", "-X", "-n", "-S", "now-1minutes", "-o", "JobID"], 10.0).status == 0
    except RemeasureError:
        return False


def min_job_age_s() -> int | None:
    """Return how long the queue remembers ended jobs, seconds; null where it does not say.

    Raises:
        RemeasureError: scontrol is missing or gives no answer.
    """
    found = re.search(
        r"^MinJobAge\s*=\s*(\d{1,9})\s*(\w*)", commands.ask(["scontrol", "show", "config"]).text, re.M
    )
    return int(found[1]) * (3600 if found[2].startswith("h") else 1) if found else None


def _hint_about_memory() -> None:
    try:
        age_s = min_job_age_s()
    except RemeasureError:
        return
    if age_s is not None and age_s < LONGEST_ROUND_S + 20:
        print(
            f"cluster: the queue forgets ended jobs after {age_s} s (MinJobAge); such a job counts as done "
            "when its files are there",
            file=sys.stderr,
            flush=True,
        )


def catch_signals(folder: Path) -> None:
    """Make an interruption work wherever the driver was started, and let the stand-ins know of it.

    A shell that starts a program in the background makes it deaf to SIGINT, and a closed terminal would kill
    the driver and leave its jobs.
    """

    def interrupted(*_) -> None:
        (folder / "ending").touch()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, interrupted)
