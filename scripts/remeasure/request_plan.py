"""What a cell has to ask: every request by its identity, checked whole before anything is sent."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from remeasure import estimates, executors, jsonl, kept, requests
from remeasure.errors import RemeasureError
from remeasure.executors import Call
from remeasure.files import sha256_bytes
from remeasure.image_check import Inspector
from remeasure.journal import FINAL, SHARD, Journal
from remeasure.records import Record, Request

log = logging.getLogger("remeasure.plan")


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


class Plan(Record, kw_only=True):
    """The requests of a cell in their order, by identity."""

    rows: list[tuple[str, str]]
    """(custom_id, key)."""
    missing: set[str]
    """Keys that must be asked."""
    is_part: bool = False
    """Whether other jobs ask the rest of the cell."""
    after: dict[str, str] = {}
    """Of later turns of live conversations: custom_id to that of the request of the turn before."""


class Planner:
    """Reads and checks the requests of a cell.

    Args:
        path: the requests.
        settings: what an answer's identity is made of.
        executor: how the model is reached; its words and prices are checked.
        images_root: folder that the paths of image references start from.
    """

    def __init__(
        self, path: Path, settings: CollectSettings, executor: executors.Settings, images_root: Path
    ) -> None:
        self._path, self._settings, self._executor = path, settings, executor
        self._images_root = images_root
        self._digest = requests.identity_digest(settings.identity)

    def plan(self, journal: Journal, shard: Shard | None = None, settled: Collection[str] = FINAL) -> Plan:
        """Return what there is to ask.

        Args:
            journal: what is known.
            shard: which requests belong to this job; null: all.
            settled: statuses that are not asked again.

        Raises:
            RemeasureError: the file holds no request or a wrong one; a word that the endpoint cannot express;
                an image that must be sent and is missing, empty, unreadable or too large.
        """
        settings, path = self._settings, self._path
        rows: list[tuple[str, str]] = []
        missing: set[str] = set()
        after: dict[str, str] = {}
        n_lines, check_words, conversations = 0, self._words(), _Conversations(path)
        with Inspector(self._images_root) as inspector:
            odd = _OddImages(inspector)
            for request in requests.read_requests(path, settings.model):
                n_lines += 1
                key = self._key_of(request)
                before, first = conversations.place(request, key)
                if shard is not None and not shard.holds(first):
                    continue
                if before is not None:
                    after[request.custom_id] = before
                rows.append((request.custom_id, key))
                if journal.status(key) not in settled and key not in missing:
                    missing.add(key)
                    where = f"{path} line {n_lines}, request {request.custom_id!r}"
                    check_words(request.body, where)
                    odd.check(request.body, where)
        if not n_lines and not settings.may_be_empty:
            raise RemeasureError(f"{path}: holds no request; check the bench's items and rebuild the file")
        odd.tell()
        return Plan(rows=rows, missing=missing, is_part=shard is not None, after=after)

    def missing_calls(self, plan: Plan) -> Iterator[Call]:
        """Yield the calls that must be made, in request order, each key once.

        Raises:
            RemeasureError: the file is not what was planned: an answer would be kept for another question.
        """
        keys = dict(plan.rows)
        seen: set[str] = set()
        for request in jsonl.read(self._path, Request):
            key = keys.get(request.custom_id)
            if key in plan.missing and key not in seen:
                if self._key_of(request) != key:
                    raise self._changed(f"request {request.custom_id!r} asks something else now")
                seen.add(key)
                before = plan.after.get(request.custom_id)
                yield Call(key=key, custom_id=request.custom_id, body=request.body, after=before)
        if len(seen) != len(plan.missing):
            raise self._changed(f"{len(plan.missing) - len(seen)} requests are not there any more")

    def _key_of(self, request: Request) -> str:
        settings, digest = self._settings, self._digest
        if isinstance(self._executor, executors.ImportSettings):
            # Another system answered every row by itself, and two rows that ask the same may differ there.
            digest = requests.identity_digest(settings.identity | {"custom_id": request.custom_id})
        return requests.answer_key(request.body, settings.model, digest, settings.sample)

    def _changed(self, what: str) -> RemeasureError:
        return RemeasureError(
            f"{self._path}: was changed while it was asked: {what}; answers so far are kept: run the same "
            "command again"
        )

    def check_cost(self, plan: Plan, folder: Path, spent_usd: float) -> None:
        """Refuse to send anything where the missing requests are estimated above the run's limit.

        Args:
            plan: what there is to ask.
            folder: the cell's journals; what earlier answers cost makes the estimate better.
            spent_usd: what the run has spent already.
        """
        money = self._executor.money
        if money is None or money.estimate_usd is None or not plan.missing:
            return
        with Inspector(self._images_root) as inspector:
            calls = ((call.custom_id, call.body) for call in self.missing_calls(plan))
            sums = estimates.of_calls(calls, inspector, self._executor, kept.read_history(folder))
        estimates.check_limit(sums, self._executor, str(self._path), spent_usd)

    def _words(self) -> Callable[[dict[str, Any], str], None]:
        """Return a check that the endpoint can express a body."""
        way, served_name = self._executor, self._settings.served_name
        if not isinstance(way, executors.Speaking):
            return lambda body, where: None
        dialect = requests.dialect_of(way.dialect)
        fine: set[tuple[Any, ...]] = set()

        def check(body: dict[str, Any], where: str) -> None:
            # What can be expressed depends on the words that are there, and of the switch on its value.
            words = (*body, body.get("thinking"), *requests.details(body))
            if words in fine:
                return
            fine.add(words)
            try:
                requests.translate(body, dialect, served_name, way.thinking_default)
            except RemeasureError as error:
                raise RemeasureError(f"{where}: {error}") from None

        return check


class _Conversations:
    """Which request each turn of a live conversation goes on from: the one with all but its question."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[str, tuple[str, str]] = {}

    def place(self, request: Request, key: str) -> tuple[str | None, str]:
        """Return the id of the turn before, null for all that is none, and the key of the first turn.

        Raises:
            RemeasureError: the turn before does not stand in front of it.
        """
        task = request.body.get("task")
        if not isinstance(task, dict) or task.get("do") != "converse":
            return None, key
        messages = request.body["messages"]
        before = None
        if sum(message.get("role") == "user" for message in messages) > 1:
            found = self._seen.get(_digest(request.body, messages[:-1]))
            if found is None:
                raise RemeasureError(
                    f"{self._path}: request {request.custom_id!r} is a later turn of a live conversation, "
                    "and the turn before does not stand in front of it; delete the file and rerun the target "
                    "that writes it"
                )
            before, key = found
        # Conversations that begin alike share what they share: it is asked once.
        self._seen.setdefault(_digest(request.body, messages), (request.custom_id, key))
        return before, key


def _digest(body: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    return sha256_bytes(jsonl.encode(body | {"messages": messages}))


class _OddImages:
    """Looks at images before they are sent, and counts what servers may read in different ways."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._seen: set[str] = set()
        self._first: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def check(self, body: dict[str, Any], where: str) -> None:
        for ref in requests.image_refs(body):
            facts = self._inspector.facts(ref, where)
            if ref.sha256 in self._seen:
                continue
            self._seen.add(ref.sha256)
            for word in facts.odd:
                self._counts[word] += 1
                self._first.setdefault(word, f"{where}, {ref.member or ref.path}")

    def tell(self) -> None:
        for word, n in sorted(self._counts.items()):
            log.warning(
                "%d images are %s (first: %s); they are sent as they are, and servers differ in how they "
                "read them",
                n,
                word,
                self._first[word],
            )
