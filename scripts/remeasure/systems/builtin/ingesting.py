"""Documents become rows: chunks are embedded while those before them are written."""

import asyncio
import json
from concurrent.futures import Future
from typing import Any

import numpy as np

from remeasure.systems.builtin.chunking import chunks
from remeasure.systems.builtin.database import Database, chunk_id
from remeasure.systems.builtin.embedding import Embedding

_WRITTEN = 256
"""Chunks, about, that are written at once."""


def rows_of(document: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """Return the rows of a document but for their vectors.

    Raises:
        ValueError: it has no text of its own, or none at all; says which.
    """
    if document.get("text") is None:
        raise ValueError(f"a file ({document.get('format')}); the built-in system reads text only")
    title, metadata = document["title"], document.get("metadata") or {}
    found = chunks(title, document["text"], most)
    if not found:
        raise ValueError("no text")
    same = {
        "uri": document["uri"],
        "title": title,
        "format": document.get("format") or "md",
        "metadata": json.dumps(metadata, ensure_ascii=False, sort_keys=True),
    }
    return [
        {**same, "chunk": chunk_id(document["uri"], position), "text": text, "position": position}
        for position, text in enumerate(found)
    ]


async def ingest(
    database: Database, embedding: Embedding, documents: list[dict[str, Any]], there: set[str], most: int
) -> dict[str, Any]:
    """Write documents that are not there yet.

    Args:
        database: where to.
        embedding: what makes their vectors; all are asked for at once, so that it always has work.
        documents: as ``records.Document``.
        there: uris that the database has; what is written is added.
        most: tokens of a chunk.

    Returns:
        Documents and chunks that were written, and what failed.
    """
    failed, parts, taken = [], [[]], set()
    for document in documents:
        uri = document["uri"]
        if uri in there or uri in taken:
            continue
        try:
            rows = rows_of(document, most)
        except ValueError as error:
            failed.append({"uri": uri, "reason": str(error)})
            continue
        taken.add(uri)
        if len(parts[-1]) >= _WRITTEN:
            parts.append([])
        parts[-1] += rows
    await _write(database, embedding, [part for part in parts if part], there)
    return {"n_documents": len(taken), "n_chunks": sum(map(len, parts)), "failed": failed}


async def _write(
    database: Database, embedding: Embedding, parts: list[list[dict[str, Any]]], there: set[str]
) -> None:
    asked: list[list[Future[np.ndarray]]] = [embedding.ask([row["text"] for row in part]) for part in parts]
    try:
        for part, futures in zip(parts, asked, strict=True):
            vectors = [await asyncio.wrap_future(future) for future in futures]
            await database.add(part, np.concatenate(vectors))
            there.update(row["uri"] for row in part)
    finally:
        for future in (one for futures in asked for one in futures):
            future.cancel()
