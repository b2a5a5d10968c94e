"""From requests to responses: what is missing, who answers it, what is written when all is there."""

import contextlib
import logging
import signal
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from remeasure import executors, jsonl, options, requests
from remeasure.errors import RemeasureError
from remeasure.executors import Call
from remeasure.journal import FINAL, Journal
from remeasure.records import ImageRef, JournalEntry, Record, Request, Response

log = logging.getLogger("remeasure.responses")
_EVERY_S = 10.0


class CollectSettings(Record, kw_only=True):
    """Settings of ``collect_responses``: what an answer's identity is made of."""

    model: str
    served_name: str
    identity: dict[str, Any]
    """Whatever else could change an answer: weights, server code, threads, revision."""
    sample: int = 0
    """Number of the repetition."""
    may_be_empty: bool = False
    """Whether a file without requests is right: a judge has nothing to do where no answer came."""
    max_failed_share: float = 0.0
    """Share of requests, 0 to 1, that may end without an answer before the cell is refused."""


def read_executor(text: str) -> executors.Settings:
    """Return how a model is reached, from JSON text or from a file that holds it.

    Raises:
        RemeasureError: no such file, an unknown kind or key, a wrong type.
    """
    if text.lstrip().startswith("{"):
        return options.decode(text, executors.Settings, "--executor")
    try:
        return options.decode(
            Path(text).read_text(encoding="utf-8"), executors.Settings, f"--executor {text}"
        )
    except OSError as error:
        raise jsonl.unreadable(Path(text), error) from None


class Plan(Record, kw_only=True):
    """The requests of a cell in their order, by identity."""

    rows: list[tuple[str, str]]
    """(custom_id, key)."""
    missing: set[str]
    """Keys that must be asked."""


def served_files(executor: executors.Settings) -> list[str]:
    """Return the files that a server of ours reads: part of where its answers come from."""
    return list(executor.files.values()) if isinstance(executor, executors.ServerSettings) else []


def make_plan(path: Path, settings: CollectSettings, journal: Journal, images_root: Path) -> Plan:
    """Read and check all requests before anything is sent.

    Raises:
        RemeasureError: the file holds no request or a wrong one; an image that must be sent is missing.
    """
    digest = requests.identity_digest(settings.identity)
    rows: list[tuple[str, str]] = []
    missing: set[str] = set()
    presence = _Presence(images_root)
    for request in requests.read_requests(path, settings.model):
        key = requests.answer_key(request.body, settings.model, digest, settings.sample)
        rows.append((request.custom_id, key))
        if not journal.is_final(key) and key not in missing:
            missing.add(key)
            for ref in requests.image_refs(request.body):
                presence.check(ref, f"{path} line {len(rows)}, request {request.custom_id!r}")
    if not rows and not settings.may_be_empty:
        raise RemeasureError(f"{path}: holds no request; check the bench's items and rebuild the file")
    return Plan(rows=rows, missing=missing)


