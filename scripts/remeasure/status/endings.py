"""How the last attempt at a step ended, by its own log, its cluster job's log and the driver's log."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from remeasure.cluster.queue import Job
from remeasure.files import open_regular

_TAIL_BYTES = 16_384
# What failed jobs said stands in the driver's log too, so it can be long.
_DRIVER_BYTES = 8_000_000
_N_DRIVERS = 10
DRIVER_LOGS = Path(".snakemake/log")
SLURM_LOGS = Path(".snakemake/slurm_logs")

_STAMP = re.compile(r"\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]\Z")
_HEAD = re.compile(r"(?P<failed>Error in )?(?:local)?(?:rule|checkpoint) (?P<rule>\w+):\Z")
_DONE = re.compile(r"Finished jobid: (\d+) ")
_AGAIN = re.compile(r"Trying to restart job (\d+)\.")
_SENT = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+) ")
# What the executor says of a job that was not taken; the scheduler's words may be several lines.
_REFUSED = re.compile(r"    message: SLURM sbatch failed\. The error message was '")
_REFUSED_END = "For further error details see"
# What every nested Snakemake says at its end, whatever happened.
_ALWAYS = re.compile(
    r"\s|\[|=|Error in |Shutting down|Exiting because|Storing output|Elapsed time|WorkflowError:$"
    r"|RuleException:$|At least one job|Will exit after|srun: (cluster config|got SIG|forcing|Job step)"
    r"|SNAKEMAKE$|(Building|Using|Provided|Rules claiming|Select|Execute) |CalledProcessError in file"
    r"|(local)?rule "
)
_COMMAND = re.compile(r"Command '.*' (returned|died) ")
_NODE = re.compile(r"\bON (\S+) CANCELLED|srun: error: ([\w.-]+): task")

Kind = Literal["started", "failed", "again", "finished"]


class Event(NamedTuple):
    """The last thing that a driver's log says about a job."""

    rule: str
    kind: Kind
    at: float
    """Seconds since 1970, to the second."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    job_id: str
    """Number of the cluster job; empty for a local one."""
    refused: str = ""
    """Why the scheduler did not take the job, in its own words; empty where it did."""


class JobLog(NamedTuple):
    """What stands in the log that the cluster keeps of a job that did not end well."""

    path: Path
    job_id: str
    at: float
    why: str
    """In a few words."""
    is_cancelled: bool
    node: str


class Ending(NamedTuple):
    """How an attempt went wrong."""

    why: str
    job_id: str
    """Empty for a local step."""
    node: str
    """Empty where nothing tells."""
    log: str
    """The log that its lines are taken from."""
    lines: tuple[str, ...]
    """At most three."""


def tail(path: Path, n: int = 3) -> list[str]:
    """Return the last lines of a file that say anything, without control characters; empty where none do."""
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - _TAIL_BYTES))
            text = stream.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    # A bar that was drawn over itself is one line to a person.
    lines = [printable(line.rpartition("\r")[2]) for line in text.split("\n")]
    return [line for line in lines if line.strip()][-n:]


def printable(text: str) -> str:
    """Return a line that cannot move a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text).rstrip()


def said_of(path: Path) -> Literal["error", "continued", "stopped", "nothing"]:
    """Return how a step's own log ends.

    ``continued``: it came to an end before its work did, and the next attempt goes on. ``stopped``: by hand.
    """
    lines = tail(path, 60)
    last = lines[-1].strip() if lines else ""
    if "to be continued" in last:
        return "continued"
    if last.startswith("interrupted"):
        return "stopped"
    if last.startswith("error:"):
        return "error"
    # A defect of ours: the traceback's end is the log's end.
    begins = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    is_end = bool(begins) and not any(re.match(r"\d\d:\d\d:\d\d ", line) for line in lines[begins[-1] :])
    return "error" if is_end else "nothing"


def job_log(folder: Path) -> JobLog | None:
    """Return the newest log that the cluster kept of a step's jobs; null where none is there.

    Snakemake removes the logs of jobs that ended well, once it has noticed.

    Args:
        folder: that of the rule and its wildcards below ``.snakemake/slurm_logs``.
    """
    try:
        found = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(folder) if entry.is_file()]
    except OSError:
        return None
    if not found:
        return None
    at, path = max(found)
    text = "\n".join(tail(Path(path), 200))
    node = _NODE.search(text)
    why, is_cancelled = _why(text)
    return JobLog(Path(path), Path(path).stem, at, why, is_cancelled, (node[1] or node[2]) if node else "")


