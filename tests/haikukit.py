"""What tests of haiku.rag's adapter share: a server whose replies are a script, and the adapter as a process.

The server speaks chat completions with tools, embeddings and rerank. Its vectors are counts of words hashed
into 64 places, of length 1; a reranker's score is the number of the query's words that a text has.
"""

import base64
import itertools
import json
import re
import struct
import subprocess
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from remeasure import environments

ROOT = Path(__file__).resolve().parent.parent
DIM = 64

Step = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def vector_of(text: str) -> list[float]:
    counts = [0.0] * DIM
    for word in words_of(text):
        counts[zlib.crc32(word.encode()) % DIM] += 1.0
    length = sum(value * value for value in counts) ** 0.5 or 1.0
    return [value / length for value in counts]


def say(text: str | None, finish: str = "stop") -> dict[str, Any]:
    """A reply in words."""
    return {"message": {"role": "assistant", "content": text}, "finish_reason": finish}


_NUMBERS = itertools.count(1)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls one tool; ``raw`` instead of arguments stands as it is."""
    tool_id = f"call-{next(_NUMBERS)}"
    given = arguments["raw"] if "raw" in arguments else json.dumps(arguments)
    tool = {"id": tool_id, "type": "function", "function": {"name": name, "arguments": given}}
    message = {"role": "assistant", "content": None, "tool_calls": [tool]}
    return {"message": message, "finish_reason": "tool_calls"}


def returned(body: dict[str, Any], nth: int = -1) -> str:
    """What a tool gave back, of all that a request shows."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"][nth]


def chunk_ids(body: dict[str, Any]) -> list[str]:
    """Ids of the chunks that the newest search showed, best first."""
    shown = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return next(
        found for text in reversed(shown) if (found := re.findall(r"^\[([0-9a-f-]{36})\]", text, re.M))
    )


class Scripted:
    """The server: each chat request takes the next step of ``script``; the last one is repeated."""

    def __init__(self) -> None:
        self.script: list[Step] = [say("ok")]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.embedded: list[list[str]] = []
        self.reranked: list[dict[str, Any]] = []
        self.status: dict[str, tuple[int, str]] = {}
        """Path to an error that it gives instead."""
        self.refuse_text: str | None = None
        """Embeddings of a text with this in it are refused with 400."""
        self._lock = threading.Lock()

    def __enter__(self) -> "Scripted":
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer._lock:
                    status, reply = outer._reply(self.path, body, dict(self.headers))
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def _reply(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.headers.append({"path": path} | {name.lower(): value for name, value in headers.items()})
        if path in self.status:
            status, said = self.status[path]
            return status, {"error": {"message": said}}
        if path == "/v1/embeddings":
            return self._embeddings(body)
        if path == "/v1/rerank":
            return self._rerank(body)
        self.bodies.append(body)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        choice = {"index": 0} | (step(body) if callable(step) else step)
        usage = {"prompt_tokens": 100 + len(self.bodies), "completion_tokens": 7, "total_tokens": 0}
        return 200, {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def _embeddings(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        self.embedded.append(texts)
        if self.refuse_text and any(self.refuse_text in text for text in texts):
            return 400, {"error": {"message": "this text is refused"}}
        data = []
        for index, text in enumerate(texts):
            vector: Any = vector_of(text)
            if body.get("encoding_format") == "base64":
                vector = base64.b64encode(struct.pack(f"<{DIM}f", *vector)).decode()
            data.append({"object": "embedding", "index": index, "embedding": vector})
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return 200, {"object": "list", "data": data, "model": body["model"], "usage": usage}

    def _rerank(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.reranked.append(body)
        wanted = set(words_of(body["query"]))
        scores = [len(wanted & set(words_of(text))) for text in body["documents"]]
        return 200, {"results": [{"index": i, "relevance_score": s} for i, s in enumerate(scores)]}


class Adapter:
    """The adapter, run by the Python of an environment."""

    def __init__(self, python: Path, folder: Path, **variables: str) -> None:
        (folder / "home").mkdir(exist_ok=True)
        told = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8"} | variables
        self._process = subprocess.Popen(
            [python, ROOT / "scripts" / "systems" / "haiku_rag.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "adapter.log").open("ab"),
            cwd=folder,
            env=told,
        )
        self.n_sent = 0

    def __enter__(self) -> "Adapter":
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    @property
    def code(self) -> int | None:
        """The status that it ended with."""
        return self._process.poll()

    def send_line(self, line: bytes) -> dict[str, Any]:
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __call__(self, do: str, **words: Any) -> dict[str, Any]:
        self.n_sent += 1
        reply = self.send_line(json.dumps({"do": do, "id": self.n_sent} | words).encode())
        assert reply.pop("id") == self.n_sent
        return reply

    def open(self, server: Scripted, database: Path, **words: Any) -> dict[str, Any]:
        """Open a database whose models are all those of one server."""
        near = {"base_url": server.base_url, "key_env": None, "timeout_s": 20, "concurrency": 1}
        given = {
            "database": str(database),
            "create": False,
            "embedder": near | {"model": "words", "vector_dim": DIM, "dialect": "embedded"},
            "answerer": near | {"model": "scripted", "dialect": "embedded"},
            "reranker": None,
            "options": {"chunking": "own", "chunk_tokens": 64},
        }
        return self("open", **(given | words))


DOCUMENTS = [
    {
        "uri": "fox",
        "title": "A fox",
        "text": "The quick brown fox jumps over the lazy dog. It met a zebrafish.",
    },
    {"uri": "paris", "title": "Paris", "text": "Paris is the capital of France."},
    {"uri": "berlin", "title": "Berlin", "text": "Berlin is the capital of Germany and a big city."},
    # 240 tokens: four chunks of 64 or fewer.
    {"uri": "snakes", "title": "Snakes", "text": "Snakes eat mice. " * 60},
]
"""Four documents of seven chunks of at most 64 tokens."""


class Haiku:
    """One version of haiku.rag: its Python, and what its tools are called."""

    def __init__(self, python: Path, version: str) -> None:
        self.python, self.version = python, version
        self.merged = version != "0.77.0"

    def tool(self, name: str, target: str = "rag") -> str:
        return name if self.merged else f"{target}_{name}"

    @property
    def code_target(self) -> str:
        return "rag" if self.merged else "analysis"


def haiku_of(request: Any, version: str) -> Haiku:
    """The version's environment; skipped where no Python for it is found and ``CI`` is not set."""
    name = "haiku-" + "-".join(version.split(".")[:2])
    folder: Path = request.config.getoption("--environments") / name
    python = folder / "bin" / "python"
    if python.exists():
        return Haiku(python, version)
    if environments.find_python("3.12") is None and not environments.is_ci():
        pytest.skip("haiku.rag needs Python 3.12 or later, and none was found")
    pytest.fail(f"{folder} is missing; run: .venv/bin/snakemake -c all results/environments/{name}.json")
