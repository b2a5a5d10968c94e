"""Waiting for what other processes do, and telling whether they live."""

import contextlib
import time
from pathlib import Path


def alive(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it, ancestors first."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += sorted(child for child, parent in parents.items() if parent == one)
    return found


def wait_until(done, seconds: float = 20.0):
    deadline = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found
