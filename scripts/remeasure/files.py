"""Files that are either whole or absent: write beside the target, flush, rename."""

import contextlib
import errno
import glob
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from remeasure.errors import RemeasureError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; rename it onto ``target`` when the block succeeds.

    The temporary file is removed when the block raises, and is named so that no rule can mistake it for data.
    What a killed process left of an earlier try is removed first: a target has one writer at a time.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for left_over in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        left_over.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes files private; shared folders need the usual mode
        os.replace(temporary, target)
    except OSError as error:
        _name(error, target)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _name(error: OSError, path: Path) -> None:
    """Say which file there was no room for, where the error does not; others may be of what was read."""
    if error.filename is None and error.errno in _NO_ROOM:
        error.filename = str(path)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in errors of a full disk which file there was no room for, where they do not."""
    try:
        yield
    except OSError as error:
        _name(error, path)
        raise


class Named:
    """A stream whose errors of a full disk name its file.

    Args:
        stream: what is written to.
        path: what it is called.
    """

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path

    def write(self, data: bytes) -> int:
        """Write bytes."""
        try:
            return self._stream.write(data)
        except OSError as error:
            _name(error, self._path)
            raise


@contextlib.contextmanager
def atomic_open(target: Path, mode: str = "w") -> Iterator[IO]:
    """Open a file for writing ("w": UTF-8, Unix line ends; or "wb") that becomes ``target``."""
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with atomic_path(target) as temporary:
        with open(temporary, mode, **text) as stream:
            yield stream


def write_text(target: Path, text: str) -> None:
    """Write ``text`` as UTF-8 with Unix line ends, whole or not at all."""
    with atomic_open(target) as stream:
        stream.write(text)


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file for reading; a pipe or a device is never waited for.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    stream = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return stream


def is_regular(path: Path) -> bool:
    """Return whether a path leads to a regular file, which can be opened without waiting for anybody."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_tree(folder: Path) -> str:
    """Return the SHA-256 of a folder: of its sorted lines ``relative path, NUL, SHA-256, line feed``.

    A link counts as what it says and is not followed, so nothing outside the folder is read. Empty folders
    leave no trace.

    Args:
        folder: the folder; it may itself be a link.

    Raises:
        RemeasureError: something in it is a pipe, a device or the like.
        OSError: something in it cannot be read.
    """
    lines = []
    for here, folders, names in os.walk(folder, onerror=_raise):
        for name in [*names, *(name for name in folders if os.path.islink(os.path.join(here, name)))]:
            path = os.path.join(here, name)
            relative = os.fsencode(os.path.relpath(path, folder))
            if os.path.islink(path):
                digest = sha256_bytes(os.fsencode(os.readlink(path)))
            elif is_regular(Path(path)):
                digest = sha256_file(Path(path))
            else:
                raise RemeasureError(f"{path}: neither a file nor a folder nor a link; take it away")
            lines.append(relative + b"\0" + digest.encode() + b"\n")
    return sha256_bytes(b"".join(sorted(lines)))


def _raise(error: OSError) -> None:
    raise error


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of what stands at a path: a file's bytes, or a folder's ``sha256_tree``."""
    return sha256_tree(path) if os.path.isdir(path) else sha256_file(path)


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of ``data`` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
