"""Daemons that belong to one folder: started in the background, found again, stopped for certain."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_POLL_S = 0.1


def wait_for(done: Callable[[], bool], limit_s: float) -> bool:
    """Return whether something came true within a time."""
    deadline = time.monotonic() + limit_s
    while True:
        if done():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)


def asked(*words: str, limit_s: float = 10, **options) -> subprocess.CompletedProcess | None:
    """Run a command to its end and return what it said; null where it did not end in time."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=limit_s, **options)
    except subprocess.TimeoutExpired:
        return None


def answers(*words: str, limit_s: float = 10, **options) -> bool:
    """Return whether a command ends in time and with success."""
    done = asked(*words, limit_s=limit_s, **options)
    return done is not None and done.returncode == 0


class Daemons:
    """The daemons of one folder; what is running is remembered in files, not in this object."""

    def __init__(self, folder: Path) -> None:
        self._notes, self._logs = folder / "run", folder / "log"

    def start(self, name: str, *words: str, **options) -> None:
        """Start a program that stays in the foreground, detached from this process."""
        with open(self._logs / f"{name}.out", "ab") as output:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        (self._notes / f"{name}.pid").write_text(f"{process.pid} {_started(process.pid)}")

    def pid(self, name: str) -> int | None:
        """Return the process number of a daemon that runs; a number that was used again is not its own."""
        with contextlib.suppress(OSError, ValueError):
            pid, started = (self._notes / f"{name}.pid").read_text().split()
            if _started(int(pid)) == started:
                return int(pid)
        return None

    def names(self) -> list[str]:
        """Return the daemons that were started and not stopped."""
        return sorted(path.stem for path in self._notes.glob("*.pid"))

    def stop(self, names: Iterable[str], limit_s: float) -> None:
        """Ask daemons to end, kill those that do not."""
        names = list(names)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for name in names:
                _send(self.pid(name), number)
            if wait_for(lambda: not any(self.pid(name) for name in names), limit_s):
                break
        for name in names:
            (self._notes / f"{name}.pid").unlink(missing_ok=True)


def kill(pids: Iterable[int], limit_s: float = 5) -> list[int]:
    """Kill processes, wait until they are gone and return their numbers."""
    doomed = {pid: _started(pid) for pid in pids}
    for pid in doomed:
        _send(pid, signal.SIGKILL)
    wait_for(lambda: all(_started(pid) != started for pid, started in doomed.items()), limit_s)
    return sorted(doomed)


def of_jobs(cluster: str, jobs: set[int] | None = None) -> Iterator[int]:
    """Yield the processes whose environment says that they belong to jobs of a cluster, all or some."""
    mark = f"SLURM_CLUSTER_NAME={cluster}".encode()
    for pid in _pids():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            named = [int(word[13:]) for word in words if word.startswith(b"SLURM_JOB_ID=")]
            if mark in words and named and (jobs is None or named[-1] in jobs):
                yield pid


def of_steps(folder: Path) -> Iterator[int]:
    """Yield the step daemons that hold a file of a folder open: nothing else tells whose they are."""
    for pid in _pids():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() != "slurmstepd":
                continue
            held = {os.path.realpath(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
            if any(file.startswith(f"{folder}/") for file in held):
                yield pid


def command_of(pid: int) -> str:
    """Return the command line of a process; empty for one that is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _pids() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield int(entry.name)


def _started(pid: int) -> str | None:
    """Return when a process was started, in the kernel's ticks; null for one that is gone or has ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    return None


def _send(pid: int | None, number: int) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
