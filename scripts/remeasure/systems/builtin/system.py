"""The commands of the contract, carried out on one open database."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

from remeasure import requests
from remeasure.errors import RemeasureError
from remeasure.systems.builtin import compacting, ingesting, options, tools
from remeasure.systems.builtin.answering import Answerer, Message, Work
from remeasure.systems.builtin.database import Database, Row
from remeasure.systems.builtin.embedding import Embedding
from remeasure.systems.builtin.endpoints import Endpoint
from remeasure.systems.builtin.failing import Failed
from remeasure.systems.builtin.searching import Found, Scored, Searcher

ARMS = ("search", "rag")
_PACKAGES = ("lancedb", "pyarrow", "numpy")
# Nothing that a query can help: the command fails, and is sent again.
_ALL_FAIL = ("connection", "timeout", "fatal")
_AT_ONCE = 4
"""Searches of one command that are under way at once: LanceDB's own threads need the cores."""
_SHOWN = 300
"""Characters of a chunk that a hit shows."""
# Words of ``answer`` and ``converse`` that are not of sampling.
_OWN = (
    "do",
    "id",
    "turns",
    "question",
    "carry",
    "compact",
    "preamble",
    "target",
    "filter",
    "ok",
)


class System:
    """What ``scripts/systems/builtin.py`` talks to; one database at a time."""

    def __init__(self) -> None:
        self._database: Database | None = None
        self._there: set[str] = set()

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command.

        Raises:
            Failed: it has no result.
        """
        does = {
            "describe": self._describe,
            "open": self._open,
            "ingest": self._ingest,
            "finish": self._finish,
            "search": self._search,
            "answer": self._answer,
            "converse": self._converse,
            "forget": self._forget,
        }
        name = command.get("do")
        if name not in does:
            raise Failed("fatal", f"no such command: {str(name)[:60]!r}")
        if name not in ("describe", "open", "forget") and self._database is None:
            raise Failed("fatal", f"{name}: no database is open")
        return await does[name](command)

    async def _describe(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"versions": {name: version(name) for name in _PACKAGES}, "arms": list(ARMS)}

    async def _open(self, command: dict[str, Any]) -> dict[str, Any]:
        self._options = options.read(command.get("options") or {})
        embedder = command["embedder"]
        self._embedding = Embedding(Endpoint(embedder), embedder["vector_dim"])
        told = command.get("answerer")
        self._answerer = Endpoint(told) if told else None
        told = command.get("reranker")
        stamp = {
            "model": embedder["model"],
            "vector_dim": embedder["vector_dim"],
            "chunk_tokens": self._options.chunk_tokens,
        }
        folder = Path(command["database"])
        self._database = await Database.open(folder, stamp if command.get("create") else None)
        self._there = await self._database.uris() if command.get("create") else set()
        self._searcher = Searcher(self._database, self._options.candidates, Endpoint(told) if told else None)
        return {"stamp": self._database.stamp}

    async def _ingest(self, command: dict[str, Any]) -> dict[str, Any]:
        if not self._database.writable:
            raise Failed("fatal", "ingest: the database is open for reading only")
        return await ingesting.ingest(
            self._database, self._embedding, command["documents"], self._there, self._options.chunk_tokens
        )

    async def _finish(self, command: dict[str, Any]) -> dict[str, Any]:
        if self._database.writable:
            await self._database.finish()
        return await self._database.counts()

    async def _search(self, command: dict[str, Any]) -> dict[str, Any]:
        texts, limit, where = command["queries"], command["limit"], command.get("filter")
        await self._database.check_filter(where)
        way = self._searcher.by_words if command.get("mode") == "text" else self._hybrid
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(text: str) -> Found:
            async with turns:
                return await way(text, limit, where)

        found = await asyncio.gather(*map(one, texts), return_exceptions=True)
        return {"results": [_told(one) for one in found]}

    async def _hybrid(self, text: str, limit: int, where: str | None) -> Found:
        if not text.strip():
            raise Failed("refused", "an empty query")
        (asked,) = self._embedding.ask([text])
        vectors = await asyncio.wrap_future(asked)
        return await self._searcher.search(text, vectors[0], limit, where)

    async def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        roles = {"user": "user", "agent": "assistant"}
        said = [{"role": roles[turn["speaker"]], "content": turn["text"]} for turn in command["turns"]]
        return await self._asked(command, said, Work())

    async def _converse(self, command: dict[str, Any]) -> dict[str, Any]:
        carry = command.get("carry")
        if carry is None:
            carry = {"messages": [], "evidence": [], "cited": []}
        try:
            messages, evidence, cited = (list(carry[name]) for name in ("messages", "evidence", "cited"))
        except (KeyError, TypeError):
            raise Failed("fatal", "carry: not what this system carries on; forget the answers") from None
        sent = compacting.compacted(messages, evidence, cited) if command["compact"] else messages
        question = {"role": "user", "content": command["question"]}
        work = Work()
        answer = await self._asked(command, [*sent, question], work)
        start = len(messages) + 1
        carried = {
            "messages": [*messages, question, *work.messages],
            "evidence": [*evidence, *(start + place for place in work.evidence)],
            "cited": [
                *cited,
                {
                    "question": command["question"],
                    "chunks": [row._asdict() for row in work.cited.values()],
                },
            ],
        }
        return {**answer, "carry": carried}

    async def _asked(self, command: dict[str, Any], said: list[Message], work: Work) -> dict[str, Any]:
        if self._answerer is None:
            raise Failed("fatal", "no answerer was given; add `answerer` to the system")
        if command.get("target", "rag") != "rag":
            raise Failed("fatal", f"target {command['target']!r}: the built-in system has only rag")
        where = command.get("filter")
        await self._database.check_filter(where)
        words = [tools.INSTRUCTIONS, *([command["preamble"]] if command.get("preamble") else [])]
        before = [{"role": "system", "content": "\n\n".join(words)}, *said]
        sampling = self._sampling(command)

        async def ask(messages: list[Message], offered: list[dict[str, Any]], choice: str) -> Any:
            body = {**sampling, "messages": messages, "tools": offered, "tool_choice": choice}
            return await asyncio.to_thread(self._answerer.post, "/chat/completions", body)

        async def search(query: str, limit: int) -> list[Row]:
            return [one.row for one in (await self._hybrid(query, limit, where)).chunks]

        answerer = Answerer(ask, search, self._database.chunks, self._options)
        try:
            text, finish = await answerer.answer(before, work)
        except Failed as error:
            error.trace = work.trace()
            raise
        return {"text": text, "finish": finish, "trace": work.trace()}

    def _sampling(self, command: dict[str, Any]) -> dict[str, Any]:
        """Return model and sampling in the words of the answerer's server."""
        said = {word: value for word, value in command.items() if word not in _OWN and value is not None}
        endpoint = self._answerer
        try:
            dialect = requests.dialect_of(endpoint.dialect)
            return requests.translate({"messages": [], **said}, dialect, endpoint.model, None)
        except RemeasureError as error:
            raise Failed("fatal", str(error)) from None

    async def _forget(self, command: dict[str, Any]) -> dict[str, Any]:
        self._database, self._there = None, set()
        return {}


def _hit(one: Scored) -> dict[str, Any]:
    return {
        "uri": one.row.uri,
        "chunk": one.row.chunk,
        "score": one.score,
        "text": one.row.text[:_SHOWN],
    }


def _told(found: Found | BaseException) -> dict[str, Any]:
    """Return a search's result, or why there is none."""
    if isinstance(found, Found):
        return {
            "found": [_hit(one) for one in found.chunks],
            "found_documents": [_hit(one) for one in found.documents],
        }
    if isinstance(found, Failed) and found.kind not in _ALL_FAIL:
        return {"kind": found.kind, "error": " ".join(str(found).split())}
    raise found
