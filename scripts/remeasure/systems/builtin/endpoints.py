"""Requests to the servers behind a system: JSON over HTTP; what fails is said in the contract's words."""

import http.client
import json
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from remeasure import oversize
from remeasure.errors import RemeasureError
from remeasure.executors.keys import Key
from remeasure.systems.builtin.failing import Failed

_PAUSES_S = (0.5, 2.0, 5.0)
_MAX_REPLY = 256 * 2**20
_BUSY = (429, 502, 503, 504)
_LINE = 300


class Endpoint:
    """One server; may be used by several threads at once.

    Args:
        told: the endpoint as the contract has it.

    Raises:
        Failed: the variable of the key is not set.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self.model: str = told["model"]
        self.dialect: str = told.get("dialect") or "embedded"
        self.in_flight: int = max(1, int(told.get("concurrency") or 1))
        self._timeout_s = float(told.get("timeout_s") or 600.0)
        self._url = urlsplit(told["base_url"])
        self._own = threading.local()
        try:
            self._key = Key(told.get("key_env"))
        except RemeasureError as error:
            raise Failed("fatal", str(error)) from None

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request and return what the reply's JSON holds.

        Args:
            path: below the base address, such as ``/embeddings``.
            body: what JSON can say.

        Raises:
            Failed: no connection, no reply in time, an error, a reply that is no JSON; after repeating what
                may pass by itself.
        """
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        for pause in (*_PAUSES_S, None):
            try:
                status, reply = self._once(self._url.path.rstrip("/") + path, data)
            except TimeoutError:
                raise Failed("timeout", f"{self._name(path)}: no reply in {self._timeout_s:.0f} s") from None
            except (OSError, http.client.HTTPException) as error:
                status, reply = 0, f"{type(error).__name__}: {error}".encode()
            if status == 200:
                return self._decoded(path, reply)
            if pause is None or (status and status not in _BUSY):
                raise self._failed(path, status, reply)
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _once(self, path: str, data: bytes) -> tuple[int, bytes]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            secure = self._url.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            connection = self._own.connection = kind(self._url.netloc, timeout=self._timeout_s)
        try:
            headers = {"Content-Type": "application/json", **self._key.headers()}
            connection.request("POST", path, data, headers)
            reply = connection.getresponse()
            read = reply.read(_MAX_REPLY + 1)
            if len(read) > _MAX_REPLY:
                raise http.client.HTTPException(f"the reply is longer than {_MAX_REPLY} bytes")
            return reply.status, read
        except BaseException:
            connection.close()
            self._own.connection = None
            raise

    def _decoded(self, path: str, reply: bytes) -> Any:
        try:
            return msgspec.json.decode(reply)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Failed("server_error", f"{self._name(path)}: the reply is not JSON") from None

    def _failed(self, path: str, status: int, reply: bytes) -> Failed:
        said = self._key.out_of(" ".join(reply.decode("utf-8", "replace").split()))[:_LINE]
        if not status:
            return Failed("connection", f"{self._name(path)}: {said}")
        text = f"{self._name(path)}: status {status}: {said}"
        if oversize.kind_of(status, said):
            return Failed("context_length", text)
        if status in (401, 403, 404):  # the same for every question
            return Failed("fatal", f"{text}; correct the model's address, name or {self._key.where}")
        return Failed("server_error", text)

    def _name(self, path: str) -> str:
        return f"{self.model} {path}"
