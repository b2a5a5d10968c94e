"""One way to run a program of the cluster, bounded in time and size whatever it and its children do."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import IO, NamedTuple

# A queue of 100,000 jobs is some 50 MB; what says more is not a queue.
LIMIT_BYTES = 64_000_000
_COMPLAINT_BYTES = 100_000


class Outcome(NamedTuple):
    """What became of a program."""

    status: int | None
    """Exit status; negative: ended by that signal; null: it was killed for what ``fault`` says."""
    said: bytes
    complaint: bytes
    """The beginning of what it said to standard error."""
    fault: str
    """``late``, ``too much``, or empty."""


def run(words: list[str], environment: Mapping[str, str], timeout_s: float, stdin: bytes = b"") -> Outcome:
    """Run a program in a session of its own, which is killed where it takes too long or says too much.

    Raises:
        OSError: it cannot be started.
    """
    program = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    until = time.monotonic() + timeout_s
    # None of the pipes is touched from here: a child that left the session may hold them for ever.
    said = _Reader(program.stdout, LIMIT_BYTES)
    complaint = _Reader(program.stderr, _COMPLAINT_BYTES, reads_on=True)
    threading.Thread(target=_feed, args=(program.stdin, stdin), daemon=True).start()
    status, fault = None, "late"
    try:
        said.join(max(0.0, timeout_s))
        if said.is_too_much:
            fault = "too much"
        elif not said.is_alive():
            with contextlib.suppress(subprocess.TimeoutExpired):
                status, fault = program.wait(max(0.01, until - time.monotonic())), ""
    finally:
        _kill(program)
    complaint.join(0.1 if fault else 1.0)
    return Outcome(status, said.kept(), complaint.kept(), fault)


class _Reader(threading.Thread):
    """Keeps what comes out of a pipe, ``limit`` bytes at most; then reads on, or closes it."""

    def __init__(self, stream: IO[bytes], limit: int, reads_on: bool = False) -> None:
        super().__init__(daemon=True)
        self._stream, self._limit, self._reads_on = stream, limit, reads_on
        self._chunks: list[bytes] = []
        self.is_too_much = False
        self.start()

    def run(self) -> None:
        n_bytes = 0
        with contextlib.suppress(OSError, ValueError), self._stream:
            while chunk := self._stream.read1(65_536):
                if n_bytes < self._limit:
                    self._chunks.append(chunk[: self._limit - n_bytes])
                n_bytes += len(chunk)
                self.is_too_much = n_bytes > self._limit
                if self.is_too_much and not self._reads_on:
                    return

    def kept(self) -> bytes:
        """Return what was read so far."""
        return b"".join(self._chunks)


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError), stream:
        stream.write(data)


def _kill(program: subprocess.Popen) -> None:
    """Kill a program that still runs with all of its session, and take its end in."""
    if program.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(5.0)
