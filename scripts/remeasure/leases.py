"""One writer at a time, across processes and across the hosts of a shared file system.

A lease is a file that its holder keeps locked (``flock``) and in which it says who it is: host, process, job
of the cluster system. The lock alone decides where it can: the kernel gives it back however a process ends.
Some shared file systems keep locks on each host apart, or have none; there the lease's age decides: its
holder touches it every ten seconds, and a lease of another host that was not touched for a minute is free.
"""

import contextlib
import errno
import fcntl
import json
import logging
import os
import re
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import NamedTuple

from remeasure.errors import RemeasureError

log = logging.getLogger("remeasure.leases")
_BEAT_S = 10.0
_STALE_S = 60.0
_RACE_S = 1.0
# What a file system without locks says.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class Lease:
    """The right to write what a lease file stands for. A context manager.

    Args:
        path: the lease file; it stays there, empty, when the lease is given back.
        host: name of this host.
        stale_s: after how long without a touch a lease of another host is free, seconds.

    Raises:
        RemeasureError: somebody else holds it; says who.
    """

    def __init__(self, path: Path, host: str | None = None, stale_s: float = _STALE_S) -> None:
        self.path = Path(path)
        self._host = host or socket.gethostname()
        self._stale_s = stale_s
        self._token = secrets.token_hex(8)
        self._ended = threading.Event()
        self._is_lost = False

    def __enter__(self) -> "Lease":
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            is_locked = self._lock()
            holder = _read(self._file)
            if holder and not self._is_free(holder, is_locked):
                raise _busy(self.path, holder)
            self._write()
            if not is_locked:
                self._check_race()
        except BaseException:
            os.close(self._file)
            raise
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._beating.join()
        if not self._is_lost:
            os.ftruncate(self._file, 0)
        os.close(self._file)

    def check(self) -> None:
        """Raise where somebody else has taken the lease over, for this process stood still too long."""
        if self._is_lost:
            raise RemeasureError(
                f"{self.path}: another process has taken this over because this one stood still for more "
                f"than {self._stale_s:g} s; nothing was lost: let the other finish"
            )

    def _lock(self) -> bool:
        """Take the lock; return whether the file system has locks."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            raise _busy(self.path, _read(self._file)) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            log.warning("%s: no locks on this file system (%s); leases decide", self.path, error.strerror)
            return False

    def _is_free(self, holder: dict[str, str], is_locked: bool) -> bool:
        """Return whether the holder that the file names is gone, though the lock was to be had."""
        if holder.get("host") == self._host:
            pid = _pid(holder)
            return is_locked or pid is None or not _is_alive(pid)
        log.info("%s: left by %s; waiting whether it is still alive", self.path, _name(holder))
        touched, began = self.path.stat().st_mtime_ns, time.monotonic()
        # A clock may have jumped: as long as it takes on our own is enough.
        while abs(_age_s(self.path)) < self._stale_s and time.monotonic() - began < self._stale_s:
            time.sleep(min(1.0, self._stale_s / 4))
            # Opened anew: a shared file system may show an old time otherwise.
            with open(self.path, "rb") as stream:
                if os.fstat(stream.fileno()).st_mtime_ns != touched:
                    return False
        return True

    def _write(self) -> None:
        mine = {"host": self._host, "pid": str(os.getpid()), "token": self._token}
        if job := os.environ.get("SLURM_JOB_ID"):
            mine["job"] = job
        data = json.dumps(mine).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, data, 0)

    def _check_race(self) -> None:
        """Without locks two may have found the lease free at once: the last who wrote has it."""
        time.sleep(_RACE_S)
        with open(self.path, "rb") as stream:
            holder = _read(stream.fileno())
        if holder.get("token") != self._token:
            raise _busy(self.path, holder)
        os.utime(self._file)

    def _beat(self) -> None:
        while not self._ended.wait(min(_BEAT_S, self._stale_s / 4)):
            if _read(self._file).get("token") != self._token:
                self._is_lost = True
                return
            with contextlib.suppress(OSError):  # a server that is away for a moment
                os.utime(self._file)


def holder_of(path: Path) -> str | None:
    """Return who holds a lease right now, null where nobody does; takes nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"somebody whose lease cannot be read ({path.name}: {error.strerror})"
    try:
        holder = _read(file)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _name(holder)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        foreign = bool(holder) and holder.get("host") != socket.gethostname()
        return _name(holder) if foreign and abs(_age_s(path)) < _STALE_S else None
    finally:
        os.close(file)


class Sight(NamedTuple):
    """What a lease says about its last holder."""

    name: str
    """Process, host and job."""
    host: str
    pid: int | None
    is_alive: bool
    """Whether it still holds it, as far as looking tells."""


def seen(path: Path) -> Sight | None:
    """Return who holds a lease, or was killed while holding it; null where nobody is named.

    Nothing is locked or written, unlike with ``holder_of``, so that looking cannot get in a holder's way: of
    another host's holder only the lease's age tells, by this host's clock.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        holder = _read(file)
    finally:
        os.close(file)
    if not holder:
        return None
    host = holder.get("host", "")
    pid = _pid(holder)
    if host == socket.gethostname() and pid is not None:
        return Sight(_name(holder), host, pid, _is_alive(pid))
    age = age_s(path)
    return Sight(_name(holder), host, pid, age is not None and abs(age) < _STALE_S)


def age_s(path: Path) -> float | None:
    """Return how long ago a file was touched by this host's clock, seconds; null where it is not there."""
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return None


def _read(file: int) -> dict[str, str]:
    """Return what a lease says; empty where it says nothing readable."""
    try:
        found = json.loads(os.pread(file, 4096, 0) or b"{}")
    except (ValueError, OSError, RecursionError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _age_s(path: Path) -> float:
    """Return how long ago a file was touched by the file system's own clock, seconds."""
    probe = path.with_name(f".{path.name}.{secrets.token_hex(4)}.clock")
    try:
        probe.touch()
        return probe.stat().st_mtime - path.stat().st_mtime
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _pid(holder: dict[str, str]) -> int | None:
    """Return the number of a process; null where what stands there is none."""
    said = holder.get("pid", "")
    return int(said) if re.fullmatch(r"[1-9]\d{0,8}", said, re.ASCII) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _name(holder: dict[str, str]) -> str:
    job = f", job {holder['job']}" if "job" in holder else ""
    return f"process {holder.get('pid', '?')} on host {holder.get('host', '?')}{job}"


def _busy(path: Path, holder: dict[str, str]) -> RemeasureError:
    return RemeasureError(
        f"{path.parent}: {_name(holder)} is asking this cell right now; wait until it has finished or stop "
        "it, then rerun: no answer is lost"
    )
