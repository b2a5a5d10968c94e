"""Hand a job to the scheduler once, and once only, also while its controller is away.

A refused job is refused at once. Where the controller cannot be reached the same call is sent again, for up
to 15 minutes. A call whose answer was lost may have reached the controller: nothing is sent again before the
queue was searched for a job of that name and comment whose id was never handed out.
"""

import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

_WAIT_S = 900.0
_CALL_S = 120.0
# A request that the controller took up after our call was given up may need this long to become a job.
_SETTLE_S = 3.0
_AWAY = re.compile(
    "unable to contact slurm controller|controller not responding|socket timed out"
    "|zero bytes were transmitted"
    "|connection (refused|reset|timed out|aborted)|communications? (connection|shutdown|error|failure)"
    "|transport endpoint|broken pipe|in standby mode|temporarily un(able|available)|no route to host"
    "|network is unreachable|unable to establish|no answer within",
    re.IGNORECASE,
)
# The comment may hold anything but this.
_END = f"_{os.urandom(8).hex()}_"


def main(folder: Path, words: list[str]) -> int:
    """Submit; print what the real program prints."""
    sbatch = common.real("sbatch", folder)
    if sbatch is None:
        print("sbatch: not on the PATH; run this on a login node of a SLURM cluster", file=sys.stderr)
        return 127
    script = sys.stdin.buffer.read() if "/dev/stdin" in words else b""
    until = time.monotonic() + common.seconds(folder, "sbatch_wait_s", _WAIT_S)
    status, answer, complaint = _send([sbatch, *words], folder, script)
    pause_s = 1.0
    while status != 0:
        if not _AWAY.search(complaint) or time.monotonic() > until:
            sys.stderr.write(complaint)
            return status or 1
        pause_s = min(2 * pause_s, 20.0)
        if not common.pause(pause_s, folder):
            return 130
        found = _lost(folder, _option(words, "--job-name"), _option(words, "--comment"))
        if found:
            status, answer, complaint = 0, f"{found}\n", ""
        elif found is not None:
            status, answer, complaint = _send([sbatch, *words], folder, script)
    return _hand_out(folder, answer, complaint)


def _send(words: list[str], folder: Path, script: bytes) -> tuple[int | None, str, str]:
    status, said, complaint = common.call(words, folder, _CALL_S, script)
    return status, said.decode(errors="replace"), complaint.decode(errors="replace")


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words[:-1] else ""


def _lost(folder: Path, name: str, comment: str) -> str | None:
    """Return the id of a job that was submitted without our knowing, "" for none, null for no answer."""
    for is_last in (False, True):
        words = ["squeue", "--noheader", "--states=all", f"--name={name}", f"--format=%i %k{_END}"]
        status, said, _ = common.call(words, folder, 30.0)
        if status != 0:
            return None
        known = _known(folder)
        for record in said.decode(errors="replace").split(_END):
            job, _, found = record.lstrip("\n").partition(" ")
            if name and job.isdecimal() and found.strip() == comment.strip() and job not in known:
                return job
        if not is_last and not common.pause(_SETTLE_S, folder):
            return None
    return ""


def _known(folder: Path) -> set[str]:
    try:
        return set((folder / "submitted").read_text(encoding="utf-8").split())
    except OSError:
        return set()


def _hand_out(folder: Path, answer: str, complaint: str) -> int:
    """Give the driver its job, unless it has been told to end meanwhile: nobody would cancel that job."""
    job = answer.strip().split(";")[0]
    if not re.search(r"\d", answer, re.ASCII):
        said = "".join(char if char.isprintable() else " " for char in answer[-200:])
        print(
            f"sbatch: its answer ({' '.join(said.split())!r}) holds no job id; look whether a wrapper "
            "of that name comes first on the PATH",
            file=sys.stderr,
        )
        return 1
    with common.locked(folder / "submitted") as stream:
        stream.write(f"{job}\n")
    if common.is_ending(folder) and job.isdecimal():
        common.call(["scancel", job], folder, 30.0)
        return 130
    sys.stderr.write(complaint)
    sys.stdout.write(answer)
    return 0


if __name__ == "__main__":
    common.run(main)
