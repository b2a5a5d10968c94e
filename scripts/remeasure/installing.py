"""Making a Python environment from a file of pins with hashes."""

import contextlib
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import uv

from remeasure import jsonl, model_server
from remeasure.environments import HAND, find_python, version_of
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes, sha256_file
from remeasure.leases import Lease
from remeasure.records import Record

log = logging.getLogger("remeasure.install")
_LIMIT_S = 3600.0
# Nothing is taken but what is pinned by hash, and nothing is built: a build runs code and needs tools.
_OPTIONS = ("--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-progress")


class Settings(Record, kw_only=True):
    """Settings of ``install_environment``."""

    lock: str
    """File of pins, from the repository's root."""
    sha256: str
    """Of its bytes."""
    python: str
    """Lowest version, such as ``3.12``."""


class Installed(Record, kw_only=True):
    """What is written into an environment when it is complete."""

    identity: str


def install(settings: Settings, root: Path, folder: Path) -> str:
    """Make the environment, or take the one that is there and complete.

    Args:
        settings: pins and version.
        root: the repository.
        folder: where it is made.

    Returns:
        Its interpreter's path.

    Raises:
        RemeasureError: no Python of the version, another file of pins, or a failed installation.
    """
    lock = root / settings.lock
    if not lock.is_file() or sha256_file(lock) != settings.sha256:
        raise RemeasureError(f"{lock}: is missing or was changed while the run was planned; rerun")
    folder.parent.mkdir(parents=True, exist_ok=True)
    python, note = folder / "bin" / "python", folder / "installed.json"
    identity = sha256_bytes(msgspec.json.encode(settings, order="sorted"))
    with Lease(folder.parent / f"{folder.name}.lock"):
        if _is_complete(note, python, identity):
            log.info("%s is complete already", folder)
            return str(python)
        base = find_python(settings.python)
        if base is None:
            raise RemeasureError(
                f"no Python {settings.python} or later was found; install one or name it in {HAND}, then "
                "rerun"
            )
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        _call([str(base), "-I", "-m", "venv", "--without-pip", str(folder)], "venv")
        # 12 seconds for 156 packages on two busy cores, where pip took about five minutes.
        words = [uv.find_uv_bin(), "pip", "install", "--python", str(python), *_OPTIONS]
        _call([*words, "--requirement", str(lock)], "uv pip install")
        jsonl.write_json(note, Installed(identity=identity))
    return str(python)


def _is_complete(note: Path, python: Path, identity: str) -> bool:
    try:
        told = jsonl.read_json(note, Installed)
    except RemeasureError:
        return False
    return told.identity == identity and version_of(python) is not None


def version_text(python: str) -> str:
    """Return the version of an interpreter, such as ``3.12``."""
    found = version_of(python)
    if found is None:
        raise RemeasureError(f"{python}: does not run; delete its folder and rerun")
    return f"{found[0]}.{found[1]}"


def _call(words: list[str], what: str) -> None:
    """Run a program; what it says goes to our log.

    Raises:
        RemeasureError: it fails; with the end of what it said.
    """
    log.info("%s", what)
    # Our packages must not be found by another Python.
    around = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        said = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT_S,
            env=around,
        )
    except subprocess.TimeoutExpired:
        raise RemeasureError(f"{what}: not done within {_LIMIT_S:g} s; rerun") from None
    except OSError as error:
        raise RemeasureError(f"{what}: {words[0]} cannot be run ({error.strerror})") from None
    sys.stderr.write(said.stdout.decode("utf-8", "replace"))
    if said.returncode:
        raise RemeasureError(f"{what} failed: {model_server.text_end(said.stdout)}; see the log, then rerun")
