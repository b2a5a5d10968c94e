"""Copies of large files on the disk of this node, where the site has named one (``REMEASURE_SCRATCH``).

A copy is a help and never a need: where there is no room, no right or no such disk, one line says why, and
the file is read where it lies. A copy is found again by path, size and time of change: jobs that share the
folder share the copy. Whatever is recorded of a file names the original.
"""

import atexit
import contextlib
import fcntl
import hashlib
import logging
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from remeasure.errors import RemeasureError
from remeasure.files import sha256_file

log = logging.getLogger("remeasure.scratch")
VARIABLE = "REMEASURE_SCRATCH"
# More than the files' bytes: a disk that is full to the last block is of use to nobody.
_MARGIN = 1.05
# Found copies below this are hashed before they are read, bytes.
_HASHED_AGAIN = 10**9
_CHUNK = 16 * 2**20
_LOCK_POLL_S = 0.2
_NAMES = re.compile(r"(\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})")


class _InPlace(Exception):
    """Why there is no copy."""


class _Entry(NamedTuple):
    """A file that is copied: its place in the folder ("" for a file alone), size and time of change."""

    name: str
    size: int
    mtime_ns: int


def local_copy(path: Path, sha256: str | None = None, is_over: Callable[[], bool] = lambda: False) -> Path:
    """Return a copy of a file or folder on this node's own disk, or the path itself where there is none.

    Args:
        path: what is read; links in a folder are followed, and what they lead to is copied.
        sha256: hash of a file, where it is known; a copy with another one is thrown away. One that is found
            is hashed again below a gigabyte; a larger one is known by size and time of change alone.
        is_over: asked now and then while copying; true gives up.

    Edges:
        Without ``REMEASURE_SCRATCH`` nothing is said. No such file: the path, for whoever opens it will say
        so. It never raises for want of scratch.
    """
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        return path
    try:
        if not path.exists():
            return path
        return _copy_in(_prepared(folder), path, sha256, is_over)
    except _InPlace as reason:
        said = str(reason)
    except OSError as error:
        said = f"{error.filename or folder}: {error.strerror or error}"
    log.info("%s is read in place, no copy in %s: %s", path, folder, said)
    return path


def named_in(defaults: Mapping[str, Any] | None) -> str | int | None:
    """Return the word ``scratch`` of a profile's default-resources as it is written; null without one.

    Args:
        defaults: ``workflow.resource_settings.default_resources`` of Snakemake 9, which evaluates such words
            for single jobs only.
    """
    found = (defaults or {}).get("scratch")
    return getattr(found, "raw", None)


def export(value: str | int | None) -> str:
    """Return the words of a shell that hand a profile's ``scratch`` to a step, expanded on its node.

    Only ``$NAME`` and ``${NAME}`` are expanded. A variable that the node lacks stays as it is written, and is
    then told apart from an answer (``local_copy``); nothing is run.

    Raises:
        RemeasureError: the value has a line end or a zero byte.
    """
    text = "" if value is None else str(value).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    if not text:
        return ""
    if not {"\n", "\r", "\0"}.isdisjoint(text):
        raise RemeasureError(f"default-resources: scratch is {text!r}, expected the path of a folder")
    return f'export {VARIABLE}="{_quoted(text)}"; '


def _quoted(text: str) -> str:
    """Return text for double quotes of a shell in which nothing but variables is expanded."""
    said = ""
    for part in re.split(_NAMES, text):
        if named := re.fullmatch(_NAMES, part):
            name = named[0].strip("${}")
            said += f"${{{name}-\\${name}}}"
        else:
            said += re.sub(r'([\\"`$])', r"\\\1", part)
    return said


