"""From requests to responses: what is missing, who answers it, what is written when all is there."""

import contextlib
import logging
import signal
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from remeasure import executors, jsonl, options, requests
from remeasure.errors import RemeasureError
from remeasure.executors import Call
from remeasure.journal import FINAL, SHARD, Journal
from remeasure.records import ImageRef, JournalEntry, Record, Request, Response
from remeasure.spending import Spending
from remeasure.tally import Tally

log = logging.getLogger("remeasure.responses")


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
    """Return the files that a server of ours or an import reads: part of where answers come from."""
    if isinstance(executor, executors.ImportSettings):
        return [executor.path]
    return list(executor.files.values()) if isinstance(executor, executors.ServerSettings) else []


class Shard(Record, kw_only=True):
    """A part of a cell's requests that one of several jobs asks."""

    number: int
    """From 1."""
    of: int

    @property
    def name(self) -> str:
        """Name of the shard's journal."""
        return f"{self.number}of{self.of}"

    def holds(self, key: str) -> bool:
        """Return whether the shard asks for a key; equal requests always fall into one shard."""
        return int(key[:12], 16) % self.of == self.number - 1


def read_shard(text: str) -> Shard:
    """Read a shard's name, such as ``3of8``.

    Raises:
        RemeasureError: it is none.
    """
    number, _, of = text.partition("of")
    if not SHARD.fullmatch(text) or int(number) > int(of):
        raise RemeasureError(f"--shard {text!r}: expected NofM with N from 1 to M, such as 3of8")
    return Shard(number=int(number), of=int(of))


def make_plan(
    path: Path,
    settings: CollectSettings,
    journal: Journal,
    images_root: Path,
    shard: Shard | None = None,
    settled: Collection[str] = FINAL,
) -> Plan:
    """Read and check all requests before anything is sent.

    Args:
        path: the requests.
        settings: what an answer's identity is made of.
        journal: what is known.
        images_root: folder that the paths of image references start from.
        shard: which requests belong to this job; null: all.
        settled: statuses that are not asked again.

    Raises:
        RemeasureError: the file holds no request or a wrong one; an image that must be sent is missing.
    """
    digest = requests.identity_digest(settings.identity)
    rows: list[tuple[str, str]] = []
    missing: set[str] = set()
    presence = _Presence(images_root)
    n_lines = 0
    for request in requests.read_requests(path, settings.model):
        n_lines += 1
        key = requests.answer_key(request.body, settings.model, digest, settings.sample)
        if shard is not None and not shard.holds(key):
            continue
        rows.append((request.custom_id, key))
        if journal.status(key) not in settled and key not in missing:
            missing.add(key)
            for ref in requests.image_refs(request.body):
                presence.check(ref, f"{path} line {n_lines}, request {request.custom_id!r}")
    if not n_lines and not settings.may_be_empty:
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
    keys = dict(plan.rows)
    seen: set[str] = set()
    for request in jsonl.read(path, Request):
        key = keys.get(request.custom_id)
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
    """Keeps outcomes in the journal, counts them, and knows when enough is spent."""

    def __init__(self, journal: Journal, tally: Tally, spending: Spending) -> None:
        self._journal, self._tally, self._spending = journal, tally, spending
        self.sent = journal.note_sent

    def keep(self, entry: JournalEntry) -> None:
        """See ``executors.Keeper``."""
        self._journal.append(entry)
        self._tally.count(entry.status, entry.error)
        self._spending.add(entry.usage, entry.status)

    def enough(self) -> str | None:
        """See ``executors.Keeper``."""
        return self._spending.reason()


def ask(
    path: Path,
    plan: Plan,
    journal: Journal,
    spending: Spending,
    open_executor: Callable[[], contextlib.AbstractContextManager[executors.Executor]],
) -> int:
    """Ask what is missing and keep each outcome at once; start nothing where nothing is missing.

    Returns:
        How many requests were asked.
    """
    n_keys = len({key for _, key in plan.rows})
    n_known = n_keys - len(plan.missing)
    log.info("%d requests, %d outcomes known, %d to ask", len(plan.rows), n_known, len(plan.missing))
    n_others = len(journal) - sum(key in journal for key in {key for _, key in plan.rows})
    if n_others:
        log.info("%d further outcomes belong to no request of this file and are kept", n_others)
    if not plan.missing:
        return 0
    if reason := spending.reason():
        raise RemeasureError(reason)
    with (
        terminable(),
        open_executor() as executor,
        Tally(n_known, n_keys, spending.words) as tally,
    ):
        try:
            executor.run(missing_calls(path, plan), _Keeper(journal, tally, spending))
        finally:
            log.info(tally.line())
    return tally.n_now


class AnsweredBy(Record, kw_only=True):
    """How many of a cell's outcomes came from one model and server."""

    model: str | None
    """Name in the reply."""
    server: str | None
    """Build and hardware, as far as they were told."""
    n: int


def answered_by(counted: Counter[tuple[str | None, str | None]], path: Path) -> list[AnsweredBy]:
    """Return who answered a cell; a mixture is said aloud, for its numbers belong to no single model.

    Args:
        counted: outcomes by model and server.
        path: the responses, for the log.
    """
    found = [
        AnsweredBy(model=model, server=server, n=n)
        for (model, server), n in sorted(counted.items(), key=lambda item: [name or "" for name in item[0]])
    ]
    if len(found) > 1:
        parts = "; ".join(f"{one.model or 'unnamed'} on {one.server or 'unknown'}: {one.n}" for one in found)
        log.warning("%s: MIXED: answers come from %d models or servers: %s", path, len(found), parts)
    return found


def responses(
    plan: Plan, journal: Journal, counted: Counter[tuple[str | None, str | None]]
) -> Iterator[Response]:
    """Yield one response for every request, in request order; count who answered."""
    for custom_id, key in plan.rows:
        entry = journal.get(key)
        if entry is not None and entry.status in FINAL:
            counted[entry.model, entry.server] += 1
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
