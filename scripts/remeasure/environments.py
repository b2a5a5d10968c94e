"""Python environments of their own for systems that cannot share the workflow's.

An environment is made by a step from a file of pins with hashes (``scripts/install_environment.py``); a
system whose Python is not there is left out of a run, which is said, and is an error where ``CI`` is set.
"""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from remeasure.errors import RemeasureError

HAND = "HAIKU_PYTHON"
"""Variable that names an interpreter to take."""


def version_of(python: Path | str) -> tuple[int, int] | None:
    """Return major and minor version of an interpreter; null where it does not run."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        said = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.fullmatch(r"(\d+) (\d+)\n?", said.stdout)
    return (int(found[1]), int(found[2])) if found and said.returncode == 0 else None


def _is_older(folder: str, wanted: tuple[int, ...]) -> bool:
    """Return whether the folder of an interpreter says by its name that it is too old."""
    found = re.match(r"(\d+)\.(\d+)", folder)
    return found is not None and (int(found[1]), int(found[2])) < wanted


@functools.cache
def find_python(lowest: str) -> Path | None:
    """Return an interpreter of at least a version; null where none is found.

    Looked at in this order: ``HAIKU_PYTHON``, ``python3.12``, ``python3.13`` and ``python3.14`` on the path,
    versions below ``$PYENV_ROOT`` or ``~/.pyenv``.

    Args:
        lowest: such as ``3.12``.

    Raises:
        RemeasureError: ``HAIKU_PYTHON`` is set and does not run, or is too old; nothing else is taken.
    """
    wanted = tuple(int(part) for part in lowest.split("."))
    named = os.environ.get(HAND)
    if named:
        found = version_of(named)
        if found is None or found < wanted:
            said = "does not run" if found is None else f"is Python {found[0]}.{found[1]}"
            raise RemeasureError(
                f"{HAND}={named}: {said}, expected an interpreter of Python {lowest} or later; correct or "
                "unset it"
            )
        return Path(named)
    names = [f"python3.{minor}" for minor in range(wanted[1], wanted[1] + 3)]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    # pyenv's own stand-ins take 0.1 s to say that they start nothing; what they could start is found below.
    searched = os.environ.get("PATH", os.defpath).split(os.pathsep)
    searched = os.pathsep.join(folder for folder in searched if Path(folder) != pyenv / "shims")
    candidates = [path for name in names if (path := shutil.which(name, path=searched))]
    candidates += [
        f"{folder}/bin/python3"
        for folder in sorted(map(str, pyenv.glob("versions/3.*")))
        if not _is_older(Path(folder).name, wanted)
    ]
    for path in candidates:
        found = version_of(path)
        if found is not None and found >= wanted:
            return Path(path)
    return None


def is_ci() -> bool:
    """Return whether nothing may be left out: the variable ``CI`` is set, as services for it do."""
    return os.environ.get("CI", "") not in ("", "0", "false")
