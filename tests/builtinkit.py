"""Servers that the built-in system asks, on the loopback address: vectors, scores, a model with a script."""

import base64
import contextlib
import json
import math
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
AXES = ("red", "green", "blue")
"""A text's vector counts these words in it, and one for all that it is."""


def vector(text: str) -> list[float]:
    """Return the vector of a text, length 1: how often each axis is in it, and a little of a fourth."""
    counts = [float(text.lower().count(axis)) for axis in AXES] + [0.1]
    length = math.sqrt(sum(count * count for count in counts))
    return [count / length for count in counts]


def call(name: str, _id: str = "c1", **arguments) -> dict:
    """A message that asks for one call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": _id, "function": function}]}


def say(text: str | None) -> dict:
    """A message that is the answer."""
    return {"role": "assistant", "content": text}


class Servers:
    """All three, on one port.

    ``script`` is a list of messages, one per request, or a function from the request's body to a message;
    a message may be a whole reply (with ``choices``) or a number, which is the status of an error.
    """

    def __init__(self):
        self.script = []
        self.asked: list[dict] = []
        self.embedded: list[list[str]] = []
        self.reranked: list[dict] = []
        self.vector = vector
        self.as_lists = False
        self.score = lambda query, text: float(len(text))
        self.fail_embedding = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = getattr(outer, self.path.removeprefix("/v1/").replace("/", "_"))(body)
                status, reply = reply if isinstance(reply, tuple) else (200, reply)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self):
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def endpoint(self, model: str, **more) -> dict:
        """Return an endpoint as the contract has it."""
        url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return {"base_url": url, "model": model, "key_env": None, "concurrency": 2, "timeout_s": 10.0, **more}

    def embeddings(self, body):
        if self.fail_embedding and any(self.fail_embedding in text for text in body["input"]):
            return 400, {"error": {"message": "that text is not liked"}}
        self.embedded.append(body["input"])
        vectors = [self.vector(text) for text in body["input"]]
        if not self.as_lists:
            vectors = [base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode() for v in vectors]
        return {"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]}

    def rerank(self, body):
        self.reranked.append(body)
        scores = [self.score(body["query"], text) for text in body["documents"]]
        results = [{"index": i, "relevance_score": score} for i, score in enumerate(scores)]
        return {"results": results[::-1]}

    def chat_completions(self, body):
        self.asked.append(body)
        said = self.script(body) if callable(self.script) else self.script[len(self.asked) - 1]
        if isinstance(said, int):
            return said, {"error": {"message": "no"}}
        if "choices" in said:
            return said
        finish = "tool_calls" if said.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 100 + len(self.asked), "completion_tokens": 7}
        return {"choices": [{"message": said, "finish_reason": finish}], "usage": usage}


class Talk:
    """The adapter as a process."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPTS / "systems" / "builtin.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def tell(self, **command):
        """Send a command."""
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, **command):
        """Send a command and return the reply."""
        self.tell(**command)
        return json.loads(self.process.stdout.readline())

    def end(self) -> int:
        """End its input and return its exit status."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(20)


def document(uri: str, text: str, title: str = "", **metadata) -> dict:
    """A document as the contract has it."""
    return {"uri": uri, "title": title, "text": text, "path": None, "format": "md", "metadata": metadata}
