"""The chat protocol over HTTP on the loopback address, for one engine that answers one request at a time.

``GET /health``, ``GET /v1/models`` and ``POST /v1/chat/completions``. The server writes its port into a file
when it can answer, and ends with SIGTERM, when its parent ends, or when the pipe that is its standard input
is closed: nobody needs to look for forgotten servers.
"""

import argparse
import contextlib
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from remeasure.embedded.chat import BadRequest, Completion, Engine, parse
from remeasure.ending import Ending
from remeasure.errors import RemeasureError
from remeasure.files import write_text

log = logging.getLogger("remeasure.chat_server")
MAX_BODY_BYTES = 256 * 2**20
# Longer than a collector that is told to end waits for what is in flight (``executors.http``).
_GRACE_S = 15.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all model servers have."""
    parser.add_argument("--port", type=int, required=True, help="0 takes any free port")
    parser.add_argument("--port-file", type=Path, required=True, help="gets the port once the model is ready")
    parser.add_argument("--served-name", required=True, help="model name that requests must give")
    parser.add_argument("--threads", type=int, required=True, help="threads of the model; part of the result")


def serve(
    args: argparse.Namespace, load: Callable[[], Engine], server_of: "type[ChatServer] | None" = None
) -> None:
    """Load an engine and answer requests until the server is told to end or is left alone.

    Args:
        args: the common options (``add_options``).
        load: makes the engine.
        server_of: what speaks another protocol than chat; null: ``ChatServer``.

    Raises:
        RemeasureError: fewer than one thread, or the port is taken.
    """
    started, ending = time.monotonic(), Ending(_GRACE_S)
    if args.threads < 1:
        raise RemeasureError(
            f"--threads {args.threads}: a model needs at least 1; correct `options` of the model"
        )
    kind = server_of or ChatServer
    with contextlib.closing(load()) as engine, _listen(kind, args.port, args.served_name, engine) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        write_text(args.port_file, f"{server.server_port}\n")
        log.info(
            "%s listens on 127.0.0.1:%d after %.2f s",
            args.served_name,
            server.server_port,
            time.monotonic() - started,
        )
        ending.wait()
        server.shutdown()
        thread.join()
    log.info("%d requests answered, %d refused, %.1f s", server.n_answered, server.n_refused, server.busy_s)


def _listen(kind: "type[ChatServer]", port: int, served_name: str, engine: Engine) -> "ChatServer":
    try:
        return kind(port, served_name, engine)
    except (OSError, OverflowError) as error:
        raise RemeasureError(
            f"--port {port}: cannot listen on 127.0.0.1:{port} ({error}); use --port 0 for a free one"
        ) from None


class ChatServer(ThreadingHTTPServer):
    """An engine on a port; many connections, one question at a time."""

    daemon_threads = True
    request_queue_size = 128  # callers that wait to be let in; the usual 5 resets connections
    block_on_close = False
    path = "/v1/chat/completions"

    def __init__(self, port: int, served_name: str, engine: Engine) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.served_name = served_name
        self.n_answered = self.n_refused = 0
        self.busy_s = 0.0
        self._engine = engine
        self._lock = threading.Lock()

    def complete(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Answer the body of a chat request.

        Returns:
            HTTP status and the reply: a completion, or an error in the protocol's form.
        """
        try:
            request = parse(body)
            if request.model != self.served_name:
                return self._refused(
                    404,
                    f"model {request.model!r} is not served here, {self.served_name!r} is",
                    "model_not_found",
                )
            unknown = [word for word in request.more_words() if word not in self._engine.more_words]
            if unknown:
                raise BadRequest(f"{unknown[0]}: this model cannot do that; ask without it")
            with self._lock:
                began = time.monotonic()
                completion = self._engine.answer(request)
                self.busy_s += time.monotonic() - began
        except BadRequest as error:
            return self._refused(400, str(error), "invalid_request")
        self.n_answered += 1
        return 200, reply_of(completion, self.served_name, body)

    def models(self) -> dict[str, Any]:
        """Return the list of the one model."""
        model = {"id": self.served_name, "object": "model", "created": 0, "owned_by": "remeasure"}
        return {"object": "list", "data": [model]}

    def _refused(self, status: int, message: str, code: str) -> tuple[int, dict[str, Any]]:
        self.n_refused += 1
        log.warning("refused with %d: %s", status, message)
        return status, error_of(message, code)


def reply_of(completion: Completion, model: str, body: bytes) -> dict[str, Any]:
    """Return a completion in the protocol's form; equal questions give equal replies."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.tool_calls:
        # The protocol says null where there is nothing but calls.
        message = {"role": "assistant", "content": completion.text or None}
        message["tool_calls"] = [msgspec.to_builtins(call) for call in completion.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": completion.finish_reason}
    if completion.logprobs is not None:
        choice["logprobs"] = {"content": completion.logprobs}
    return {
        "id": f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "total_tokens": completion.prompt_tokens + completion.completion_tokens,
        },
    }


def error_of(message: str, code: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """Return an error in the protocol's form."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class _Handler(BaseHTTPRequestHandler):
    """Reads and writes HTTP; what is said is decided by ``ChatServer``."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes; waiting for the acknowledgement of the first would cost 40 ms each time.
    disable_nagle_algorithm = True
    server: ChatServer

    def do_GET(self) -> None:  # noqa: N802
        """Health and model list."""
        if self.path == "/health":
            self._send(200, {"status": "ok"})
        elif self.path == "/v1/models":
            self._send(200, self.server.models())
        else:
            self._send(404, error_of(f"no such path: {self.path}", "not_found"))

    def do_POST(self) -> None:  # noqa: N802
        """What the server is there for."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            text = f"Content-Length {length!r}: needed, at most {MAX_BODY_BYTES}"
            self._send(413 if length.isdigit() else 411, error_of(text, "bad_length"))
            return
        body = self.rfile.read(int(length))
        if self.path != self.server.path:
            self._send(404, error_of(f"no such path: {self.path}", "not_found"))
            return
        try:
            status, reply = self.server.complete(body)
        except Exception as error:  # the one place that must answer whatever happens
            log.exception("a request failed")
            status, reply = 500, error_of(f"{type(error).__name__}: {error}", "server_error", "server_error")
        self._send(status, reply)

    def _send(self, status: int, reply: dict[str, Any]) -> None:
        data = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *values: Any) -> None:
        """One line per request is too much; errors and counts are logged elsewhere."""
