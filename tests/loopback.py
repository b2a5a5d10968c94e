"""A real HTTP server on the loopback address that can be slow and can fail in every way; it counts calls.

In a test: ``with Loopback() as server: server.behave = lambda prompt, nth: "reset" if nth == 1 else "ok"``.
As a program it keeps the contract of a model server (``remeasure.model_server``).

A behaviour is one word and perhaps a value: ok | say TEXT | slow SECONDS | hang | status N [RETRY_AFTER] |
error N CODE | deep N | redirect URL |
twice | gzip BYTES | raw TEXT | no_usage |
reset | cut | empty | html | garbage | no_choices | wrong_model | length | filter | abort | refusal | null |
echo_key
"""

import argparse
import asyncio
import gzip
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

_FINISH = {"length": "length", "filter": "content_filter", "abort": "abort"}
_BODIES = {
    "empty": b"",
    "html": b"<html><body>Please log in to the proxy</body></html>",
    "garbage": b'{"choices": [',
    "no_choices": b'{"object": "chat.completion"}',
}


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()


def prompt_of(body: dict) -> str:
    """Return the text of the last message; image parts stand as ``[<beginning of the url>]``."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or f"[{part['image_url']['url'][:22]}]" for part in content)


class Loopback:
    """The server, in a thread of its own."""

    def __init__(
        self, served_name: str = "toy", delay_s: float = 0.0, port: int = 0, keep: bool = True
    ) -> None:
        self.served_name, self.delay_s, self.port = served_name, delay_s, port
        self.behave = lambda prompt, nth: "ok"
        self.calls: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.bodies: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.in_flight = self.max_in_flight = 0
        self.health_after = 0.0
        self.n_connections = 0
        self.pages: dict[str, tuple[int, bytes, dict[str, str]] | None] = {}
        """What a GET gives where it is not the usual: status, body, headers; null: nothing, ever."""
        self.error: str | None = None
        """What an error status says where it is not the usual."""
        self.secret: str | None = None
        """The key (lower case) without which everything is 401, with the key that came echoed."""
        self._keep = keep
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Loopback":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def calls_itself(self, owner: str | None, version: str) -> None:
        """Tell a version, as vLLM does, and perhaps who serves the model."""
        listed = {"id": self.served_name} | ({"owned_by": owner} if owner else {})
        self.pages["/v1/models"] = 200, json.dumps({"data": [listed]}).encode(), {}
        self.pages["/version"] = 200, json.dumps({"version": version}).encode(), {}

    def close_soon(self) -> None:
        """Die without a word: no connection is answered any more."""
        self._loop.call_soon_threadsafe(self._stop.set)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def n_calls(self) -> int:
        return sum(self.calls.values())

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self._began = time.monotonic()
        server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, backlog=1024, limit=1 << 26
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        # The loop lives on until every connection is really closed: a client would wait otherwise.
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                data = await reader.readexactly(int(headers.get("content-length", 0)))
                if self.secret and headers.get("authorization") != f"bearer {self.secret}":
                    self._reply(writer, 401, _error(f"no such key: {headers.get('authorization')}"))
                elif method == "POST" and path not in self.pages:
                    if not await self._completion(json.loads(data), headers, writer):
                        break
                else:
                    self._page(path, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _page(self, path: str, writer: asyncio.StreamWriter) -> None:
        if path in self.pages:
            if (page := self.pages[path]) is not None:
                self._reply(writer, *page)
        elif path == "/health":
            ready = time.monotonic() - self._began >= self.health_after
            self._reply(writer, 200 if ready else 503, b"{}")
        elif path == "/v1/models":
            self._reply(writer, 200, json.dumps({"data": [{"id": self.served_name}]}).encode())
        else:
            self._reply(writer, 404, b"{}")

    async def _completion(self, body: dict, headers: dict, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection goes on."""
        prompt = prompt_of(body)
        self.calls[prompt] += 1
        if self._keep:
            self.bodies.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._behave(body, headers, prompt, writer)
        finally:
            self.in_flight -= 1

    async def _behave(self, body: dict, headers: dict, prompt: str, writer: asyncio.StreamWriter) -> bool:
        word, _, value = self.behave(prompt, self.calls[prompt]).partition(" ")
        await asyncio.sleep(self.delay_s)
        if word in ("slow", "hang"):
            await asyncio.sleep(float(value or 3600))
        if word == "reset":
            writer.transport.abort()
            return False
        if word == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b'{"choices": [')
            await writer.drain()
            return False
        if word == "status":
            number, _, retry_after = value.partition(" ")
            more = {"Retry-After": retry_after} if retry_after else {}
            self._reply(writer, int(number), _error(self.error or f"told {number}"), more)
        elif word == "error":
            number, code = value.split(" ")
            body = json.dumps({"error": {"message": f"told {code}", "code": code}}).encode()
            self._reply(writer, int(number), body)
        elif word == "redirect":
            self._reply(writer, 307, b"{}", {"Location": value})
        elif word == "twice":
            body = json.dumps(self._document("ok", "", prompt)).encode()
            self._reply(writer, 200, body)
            await writer.drain()
            await asyncio.sleep(0.05)
            self._reply(writer, 200, body)
            self.finished[prompt] += 1
            await writer.drain()
            await asyncio.sleep(0.1)
        elif word == "gzip":
            document = self._document("say", "", prompt)
            document["choices"][0]["message"]["content"] = "x" * int(value)
            packed = gzip.compress(json.dumps(document).encode(), 9)
            self._reply(writer, 200, packed, {"Content-Encoding": "gzip"})
        elif word == "raw":
            document = json.dumps(self._document("say", "see HERE", prompt))
            self._reply(writer, 200, document.replace("HERE", value).encode())
        elif word == "no_usage":
            document = self._document("ok", "", prompt)
            del document["usage"]
            self._reply(writer, 200, json.dumps(document).encode())
        elif word == "deep":
            self._reply(writer, 200, b'{"choices": ' + b"[" * int(value) + b"]" * int(value) + b"}")
        elif word == "echo_key":
            self._reply(writer, 400, _error(f"bad request with {headers.get('authorization')}"))
        elif word in _BODIES:
            self._reply(writer, 200, _BODIES[word])
        else:
            self._reply(writer, 200, json.dumps(self._document(word, value, prompt)).encode())
            await writer.drain()
            self.finished[prompt] += 1
        return True

    def _document(self, word: str, value: str, prompt: str) -> dict:
        """Return a chat completion."""
        assert word in ("ok", "slow", "hang", "say", *_FINISH, "wrong_model", "refusal", "null"), word
        message = {"content": value if word == "say" else f"answer to {prompt}"}
        if word in ("refusal", "null"):
            message = {"content": None} | ({"refusal": "I will not"} if word == "refusal" else {})
        return {
            "id": f"chatcmpl-{self.calls.total()}",
            "model": "another" if word == "wrong_model" else self.served_name,
            "choices": [{"index": 0, "finish_reason": _FINISH.get(word, "stop"), "message": message}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": 3, "details": {"x": 1}},
        }

    @staticmethod
    def _reply(writer: asyncio.StreamWriter, status: int, body: bytes, more: dict | None = None) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in (more or {}).items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--served-name", required=True)
    parser.add_argument("--list-name", help="name under /v1/models where it is another")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--health-after", type=float, default=0.0, help="seconds until it is healthy")
    parser.add_argument("--fail", action="store_true", help="say something and end")
    parser.add_argument("--fail-with", type=Path, help="file whose bytes are said before the end")
    parser.add_argument("--owned-by", help="owner under /v1/models")
    parser.add_argument("--version", help="what /version says; without it there is no such page")
    parser.add_argument("--die-after", type=int, default=0, help="end in the middle of the n-th call")
    parser.add_argument("--stubborn", action="store_true", help="hear neither SIGTERM nor the input's end")
    parser.add_argument("--pid-file", type=Path)
    parser.add_argument("--environment-file", type=Path)
    args = parser.parse_args()
    if args.fail:
        sys.exit("cannot load the weights: file truncated")
    if args.fail_with:
        sys.stderr.buffer.write(args.fail_with.read_bytes())
        sys.exit(1)
    if args.environment_file:
        args.environment_file.write_text(json.dumps(dict(os.environ)))
    server = Loopback(args.list_name or args.served_name, args.delay, args.port, keep=False)
    server.health_after = args.health_after
    if args.version:
        server.calls_itself(args.owned_by, args.version)

    def behave(prompt: str, nth: int) -> str:
        if args.die_after and server.n_calls >= args.die_after:
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(3)
        return "ok"

    server.behave = behave
    if args.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with server:
        if args.pid_file:
            args.pid_file.write_text(str(os.getpid()))
        args.port_file.write_text(str(server.port))
        if args.stubborn:
            time.sleep(600)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
