"""A LanceDB database of chunks: rows with vectors, a full text index, and what says which embedder made them.

One table. Its schema carries the stamp, written with the table and never changed. A document's chunks are
written at once, so that what a killed step has left holds documents whole or not at all.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remeasure.systems import filters
from remeasure.systems.builtin.failing import Failed

_TABLE, _STAMP = "chunks", b"remeasure"
_WORDS_INDEX = "text_idx"
_COLUMNS = ("uri", "title", "chunk", "text")


class Row(NamedTuple):
    """A chunk that a list holds."""

    uri: str
    title: str
    chunk: str
    text: str


def chunk_id(uri: str, position: int) -> str:
    """Return the id of a chunk, the same in every database of the same documents.

    16 letters: a model can copy them, and ids of neighbours are not alike, so that one is not mistaken for
    the other where a copy has a slip (``citing``).
    """
    return hashlib.sha256(f"{uri}\0{position}".encode("utf-8", "replace")).hexdigest()[:16]


@contextlib.contextmanager
def _failing(place: Path | str) -> Iterator[None]:
    """Say in one line what LanceDB could not do, such as on a full disk: nothing more can be done then."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:300]
        raise Failed("fatal", f"{place}: {said}; delete the folder to make it anew") from None


def _schema(stamp: dict[str, Any]):
    import pyarrow

    texts = ("uri", "title", "format", "metadata", "chunk", "text")
    fields = [pyarrow.field(name, pyarrow.string(), nullable=False) for name in texts]
    fields.append(pyarrow.field("position", pyarrow.int32(), nullable=False))
    vector = pyarrow.list_(pyarrow.float32(), stamp["vector_dim"])
    fields.append(pyarrow.field("vector", vector, nullable=False))
    return pyarrow.schema(fields, metadata={_STAMP: json.dumps(stamp, sort_keys=True).encode()})


