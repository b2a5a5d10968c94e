"""Filling a database with documents: in batches, so that a killed step goes on where it was.

Beside the database stands how far it is, written after each batch. A batch that fails is given again
document by document, so that one that cannot be read costs itself alone.
"""

import contextlib
import logging
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import Part
from remeasure.executors.replies import one_line
from remeasure.files import sha256_bytes, sha256_file
from remeasure.leases import Lease
from remeasure.records import Document, Record
from remeasure.systems import batches, checking, database, models, replying
from remeasure.systems.adapter import Lost
from remeasure.systems.batches import Progress
from remeasure.systems.session import AGAIN, Session, What
from remeasure.systems.settings import HANDLING

log = logging.getLogger("remeasure.ingest")
_LONGEST_BATCH_S = 3600.0
_FINISH_LIMIT_S = 4 * 3600.0
# An embedder that cannot be reached is waited for so long, then so long, and no longer.
_WAITS_S = (1.0, 5.0)
# So many failures above what is allowed, and the rest is not tried.
_MOST_OVER = 25
_SHOWN = 3
_SAID_EVERY_S = 10.0


class Settings(Record, kw_only=True):
    """Settings of ``ingest_documents``: what decides what is in a database."""

    adapter: str
    code: str
    """Fingerprint of the adapter."""
    environment: dict[str, Any] | None
    embedder: dict[str, Any]
    served_name: str
    vector_dim: int
    options: dict[str, Any]
    prebuilt: str | None = None
    """A database that is there already."""
    max_failed_documents: Annotated[int, Meta(ge=0)] = 0
    batch_documents: Annotated[int, Meta(ge=1)] = 512
    document_timeout_s: Annotated[float, Meta(gt=0, le=1e6)] = 600.0


