"""A real HTTP server on the loopback address that gives out one file, and can do so badly.

In a test: ``with Files(data) as server: server.behave = lambda nth: "cut 1000" if nth == 1 else "ok"``.

A behaviour is one word and perhaps a value: ok | plain (no ranges, no length) |
whole [N] (no ranges; ends after N bytes of the reply) | cut N (the same with ranges) |
status N [RETRY_AFTER] | redirect URL | gzip | elsewhere (another part than was asked for) | endless |
slow SECONDS (between two halves) | drip SECONDS (between two bytes) | reset | garbage
"""

import http.server
import re
import threading
import time
from collections.abc import Callable


class Files:
    """The server, in threads of its own.

    Args:
        data: the file.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.behave: Callable[[int], str] = lambda nth: "ok"
        self.ranges: list[str | None] = []
        """The ``Range`` header of every request, in order."""
        self.times: list[float] = []
        self.half_sent = threading.Event()

    def __enter__(self) -> "Files":
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.ranges.append(self.headers.get("Range"))
                outer.times.append(time.monotonic())
                assert self.headers.get("Accept-Encoding") == "identity"
                self.close_connection = True
                try:
                    outer._answer(self, *outer.behave(len(outer.ranges)).split())
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/file.bin"

    def _answer(self, handler, word: str, value: str = "", more: str = "") -> None:
        if word == "reset":
            return
        if word == "garbage":
            handler.wfile.write(b"\x00\x01 nothing of HTTP\r\n\r\n")
            return
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "")
        start = int(asked[1]) if asked and word not in ("plain", "whole", "status", "redirect") else 0
        head: dict[str, str] = {}
        body, status = self.data[start:], 206 if start else 200
        if word == "status":
            status, body = int(value), b"no"
            head |= {"Retry-After": more} if more else {}
        elif word == "redirect":
            status, body, head["Location"] = 302, b"", value
        elif start and start >= len(self.data):
            status, body, head["Content-Range"] = 416, b"", f"bytes */{len(self.data)}"
        elif start:
            begin = start + 7 if word == "elsewhere" else start
            head["Content-Range"] = f"bytes {begin}-{len(self.data) - 1}/{len(self.data)}"
        if word == "gzip":
            head["Content-Encoding"] = "gzip"
        if word not in ("plain", "endless"):
            head["Content-Length"] = str(len(body))
        handler.send_response(status)
        for name, text in head.items():
            handler.send_header(name, text)
        handler.end_headers()
        if word == "endless":
            while True:
                handler.wfile.write(bytes(1 << 16))
        if word == "slow":
            handler.wfile.write(body[: len(body) // 2])
            handler.wfile.flush()
            self.half_sent.set()
            time.sleep(float(value))
            body = body[len(body) // 2 :]
        if word == "drip":
            for at in range(len(body)):
                handler.wfile.write(body[at : at + 1])
                time.sleep(float(value))
        handler.wfile.write(body[: int(value)] if word in ("cut", "whole") and value else body)
