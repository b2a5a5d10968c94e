"""Commands in, replies out: the adapter's loop."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from remeasure.systems.haiku import answering, configuration, database, failures, library, searching
from remeasure.systems.haiku.failures import Failed

ENDPOINTS = ("embedder", "reranker", "answerer")


def quiet() -> None:
    """Keep the libraries from reading the user's files, telling anyone of a run, and reaching for a hub."""
    for name in ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HAIKU_RAG_DB"):
        os.environ.pop(name, None)
    os.environ["OPENAI_API_KEY"] = configuration.NO_KEY
    os.environ["HAIKU_RAG_CONFIG_PATH"] = os.devnull
    os.environ["LOGFIRE_IGNORE_NO_CONFIG"] = "1"
    os.environ["LOGFIRE_SEND_TO_LOGFIRE"] = "false"
    os.environ["OTEL_SDK_DISABLED"] = "true"
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"


class Adapter:
    """One open database at a time, and what may be asked of it."""

    def __init__(self) -> None:
        self._rag: Any = None
        self._filling: database.Filling | None = None
        self._answerer: answering.Answerer | None = None
        self._writes = False
        self._options: dict[str, Any] = {}
        self.secrets: tuple[str, ...] = ()
        """Keys of the endpoints of the open database."""

    async def reply(self, command: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to one command; only what ends the process is raised."""
        ways = {
            "describe": self._describe,
            "open": self._open,
            "ingest": self._ingest,
            "finish": self._finish,
            "search": self._search,
            "answer": self._answer,
            "converse": self._answer,
            "forget": self._forget,
        }
        try:
            if command.get("do") not in ways:
                raise Failed("fatal", f"do: {command.get('do')!r} is unknown; known: {', '.join(ways)}")
            return await ways[command["do"]](command)
        except Failed as error:
            return {"ok": False, "kind": error.kind, "error": failures.one_line(error)}
        except KeyError as error:
            return {"ok": False, "kind": "fatal", "error": f"{command.get('do')}: {error} is missing"}
        except Exception as error:  # a command must be answered whatever happens
            said = f"{type(error).__name__}: {failures.one_line(error)}"
            return {"ok": False, "kind": failures.kind_of(error), "error": said}

    async def _describe(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "versions": library.versions(), "arms": library.arms()}

    async def _open(self, command: dict[str, Any]) -> dict[str, Any]:
        await self._closed()
        options = command.get("options") or {}
        configuration.check_options(options)
        endpoints = {role: command.get(role) for role in ENDPOINTS}
        if endpoints["embedder"] is None:
            raise Failed("fatal", "open: no embedder was given")
        given = [each for each in endpoints.values() if each is not None]
        self.secrets = tuple(key for each in given if (key := failures.key_of(each)))
        config = configuration.app_config(endpoints, options, merged_code=library.is_merged())
        path, self._writes = Path(command["database"]), bool(command.get("create"))
        self._rag = await database.opened(path, config, endpoints["embedder"], create=self._writes)
        self._options, self._filling = options, None
        self._answerer = answering.Answerer(self._rag, path, endpoints, options)
        stamp, asked = await database.stamp_of(self._rag), endpoints["embedder"]
        if stamp["vector_dim"] not in (None, asked["vector_dim"]):
            await self._closed()
            raise Failed(
                "fatal",
                f"{path}: its vectors are of {stamp['model']!r} with {stamp['vector_dim']} numbers, those of "
                f"the embedder {asked['model']!r} have {asked['vector_dim']}; take the one that made it",
            )
        return {"ok": True, "stamp": stamp}

    def _open_one(self) -> Any:
        if self._rag is None:
            raise Failed("fatal", "no database is open; send `open` first")
        return self._rag

    async def _ingest(self, command: dict[str, Any]) -> dict[str, Any]:
        rag = self._open_one()
        if not self._writes:
            raise Failed("fatal", "ingest: the database was opened for reading; send `create`: true")
        self._filling = self._filling or database.Filling(rag, self._options)
        return {"ok": True} | await self._filling.add(command["documents"])

    async def _finish(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True} | await database.completed(self._open_one(), write=self._writes)

    async def _search(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "results": await searching.searched(self._open_one(), command)}

    async def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        self._open_one()
        assert self._answerer is not None
        return await self._answerer.answer(command)

    async def _forget(self, command: dict[str, Any]) -> dict[str, Any]:
        await self._closed()
        return {"ok": True}

    async def _closed(self) -> None:
        """Close the database that is open, if any."""
        rag, self._rag = self._rag, None
        if rag is not None:
            await rag.__aexit__(None, None, None)


def read(line: bytes) -> dict[str, Any]:
    """Return a command.

    Raises:
        Failed: the line is none.
    """
    try:
        command = json.loads(line)
    except ValueError as error:
        raise Failed("fatal", f"a command that is no JSON: {failures.one_line(error)}") from error
    if not isinstance(command, dict):
        raise Failed("fatal", "a command that is no object")
    return command


def written(reply: dict[str, Any], secrets: tuple[str, ...] = ()) -> bytes:
    """Return a reply as a line.

    Args:
        reply: halves of characters that a model made stand as question marks.
        secrets: keys; a server that repeats one in an error must not bring it into a file.
    """
    line = json.dumps(reply, ensure_ascii=False, allow_nan=False)
    for secret in secrets:
        line = line.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "(key)")
    return line.encode("utf-8", "replace") + b"\n"


def serve(commands: IO[bytes], replies: IO[bytes]) -> int:
    """Answer commands until there are no more."""
    quiet()
    adapter = Adapter()
    with asyncio.Runner() as runner:
        for line in commands:
            command: dict[str, Any] = {}
            try:
                command = read(line)
                reply = runner.run(adapter.reply(command))
            except Failed as error:
                reply = {"ok": False, "kind": error.kind, "error": failures.one_line(error)}
            except KeyboardInterrupt:
                return 130
            if "id" in command:
                reply["id"] = command["id"]
            replies.write(written(reply, adapter.secrets))
            replies.flush()
        runner.run(adapter._closed())
    return 0


def own_output() -> IO[bytes]:
    """Return where replies go; what libraries print goes to standard error from here on."""
    sys.stdout.flush()
    kept = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return kept
