"""A database of haiku.rag: opened, filled, its full text index completed, counted."""

import json
from pathlib import Path
from typing import Any

from remeasure.systems.haiku import configuration, failures
from remeasure.systems.haiku.chunking import chunks_of
from remeasure.systems.haiku.failures import Failed

FORMATS = {"md": "md", "text": "plain"}
"""Formats of a document's text in the words of the library."""


async def opened(path: Path, config: Any, embedder: dict[str, Any], *, create: bool) -> Any:
    """Open a database; without ``create`` read only.

    The library's own check of the embedder is left out: when reading, it lets another one of the same size
    pass. The workflow compares what ``stamp_of`` tells.

    Raises:
        Failed: there is none, or another version has made it.
    """
    from haiku.rag.client import HaikuRAG

    if not create and not path.is_dir():
        raise Failed("fatal", f"{path}: there is no database")
    with configuration.sending_key(embedder):
        rag = HaikuRAG(path, config=config, create=create, read_only=not create, skip_validation=True)
        try:
            await rag.__aenter__()
        except Exception as error:  # of a dozen classes, none of which can be gone on from
            said = failures.one_line(error)
            raise Failed("fatal", f"{path}: cannot be opened ({type(error).__name__}): {said}") from error
    return rag


async def stamp_of(rag: Any) -> dict[str, Any]:
    """Return what a database itself says of how it was made: embedder, sizes, version."""
    rows = await rag.store.settings_table.query().where("id = 'settings'").limit(1).to_list()
    try:
        told = json.loads(rows[0]["settings"]) if rows else {}
    except (TypeError, ValueError):
        told = {}
    told = told if isinstance(told, dict) else {}
    embedding = told.get("embeddings", {}).get("model", {})
    processing = told.get("processing", {})
    return {
        "model": embedding.get("name"),
        "vector_dim": embedding.get("vector_dim"),
        "provider": embedding.get("provider"),
        "made_by": f"haiku.rag-slim {told.get('version', 'unknown')}",
        "chunk_tokens": processing.get("chunk_size"),
        "tokenizer": processing.get("chunking_tokenizer"),
        "pictures": processing.get("pictures"),
    }