class _Presence:
    """Checks that images are there; their content is checked when they are sent."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._members: dict[str, dict[str, int]] = {}

    def check(self, ref: ImageRef, where: str) -> None:
        """Raise where the image of a reference is missing or empty."""
        path = self._root / ref.path
        try:
            if ref.member is None:
                size = path.stat().st_size
            else:
                if ref.path not in self._members:
                    with zipfile.ZipFile(path) as store:
                        self._members[ref.path] = {info.filename: info.file_size for info in store.infolist()}
                size = self._members[ref.path].get(ref.member)
            problem = "is not there" if size is None else "is empty" if not size else None
        except (OSError, zipfile.BadZipFile) as error:
            problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        if problem:
            place = ref.path if ref.member is None else f"{ref.path} member {ref.member}"
            raise RemeasureError(
                f"{where}: image {place} {problem}; delete {ref.path} and rerun the target that writes it"
            )


def missing_calls(path: Path, plan: Plan) -> Iterator[Call]:
    """Yield the calls that must be made, in request order, each key once."""
    seen: set[str] = set()
    for (_, key), request in zip(plan.rows, jsonl.read(path, Request), strict=True):
        if key in plan.missing and key not in seen:
            seen.add(key)
            yield Call(key=key, custom_id=request.custom_id, body=request.body)


def check_dialect(path: Path, plan: Plan, executor: executors.Settings, served_name: str) -> None:
    """Refuse words that the endpoint cannot express, before anything is sent."""
    dialect = requests.dialect_of(executor.dialect) if isinstance(executor, executors.Speaking) else None
    if dialect is None:
        return
    for call in missing_calls(path, plan):
        try:
            requests.translate(call.body, dialect, served_name, executor.thinking_default)
        except RemeasureError as error:
            raise RemeasureError(f"{path}, request {call.custom_id!r}: {error}") from None


class Progress:
    """Counts outcomes and logs a line every ten seconds; a context manager."""

    def __init__(self, n_done: int, n_total: int) -> None:
        self._start, self._total = n_done, n_total
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()

    def count(self, status: str) -> None:
        """Note one outcome."""
        self._counts[status] += 1

    @property
    def asked(self) -> int:
        """How many outcomes came in this time."""
        return sum(self._counts.values())

    def line(self) -> str:
        """Return the state as one line: ``420/1000 ok=415 error=3 other=2 12.1/s eta 48 s``."""
        ok, errors = self._counts["answered"], self._counts["failed"]
        seconds = time.monotonic() - self._began
        rate = self.asked / seconds if seconds > 0 else 0.0
        left = self._total - self._start - self.asked
        eta = f"eta {left / rate:.0f} s" if rate else "eta ?"
        done = f"{self._start + self.asked}/{self._total}"
        return f"{done} ok={ok} error={errors} other={self.asked - ok - errors} {rate:.1f}/s {eta}"

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            log.info(self.line())


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that servers are stopped and locks given back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Not KeyboardInterrupt at once: that would strike inside the event loop. As SIGINT, asyncio ends its
    # tasks in order where it runs, and Python raises KeyboardInterrupt everywhere else.
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Keeper:
    """Keeps outcomes in the journal and counts them."""

    def __init__(self, journal: Journal, progress: Progress) -> None:
        self._journal, self._progress = journal, progress

    def sent(self, key: str) -> None:
        """See ``executors.Keeper``."""

    def keep(self, entry: JournalEntry) -> None:
        """See ``executors.Keeper``."""
        self._journal.append(entry)
        self._progress.count(entry.status)

    def enough(self) -> str | None:
        """See ``executors.Keeper``."""
        return None


def ask(
    path: Path,
    plan: Plan,
    journal: Journal,
    open_executor: Callable[[], contextlib.AbstractContextManager[executors.Executor]],
) -> int:
    """Ask what is missing and keep each outcome at once; start nothing where nothing is missing.

    Returns:
        How many requests were asked.
    """
    n_keys = len({key for _, key in plan.rows})
    log.info(
        "%d requests, %d outcomes known, %d to ask",
        len(plan.rows),
        n_keys - len(plan.missing),
        len(plan.missing),
    )
    if not plan.missing:
        return 0
    with terminable(), open_executor() as executor, Progress(n_keys - len(plan.missing), n_keys) as progress:
        try:
            executor.run(missing_calls(path, plan), _Keeper(journal, progress))
        finally:
            log.info(progress.line())
    return progress.asked


def responses(plan: Plan, journal: Journal) -> Iterator[Response]:
    """Yield one response for every request, in request order."""
    for custom_id, key in plan.rows:
        entry = journal.get(key)
        if entry is None:
            yield Response(custom_id=custom_id, key=key, status="not_sent", text=None, error="not_sent")
        else:
            yield Response(
                custom_id=custom_id,
                key=key,
                status=entry.status,
                text=entry.text,
                finish=entry.finish,
                usage=entry.usage,
                model=entry.model,
                error=entry.error,
            )


def counts(plan: Plan, journal: Journal) -> dict[str, int]:
    """Return how many requests ended in which status."""
    found = Counter(journal.status(key) or "not_sent" for _, key in plan.rows)
    return dict(sorted(found.items()))


def check_failed(plan: Plan, journal: Journal, settings: CollectSettings, folder: Path) -> None:
    """Refuse a cell in which too many requests have no outcome that can be graded.

    Raises:
        RemeasureError: count, the first failure with its class, and what to do.
    """
    failed = [(custom_id, key) for custom_id, key in plan.rows if journal.status(key) not in FINAL]
    if not failed or len(failed) / len(plan.rows) <= settings.max_failed_share:
        return
    custom_id, key = failed[0]
    entry = journal.get(key)
    raise RemeasureError(
        f"{len(failed)} of {len(plan.rows)} requests failed, allowed is a share of "
        f"{settings.max_failed_share:g}; first {custom_id!r}: {entry.error if entry else 'not sent'}; "
        f"answers are kept in {folder}: repair the cause and run the same command again, it asks only these"
    )
