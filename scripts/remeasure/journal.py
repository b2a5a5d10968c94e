"""The memory of a cell: every outcome, one line each, appended at once and never changed."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.records import JournalEntry, Status

# Of several outcomes of one key the highest rank counts, and of equal ones the last, files in order of name.
# A final outcome is never asked again; a failed one is.
_RANK: dict[Status, int] = {"not_sent": 0, "failed": 1, "refused": 2, "cut_off": 3, "answered": 4}
FINAL = ("answered", "cut_off", "refused")


class Journal:
    """Outcomes by key: reads all ``*.jsonl`` of its folder, appends to one of them.

    Only places and statuses are kept in memory; ``get`` reads the line. A context manager: entering takes the
    lock of its own file (the operating system gives it back when the process ends, however it ends), sets a
    torn last line aside into ``<name>.torn`` and reads what is there.

    Raises:
        RemeasureError: another process writes this file; a line that is not the last is damaged (file and
            line); the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str = "answers.jsonl") -> None:
        self._folder = Path(folder)
        self._own = self._folder / name
        self._place: dict[str, tuple[int, Path, int, int]] = {}
        self._decoder = msgspec.json.Decoder(JournalEntry)
        self._file = -1
        self._size = 0

    def __enter__(self) -> "Journal":
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._own, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise RemeasureError(
                f"{self._own}: cannot be written ({error.strerror}); answers must be kept there, "
                "make the folder writable"
            ) from None
        try:
            self._lock()
            self._set_torn_line_aside()
            for path in sorted(self._folder.glob("*.jsonl")):
                self._read(path)
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return len(self._place)

    def status(self, key: str) -> Status | None:
        """Return the status of a key's outcome; null where there is none."""
        found = self._place.get(key)
        return next(name for name, rank in _RANK.items() if rank == found[0]) if found else None

    def is_final(self, key: str) -> bool:
        """Return whether the key needs no asking any more."""
        return self.status(key) in FINAL

    def get(self, key: str) -> JournalEntry | None:
        """Return the outcome that counts for a key; null where there is none."""
        if key not in self._place:
            return None
        _, path, start, length = self._place[key]
        with open(path, "rb") as stream:
            stream.seek(start)
            return self._decoder.decode(stream.read(length))

    def append(self, entry: JournalEntry) -> None:
        """Write one outcome; when this returns, no crash of this process can lose it.

        Raises:
            RemeasureError: the line cannot be written whole (full disk); nothing before it is lost.
        """
        line = jsonl.encode(entry) + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise RemeasureError(
                f"{self._own}: answer of {entry.custom_id!r} cannot be kept ({error.strerror}); "
                "make room and rerun, all answers before it are kept"
            ) from None
        self._note(entry, self._own, self._size, len(line))
        self._size += len(line)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RemeasureError(
                f"{self._own}: another process is asking this cell right now; wait until it has finished "
                "or stop it, then rerun: no answer is lost"
            ) from None

    def _set_torn_line_aside(self) -> None:
        """Move what follows the last line end of the own file out of it; the request is asked again."""
        size = os.fstat(self._file).st_size
        tail, start = b"", size
        while start and b"\n" not in tail:
            step = min(start, 1 << 16)
            start -= step
            tail = os.pread(self._file, step, start) + tail
        torn = tail[tail.rfind(b"\n") + 1 :]
        if torn:
            with open(self._own.with_name(self._own.name + ".torn"), "ab") as aside:
                aside.write(torn + b"\n")
            os.ftruncate(self._file, size - len(torn))
        self._size = size - len(torn)

    def _read(self, path: Path) -> None:
        for number, start, line in _lines(path):
            try:
                entry = self._decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise RemeasureError(
                    f"{path} line {number}: damaged journal line ({error}); restore the file, or delete this "
                    "line if its request may be asked again"
                ) from None
            self._note(entry, path, start, len(line))

    def _note(self, entry: JournalEntry, path: Path, start: int, length: int) -> None:
        rank = _RANK[entry.status]
        if entry.key not in self._place or rank >= self._place[entry.key][0]:
            self._place[entry.key] = (rank, path, start, length)


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of each whole line; another file's torn end is passed over."""
    start = 0
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, start, line
            start += len(line)