def _prepared(value: str) -> Path:
    """Return the scratch folder, made where it is missing."""
    folder = Path(value)
    if "$" in value:
        raise _InPlace("a variable in it is not set on this node")
    if not folder.is_absolute():
        raise _InPlace("it is no absolute path")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    job = os.environ.get("SLURM_JOB_ID")
    if is_new and job and job in folder.parts:
        # Made for this job alone, and by us: nobody else removes it.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _copy_in(folder: Path, path: Path, sha256: str | None, is_over: Callable[[], bool]) -> Path:
    """Return the copy, made or found."""
    # The name stays, also where it is a link to something of another name: programs go by its ending.
    source, name = path.resolve(), path.absolute().name
    entries = list(_entries(source))
    key = hashlib.sha256(repr((str(source), name, entries)).encode()).hexdigest()[:16]
    # A folder per user: a copy that somebody else has put there is none of ours.
    own = folder / f"remeasure-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        own.mkdir(mode=0o700)
    found = own.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise _InPlace(f"{own} is not our own folder")
    home = own / key
    with _locked(own / f"{key}.lock", is_over):
        size = sum(entry.size for entry in entries)
        if _is_whole(home / name, entries) and (
            sha256 is None or size >= _HASHED_AGAIN or sha256_file(home / name) == sha256
        ):
            log.info("%s: reading the copy in %s", path, home)
            return home / name
        for left_over in (home, own / f"{key}.part"):
            shutil.rmtree(left_over, ignore_errors=True)
        free = shutil.disk_usage(own).free
        if size * _MARGIN > free:
            raise _InPlace(f"{_amount(size)} and a margin are needed, {_amount(free)} are free")
        began = time.monotonic()
        _fill(own / f"{key}.part", name, source, entries, sha256, is_over)
        os.rename(own / f"{key}.part", home)
    log.info("%s: copied %s to %s in %.1f s", path, _amount(size), home, time.monotonic() - began)
    return home / name


def _amount(size: int) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


@contextlib.contextmanager
def _locked(path: Path, is_over: Callable[[], bool]) -> Iterator[None]:
    """Be the only one on this node who makes this copy; wait for another who does."""
    with open(path, "wb") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_over():
                    raise _InPlace("told to end") from None
                time.sleep(_LOCK_POLL_S)
        yield


def _entries(source: Path) -> Iterator[_Entry]:
    """Yield every file of a folder, in order of name, or the file itself.

    Raises:
        _InPlace: a link leads in a circle, or there is something that is no file.
    """
    if not source.is_dir():
        yield _entry("", source)
        return
    todo = [("", source, (source.resolve(),))]
    while todo:
        inner, folder, above = todo.pop()
        for child in sorted(folder.iterdir(), reverse=True):
            name = f"{inner}{child.name}"
            if child.is_dir():
                real = child.resolve()
                if real in above:
                    raise _InPlace(f"{child} is a link that leads in a circle")
                todo.append((f"{name}/", child, (*above, real)))
            else:
                yield _entry(name, child)


def _entry(name: str, path: Path) -> _Entry:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise _InPlace(f"{path} is no file")
    return _Entry(name, found.st_size, found.st_mtime_ns)


def _is_whole(copy: Path, entries: list[_Entry]) -> bool:
    """Return whether a copy still holds everything: programs that tidy up take single old files."""
    try:
        return sorted(_entries(copy)) == sorted(entries)
    except (OSError, _InPlace):
        return False


def _fill(
    home: Path,
    name: str,
    source: Path,
    entries: list[_Entry],
    sha256: str | None,
    is_over: Callable[[], bool],
) -> None:
    """Copy all files below ``home / name``; leave nothing where that fails."""
    try:
        for entry in entries:
            target = home / name / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            digest = _copy_file(source / entry.name, target, is_over, sha256 is not None)
            if _entry(entry.name, source / entry.name) != entry or target.stat().st_size != entry.size:
                raise _InPlace(f"{source / entry.name} was changed while it was copied")
            if sha256 is not None and digest != sha256:
                raise _InPlace(f"what was read of {source} does not have the hash that is known")
            os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise


def _copy_file(source: Path, target: Path, is_over: Callable[[], bool], hashing: bool) -> str:
    """Copy the bytes of a file; return their SHA-256 where it is wanted."""
    digest = hashlib.sha256()
    with open(source, "rb") as given, open(target, "wb") as taken:
        while chunk := given.read(_CHUNK):
            if is_over():
                raise _InPlace("told to end")
            if hashing:
                digest.update(chunk)
            taken.write(chunk)
        taken.flush()
        os.fsync(taken.fileno())
    return digest.hexdigest()
