"""One writer at a time, across processes and hosts."""

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
import time

import pytest

from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.leases import Lease, holder_of, seen


def test_a_lease_says_who_holds_it_and_is_empty_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    path = tmp_path / "answers.lock"
    with Lease(path, host="node7"):
        held = json.loads(path.read_text())
        assert (held["host"], held["pid"], held["job"]) == ("node7", str(os.getpid()), "4711")
        with pytest.raises(RemeasureError, match=f"process {os.getpid()} on host node7, job 4711 is asking"):
            Lease(path, host="node8").__enter__()
        assert holder_of(path) == f"process {os.getpid()} on host node7, job 4711"
    assert path.read_bytes() == b"" and holder_of(path) is None


def left_behind(path, host: str, pid: int) -> None:
    path.write_text(json.dumps({"host": host, "pid": str(pid), "token": "x"}))


def test_what_a_killed_process_of_this_host_left_is_free_at_once_even_if_its_number_lives_again(tmp_path):
    left_behind(tmp_path / "a.lock", "here", os.getpid())
    began = time.monotonic()
    with Lease(tmp_path / "a.lock", host="here"):
        assert time.monotonic() - began < 0.5


def test_what_another_host_left_is_free_when_nobody_touches_it(tmp_path):
    left_behind(tmp_path / "a.lock", "elsewhere", 1)
    began = time.monotonic()
    with Lease(tmp_path / "a.lock", host="here", stale_s=0.6):
        assert 0.4 < time.monotonic() - began < 3
    assert not list(tmp_path.glob("*.clock")) and not list(tmp_path.glob(".*"))


def test_an_old_lease_of_another_host_is_free_at_once(tmp_path):
    left_behind(tmp_path / "a.lock", "elsewhere", 1)
    os.utime(tmp_path / "a.lock", (time.time() - 3600,) * 2)
    began = time.monotonic()
    with Lease(tmp_path / "a.lock", host="here"):
        assert time.monotonic() - began < 0.5


def without_locks(monkeypatch) -> None:
    """Make this a file system that has no locks, or keeps them on each host apart."""

    def flock(file, flags):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def test_without_locks_a_living_holder_of_another_host_is_recognised_by_its_touch(tmp_path, monkeypatch):
    without_locks(monkeypatch)
    with Lease(tmp_path / "a.lock", host="node7", stale_s=1.0):
        with pytest.raises(RemeasureError, match="on host node7 is asking this cell"):
            Lease(tmp_path / "a.lock", host="node8", stale_s=1.0).__enter__()
    with Lease(tmp_path / "a.lock", host="node8", stale_s=1.0):
        pass


def test_without_locks_a_dead_process_of_this_host_holds_nothing(tmp_path, monkeypatch):
    without_locks(monkeypatch)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left_behind(tmp_path / "a.lock", "here", gone.pid)
    with Lease(tmp_path / "a.lock", host="here"):
        with pytest.raises(RemeasureError, match="is asking this cell"):
            Lease(tmp_path / "a.lock", host="here").__enter__()


def test_a_holder_that_stood_still_while_another_took_over_writes_no_more(tmp_path):
    with Lease(tmp_path / "a.lock", host="here", stale_s=0.4) as lease:
        lease.check()
        left_behind(tmp_path / "a.lock", "elsewhere", 1)
        time.sleep(0.3)
        with pytest.raises(RemeasureError, match="another process has taken this over"):
            lease.check()
    assert "elsewhere" in (tmp_path / "a.lock").read_text()


def test_a_killed_process_holds_nothing(tmp_path):
    code = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPTS)!r}); from remeasure.leases import Lease\n"
        f"with Lease({str(tmp_path / 'a.lock')!r}): print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    assert f"process {process.pid}" in holder_of(tmp_path / "a.lock")
    process.kill()
    process.wait()
    process.stdout.close()
    assert holder_of(tmp_path / "a.lock") is None
    with Lease(tmp_path / "a.lock"):
        pass


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[1]", b'{"host": {}}', b"x" * 10_000])
def test_a_lease_file_that_says_nothing_readable_is_free(tmp_path, content):
    (tmp_path / "a.lock").write_bytes(content)
    with Lease(tmp_path / "a.lock", stale_s=0.1):
        pass


@pytest.mark.parametrize("pid", ["9" * 4000, str(2**63), "³", "0", "-1"])
def test_what_is_no_number_of_a_process_holds_nothing(tmp_path, monkeypatch, pid):
    path = tmp_path / "a.lock"
    path.write_text(json.dumps({"host": socket.gethostname(), "pid": pid})[:4096])
    assert holder_of(path) is None
    os.utime(path, (time.time() - 3600,) * 2)
    assert seen(path).pid is None and not seen(path).is_alive
    without_locks(monkeypatch)
    with Lease(path, stale_s=0.4):
        pass


def test_a_lease_from_the_future_is_not_held_for_ever(tmp_path):
    path = tmp_path / "a.lock"
    left_behind(path, "elsewhere", 1)
    assert holder_of(path) == "process 1 on host elsewhere" and seen(path).is_alive
    os.utime(path, (time.time() + 1e6,) * 2)
    assert holder_of(path) is None and not seen(path).is_alive
    began = time.monotonic()
    with Lease(path, host="here"):
        assert time.monotonic() - began < 0.5


def test_a_link_in_a_lease_s_place_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("words")
    (tmp_path / "a.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic link"):
        Lease(tmp_path / "a.lock").__enter__()
    assert (tmp_path / "precious").read_text() == "words"