def described(log: str, work_dir: Path, kept: JobLog | None, job: Job | None, job_id: str) -> Ending:
    """Return how an attempt went wrong, with the lines that tell most.

    Args:
        log: the step's own log.
        work_dir: what it is relative to.
        kept: the log that the cluster kept of the attempt.
        job: what the queue still knows of it.
        job_id: its number; empty for a local step.
    """
    lines = tail(work_dir / log)
    why = kept.why if kept else ""
    if not why and job is not None:
        why = job.state.lower().replace("_", " ")
    if kept is not None and said_of(work_dir / log) != "error":
        told = [line for line in tail(kept.path, 200) if " error: *** " in line or "oom" in line.lower()]
        if told:
            lines = [*lines[-2:], told[-1]]
        elif not lines:
            log = os.path.relpath(kept.path, work_dir)
            told = [line for line in tail(kept.path, 200) if not _ALWAYS.match(line)]
            lines = [_COMMAND.sub(r"the command \1 ", line) for line in told] or tail(kept.path)
    node = (job.node if job else "") or (kept.node if kept else "")
    return Ending(why or "its command failed", job_id, node, log, tuple(lines[-3:]))


def _why(text: str) -> tuple[str, bool]:
    upper = text.upper()
    if "DUE TO TIME LIMIT" in upper:
        return "time limit", False
    if "NODE FAILURE" in upper:
        return "node failure", False
    if "DUE TO PREEMPTION" in upper:
        return "preempted", False
    if "EXCEEDED" in upper and "MEMORY" in upper or "OOM" in upper or "OUT OF MEMORY" in upper:
        return "out of memory", False
    if "CANCELLED AT" in upper:
        return "cancelled", True
    return ("its command failed" if "Error in " in text else ""), False


def events(work_dir: Path) -> dict[str, Event]:
    """Return the last event of every job by its log, as the newest drivers' logs have them.

    Args:
        work_dir: the workflow's working directory.
    """
    found: dict[str, Event] = {}
    for path in driver_logs(work_dir)[-_N_DRIVERS:]:
        for event in _events(_lines(path)):
            found[event.log] = event
    return found


def driver_logs(work_dir: Path) -> list[Path]:
    """Return the logs of all drivers that did anything, oldest first."""
    try:
        logs = [
            e for e in os.scandir(work_dir / DRIVER_LOGS) if e.name.endswith(".snakemake.log") and e.is_file()
        ]
        return [Path(e.path) for e in sorted(logs, key=lambda e: e.name) if e.stat().st_size > 200]
    except OSError:
        return []


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a driver's log without the logs that it shows of failed jobs."""
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - _DRIVER_BYTES))
            lines = stream.read(_DRIVER_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return
    fence, after = "", ""
    for line in lines:
        if fence:
            fence = "" if line == fence else fence
        elif after and len(line) > 8 and not line.strip("="):
            fence, after = line, ""
        else:
            after = line if line.startswith("Logfile ") else ""
            yield line


def _refusal(lines: list[str]) -> str:
    """Return the last sentence of the scheduler, from what the executor says of a job that was not taken."""
    end = lines.index("    sbatch call:") if "    sbatch call:" in lines else len(lines)
    said = [printable(line) for line in "\n".join(lines[:end]).removesuffix("'.").split("\n") if line.strip()]
    return said[-1].removeprefix("sbatch: error: ")[:300] if said else "it says nothing"


def refused(event: Event) -> Ending:
    """Return how a job ended that the scheduler did not take."""
    return Ending("refused by sbatch", "", "", event.log, (event.refused,))


def _events(lines: Iterator[str]) -> Iterator[Event]:
    """Yield what a driver's log says, in order; numbers of jobs hold within one log."""
    at, event, by_number, number = 0.0, None, {}, ""
    refusal: list[str] | None = None
    for line in lines:
        if event is not None and _REFUSED.match(line):
            refusal = []
            line = _REFUSED.sub("", line)
        if event is not None and refusal is not None and not _STAMP.match(line):
            refusal.append(line)
            if line.startswith(_REFUSED_END):
                event, refusal = event._replace(refused=_refusal(refusal)), None
            continue
        refusal = None
        if event is not None and line.startswith("    "):
            name, _, value = line.strip().partition(": ")
            if line[4:5] == " ":
                continue
            if name in ("input", "output"):
                paths = tuple(word.partition(" (")[0] for word in value.split(", "))
                event = event._replace(**{f"{name}s": paths})
            elif name == "log":
                event = event._replace(log=value.partition(" (check")[0].split(", ")[0])
            elif name == "jobid":
                number = value
            elif name == "external_jobid":
                event = event._replace(job_id=value)
            continue
        if event is not None:
            if event.log:
                by_number[number] = event
                yield event
            event = None
        if stamp := _STAMP.match(line):
            with contextlib.suppress(ValueError, OverflowError):  # there is no such time
                at = time.mktime(time.strptime(stamp[1], "%a %b %d %H:%M:%S %Y"))
        elif head := _HEAD.match(line):
            event = Event(head["rule"], "failed" if head["failed"] else "started", at, (), (), "", "")
        elif (later := _DONE.match(line) or _AGAIN.match(line)) and later[1] in by_number:
            kind = "finished" if line.startswith("Finished") else "again"
            yield by_number[later[1]]._replace(kind=kind, at=at)
        elif (sent := _SENT.match(line)) and sent[1] in by_number:
            by_number[sent[1]] = by_number[sent[1]]._replace(job_id=sent[2])
            yield by_number[sent[1]]
    if event is not None and event.log:
        yield event
