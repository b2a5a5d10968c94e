"""Answer the driver's questions about its jobs from the queue, which knows them with and without accounting.

The driver's executor asks ``sacct --name RUN`` in each round, ``sacct -j ID`` about failed jobs, and the same
program for an account. Without accounting each of these fails, and one failed round makes it forget all
jobs; a cancelled job is told in words that it does not know; an outage of the controller is taken for the
end of everything. Source: snakemake-executor-plugin-slurm 2.8.0, ``check_active_jobs``.
"""

import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

# The executor gives a call 60 s.
_CALL_S = 50.0
_SQUEUE_S = 20.0
_PAUSE_S = 3.0
_LINE = re.compile(r"(\d+(?:_\d+)?)\|([A-Z_]+)")
# The scheduler may start such a job again by itself; it is told as failed when it is still so a round later.
_FOR_NOW = {
    "NODE_FAIL": "NODE_FAIL",
    "BOOT_FAIL": "BOOT_FAIL",
    "PREEMPTED": "CANCELLED",
    "REVOKED": "CANCELLED",
}
_GONE = "gone"


def main(folder: Path, words: list[str]) -> int:
    """Answer one call of the executor; any other goes to the real program where accounting works."""
    run = _option(words, "--name")
    if run:
        return _states(folder, run)
    job = _option(words, "-j")
    if job and re.fullmatch(r"\d+(_\d+)?(\.\d+)?", job, re.ASCII):
        return _about(folder, job, words)
    return _pass_on(folder, words)


def _option(words: list[str], name: str) -> str:
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if word == name:
            return following
        if word.startswith(name + "="):
            return word[len(name) + 1 :]
    return ""


def _states(folder: Path, run: str) -> int:
    """Print ``id|STATE`` for all jobs of a run, an outage of the controller waited out."""
    until = time.monotonic() + common.seconds(folder, "sacct_wait_s", _CALL_S)
    squeue = ["squeue", "--noheader", "--states=all", "--format=%i|%T", f"--name={run}"]
    # Read before the queue is: a job that is submitted in between is not missed then.
    waited = common.read(folder / "waited.json")
    while True:
        left = until - time.monotonic()
        status, said, complaint = common.call(squeue, folder, max(1.0, min(_SQUEUE_S, left)))
        if status == 0:
            break
        if time.monotonic() + _PAUSE_S > until or not common.pause(_PAUSE_S, folder):
            sys.stderr.write(complaint.decode(errors="replace"))
            return 1
    found = dict(_LINE.fullmatch(line.strip()).groups() for line in _lines(said))
    ids = waited.get("ids")
    ids = [str(job) for job in ids] if isinstance(ids, list) and waited.get("run") == run else []
    for job, state in settled(folder, ids, found).items():
        print(f"{job}|{state}")
    return 0


def _lines(said: bytes) -> list[str]:
    return [line for line in said.decode(errors="replace").splitlines() if _LINE.fullmatch(line.strip())]


def settled(folder: Path, ids: list[str], found: dict[str, str]) -> dict[str, str]:
    """Return the states to tell: passing ones are held back once, forgotten jobs are told as ended.

    Args:
        folder: where ``doubts.json`` is, what the last answer left open.
        ids: jobs that the driver waits for.
        found: state of each job that the queue knows.
    """
    before = common.read(folder / "doubts.json")
    doubts = {job: state for job, state in found.items() if state in _FOR_NOW}
    doubts |= {job: _GONE for job in ids if job not in found}
    told = {job: state for job, state in found.items() if state not in _FOR_NOW}
    held = [job for job, state in doubts.items() if before.get(job) != state]
    recorded = _recorded(folder, [job for job in doubts if doubts[job] == _GONE and job not in held])
    for job, state in doubts.items():
        if job in held:
            told |= {job: "PENDING"} if state != _GONE else {}
        else:
            told[job] = _FOR_NOW.get(state) or recorded.get(job, "UNKNOWN")
    common.write(folder / "doubts.json", doubts)
    return told


def _recorded(folder: Path, jobs: list[str]) -> dict[str, str]:
    """Return what the accounting, where it works, says about jobs that the queue has forgotten."""
    sacct = common.real("sacct", folder)
    if not jobs or not sacct or not common.read(folder / "settings.json").get("accounting"):
        return {}
    words = [sacct, "-X", "-n", "-P", "--format=JobIDRaw,State", "-j", ",".join(jobs[:500])]
    status, said, _ = common.call(words, folder, 8.0)
    pairs = (
        (line.strip().split("|") for line in said.decode(errors="replace").splitlines())
        if status == 0
        else ()
    )
    found = {pair[0]: pair[1].split(" ")[0] for pair in pairs if len(pair) == 2}  # "CANCELLED by 1000"
    return {job: _FOR_NOW.get(state, state) for job, state in found.items() if state}


def _about(folder: Path, job: str, words: list[str]) -> int:
    """Answer what the executor asks about one failed job: its node, or the reason of one of its steps."""
    job, _, step = job.partition(".")
    wants_node = any("nodelist" in word.lower() for word in words)
    if not wants_node and step not in ("", "0"):
        return 0
    field = "%N" if wants_node else "%r"
    words = ["squeue", "--noheader", "--states=all", f"--format={field}", f"--jobs={job}"]
    status, said, _ = common.call(words, folder, 10.0)
    first = said.decode(errors="replace").strip().splitlines()[:1] if status == 0 else []
    if first and first[0].strip() not in ("None", "N/A", "(null)"):
        print(first[0].strip()[:256])
    return 0


def _pass_on(folder: Path, words: list[str]) -> int:
    sacct = common.real("sacct", folder)
    if not sacct or not common.read(folder / "settings.json").get("accounting"):
        return 0
    status, said, complaint = common.call([sacct, *words], folder, _CALL_S)
    sys.stdout.write(said.decode(errors="replace"))
    sys.stderr.write(complaint.decode(errors="replace"))
    return 1 if status is None else status


if __name__ == "__main__":
    common.run(main)
