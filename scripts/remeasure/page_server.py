"""Serve the entries of an archive over HTTP on the loopback address, to one browser pool and nobody else."""

import hashlib
import http.server
import threading
from typing import Self
from urllib.parse import quote, unquote

from remeasure.archive import Archive
from remeasure.errors import RemeasureError

# Reserved for tests by RFC 2606: no resolver ever answers for it. The browser maps it to our port.
DOMAIN = "pages.test"
_TEXT = ("text/", "application/xhtml", "application/javascript", "application/json", "image/svg")


def host_of(path: str) -> str:
    """Return the host name under which a page is opened.

    Every page has its own, so that stored data of one page never reaches another; it is made from the path
    alone, so that a page that prints its own address looks the same in every run.
    """
    return f"p{hashlib.sha256(path.encode()).hexdigest()[:16]}.{DOMAIN}"


def url_of(path: str) -> str:
    """Return the address of an entry; every character that means something in an address is encoded."""
    return f"http://{host_of(path)}/{quote(path, safe='/')}"


def content_type(mimetype: str, data: bytes) -> str:
    """Return the header value: texts that are valid UTF-8 say so, others are left to the browser."""
    if mimetype.startswith(_TEXT):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return mimetype
        return f"{mimetype}; charset=utf-8"
    return mimetype or "application/octet-stream"


def entry_path(archive: Archive, target: str) -> str | None:
    """Return the entry that a request target names, or None.

    A query is not part of an entry's path, unless the archive has an entry of that very name.
    """
    raw, mark, query = target.partition("?")
    if "://" in raw:
        raw = raw.split("://", 1)[1].partition("/")[2]
    path = unquote(raw.lstrip("/"))
    candidates = [path] if not mark else [f"{path}?{unquote(query)}", path]
    return next((name for name in candidates if name and archive.has(name)), None)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Header and body leave in one packet; in two, the second one waits for an acknowledgement of the first.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: "_Server"

    def do_GET(self) -> None:
        """Answer with an entry, a redirect or an error; every answer has a length."""
        archive = self.server.archive
        with self.server.lock:
            path = entry_path(archive, self.path)
            if path is None:
                return self._answer(404, "text/plain", b"not in the archive")
            try:
                target = archive.redirect_target(path)
                entry = archive.read(path)
            except RemeasureError as error:
                return self._answer(508, "text/plain", str(error).encode())
        if target is not None:
            return self._answer(302, "text/plain", b"", {"Location": "/" + quote(entry.path, safe="/")})
        self._answer(200, content_type(entry.mimetype, entry.data), entry.data)

    do_HEAD = do_GET

    def _answer(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                **(headers or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the browser was stopped in the middle of a page

    def log_message(self, *_) -> None:
        """Keep standard error for progress."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    archive: Archive
    lock: threading.Lock

    def handle_error(self, request, client_address) -> None:
        """A connection that a stopped browser left behind is no event."""


class PageServer:
    """A server for one archive on a free port of the loopback address, for the time of a ``with`` block."""

    def __init__(self, archive: Archive) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.archive = archive
        self._server.lock = threading.Lock()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The port; chosen by the system, so that any number of jobs run beside each other."""
        return self._server.server_address[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
