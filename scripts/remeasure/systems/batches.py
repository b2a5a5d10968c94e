"""The documents of a dataset in the batches in which a system gets them, and how far it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.records import Document, Record, is_uri

_BATCH_BYTES = 4 << 20
# Files are converted, which takes seconds each.
_FILES_PER_BATCH = 8


class Progress(Record, kw_only=True):
    """How far a database is; stands beside it."""

    identity: str
    """Hash of settings and documents: with others it is begun anew."""
    n_done: int = 0
    """Documents that were given, from the first."""
    failed: dict[str, str] = {}
    """Uri to reason, of those that are not in it."""

    def and_then(self, n_read: int, batch: list[Document], failed: dict[str, str]) -> "Progress":
        """Return it after one more batch.

        Args:
            n_read: documents up to the end of the batch.
            batch: what was given.
            failed: those of it that failed, with reasons.
        """
        given = {document.uri for document in batch}
        before = {uri: reason for uri, reason in self.failed.items() if uri not in given}
        return Progress(identity=self.identity, n_done=max(self.n_done, n_read), failed=before | failed)


def read(documents: Path) -> Iterator[Document]:
    """Yield the documents of a dataset, each uri once.

    Raises:
        RemeasureError: a uri that stands there twice, or that no list of one per line could hold.
    """
    for document in jsonl.unique(jsonl.read(documents, Document), "uri", documents):
        if not is_uri(document.uri):
            raise RemeasureError(
                f"{documents}: uri {document.uri[:80]!r} is no line of text without control characters; "
                "correct it"
            )
        yield document


def missing(documents: Path, progress: Progress, most: int) -> Iterator[tuple[int, list[Document]]]:
    """Yield what is to be given in batches, each with the number of documents up to its end.

    What failed before is given again.

    Args:
        documents: ``documents.jsonl``.
        progress: what was done before.
        most: texts in a batch; of files and of long texts there are fewer.
    """
    batch: list[Document] = []
    n_bytes = number = 0
    for number, document in enumerate(read(documents), start=1):
        if number <= progress.n_done and document.uri not in progress.failed:
            continue
        size = len((document.text or "").encode())
        is_full = len(batch) >= (_FILES_PER_BATCH if document.path else most)
        if batch and (is_full or n_bytes + size > _BATCH_BYTES):
            yield number - 1, batch
            batch, n_bytes = [], 0
        batch.append(document)
        n_bytes += size
    if batch:
        yield number, batch


def told(document: Document) -> dict[str, Any]:
    """Return a document as an adapter is told.

    Raises:
        RemeasureError: its file is not there, or another one than the dataset says.
    """
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
