"""One way to ask a program of the cluster: bounded in time and size, every failure a value or one line."""

import os
from dataclasses import dataclass

from remeasure.cluster.standins import bounded
from remeasure.errors import RemeasureError

# Settings of a user's shell that change what the programs print.
_RESHAPING = ("SQUEUE_", "SINFO_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")


@dataclass(frozen=True)
class Answer:
    """What a program said: exit status, output, and the last line that it said about a failure."""

    status: int
    text: str
    complaint: str


def ask(words: list[str], timeout_s: float = 30.0, stdin: str = "") -> Answer:
    """Run a program of the cluster and return what it says.

    Args:
        words: program and arguments; no shell is involved.
        timeout_s: it is killed after this.
        stdin: what it is given to read.

    Raises:
        RemeasureError: there is no such program, it does not answer in time, or says too much.
    """
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith(_RESHAPING)}
    try:
        done = bounded.run(words, {**surroundings, "LC_ALL": "C"}, timeout_s, stdin.encode())
    except OSError as error:
        raise RemeasureError(
            f"{words[0]} cannot be started ({error.strerror}); run this on a login node of a SLURM cluster, "
            "with SLURM's programs on the PATH"
        ) from None
    if done.fault == "too much":
        raise RemeasureError(
            f"{words[0]}: says more than {bounded.LIMIT_BYTES:,} bytes; run it by hand and look"
        )
    if done.status is None:
        raise RemeasureError(
            f"{words[0]} gave no answer within {timeout_s:g} s; the cluster's controller is away or "
            "busy: wait, or tell its administrators"
        )
    complaint = done.complaint.decode(errors="replace")
    lines = [line for line in complaint.splitlines() if line.strip()]
    if len(lines) > 1 and lines[-1].rstrip().endswith("Unspecified error"):
        lines.pop()  # the line before it says what it is
    return Answer(done.status, done.said.decode(errors="replace"), last_line("\n".join(lines)))


def last_line(text: str, limit: int = 300) -> str:
    """Return the last line that says anything, without control characters, cut to ``limit`` characters."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = "".join(char if char.isprintable() else " " for char in lines[-1]) if lines else "it says nothing"
    return " ".join(found.split())[:limit]
