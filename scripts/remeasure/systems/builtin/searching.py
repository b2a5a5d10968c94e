"""Hybrid search: two lists fused by reciprocal ranks, reranked where there is a model for it.

Ties are broken once and in one way: by score, then uri, then chunk.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from remeasure.systems.builtin.database import Database, Row
from remeasure.systems.builtin.endpoints import Endpoint
from remeasure.systems.builtin.failing import Failed

RRF = 60
RERANKED = 10
"""Candidates per hit that a reranker sees."""


class Scored(NamedTuple):
    """A chunk with its score."""

    row: Row
    score: float


class Found(NamedTuple):
    """What a search found."""

    chunks: list[Scored]
    """As many as the limit, best first."""
    documents: list[Scored]
    """The best chunk of each document, as many documents as the limit, best first."""


def in_order(scored: Sequence[Scored]) -> list[Scored]:
    """Return chunks best first."""
    return sorted(scored, key=lambda one: (-one.score, one.row.uri, one.row.chunk))


def fused(lists: Sequence[Sequence[Row]]) -> list[Scored]:
    """Fuse ranked lists: a chunk's score is the sum of 1 / (60 + rank) over the lists that hold it.

    Source:
        Cormack, Clarke and Buettcher, SIGIR 2009: reciprocal rank fusion with k = 60.
    """
    scores: dict[Row, float] = {}
    for ranked in lists:
        for rank, row in enumerate(ranked, start=1):
            scores[row] = scores.get(row, 0.0) + 1 / (RRF + rank)
    return in_order([Scored(row, score) for row, score in scores.items()])


def best_of_documents(scored: Sequence[Scored], first: dict[str, Scored]) -> None:
    """Add the first chunk of each document that is not among ``first`` yet."""
    for one in scored:
        first.setdefault(one.row.uri, one)


class Searcher:
    """Searches one database.

    Args:
        database: it.
        candidates: chunks that vectors and full text each contribute at first.
        reranker: what scores candidates again; null: nothing does.
    """

    def __init__(self, database: Database, candidates: int, reranker: Endpoint | None) -> None:
        self._database, self._candidates, self._reranker = database, candidates, reranker

    async def search(self, text: str, vector: np.ndarray, limit: int, where: str | None) -> Found:
        """Search by words and by vector.

        Documents are those of the chunks. Where these are fewer than the limit, further candidates give more
        documents behind them, then twice as many candidates, until there are enough or every chunk
        was looked at: what comes first never changes.
        """

        async def lists(depth: int) -> list[list[Row]]:
            return await asyncio.gather(
                self._database.nearest(vector, depth, where), self._database.matching(text, depth, where)
            )

        return await self._widened(text, limit, lists)

    async def by_words(self, text: str, limit: int, where: str | None) -> Found:
        """Search the full text index alone, without a reranker."""
        chunks: list[Scored] = []
        documents: dict[str, Scored] = {}
        depth = max(limit, self._candidates)
        while True:
            rows = await self._database.matching(text, depth, where)
            ranked = fused([rows])
            chunks = chunks or ranked[:limit]
            best_of_documents(ranked, documents)
            if len(documents) >= limit or len(rows) < depth:
                return Found(chunks, list(documents.values())[:limit])
            depth *= 2

    async def _widened(self, text: str, limit: int, lists: Callable[[int], Any]) -> Found:
        seen: dict[Row, float] = {}
        chunks: list[Scored] = []
        documents: dict[str, Scored] = {}
        take = limit * RERANKED if self._reranker else limit
        depth = max(take, self._candidates)
        while True:
            near, words = await lists(depth)
            ranked = fused([near, words])
            if self._reranker:
                ranked = await self._reranked(text, ranked[:take], seen)
            chunks = chunks or ranked[:limit]
            best_of_documents(ranked, documents)
            # The list by vectors holds every chunk once it is shorter than asked for.
            if len(documents) >= limit or (len(near) < depth and take >= len(near)):
                return Found(chunks, list(documents.values())[:limit])
            depth, take = depth * 2, take * 2

    async def _reranked(self, text: str, ranked: list[Scored], seen: dict[Row, float]) -> list[Scored]:
        new = [one.row for one in ranked if one.row not in seen]
        if new:
            scores = await asyncio.to_thread(_scores, self._reranker, text, [row.text for row in new])
            seen.update(zip(new, scores, strict=True))
        return in_order([Scored(one.row, seen[one.row]) for one in ranked])


def _scores(endpoint: Endpoint, query: str, documents: list[str]) -> list[float]:
    """Return a reranker's score of each document, 0 to 1 or whatever it gives, higher is better."""
    body = {"model": endpoint.model, "query": query, "documents": documents}
    reply = endpoint.post("/rerank", body)
    try:
        told = sorted((entry["index"], float(entry["relevance_score"])) for entry in reply["results"])
        if [index for index, _ in told] != list(range(len(documents))):
            raise ValueError(f"indices are not 0 to {len(documents) - 1}, each once")
        found = [score for _, score in told]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        text = f"{endpoint.model} /rerank: not a score for each document ({type(error).__name__}: {error})"
        raise Failed("server_error", text[:300]) from None
    if not np.isfinite(found).all():
        raise Failed("server_error", f"{endpoint.model} /rerank: a score that is no number")
    return found
