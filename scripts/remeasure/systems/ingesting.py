"""Filling a database with documents: in batches, so that a killed step goes on where it was.

Beside the database stands how far it is, written after each batch. A batch that fails is given again
document by document, so that one that cannot be read costs itself alone.
"""

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import jsonl, model_server
from remeasure.errors import RemeasureError
from remeasure.executors import Part
from remeasure.executors.replies import one_line
from remeasure.executors.system import READY_LIMIT_S
from remeasure.files import sha256_bytes, sha256_file
from remeasure.leases import Lease
from remeasure.records import Document, Record
from remeasure.systems import adapter, database, fulltext, models, replying
from remeasure.systems.adapter import Adapter, Lost
from remeasure.systems.settings import HANDLING

log = logging.getLogger("remeasure.ingest")
_BATCH_BYTES = 4 << 20
_FILES_PER_BATCH = 8
_LONGEST_BATCH_S = 3600.0
_FINISH_LIMIT_S = 4 * 3600.0
_WAITS_S = (1.0, 5.0)
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
    max_failed_documents: int = 0
    batch_documents: int = 512
    document_timeout_s: float = 600.0


class Progress(Record, kw_only=True):
    """How far a database is; stands beside it."""

    identity: str
    """Hash of settings and documents: with others it is begun anew."""
    n_done: int = 0
    """Documents that were given, from the first."""
    failed: dict[str, str] = {}
    """Uri to reason, of those that are not in it."""


class Counts(Record, kw_only=True):
    """What ``finish`` tells."""

    n_documents: int
    n_chunks: int
    n_indexed: int


