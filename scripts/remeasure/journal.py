"""The memory of a cell: every outcome, one line each, appended at once and never changed."""

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.leases import Lease, holder_of
from remeasure.records import JournalEntry, Status

# Of several outcomes of one key the highest rank counts, and of equal ones the last, files in order of name.
# A final outcome is never asked again; a failed one is.
_RANK: dict[Status, int] = {"not_sent": 0, "failed": 1, "refused": 2, "cut_off": 3, "answered": 4}
FINAL = ("answered", "cut_off", "refused")
SHARD = re.compile(r"[1-9]\d*of[1-9]\d*")
_DECODER = msgspec.json.Decoder(JournalEntry)
T = TypeVar("T")


class Journal:
    """Outcomes by key: reads all ``*.jsonl`` of its folder, appends to one of them.

    Only places and statuses are kept in memory; ``get`` reads the line. A context manager: entering takes the
    lease of its own file (``leases``), sets a torn last line aside into ``<name>.jsonl.torn`` and reads all.
    Every sending is noted before it happens in ``<name>.sent``, so that an outcome can say how often its
    request was sent, also by runs that were killed before the reply came.

    Args:
        folder: all journals of one cell.
        name: this one: ``answers``, or ``3of8`` for a shard. Shards of one number may be written side by
            side, anything else of a cell may not.

    Raises:
        RemeasureError: another process asks this cell; a line that is not the last is damaged (file and
            line); the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str = "answers") -> None:
        self._folder = Path(folder)
        self._name = name
        self._own = self._folder / f"{name}.jsonl"
        self._place: dict[str, tuple[Status, Path, int, int]] = {}
        self._n_sent: dict[str, int] = {}
        self._reading: dict[Path, int] = {}
        self._size = 0
        self._is_dirty = False
        self._ended = threading.Event()

    def __enter__(self) -> "Journal":
        with contextlib.ExitStack() as stack:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._lease = stack.enter_context(Lease(self._folder / f"{self._name}.lock"))
                self._file = self._open(self._own, stack)
                self._sent_file = self._open(self._own.with_suffix(".sent"), stack)
            except OSError as error:
                raise RemeasureError(
                    f"{self._folder}: cannot be written ({error.strerror}); answers must be kept there, "
                    "make the folder writable"
                ) from None
            self._check_others()
            self._set_torn_line_aside()
            for path in sorted(self._folder.glob("*.jsonl")):
                self._read(path, stack)
            for path in sorted(self._folder.glob("*.sent")):
                self._read_sent(path)
            syncing = threading.Thread(target=self._sync_often, daemon=True)
            syncing.start()
            stack.callback(syncing.join)
            stack.callback(self._ended.set)
            self._close = stack.pop_all().close
        return self

    def __exit__(self, *_) -> None:
        self._close()

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, key: str) -> bool:
        return key in self._place

    def status(self, key: str) -> Status | None:
        """Return the status of a key's outcome; null where there is none."""
        found = self._place.get(key)
        return found[0] if found else None

    def is_final(self, key: str) -> bool:
        """Return whether the key needs no asking any more."""
        return self.status(key) in FINAL

    def get(self, key: str) -> JournalEntry | None:
        """Return the outcome that counts for a key; null where there is none."""
        if key not in self._place:
            return None
        _, path, start, length = self._place[key]
        return entry_at(self._reading[path], start, length)

    def note_sent(self, key: str) -> None:
        """Note that a request is sent now.

        Raises:
            RemeasureError: it cannot be noted (full disk): its answer could not be kept either.
        """
        try:
            os.write(self._sent_file, key.encode() + b"\n")
        except OSError as error:
            raise RemeasureError(
                f"{self._own.with_suffix('.sent')}: cannot be written ({error.strerror}); make room and "
                "rerun, all answers before it are kept"
            ) from None
        self._n_sent[key] = self._n_sent.get(key, 0) + 1

    def append(self, entry: JournalEntry) -> None:
        """Write one outcome; no end of this process can lose it then, and a second later none of the machine.

        Raises:
            RemeasureError: the line cannot be written whole (full disk), or another process has taken over;
                nothing before it is lost.
        """
        self._lease.check()
        n_sent = self._n_sent.pop(entry.key, 0)
        if n_sent > entry.attempts:
            entry = msgspec.structs.replace(entry, attempts=n_sent)
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
        self._is_dirty = True
        self._note(entry, self._own, self._size, len(line))
        self._size += len(line)

    @staticmethod
    def _open(path: Path, stack: contextlib.ExitStack) -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        stack.callback(os.close, file)
        return file

    def _check_others(self) -> None:
        """Raise where the cell is asked in another division right now: both would ask the same."""
        group = _group(self._name)
        for path in sorted(self._folder.glob("*.lock")):
            if _group(path.stem) != group and (holder := holder_of(path)):
                raise RemeasureError(
                    f"{self._folder}: {holder} is asking this cell right now, as {path.stem}; wait until it "
                    "has finished or stop it, then rerun: no answer is lost"
                )

    def _sync_often(self) -> None:
        """Bring what was written to the disk once a second; for each line it would cost too much."""
        while not self._ended.wait(1.0):
            self._sync()
        self._sync()

    def _sync(self) -> None:
        if self._is_dirty:
            self._is_dirty = False
            os.fdatasync(self._file)

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

    def _read(self, path: Path, stack: contextlib.ExitStack) -> None:
        for start, length, entry in entries(path):
            self._note(entry, path, start, length)
        self._reading[path] = os.open(path, os.O_RDONLY)
        stack.callback(os.close, self._reading[path])

    def _read_sent(self, path: Path) -> None:
        """Count the sendings of requests that have no final outcome."""
        try:
            with open(path, "rb") as stream:
                for line in stream:
                    key = line[:-1].decode("ascii", "replace")
                    if line.endswith(b"\n") and not self.is_final(key):
                        self._n_sent[key] = self._n_sent.get(key, 0) + 1
        except OSError as error:
            raise jsonl.unreadable(path, error) from None

    def _note(self, entry: JournalEntry, path: Path, start: int, length: int) -> None:
        if entry.key not in self._place or counts_over(entry.status, self._place[entry.key][0]):
            self._place[entry.key] = (entry.status, path, start, length)


