"""One way to ask a program of the cluster: bounded in time and size, every failure a value or one line."""

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass

from remeasure.errors import RemeasureError

# A queue of 100,000 jobs is some 50 MB; what says more is not a queue.
_LIMIT_BYTES = 64_000_000
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
        program = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**surroundings, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise RemeasureError(
            f"{words[0]} cannot be started ({error.strerror}); run this on a login node of a SLURM cluster, "
            "with SLURM's programs on the PATH"
        ) from None
    late = threading.Timer(timeout_s, _kill, [program])
    late.start()
    try:
        complaints: list[bytes] = []
        reader = threading.Thread(
            target=lambda: complaints.append(_read(program.stderr, 100_000)), daemon=True
        )
        reader.start()
        with contextlib.suppress(BrokenPipeError):
            program.stdin.write(stdin.encode())
            program.stdin.close()
        said = _read(program.stdout, _LIMIT_BYTES)
        too_much = len(said) > _LIMIT_BYTES
        if too_much:
            _kill(program)
        status = program.wait()
        reader.join(timeout=1.0)
    finally:
        is_late = not late.is_alive()
        late.cancel()
        _kill(program)
    if too_much:
        raise RemeasureError(f"{words[0]}: says more than {_LIMIT_BYTES:,} bytes; run it by hand and look")
    if is_late and status == -signal.SIGKILL:
        raise RemeasureError(
            f"{words[0]} gave no answer within {timeout_s:g} s; the cluster's controller is away or "
            "busy: wait, or tell its administrators"
        )
    complaint = b"".join(complaints).decode(errors="replace")
    lines = [line for line in complaint.splitlines() if line.strip()]
    if len(lines) > 1 and lines[-1].rstrip().endswith("Unspecified error"):
        lines.pop()  # the line before it says what it is
    return Answer(status, said.decode(errors="replace"), last_line("\n".join(lines)))


def last_line(text: str, limit: int = 300) -> str:
    """Return the last line that says anything, without control characters, cut to ``limit`` characters."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = "".join(char if char.isprintable() else " " for char in lines[-1]) if lines else "it says nothing"
    return " ".join(found.split())[:limit]


def _read(stream, limit: int) -> bytes:
    """Read to the end; keep one byte more than ``limit`` at most."""
    kept, n_bytes = [], 0
    while chunk := stream.read1(65536):
        if n_bytes <= limit:
            kept.append(chunk[: limit + 1 - n_bytes])
            n_bytes += len(kept[-1])
        if n_bytes > limit:
            return b"".join(kept)
    return b"".join(kept)


def _kill(program: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if program.returncode is None:
            os.killpg(program.pid, signal.SIGKILL)