class Ingest:
    """A database that is filled or checked.

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
        self._hash = sha256_file(documents)
        self._running = contextlib.ExitStack()

    @property
    def place(self) -> Path:
        """Folder of the database itself."""
        return Path(self._settings.prebuilt) if self._settings.prebuilt else self._folder / "database"

    def run(self) -> database.Facts:
        """Fill the database, or check a ready-made one; return what is known of it.

        Raises:
            RemeasureError: documents failed, more than are allowed; the database is another one than was
                configured; full text search does not find what is there.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        is_prebuilt = self._settings.prebuilt is not None
        if is_prebuilt and not self.place.is_dir():
            raise RemeasureError(
                f"{self.place}: no such folder; correct `prebuilt` of the database, or take it out"
            )
        with contextlib.ExitStack() as stack:
            stack.enter_context(Lease(self._folder / "ingest.lock"))
            progress = None if is_prebuilt else self._progress()
            stack.callback(self._running.close)
            self._models = stack.enter_context(
                models.opened({"embedder": self._embedder}, self._settings.vector_dim, self._folder / "logs")
            )
            (self._folder / "logs" / "adapter.log").unlink(missing_ok=True)
            self._open()
            if progress is not None:
                progress = self._fill(progress)
                self._check_failed(progress)
            counts = self._finish()
            n_all = self._check_counts(counts, progress)
            self._check_full_text(set(progress.failed) if progress else set())
        log.info(
            "%d of %d documents in %d chunks, all in the full text index",
            counts.n_documents,
            n_all,
            counts.n_chunks,
        )
        return database.Facts(
            folder=str(self.place),
            is_prebuilt=is_prebuilt,
            documents=self._hash,
            stamp=self._stamp,
            versions=self._versions,
            n_documents=counts.n_documents,
            n_chunks=counts.n_chunks,
            failed=sorted(progress.failed) if progress else [],
            files=_listing(self.place) if is_prebuilt else None,
        )

    # -- how far it is -------------------------------------------------------------------------------------

    def _progress(self) -> Progress:
        """Return how far the database is; what belongs to other settings or documents is removed."""
        told = msgspec.to_builtins(self._settings)
        decisive = {name: value for name, value in told.items() if name not in (*HANDLING, "prebuilt")}
        identity = sha256_bytes(jsonl.encode([decisive, self._hash]))
        path = self._folder / "progress.json"
        if path.is_file():
            found = jsonl.read_json(path, Progress)
            if found.identity == identity:
                if found.n_done:
                    log.info("%s: %d documents are done, going on", self._folder, found.n_done)
                return found
            log.info("%s: belongs to other settings or documents, begun anew", self._folder)
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
        """Give every document that is not there; failed ones are tried again."""
        said, n_all = time.monotonic(), jsonl.count(self._documents)
        for n_read, batch in self._batches(progress):
            failed = dict(progress.failed)
            for document in batch:
                failed.pop(document.uri, None)
            failed |= self._give(batch)
            progress = Progress(
                identity=progress.identity, n_done=max(progress.n_done, n_read), failed=failed
            )
            jsonl.write_json(self._folder / "progress.json", progress)
            if len(failed) > self._settings.max_failed_documents + _MOST_OVER:
                break
            if time.monotonic() - said > _SAID_EVERY_S:
                said = time.monotonic()
                log.info("documents %d/%d failed=%d", progress.n_done, n_all, len(failed))
        return progress

    def _batches(self, progress: Progress) -> Iterator[tuple[int, list[Document]]]:
        """Yield batches, each with the number of documents up to its end."""
        batch: list[Document] = []
        n_bytes = number = 0
        for number, document in enumerate(_read(self._documents), start=1):
            if number <= progress.n_done and document.uri not in progress.failed:
                continue
            most = _FILES_PER_BATCH if document.path else self._settings.batch_documents
            size = len((document.text or "").encode())
            if batch and (len(batch) >= most or n_bytes + size > _BATCH_BYTES):
                yield number - 1, batch
                batch, n_bytes = [], 0
            batch.append(document)
            n_bytes += size
        if batch:
            yield number, batch

    # -- giving --------------------------------------------------------------------------------------------

    def _give(self, batch: list[Document]) -> dict[str, str]:
        """Give documents; return those that failed, with reasons."""
        settings = self._settings
        limit_s = min(
            len(batch) * settings.document_timeout_s, max(_LONGEST_BATCH_S, settings.document_timeout_s)
        )
        told = {"do": "ingest", "documents": [_told(document) for document in batch]}
        for wait_s in (*_WAITS_S, None):
            try:
                reply = self._adapter.ask(told, limit_s)
            except Lost as lost:
                self._open_again()
                reply = {"ok": False, "kind": lost.kind, "error": lost.message}
                break
            if reply["ok"] or reply.get("kind") != "connection":
                break
            self._check_servers()
            if wait_s is None:
                raise RemeasureError(
                    f"embedder cannot be reached: {one_line(str(reply.get('error')))}; start it"
                )
            time.sleep(wait_s)
        if reply["ok"]:
            return _failures(reply.get("failed"), batch)
        if reply.get("kind") == "fatal":
            raise RemeasureError(f"{self.place}: {one_line(str(reply.get('error')))}")
        if len(batch) == 1:
            said = one_line(f"{reply.get('kind')}: {reply.get('error')}")
            log.warning("document %r failed: %s", batch[0].uri, said)
            return {batch[0].uri: said}
        log.warning("a batch of %d documents failed (%s); one by one", len(batch), reply.get("error"))
        failed: dict[str, str] = {}
        for document in batch:
            failed |= self._give([document])
            if len(failed) > settings.max_failed_documents + _MOST_OVER:
                rest = batch[batch.index(document) + 1 :]
                return failed | {one.uri: "not given: too many before it failed" for one in rest}
        return failed

    def _open(self) -> None:
        """Start the adapter and open the database in it."""
        settings, [endpoints] = self._settings, self._models.endpoints[:1]
        log_path = self._folder / "logs" / "adapter.log"
        self._adapter: Adapter = self._running.enter_context(
            adapter.started(
                settings.adapter, self._environment, self._models.keys, log_path, self._models.clean
            )
        )
        command = endpoints | {
            "do": "open",
            "database": str(self.place.absolute()),
            "create": settings.prebuilt is None,
            "reranker": None,
            "answerer": None,
            "options": settings.options,
        }
        try:
            told = self._adapter.ask({"do": "describe"}, READY_LIMIT_S)
            reply = self._adapter.ask(command, READY_LIMIT_S) if told["ok"] else told
        except Lost as lost:
            reply = {"ok": False, "error": f"{lost}; its log ends: {model_server.log_end(log_path)}"}
        if not reply["ok"]:
            raise RemeasureError(
                f"{self.place}: adapter {settings.adapter!r} cannot open it: {one_line(str(reply.get('error')))}; "
                "repair the cause and run the same command again"
            )
        self._stamp, self._versions = reply.get("stamp"), replying.versions(told)
        database.check_stamp(self._stamp, settings.served_name, settings.vector_dim, self.place)

    def _open_again(self) -> None:
        self._running.close()
        self._check_servers()
        self._open()

    def _check_servers(self) -> None:
        if reason := self._models.died():
            raise RemeasureError(
                f"{reason}; repair the cause and run the same command again: what is done is kept"
            )

    # -- checking ------------------------------------------------------------------------------------------

    def _ask(self, command: dict[str, Any], limit_s: float) -> dict[str, Any]:
        try:
            reply = self._adapter.ask(command, limit_s)
        except Lost as lost:
            reply = {"ok": False, "error": str(lost)}
        if not reply["ok"]:
            self._check_servers()
            raise RemeasureError(
                f"{self.place}: {command['do']} failed: {one_line(str(reply.get('error')))}; its log is "
                f"{self._folder / 'logs' / 'adapter.log'}; repair the cause and run the same command again"
            )
        return reply

    def _finish(self) -> Counts:
        reply = self._ask({"do": "finish"}, _FINISH_LIMIT_S)
        try:
            return msgspec.convert({name: reply.get(name) for name in Counts.__struct_fields__}, Counts)
        except msgspec.ValidationError as error:
            raise RemeasureError(
                f"{self.place}: adapter {self._settings.adapter!r} does not count: {error}"
            ) from None

    def _check_failed(self, progress: Progress) -> None:
        most, failed = self._settings.max_failed_documents, progress.failed
        if len(failed) <= most:
            return
        shown = "; ".join(f"{uri!r}: {reason}" for uri, reason in list(failed.items())[:_SHOWN])
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        raise RemeasureError(
            f"{self.place}: {len(failed)} documents could not be ingested, allowed are {most}: {shown}{more}; all "
            f"stand in {self._folder / 'progress.json'}: repair the cause and rerun, or raise "
            "`max_failed_documents` in the options of the database"
        )

    def _check_counts(self, counts: Counts, progress: Progress | None) -> int:
        """Compare the database with the documents; return how many there are."""
        n_all, most = jsonl.count(self._documents), self._settings.max_failed_documents
        if counts.n_indexed != counts.n_chunks:
            raise RemeasureError(
                f"{self.place}: the full text index covers {counts.n_indexed} of {counts.n_chunks} chunks: searches "
                "would be wrong without a word; build the database again"
            )
        lowest = n_all - (len(progress.failed) if progress else most)
        highest = lowest if progress else n_all
        if not lowest <= counts.n_documents <= highest:
            raise RemeasureError(
                f"{self.place}: holds {counts.n_documents} documents with chunks, the dataset has {n_all}, of which "
                f"{n_all - lowest} may be missing; build it again, or take a database of these documents"
            )
        return n_all

    def _check_full_text(self, failed: set[str]) -> None:
        words = fulltext.probes(one for one in _read(self._documents) if one.uri not in failed)
        if not words:
            log.info("no document has a word of its own: full text search is not tested")
            return
        command = {
            "do": "search",
            "queries": [probe.word for probe in words],
            "limit": fulltext.LIMIT,
            "filter": None,
            "mode": "text",
        }
        results = self._ask(command, READY_LIMIT_S).get("results")
        found = [replying.of_search(one, fulltext.LIMIT, 0.0) for one in results or ()]
        if len(found) != len(words) or any(one.kind for one in found):
            said = next((one.error for one in found if one.kind), f"{len(found)} results")
            raise RemeasureError(
                f"{self.place}: searching {len(words)} words gave {said}; repair the adapter"
            )
        lost = fulltext.missed(words, [(one.text or "").split("\n") for one in found])
        if lost:
            raise RemeasureError(
                f"{self.place}: full text search does not find {lost[0].word!r}, which stands in document "
                f"{lost[0].uri!r} ({len(lost)} of {len(words)} such words): its index is incomplete, or the "
                "database holds other documents; build it again"
            )