def counts_over(later: Status, earlier: Status) -> bool:
    """Return whether the later of two outcomes of one key is the one that counts."""
    return _RANK[later] >= _RANK[earlier]


def entries(path: Path, kind: type[T] = JournalEntry) -> Iterator[tuple[int, int, T]]:
    """Yield offset, length and content of each whole line of a journal; a torn end is passed over.

    Args:
        path: the journal; it is neither locked nor repaired.
        kind: what is read of a line.

    Raises:
        RemeasureError: the file cannot be read, or a line is damaged; names file and line.
    """
    start, decoder = 0, msgspec.json.Decoder(kind)
    try:
        stream = open_regular(path)
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    with stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise RemeasureError(
                    f"{path} line {number}: damaged journal line ({error}); restore the file, or delete this "
                    "line if its request may be asked again"
                ) from None
            yield start, len(line), entry
            start += len(line)


def journals_below(folder: Path) -> list[Path]:
    """Return every journal of answers below a folder; other stages have journals of their own."""
    return sorted(
        path
        for path in Path(folder).rglob("journal/*.jsonl")
        if path.is_file() and (path.stem == "answers" or SHARD.fullmatch(path.stem))
    )


def entry_at(file: int, start: int, length: int) -> JournalEntry:
    """Return the entry whose line stands at an offset that ``entries`` gave, from an open file."""
    return _DECODER.decode(os.pread(file, length, start))


def _group(name: str) -> str:
    """Return what may be written side by side: the shards of one number."""
    return name[name.index("of") :] if SHARD.fullmatch(name) else name
