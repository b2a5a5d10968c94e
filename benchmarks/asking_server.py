"""A chat-completions server that is as cheap as Python can be: one fixed reply after a fixed time.

It looks at nothing but the length of a request, never joins a body, and counts. Its own clock tells how long
a client took from its first request to its last reply, so that all clients are timed in one way.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import signal
import time
from pathlib import Path

_COMPLETION = {
    "id": "chatcmpl-0",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "toy",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": None,
            "message": {"role": "assistant", "content": "The answer is Reykjavik.", "refusal": None},
        }
    ],
    "usage": {"prompt_tokens": 60, "completion_tokens": 6, "total_tokens": 66},
}


def _reply(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_ANSWER = _reply(json.dumps(_COMPLETION).encode())


class Counts:
    """What has come in since the last look."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.n, self.n_bytes, self.in_flight, self.most_in_flight = 0, 0, 0, 0
        self.first = self.last = 0.0
        self.n_connections = 0
        self._cpu_s = time.process_time()

    def as_reply(self) -> bytes:
        """Return all as the reply to ``GET /counts``."""
        found = {
            "n": self.n,
            "n_bytes": self.n_bytes,
            "seconds": self.last - self.first,
            "most_in_flight": self.most_in_flight,
            "n_connections": self.n_connections,
            "cpu_s": time.process_time() - self._cpu_s,
        }
        return _reply(json.dumps(found).encode())


class Connection(asyncio.Protocol):
    """One connection; one request at a time, as HTTP clients send them."""

    def __init__(self, counts: Counts, delay_s: float) -> None:
        self._counts, self._delay_s = counts, delay_s
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """See ``asyncio.Protocol``."""
        self._transport = transport
        self._call_later = asyncio.get_running_loop().call_later
        self._counts.n_connections += 1

    def data_received(self, data: bytes) -> None:
        """Pass over heads and bodies; answer when a body is complete."""
        if self._left:
            self._left -= len(data)
        else:
            head, found, body = (self._head + data).partition(b"\r\n\r\n")
            if not found:
                self._head = head
                return
            self._head = b""
            if head.startswith(b"GET "):
                self._look(head)
                return
            fields = head.lower()
            place = fields.index(b"content-length:") + 15
            length = int(fields[place : place + 20].partition(b"\r\n")[0])
            if not self._counts.n:
                self._counts.first = time.monotonic()
            self._counts.n_bytes += length
            self._left = length - len(body)
        if not self._left:
            self._begin()

    def _begin(self) -> None:
        counts = self._counts
        counts.n += 1
        counts.in_flight += 1
        counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
        if self._delay_s:
            self._call_later(self._delay_s, self._answer)
        else:
            self._answer()

    def _answer(self) -> None:
        self._counts.in_flight -= 1
        self._counts.last = time.monotonic()
        self._transport.write(_ANSWER)

    def _look(self, head: bytes) -> None:
        """Answer what is asked before and after a run: counts, and what a model server says of itself."""
        if head.startswith(b"GET /counts"):
            self._transport.write(self._counts.as_reply())
            self._counts.reset()
        elif head.startswith(b"GET /v1/models"):
            self._transport.write(_reply(b'{"object": "list", "data": [{"id": "toy", "object": "model"}]}'))
        else:
            self._transport.write(_reply(b"{}"))


async def _serve(port_file: Path, delay_s: float) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    counts = Counts()
    server = await loop.create_server(lambda: Connection(counts, delay_s), "127.0.0.1", 0, backlog=1024)
    port_file.write_text(str(server.sockets[0].getsockname()[1]))
    await ended.wait()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--delay", type=float, default=0.1, help="seconds from request to reply")
    args = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    run = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        run = uvloop.run
    run(_serve(args.port_file, args.delay))


if __name__ == "__main__":
    main()