def _read(documents: Path) -> Iterator[Document]:
    """Yield the documents of a dataset, each uri once."""
    for document in jsonl.unique(jsonl.read(documents, Document), "uri", documents):
        if not document.uri or not document.uri.isprintable():
            raise RemeasureError(
                f"{documents}: uri {document.uri[:80]!r} is empty or has letters that are not printed; correct it"
            )
        yield document


def _told(document: Document) -> dict[str, Any]:
    """Return a document as an adapter is told; a file is looked at first."""
    if document.path is None:
        return msgspec.to_builtins(document)
    path = Path(document.path)
    if not path.is_file():
        raise RemeasureError(f"{path}: file of document {document.uri!r} is not there; bring it")
    if document.sha256 is not None and (found := sha256_file(path)) != document.sha256:
        raise RemeasureError(
            f"{path}: file of document {document.uri!r} has SHA-256 {found[:16]}…, the dataset says "
            f"{document.sha256[:16]}…; load the dataset again"
        )
    return msgspec.to_builtins(document) | {"path": str(path.absolute())}


def _failures(told: Any, batch: list[Document]) -> dict[str, str]:
    """Return the failed documents of a reply; those that were not given are passed over."""
    given = {document.uri for document in batch}
    rows = [row for row in told or () if isinstance(row, dict) and row.get("uri") in given]
    for row in rows:
        log.warning("document %r failed: %s", row["uri"], one_line(str(row.get("reason"))))
    return {row["uri"]: one_line(str(row.get("reason") or "no reason given")) for row in rows}


def _listing(folder: Path) -> str:
    """Return a hash of names and sizes: files of such databases are named anew whenever they change."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return sha256_bytes(
        "".join(f"{path.relative_to(folder)} {path.stat().st_size}\n" for path in files).encode()
    )
