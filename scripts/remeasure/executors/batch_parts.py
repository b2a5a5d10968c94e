"""What is under way at a batch service, kept on this side so that a killed step can go on.

``batches.json`` names every part and how far it is; ``batches/<part>.calls`` holds a part's calls: whoever
comes next knows what not to hand in again, and can hand in again what failed. Each step is written down
before the service is asked for it, so that a kill can leave a question open but never a batch unknown.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import Call
from remeasure.files import atomic_open, sha256_file
from remeasure.leases import Lease
from remeasure.records import Record

PartStatus = Literal[
    "waiting",  # nothing of it is at the service; its calls have been handed in before, or its file is lost
    "uploading",  # its file may be at the service
    "uploaded",  # its file is at the service
    "submitting",  # its batch may be at the service
    "submitted",  # its batch is at the service
    "merging",  # its batch has ended, some of its answers may be kept already
    "merged",  # all its answers are kept
    "refused",  # the service has refused the file as a whole; nothing of it was answered
]
UNDER_WAY: tuple[PartStatus, ...] = ("submitted", "merging")
_ENDED: tuple[PartStatus, ...] = ("merged", "refused")


class Part(Record, kw_only=True):
    """Requests that travel together: one file, one batch."""

    part_id: str
    status: PartStatus
    served_name: str
    """The model name that was asked for: what the replies must name."""
    n_requests: int
    calls_sha256: str
    """Of the file that holds the calls."""
    n_bytes: int = 0
    """Of the file for the service."""
    file_id: str | None = None
    batch_id: str | None = None
    n_refused: int = 0
    """How often the service had too much in its queue to take it."""
    submitted_at: float | None = None
    """Seconds since 1970."""


class Pending(Record, kw_only=True):
    """A call of a part: one line of ``batches/<part>.calls``."""

    key: str
    custom_id: str
    body: dict[str, Any]
    n_handed_in: int = 0
    """How often it was handed in before."""
    first_at: float | None = None
    """When it was first handed in, seconds since 1970."""


class _State(Record, kw_only=True):
    base_url: str
    parts: tuple[Part, ...] = ()


class Parts:
    """The parts of one journal folder, on disk; a context manager that holds the folder's lock.

    Args:
        journal: the cell's journal folder.
        base_url: the service's address.

    Raises:
        RemeasureError: another process works with these batches; the state is damaged; batches are under way
            at another address.
    """

    def __init__(self, journal: Path, base_url: str) -> None:
        self._path = journal / "batches.json"
        self._folder = journal / "batches"
        self._base_url = base_url.rstrip("/")
        self._parts: dict[str, Part] = {}

    def __enter__(self) -> "Parts":
        self._folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            # Shards of a cell share the folder. What one hands in, the others must not: they wait in vain.
            self._lease = stack.enter_context(Lease(self._folder / "lock"))
            self._load()
            self._close = stack.pop_all().close
        return self

    def __exit__(self, *_) -> None:
        self._close()

    def unfinished(self) -> list[Part]:
        """Return the parts that are not at their end."""
        return [part for part in self._parts.values() if part.status not in _ENDED]

    def of(self, *statuses: PartStatus) -> list[Part]:
        """Return the parts with one of the given statuses, oldest first."""
        return [part for part in self._parts.values() if part.status in statuses]

    def put(self, *parts: Part, drop: Collection[Part] = ()) -> None:
        """Write down where parts are now and forget others, all at once; remove files that nobody needs."""
        self._lease.check()
        for part in drop:
            del self._parts[part.part_id]
        self._parts |= {part.part_id: part for part in parts}
        jsonl.write_json(self._path, _State(base_url=self._base_url, parts=tuple(self._parts.values())))
        for part in (*drop, *(part for part in parts if part.status in _ENDED)):
            self.remove_files(part.part_id)

    def move(self, part: Part, status: PartStatus, **changes) -> Part:
        """Write down that a part has come to another status."""
        moved = msgspec.structs.replace(part, status=status, **changes)
        self.put(moved)
        return moved

    def remove_files(self, part_id: str) -> None:
        """Remove all files of a part."""
        for path in self._folder.glob(f"{part_id}.*"):
            path.unlink(missing_ok=True)

    def calls_path(self, part_id: str) -> Path:
        """Return the file that holds a part's calls."""
        return self._folder / f"{part_id}.calls"

    def scratch(self, part_id: str, name: str) -> Path:
        """Return the place of a temporary file of a part; what is left there is removed by the next start."""
        return self._folder / f"{part_id}.{name}"

    @contextlib.contextmanager
    def writing(self, part_id: str) -> Iterator[Callable[[Pending], object]]:
        """Give a function that appends calls to the file of a new part; the file is whole or absent."""
        with atomic_open(self.calls_path(part_id), "wb") as stream:
            yield lambda call: stream.write(jsonl.encode(call) + b"\n")

    def written(self, part_id: str, status: PartStatus, served_name: str, **facts) -> Part:
        """Return the part that was written under an id."""
        digest = sha256_file(self.calls_path(part_id))
        return Part(part_id=part_id, status=status, served_name=served_name, calls_sha256=digest, **facts)

    def pending(self, part: Part) -> Iterator[Pending]:
        """Yield the calls of a part in the order of its file."""
        return jsonl.read(self.calls_path(part.part_id), Pending)

    def places(self, part: Part) -> dict[str, int]:
        """Return where each call of a part stands, by key: places instead of calls keep the memory flat."""
        path = self.calls_path(part.part_id)
        return {found.key: place for place, found in jsonl.read_placed(path, Pending)}

    def _load(self) -> None:
        if self._path.exists():
            state = self._read()
            self._parts = {part.part_id: part for part in state.parts}
            if self.unfinished() and state.base_url != self._base_url:
                raise RemeasureError(
                    f"{self._path}: {len(self.unfinished())} parts are under way at {state.base_url}, the "
                    f"settings name {self._base_url}; set the address back until their answers are fetched, "
                    "or delete the file to give them up"
                )
        known = {self.calls_path(part.part_id).name for part in self.unfinished()}
        for path in self._folder.iterdir():
            if path.name not in known and path.name != "lock":
                path.unlink()
        for part in self.unfinished():
            self._check(part)

    def _read(self) -> _State:
        try:
            return jsonl.read_json(self._path, _State)
        except RemeasureError as error:
            raise RemeasureError(
                f"{error}; restore it: the batches that it names are under way at {self._base_url}, without "
                "it their requests would be handed in, and paid, again"
            ) from None

    def _check(self, part: Part) -> None:
        path = self.calls_path(part.part_id)
        if not path.is_file() or sha256_file(path) != part.calls_sha256:
            raise RemeasureError(
                f"{path}: is missing or damaged, and the {part.n_requests} requests of a batch are known "
                f"from it alone (batch {part.batch_id}); restore it, or take the part out of "
                f"{self._path.name} to give the batch up: its requests are then handed in again"
            )


class Supply:
    """The calls that are to be handed in for the first time; ``asked`` holds all keys that came by."""

    def __init__(self, calls: Iterator[Call], under_way: set[str]) -> None:
        self.asked: set[str] = set()
        self._calls = calls
        self._under_way = under_way
        self._held: list[Pending] = []

    def fresh(self) -> Iterator[Pending]:
        """Yield what is left."""
        while self.is_left():
            yield self._held.pop()

    def put_back(self, call: Pending | None) -> None:
        """Give back a call that was taken."""
        if call is not None:
            self._held.append(call)

    def is_left(self) -> bool:
        """Return whether a call is left."""
        while not self._held:
            call = next(self._calls, None)
            if call is None:
                return False
            self.asked.add(call.key)
            if call.key not in self._under_way:
                self._held.append(Pending(key=call.key, custom_id=call.custom_id, body=call.body))
        return True
