"""What both stand-ins share: the real program, its bounded call, small files beside the launchers."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

if __package__:
    from remeasure.cluster.standins import bounded
else:  # started by a launcher, without the package
    import bounded

# Settings of a user's shell that would change what squeue prints or which jobs it shows.
_RESHAPING = ("SQUEUE_", "SLURM_TIME_FORMAT")


def surroundings(folder: Path) -> dict[str, str]:
    """Return the environment without the stand-ins: neither the real programs nor jobs shall see them."""
    here = os.path.realpath(folder / "bin")
    path = [
        part
        for part in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.realpath(part) != here
    ]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_RESHAPING)}
    return {**kept, "PATH": os.pathsep.join(path)}


def real(name: str, folder: Path) -> str | None:
    """Return the path of the real program, null where there is none."""
    return shutil.which(name, path=surroundings(folder)["PATH"])


def call(
    words: list[str], folder: Path, timeout_s: float, stdin: bytes = b""
) -> tuple[int | None, bytes, bytes]:
    """Run a program; return its status (null: killed, or not there), output and complaints."""
    try:
        done = bounded.run(words, surroundings(folder), timeout_s, stdin)
    except OSError as error:
        return None, b"", f"{words[0]}: {error.strerror}\n".encode()
    if done.status is not None:
        return done.status, done.said, done.complaint
    why = f"no answer within {timeout_s:g} s" if done.fault == "late" else "says too much"
    return None, b"", done.complaint + f"{words[0]}: {why}\n".encode()


def read(path: Path) -> dict:
    """Return what a small file beside the launchers says; empty where it says nothing readable."""
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read(10_000_000))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def seconds(folder: Path, name: str, usual: float) -> float:
    """Return a time that ``settings.json`` may give, seconds."""
    found = read(folder / "settings.json").get(name)
    return float(found) if isinstance(found, int | float) and 0 <= found < 1e6 else usual


def write(path: Path, value: dict) -> None:
    """Replace a small file at once."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value), encoding="utf-8")
    os.replace(new, path)


@contextlib.contextmanager
def locked(path: Path):
    """Hold a file alone; yields the stream. Without locks on this file system it is held all the same."""
    with open(path, "a+", encoding="utf-8") as stream:
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream


def is_ending(folder: Path) -> bool:
    """Return whether the driver has been told to end: then nothing is waited for any more."""
    return (folder / "ending").exists()


def pause(seconds: float, folder: Path) -> bool:
    """Wait; return whether to go on, false as soon as the driver ends."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_ending(folder):
            return False
        time.sleep(min(0.5, max(0.0, until - time.monotonic())))
    return not is_ending(folder)


def run(main) -> None:
    """Start a stand-in: ``main(folder, words)`` returns its exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = main(Path(sys.argv[1]), sys.argv[2:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 1
    os._exit(status)
