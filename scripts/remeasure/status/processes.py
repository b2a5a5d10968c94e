"""Who works in a directory right now, without the cluster: processes of this host, Snakemake's locks."""

import json
import os
import re
import socket
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Literal, NamedTuple

from remeasure import leases
from remeasure.cluster import driver
from remeasure.files import is_regular, open_regular
from remeasure.status import endings

# The shell command of a step ends in its log.
_LOG = re.compile(r"2> (\S+)")
_HOST = re.compile(r"^  Host: (\S+)$", re.MULTILINE)
# Words of calls that make nothing, and of those that a driver starts for single jobs.
_NO_DRIVER = frozenset("--mode -n --dry-run --dryrun --lint --summary -S --unlock --dag --rulegraph".split())
# Steps that take long say something every ten seconds.
FRESH_S = 30.0
# More than Snakemake ever writes.
_MARK_BYTES = 65_536


class Driver(NamedTuple):
    """The Snakemake that holds the lock of the working directory."""

    state: Literal["none", "here", "elsewhere", "gone"]
    """``gone``: it was killed on this host and left its lock."""
    host: str
    pid: int | None
    log: str
    """Its log, relative to the working directory; empty where there is none."""
    silent_s: float | None
    """For how long it has said nothing."""


class Local(NamedTuple):
    """What this host knows."""

    logs: frozenset[str]
    """Logs of the steps whose commands run here."""
    driver: Driver


def look(work_dir: Path) -> Local:
    """Return what runs in a working directory on this host, and who holds its lock."""
    logs: set[str] = set()
    pid = None
    for number, words in _processes(os.path.realpath(work_dir)):
        if _is_driver(words):
            pid = number if pid is None else min(pid, number)
        elif words[1:2] == ["-c"] and os.path.basename(words[0]) in ("bash", "sh"):
            logs.update(_LOG.findall(words[-1]))
    return Local(frozenset(logs), _driver(work_dir, pid))


def mark(work_dir: Path, output: str) -> tuple[float, str] | None:
    """Return when the job that makes a file was begun, and its number in the cluster; null: it was not.

    Source: ``persistence/file.py`` of Snakemake 9.27: a file below ``.snakemake/incomplete`` named by the
    output's path in base64, in pieces of 254 letters. A local job has no number: empty.
    """
    name = urlsafe_b64encode(output.encode()).decode()
    parts = [name[i : i + 254] for i in range(0, len(name), 254)]
    path = Path(work_dir, ".snakemake/incomplete", *(f"@{part}" for part in parts[:-1]), parts[-1])
    try:
        with open_regular(path) as stream:
            at = os.fstat(stream.fileno()).st_mtime
            said = json.loads(stream.read(_MARK_BYTES) or b"{}")
    except (OSError, ValueError, RecursionError):
        return None
    number = said.get("external_jobid") if isinstance(said, dict) else None
    return at, str(number or "")


def changed_at(path: Path) -> float | None:
    """Return when a file was written, seconds since 1970; null where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _processes(folder: str):
    """Yield number and words of our processes that work in a folder; none where the system does not tell."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for number in numbers:
        try:
            if os.readlink(f"/proc/{number}/cwd") == folder:
                with open(f"/proc/{number}/cmdline", "rb") as stream:
                    yield number, stream.read().decode("utf-8", "replace").split("\0")[:-1]
        except OSError:
            continue


def _is_driver(words: list[str]) -> bool:
    """Return whether a process plans: those that it starts for single jobs are told their mode."""
    program = [os.path.basename(word) for word in words[:3]]
    named = "snakemake" in program or "snakemake" in words[:3] or "__main__.py" in program
    return named and not _NO_DRIVER & set(words)


def _driver(work_dir: Path, pid: int | None) -> Driver:
    logs = endings.driver_logs(work_dir)
    log = logs[-1] if logs else None
    name = str(log.relative_to(work_dir)) if log else ""
    at = changed_at(log) if log else None
    silent_s = max(0.0, time.time() - at) if at is not None else None
    try:
        is_locked = any(os.scandir(work_dir / ".snakemake/locks"))
    except OSError:
        is_locked = False
    here = socket.gethostname()
    if pid is not None:  # with the lock, or on its way to it
        return Driver("here", here, pid, name, silent_s)
    if not is_locked:
        return Driver("none", "", None, name, silent_s)
    host = _host(log) if log else ""
    # The driver of a cluster holds a lease too: another host's is known to live by it.
    place = work_dir / driver.FOLDER / driver.LEASE
    lease = leases.seen(place) if is_regular(place) else None
    if lease is not None and lease.host == host:
        return Driver("elsewhere" if lease.is_alive else "gone", host, None, name, silent_s)
    is_here = host in ("", here) and os.path.isdir("/proc/self")
    return Driver("gone" if is_here else "elsewhere", host, None, name, silent_s)


def _host(log: Path) -> str:
    """Return the host that a driver's log names at its beginning."""
    try:
        with open_regular(log) as stream:
            found = _HOST.search(stream.read(4096).decode("utf-8", "replace"))
    except OSError:
        return ""
    return found[1] if found else ""
