"""From requests to responses: who answers what is missing, and what is written when all is there."""

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import adapters, executors, jsonl, options
from remeasure.errors import RemeasureError, ToBeContinued
from remeasure.executors import Call
from remeasure.files import sha256_bytes, sha256_file
from remeasure.journal import FINAL, Journal
from remeasure.records import JournalEntry, Record, Response, Stage
from remeasure.request_plan import CollectSettings, Plan
from remeasure.spending import Spending
from remeasure.systems import database as databases
from remeasure.tally import Tally

log = logging.getLogger("remeasure.responses")


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
    except UnicodeDecodeError:
        raise RemeasureError(f"--executor {text}: not UTF-8 text; make the file again") from None


def made_files(executor: executors.Settings) -> dict[str, Any]:
    """Return what belongs to an answer's identity of the files that a server reads and stages of ours made.

    Weights are told apart by the hash that is known beforehand; what OCR read and which lines there are, for
    example, is known only when it is there: where it changes, the questions are asked again.
    """
    if isinstance(executor, executors.SystemSettings):
        return (
            {"made": {"database": databases.identity(Path(executor.database))}} if executor.database else {}
        )
    files = getattr(executor, "files", {})
    if isinstance(executor, executors.VllmBatchSettings):
        files = {"model": executor.model}
    ours = {
        o: p for o, p in files.items() if p.startswith("results/") and not p.startswith("results/sources/")
    }
    made = {option: sha256_file(Path(path)) for option, path in sorted(ours.items()) if Path(path).is_file()}
    made |= {option: _of_folder(path) for option, path in sorted(ours.items()) if _record_of(path).is_file()}
    return {"made": made} if made else {}


def _record_of(path: str) -> Path:
    """Return the record of a folder that a step has put together; where it is none, a path without a file."""
    return Path(f"{path}.json" if adapters.FOLDER.match(path) else "")


def _of_folder(path: str) -> str:
    """Return a hash of such a folder: of the hashes that its record tells."""
    files = jsonl.read_json(_record_of(path), Stage).outputs
    return sha256_bytes(
        "".join(f"{sha256} {Path(name).name}\n" for name, sha256 in sorted(files.items())).encode()
    )


def with_records(
    executor: executors.Settings, database: Path | None, environment: Path | None
) -> executors.Settings:
    """Return how a system is reached together with the records of its database and environment.

    Raises:
        RemeasureError: a system and no database, or records for what is no system.
    """
    is_system = isinstance(executor, executors.SystemSettings)
    if is_system != (database is not None) or (environment is not None and not is_system):
        raise RemeasureError(
            "--database and --environment go with a system, and a system needs --database; give what the "
            "executor asks for"
        )
    if not is_system:
        return executor
    names = {"database": database, "environment": environment}
    return msgspec.structs.replace(
        executor, **{n: str(path) for n, path in names.items() if path is not None}
    )


def _servers(executor: executors.Settings) -> list[executors.Settings]:
    """Return what is asked: of a system its models."""
    if not isinstance(executor, executors.SystemSettings):
        return [executor]
    return [one.way for one in (executor.embedder, executor.reranker, executor.answerer) if one is not None]


def known_hashes(executor: executors.Settings) -> dict[str, str]:
    """Return the hashes of files that a server reads, where the record of their step tells them."""
    found: dict[str, str] = {}
    for one in _servers(executor):
        for path in (one.files if isinstance(one, executors.ServerSettings) else {}).values():
            if _record_of(path).is_file():
                found |= jsonl.read_json(_record_of(path), Stage).outputs
    return found


def served_files(executor: executors.Settings) -> list[str]:
    """Return the files that a server of ours or an import reads: part of where answers come from."""
    if isinstance(executor, executors.ImportSettings):
        return [executor.path]
    if isinstance(executor, executors.SystemSettings):
        records = [path for path in (executor.database, executor.environment) if path is not None]
        return [*records, *dict.fromkeys(path for one in _servers(executor) for path in served_files(one))]
    found: list[str] = []
    for given in executor.files.values() if isinstance(executor, executors.ServerSettings) else ():
        if _record_of(given).is_file():  # the workflow or a server may have put marks of theirs beside
            found += sorted(jsonl.read_json(_record_of(given), Stage).outputs)
            continue
        inside = sorted(path for path in Path(given).rglob("*") if path.is_file())
        found += map(str, inside) if Path(given).is_dir() else [given]
    return found


class _Keeper:
    """Keeps outcomes in the journal, counts them, and knows when enough is spent."""

    def __init__(self, journal: Journal, tally: Tally, spending: Spending, plan: Plan) -> None:
        self._journal, self._tally, self._spending = journal, tally, spending
        self._keys = dict(plan.rows)
        self.sent = journal.note_sent

    def keep(self, entry: JournalEntry) -> None:
        """See ``executors.Keeper``."""
        self._journal.append(entry)
        self._tally.count(entry.status, entry.error)
        self._spending.add(entry.usage, entry.status)
        if entry.wasted:
            self._spending.add(entry.wasted, entry.status)

    def kept(self, custom_id: str) -> JournalEntry | None:
        """See ``executors.Keeper``."""
        key = self._keys.get(custom_id)
        return None if key is None else self._journal.get(key)

    def enough(self) -> str | None:
        """See ``executors.Keeper``."""
        return self._spending.reason()


def ask(
    calls: Iterator[Call],
    plan: Plan,
    journal: Journal,
    spending: Spending,
    open_executor: Callable[[], contextlib.AbstractContextManager[executors.Executor]],
) -> int:
    """Ask what is missing and keep each outcome at once; start nothing where nothing is missing.

    Args:
        calls: what is missing, one by one.
        plan: the cell's requests.
        journal: where outcomes are kept.
        spending: says when enough is spent.
        open_executor: starts what answers.

    Returns:
        How many requests were asked.
    """
    n_keys = len({key for _, key in plan.rows})
    n_known = n_keys - len(plan.missing)
    log.info("%d requests, %d outcomes known, %d to ask", len(plan.rows), n_known, len(plan.missing))
    n_others = len(journal) - sum(key in journal for key in {key for _, key in plan.rows})
    if n_others and not plan.is_part:
        log.info("%d further outcomes belong to no request of this file and are kept", n_others)
    if not plan.missing:
        return 0
    if reason := spending.reason():
        raise RemeasureError(reason)
    with (
        open_executor() as executor,
        Tally(n_known, n_keys, spending.words) as tally,
    ):
        try:
            executor.run(calls, _Keeper(journal, tally, spending, plan))
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
                trace=entry.trace,
            )


def counts(plan: Plan, journal: Journal) -> dict[str, int]:
    """Return how many requests ended in which status."""
    found = Counter(journal.status(key) or "not_sent" for _, key in plan.rows)
    return dict(sorted(found.items()))


def to_be_continued(plan: Plan, journal: Journal) -> ToBeContinued:
    """Return the end of a call that was told to end: how far the cell is, or the shard."""
    found = counts(plan, journal)
    n_answered = found.pop("answered", 0)
    said = [f"{n_answered} of {len(plan.rows)} answered"]
    said += [f"{n} {status.replace('_', ' ')}" for status, n in found.items()]
    return ToBeContinued(f"{', '.join(said)}; the next attempt goes on from here")


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
