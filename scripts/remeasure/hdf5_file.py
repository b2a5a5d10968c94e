"""HDF5 files that are written whole or not at all, also where the disk is full."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remeasure.files import atomic_path

if TYPE_CHECKING:
    import h5py


class Sink:
    """A file that HDF5 writes to and that never tells it of a failure.

    HDF5 cannot give up a file whose last bytes do not fit: closing it fails again, and the process may end in
    a crash. So the first failure is kept here, nothing is written after it, and ``check`` raises it.

    Args:
        path: the file, which is there and empty.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, os.open(path, os.O_RDWR)
        self._place = 0
        self._failure: OSError | None = None

    def check(self) -> None:
        """Raise the first failure; nothing where there was none."""
        if self._failure is not None:
            raise OSError(self._failure.errno, self._failure.strerror, str(self._path))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    # What h5py calls; places and sizes are bytes.

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; return the place."""
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: os.fstat(self._file).st_size}
        self._place = begin[whence] + offset
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def read(self, n: int = -1) -> bytes:
        """Return bytes from the place; h5py asks whether this is there, and calls ``readinto``."""
        data = os.pread(self._file, n if n >= 0 else os.fstat(self._file).st_size, self._place)
        self._place += len(data)
        return data

    def readinto(self, buffer) -> int:
        """Fill a buffer; what was never written is zero."""
        view = memoryview(buffer).cast("B")
        data = os.pread(self._file, len(view), self._place)
        view[: len(data)] = data
        view[len(data) :] = bytes(len(view) - len(data))
        self._place += len(view)
        return len(view)

    def write(self, data) -> int:
        """Write all of some bytes."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while self._failure is None and done < len(view):
                done += os.pwrite(self._file, view[done:], self._place + done)
        except OSError as error:
            self._failure = error
        self._place += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Change the length."""
        size = self._place if size is None else size
        try:
            if self._failure is None:
                os.ftruncate(self._file, size)
        except OSError as error:
            self._failure = error
        return size

    def flush(self) -> None:
        """Do nothing: bytes are with the system already, and what renames the file puts them on the disk."""


@contextmanager
def writing(path: Path) -> Iterator[tuple["h5py.File", Sink]]:
    """Make an HDF5 file, whole or not at all.

    Args:
        path: the file.

    Yields:
        The open file, and what it is written to, for a ``check`` between blocks.

    Raises:
        OSError: it could not be written to its end.
    """
    import h5py

    with atomic_path(path) as temporary:
        sink = Sink(temporary)
        try:
            with h5py.File(sink, "w") as store:
                yield store, sink
            sink.check()
        except OSError as error:
            if error.filename == str(temporary):
                error.filename = str(path)
            raise
        finally:
            sink.close()
