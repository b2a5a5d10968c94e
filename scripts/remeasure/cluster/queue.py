"""What the scheduler's queue says about our jobs: one call of squeue, read into typed records.

A job's comment, name, reason and paths may hold any character, so the fields are separated by a word that is
drawn anew for each call. Source: squeue(1) of SLURM 22.05 to 25.05, ``--Format=type:[size]suffix``; a field
with a suffix and no size is printed whole (seen on 22.05).
"""

import os
import re
import secrets
from dataclasses import dataclass

from remeasure.cluster import commands
from remeasure.errors import RemeasureError

# Everything that is not among these is taken to be alive: waiting, running or on its way. NODE_FAIL and
# PREEMPTED stay in the queue as PENDING where the scheduler starts the job again.
OVER = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED TIMEOUT".split()
)
_FIELDS = (
    *("JobID", "Name", "UserName", "State", "NodeList", "Partition", "Comment", "WorkDir", "StdOut"),
    *("TimeUsed", "Reason", "tres-per-job", "tres-per-node", "SubmitTime"),
)
_COMMENT = re.compile(r"(rule|group)_(?P<rule>.*?)(?:_wildcards_(?P<wildcards>.*))?\Z", re.DOTALL)
# 62, 62_3; 62_[3-9%2] for tasks that wait.
_JOB_ID = re.compile(r"\d{1,20}(_[\d\[\],%-]+)?", re.ASCII)
_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)\Z")
# gres:gpu:h100:1 (22.05), gres/gpu:h100=1 and gres/gpu:h100:1 (later), gpu:2, gpu
_GPUS = re.compile(r"(?:\A|[,:/])gpu(?::(?P<model>[A-Za-z_][\w.-]*))?(?:[:=](?P<n>\d+))?(?:\(|,|\Z)")


@dataclass(frozen=True)
class Job:
    """One job in the queue, or one that ended no longer ago than the queue remembers (MinJobAge)."""

    job_id: str
    """Digits; with ``_<task>`` for a task of an array."""
    run_name: str
    """The job's name: Snakemake's run id, the same for all jobs of one driver."""
    user: str
    state: str
    """PENDING, RUNNING, COMPLETED, ... as SLURM spells it."""
    node: str
    """Empty before it starts."""
    partition: str
    rule: str
    """The rule's name; empty where the job is none of Snakemake's."""
    wildcards: str
    """Values joined by ``_``, slashes replaced by ``_``; empty where there are none."""
    work_dir: str
    log: str
    """File that takes what the job says, ``%j`` filled in; empty where it is not known."""
    elapsed_s: int
    reason: str
    """Why it waits or failed, as SLURM says it; empty for none."""
    n_gpus: int
    gpu_model: str
    """Empty where no model was asked for."""
    submitted: str
    """Local time of the cluster, 2026-01-31T23:59:59."""

    @property
    def is_alive(self) -> bool:
        """Return whether it still waits, runs or ends."""
        return self.state not in OVER

    @property
    def is_waiting(self) -> bool:
        """Return whether it has not started yet."""
        return self.state in ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")


def jobs(name: str | None = None, user: str | None = None, timeout_s: float = 30.0) -> list[Job]:
    """Return the jobs that the queue knows, finished ones included, in order of their ids.

    Args:
        name: only jobs of this name (Snakemake's run id).
        user: only jobs of this user, name or number; null: ours.
        timeout_s: how long the answer may take.

    Raises:
        RemeasureError: squeue is missing, does not answer, cannot reach the controller, or says something
            else than was asked for.
    """
    mark = f"_{secrets.token_hex(8)}_"
    end = f"_{secrets.token_hex(8)}_"
    fields = [f"{field}:{mark}" for field in _FIELDS[:-1]] + [f"{_FIELDS[-1]}:{end}"]
    words = ["squeue", "--noheader", "--states=all", f"--user={user or os.getuid()}"]
    words += [f"--name={name}"] if name is not None else []
    answer = commands.ask([*words, f"--Format={','.join(fields)}"], timeout_s)
    if answer.status != 0:
        raise RemeasureError(
            f"squeue cannot say what is queued ({answer.complaint}); wait until the cluster's controller "
            "answers: `scontrol ping`"
        )
    found = [_job(record, mark) for record in answer.text.split(end)[:-1]]
    if answer.text.split(end)[-1].strip():
        raise _garbled(answer.text.split(end)[-1])
    return sorted(found, key=lambda job: [int(part) for part in re.findall(r"\d{1,20}", job.job_id)][:2])


def _job(record: str, mark: str) -> Job:
    fields = record.lstrip("\n").split(mark)
    if len(fields) != len(_FIELDS) or not _JOB_ID.fullmatch(fields[0].strip()):
        raise _garbled(record)
    (
        job_id,
        name,
        user,
        state,
        node,
        partition,
        comment,
        work_dir,
        log,
        used,
        reason,
        per_job,
        per_node,
        at,
    ) = (field.strip() for field in fields)
    said = _COMMENT.match(comment)
    n_gpus, model = gpus(per_job) if "gpu" in per_job else gpus(per_node)
    return Job(
        job_id=job_id,
        run_name=name,
        user=user,
        state=state.split(" ")[0],
        node=_none(node),
        partition=partition,
        rule=said["rule"] if said else "",
        wildcards=(said["wildcards"] or "") if said else "",
        work_dir=work_dir,
        log=_none(log).replace("%j", job_id.split("_")[0]),
        elapsed_s=seconds(used),
        reason=_none(reason),
        n_gpus=n_gpus,
        gpu_model=model,
        submitted=at,
    )


def seconds(text: str) -> int:
    """Return SLURM's time ([days-][hours:]minutes:seconds) in seconds; 0 for anything else."""
    found = _TIME.match(text)
    if not found or len(text) > 30:
        return 0
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def gpus(text: str) -> tuple[int, str]:
    """Return how many GPUs of which model (empty: any) a list of generic resources names."""
    found = _GPUS.search(text)
    return (int((found["n"] or "1")[:6]), found["model"] or "") if found else (0, "")


def _none(text: str) -> str:
    return "" if text in ("N/A", "None", "(null)", "n/a") else text


def _garbled(text: str) -> RemeasureError:
    return RemeasureError(
        f"squeue: its answer is not what --Format asks for ({commands.last_line(text)!r}); look whether a "
        "wrapper of that name comes first on the PATH"
    )