class Database:
    """An open database."""

    def __init__(self, folder: Path, table, stamp: dict[str, Any], writable: bool) -> None:
        self.stamp = stamp
        self.writable = writable
        self._folder, self._table = folder, table

    @classmethod
    async def open(cls, folder: Path, stamp: dict[str, Any] | None) -> "Database":
        """Open a database.

        Args:
            folder: of LanceDB.
            stamp: what a new one is to say of itself, with ``model`` and ``vector_dim``; null: it must be
                there and is only read.

        Raises:
            Failed: it is missing, is none of ours, or was made otherwise than it is to be gone on with.
        """
        import lancedb

        with _failing(folder):
            connection = await lancedb.connect_async(str(folder))
            names = (await connection.list_tables()).tables if folder.is_dir() else []
            if _TABLE not in names:
                if stamp is None:
                    raise Failed(
                        "fatal", f"{folder}: no database of the built-in system; ingest the documents"
                    )
                table = await connection.create_table(_TABLE, schema=_schema(stamp))
                return cls(folder, table, stamp, writable=True)
            table = await connection.open_table(_TABLE)
            found = _stamp_of((await table.schema()).metadata, folder)
        if stamp is not None and stamp != found:
            raise Failed(
                "fatal",
                f"{folder}: made with {json.dumps(found, sort_keys=True)}, now it is to be "
                f"{json.dumps(stamp, sort_keys=True)}; delete the folder to make it anew",
            )
        return cls(folder, table, found, writable=stamp is not None)

    async def uris(self) -> set[str]:
        """Return the documents that are there."""
        return set((await self._table.query().select(["uri"]).to_arrow())["uri"].to_pylist())

    async def add(self, rows: Sequence[dict[str, Any]], vectors: np.ndarray) -> None:
        """Write rows at once.

        Args:
            rows: the columns but for the vector.
            vectors: shape (len(rows), dim), float32.
        """
        import pyarrow

        schema = _schema(self.stamp)
        columns = {
            name: pyarrow.array([row[name] for row in rows], schema.field(name).type)
            for name in schema.names
            if name != "vector"
        }
        flat = pyarrow.array(np.ascontiguousarray(vectors).reshape(-1))
        columns["vector"] = pyarrow.FixedSizeListArray.from_arrays(flat, self.stamp["vector_dim"])
        with _failing(self._folder):
            await self._table.add(pyarrow.table(columns, schema=schema))

    async def finish(self) -> None:
        """Pack what many writes have left and index every row.

        Always in the same way: the same rows give the same index, however often the making was interrupted.
        """
        from datetime import timedelta

        from lancedb.index import FTS, BTree

        with _failing(self._folder):
            # Older versions go at once: nobody reads a database that is being made.
            await self._table.optimize(cleanup_older_than=timedelta(milliseconds=1))
            if await self._table.count_rows():
                await self._table.create_index("text", config=FTS(), name=_WORDS_INDEX, replace=True)
                await self._table.create_index("chunk", config=BTree(), replace=True)

    async def counts(self) -> dict[str, int]:
        """Return documents, chunks, and chunks that the full text index covers."""
        n_chunks = await self._table.count_rows()
        stats = await self._table.index_stats(_WORDS_INDEX)
        return {
            "n_documents": len(await self.uris()),
            "n_chunks": n_chunks,
            "n_indexed": stats.num_indexed_rows if stats else 0,
        }

    async def check_filter(self, where: str | None) -> None:
        """Check a filter.

        Raises:
            Failed: it is not SQL over the columns.
        """
        if where is None:
            return
        if not filters.is_one(where):
            raise Failed("bad_filter", f"filter {where[:100]!r}: not one SQL expression")
        try:
            await self._table.count_rows(f"({where})")
        except (ValueError, RuntimeError, OSError) as error:
            said = " ".join(str(error).split())[:200]
            raise Failed("bad_filter", f"filter {where[:100]!r}: {said}") from None

    async def nearest(self, vector: np.ndarray, limit: int, where: str | None) -> list[Row]:
        """Return chunks by the cosine of their vectors, best first; equal ones by uri, then chunk."""
        query = self._table.query().nearest_to(vector).distance_type("cosine").limit(limit)
        return await self._ordered(query, where, "_distance", 1)

    async def matching(self, text: str, limit: int, where: str | None) -> list[Row]:
        """Return chunks by BM25 of their words, best first; equal ones by uri, then chunk.

        Edges:
            Words that occur nowhere, or none: an empty list.
        """
        from lancedb.query import MatchQuery

        if not any(letter.isalnum() for letter in text):
            return []
        query = self._table.query().nearest_to_text(MatchQuery(text, "text")).limit(limit)
        return await self._ordered(query, where, "_score", -1)

    async def chunks(self, ids: Iterable[str]) -> list[Row]:
        """Return chunks by id, in the order of the ids; those that are not there are left out."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return []
        told = ", ".join("'" + one.replace("'", "''") + "'" for one in wanted)
        with _failing(self._folder):
            table = await self._table.query().where(f"chunk IN ({told})").select(list(_COLUMNS)).to_arrow()
        found = {row.chunk: row for row in _rows(table)}
        return [found[one] for one in wanted if one in found]

    async def _ordered(self, query, where: str | None, by: str, sign: int) -> list[Row]:
        """Return what a query finds, in the order of a column."""
        if where is not None:
            query = query.where(where)
        with _failing(self._folder):
            table = await query.select([*_COLUMNS, by]).to_arrow()
        keyed = zip(table[by].to_pylist(), _rows(table), strict=True)
        return [
            row for _, row in sorted(keyed, key=lambda pair: (sign * pair[0], pair[1].uri, pair[1].chunk))
        ]


def _stamp_of(metadata: dict[bytes, bytes] | None, folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((metadata or {})[_STAMP])
        if isinstance(found["model"], str) and isinstance(found["vector_dim"], int):
            return found
    except (KeyError, TypeError, ValueError):
        pass
    raise Failed("fatal", f"{folder}: its table does not say which embedder made it; ingest the documents")


def _rows(table) -> list[Row]:
    return [Row(*values) for values in zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)]