class Ingest:
    """A database that is filled, or checked where it is ready-made.

    Args:
        settings: what decides what is in it.
        embedder: how its embedder is reached.
        documents: ``documents.jsonl``.
        environment: record of its environment; null: the workflow's own.
        folder: where it stands, with what is noted beside it.
    """

    def __init__(
        self, settings: Settings, embedder: Part, documents: Path, environment: Path | None, folder: Path
    ) -> None:
        self._settings, self._embedder, self._documents = settings, embedder, documents
        self._environment, self._folder = environment, folder
        try:
            self._hash = sha256_file(documents)
        except OSError as error:
            raise jsonl.unreadable(documents, error) from None

    @property
    def place(self) -> Path:
        """Folder of the database itself."""
        ready = self._settings.prebuilt
        return self._folder / "database" if ready is None else Path(ready)

    def run(self) -> database.Facts:
        """Fill the database, or check a ready-made one; return what is known of it.

        Raises:
            RemeasureError: documents failed, more than are allowed; the database is another one than was
                configured; full text search does not find what is there.
        """
        is_prebuilt, most = self._settings.prebuilt is not None, self._settings.max_failed_documents
        if is_prebuilt and not self.place.is_dir():
            raise RemeasureError(f"{self.place}: no such folder; correct `prebuilt` of the database")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RemeasureError(
                f"{self._folder}: cannot be made ({error.strerror}); move away what is there, or make room"
            ) from None
        with contextlib.ExitStack() as stack:
            stack.enter_context(Lease(self._folder / "ingest.lock"))
            progress = Progress(identity="") if is_prebuilt else self._progress()
            self._start(stack)
            n_missing = (0, most)
            if not is_prebuilt:
                progress = self._fill(progress)
                self._check_failed(progress)
                n_missing = (len(progress.failed), len(progress.failed))
            counts = checking.counts_of(self._ask({"do": "finish"}), self.place)
            checking.check_counts(counts, self._documents, n_missing, self.place)
            checking.check_full_text(self._ask, self._documents, set(progress.failed), self.place)
        said = f"{counts.n_documents} documents in {counts.n_chunks} chunks, all in the full text index"
        log.info("%s: %s, %d failed", self.place, said, len(progress.failed))
        return database.Facts(
            folder=str(self.place),
            is_prebuilt=is_prebuilt,
            documents=self._hash,
            stamp=self._session.stamp,
            versions=self._session.versions,
            n_documents=counts.n_documents,
            n_chunks=counts.n_chunks,
            failed=sorted(progress.failed),
            files=_listing(self.place) if is_prebuilt else None,
        )

    def _start(self, stack: contextlib.ExitStack) -> None:
        settings, logs = self._settings, self._folder / "logs"
        parts = {"embedder": self._embedder}
        reached = stack.enter_context(models.opened(parts, settings.vector_dim, logs))
        what = What(
            adapter=settings.adapter,
            environment=None if self._environment is None else str(self._environment),
            folder=str(self.place),
            create=settings.prebuilt is None,
            options=settings.options,
            served_name=settings.served_name,
            vector_dim=settings.vector_dim,
        )
        self._session = Session(what, reached, logs / "adapter.log")
        stack.callback(self._session.stop)
        self._session.start()

    # -- how far it is -------------------------------------------------------------------------------------

    def _progress(self) -> Progress:
        """Return how far the database is; what belongs to other settings or documents is removed."""
        given = msgspec.to_builtins(self._settings)
        decisive = {name: value for name, value in given.items() if name not in (*HANDLING, "prebuilt")}
        identity = sha256_bytes(jsonl.encode([decisive, self._hash]))
        path = self._folder / "progress.json"
        if path.is_file():
            found = jsonl.read_json(path, Progress)
            if found.identity != identity:
                log.info("%s: belongs to other settings or documents, begun anew", self._folder)
            elif found.n_done and not self.place.exists():
                log.info("%s: the database is gone, begun anew", self._folder)
            else:
                if found.n_done:
                    log.info("%s: %d documents are done, going on", self._folder, found.n_done)
                return found
        elif self.place.exists():
            raise RemeasureError(
                f"{self.place}: is there and nothing beside it says how far it is; move it away, then rerun"
            )
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.place)
        found = Progress(identity=identity)
        jsonl.write_json(path, found)
        return found

    def _fill(self, progress: Progress) -> Progress:
        """Give every document that is not there."""
        said, n_all = time.monotonic(), jsonl.count(self._documents)
        for n_read, batch in batches.missing(self._documents, progress, self._settings.batch_documents):
            progress = progress.and_then(n_read, batch, self._give(batch))
            jsonl.write_json(self._folder / "progress.json", progress)
            if self._are_too_many(progress.failed):
                break
            if time.monotonic() - said > _SAID_EVERY_S:
                said = time.monotonic()
                log.info("documents %d/%d failed=%d", progress.n_done, n_all, len(progress.failed))
        return progress

    def _are_too_many(self, failed: dict[str, str]) -> bool:
        return len(failed) > self._settings.max_failed_documents + _MOST_OVER

    def _check_failed(self, progress: Progress) -> None:
        most, failed = self._settings.max_failed_documents, progress.failed
        if len(failed) <= most:
            return
        shown = "; ".join(f"{uri!r}: {reason}" for uri, reason in list(failed.items())[:_SHOWN])
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        raise RemeasureError(
            f"{self.place}: {len(failed)} documents could not be ingested, allowed are {most}: "
            f"{shown}{more}; all stand in {self._folder / 'progress.json'}: repair the cause and rerun, or "
            "raise `max_failed_documents` in the options of the database"
        )

    # -- giving --------------------------------------------------------------------------------------------

    def _give(self, batch: list[Document]) -> dict[str, str]:
        """Give documents; return those that failed, with reasons."""
        reply = self._given(batch)
        if reply["ok"]:
            return _failures(reply.get("failed"), batch)
        said = one_line(f"{reply.get('kind')}: {reply.get('error')}")
        if reply.get("kind") == "fatal":
            raise RemeasureError(f"{self.place}: {said}; repair the cause and {AGAIN}")
        if len(batch) == 1:
            log.warning("document %r failed: %s", batch[0].uri, said)
            return {batch[0].uri: said}
        log.warning("a batch of %d documents failed (%s); they are given one by one", len(batch), said)
        failed: dict[str, str] = {}
        for document in batch:
            too_many = self._are_too_many(failed)
            failed |= {document.uri: "not given: too many failed"} if too_many else self._give([document])
        return failed

    def _given(self, batch: list[Document]) -> dict[str, Any]:
        """Give documents once, or as often as the embedder cannot be reached."""
        one_s = self._settings.document_timeout_s
        limit_s = min(len(batch) * one_s, max(_LONGEST_BATCH_S, one_s))
        command = {"do": "ingest", "documents": [batches.told(document) for document in batch]}
        for wait_s in (*_WAITS_S, None):
            try:
                reply = self._session.adapter.ask(command, limit_s)
            except Lost as lost:
                self._session.again()
                return {"ok": False, "kind": lost.kind, "error": lost.message}
            if reply["ok"] or reply.get("kind") != "connection":
                return reply
            self._session.check_servers()
            if wait_s is not None:
                time.sleep(wait_s)
        raise RemeasureError(
            f"the embedder cannot be reached: {replying.reason(reply)}; start it, then {AGAIN}"
        )

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Give a command that must succeed."""
        try:
            reply = self._session.adapter.ask(command, _FINISH_LIMIT_S)
        except Lost as lost:
            reply = {"ok": False, "error": f"{lost}; {self._session.log_end()}"}
        if not reply["ok"]:
            self._session.check_servers()
            said = one_line(str(reply.get("error")), 1000)
            raise RemeasureError(f"{self.place}: {command['do']}: {said}; repair the cause and {AGAIN}")
        return reply


def _failures(told: Any, batch: list[Document]) -> dict[str, str]:
    """Return the failed documents that a reply names; those that were not given are passed over."""
    given = {document.uri for document in batch}
    rows = told if isinstance(told, list) else []
    found = {}
    for row in rows:
        if isinstance(row, dict) and row.get("uri") in given:
            found[row["uri"]] = one_line(str(row.get("reason") or "no reason given"))
            log.warning("document %r failed: %s", row["uri"], found[row["uri"]])
    return found


def _listing(folder: Path) -> str:
    """Return a hash of names and sizes: such databases name their files anew whenever they change."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(folder)} {path.stat().st_size}\n" for path in files]
    return sha256_bytes("".join(lines).encode("utf-8", "surrogateescape"))