class Filling:
    """Documents that go into an open database; what is there already with chunks is skipped."""

    def __init__(self, rag: Any, options: dict[str, Any]) -> None:
        if "chunking" not in options:
            raise Failed("fatal", "option chunking is missing; say own or docling")
        if options["chunking"] == "own" and not isinstance(options.get("chunk_tokens"), int):
            raise Failed("fatal", "option chunk_tokens is missing; own chunks need their size")
        counted = options.get("tokenizer")
        if options["chunking"] == "docling" and not (counted and Path(counted).is_dir()):
            raise Failed(
                "fatal", "option tokenizer: expected a folder that is there; docling counts tokens with it"
            )
        self._rag, self._options = rag, options
        self._complete: set[str] | None = None

    async def _known(self) -> set[str]:
        """Return the uris that are complete; what a killed attempt left without chunks is taken out."""
        if self._complete is None:
            store = self._rag.store
            documents = await store.document_meta_table.query().select(["id", "uri"]).to_arrow()
            chunks = await store.chunks_table.query().select(["document_id"]).to_arrow()
            with_chunks = set(chunks.column("document_id").to_pylist())
            self._complete = set()
            for row in documents.to_pylist():
                if row["id"] in with_chunks:
                    self._complete.add(row["uri"])
                else:
                    await self._rag.delete_document(row["id"])
        return self._complete

    async def add(self, documents: list[dict[str, Any]]) -> dict[str, Any]:
        """Put documents into the database.

        Args:
            documents: as ``records.Document``.

        Returns:
            How many documents and chunks were written, and which documents failed and why. An embedder that
            is not reached is no document's failure: it is raised.
        """
        known, failed, prepared = await self._known(), [], []
        waiting: set[str] = set()
        for document in documents:
            if document["uri"] in known or document["uri"] in waiting:
                continue
            try:
                prepared.append(await self._prepared(document))
                waiting.add(document["uri"])
            except (OSError, ValueError, RuntimeError, TypeError, LookupError, ImportError) as error:
                reason = f"{type(error).__name__}: {failures.one_line(error)}"
                failed.append({"uri": document["uri"], "reason": reason})
        written = await self._written(prepared, failed)
        known.update(each.uri for each in written)
        n_chunks = sum(len(each.chunks) for each in written)
        return {"n_documents": len(written), "n_chunks": n_chunks, "failed": failed}

    async def _written(self, prepared: list[Any], failed: list[dict[str, str]]) -> list[Any]:
        """Write prepared documents; where the embedder refuses a text, all but that document."""
        try:
            await self._rag.import_documents(prepared)
        except Exception as error:  # all but a refused text is raised again
            if failures.kind_of(error) not in ("refused", "context_length"):
                raise
            if len(prepared) > 1:
                halves = prepared[: len(prepared) // 2], prepared[len(prepared) // 2 :]
                return [each for half in halves for each in await self._written(half, failed)]
            failed.append({"uri": prepared[0].uri, "reason": f"embedder: {failures.one_line(error)}"})
            return []
        return prepared

    async def _prepared(self, document: dict[str, Any]) -> Any:
        from haiku.rag.client.documents import DocumentImport

        way = self._own if self._options["chunking"] == "own" else self._docling
        converted, chunks = await way(document)
        if not chunks:
            raise ValueError("there is no text in it")
        return DocumentImport(
            docling_document=converted,
            chunks=chunks,
            uri=document["uri"],
            title=document["title"],
            metadata=document.get("metadata") or {},
        )

    async def _own(self, document: dict[str, Any]) -> tuple[Any, list[Any]]:
        from docling_core.types.doc.document import DoclingDocument
        from docling_core.types.doc.labels import DocItemLabel
        from haiku.rag.store.models.chunk import Chunk

        if document.get("text") is None:
            raise ValueError("own chunking reads texts, this is a file; take chunking: docling")
        converted = DoclingDocument(name=document["uri"])
        chunks = []
        for order, piece in enumerate(chunks_of(document["text"], self._options["chunk_tokens"])):
            item = converted.add_text(label=DocItemLabel.TEXT, text=piece)
            place = {"doc_item_refs": [item.self_ref], "labels": ["text"]}
            chunks.append(Chunk(content=piece, metadata=place, order=order))
        return converted, chunks

    async def _docling(self, document: dict[str, Any]) -> tuple[Any, list[Any]]:
        from haiku.rag.converters import get_converter

        if document.get("text") is not None:
            # Not `convert`: it would fetch a text that is an address.
            converter = get_converter(self._rag._config)
            given = FORMATS[document.get("format", "md")]
            converted = await converter.convert_text(document["text"], format=given)
        else:
            converted = await self._rag.convert(Path(document["path"]).resolve(strict=True))
        return converted, await self._rag.chunk(converted)


async def completed(rag: Any, *, write: bool) -> dict[str, int]:
    """Make the full text index cover every row, and count.

    Without this, 0.77.0 searches an index that covers none: nothing fails, and rankings are wrong.

    Args:
        rag: an open database.
        write: whether it may be written; else it is only counted.
    """
    if write:
        await rag.store.vacuum(retention_seconds=0)
    chunks = rag.store.chunks_table
    rows = await chunks.query().select(["document_id"]).to_arrow()
    n_indexed = 0
    for index in await chunks.list_indices():
        if list(index.columns) == ["content_fts"]:
            told = await chunks.index_stats(index.name)
            n_indexed = told.num_indexed_rows if told else 0
    documents = set(rows.column("document_id").to_pylist())
    return {"n_documents": len(documents), "n_chunks": rows.num_rows, "n_indexed": n_indexed}
