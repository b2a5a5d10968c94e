"""The HTTP executor: many requests in flight to one OpenAI-compatible endpoint, one retry layer."""

import asyncio
import base64
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from remeasure import images, requests
from remeasure.errors import RemeasureError
from remeasure.executors import Call, Endpoint, Keeper
from remeasure.executors.replies import PASSING, Failure, Outcome, of_http
from remeasure.records import ImageRef, JournalEntry

log = logging.getLogger("remeasure.http")
# A server that asks for a longer wait than this has closed for the day; the request fails.
_LONGEST_WAIT_S = 600.0


def wait_s(failure: Failure, n_failures: int, key: str, base_s: float, max_s: float) -> float:
    """Return how long to wait before the next sending, seconds.

    The server's word counts; else the wait doubles from ``base_s`` up to ``max_s``, and up to a quarter is
    added so that requests do not come back all at once (from the key, so that nothing is random).
    """
    if failure.wait_s is not None:
        return failure.wait_s
    return min(max_s, base_s * 2 ** (n_failures - 1)) * (1 + int(key[:4], 16) / 0xFFFF / 4)


class HttpExecutor:
    """Sends calls over HTTP; see ``Executor``."""

    def __init__(
        self,
        endpoint: Endpoint,
        served_name: str,
        images_root: Path,
        base_url: str,
        api_key_env: str | None = None,
        died: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._endpoint = endpoint
        self._served_name = served_name
        self._dialect = requests.dialect_of(endpoint.dialect)
        self._names = (served_name, *endpoint.also_named)
        self._root = images_root
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._secret = _secret(api_key_env)
        self._key_env = api_key_env
        self._died = died
        self._attempts = msgspec.to_builtins(endpoint.attempts)

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Answer all calls; see ``Executor.run``."""
        with images.ImageReader() as self._images:
            try:
                asyncio.run(self._run(calls, keeper))
            except BaseExceptionGroup as group:
                raise _first(group) from None

    async def _run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        # No limit in the pool: a request must not wait there while its clock runs.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout_s),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {self._secret}"} if self._secret else {}),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        async with self._session, asyncio.TaskGroup() as workers:
            for _ in range(self._endpoint.concurrency):
                workers.create_task(self._work(calls, keeper))

    async def _work(self, calls: Iterator[Call], keeper: Keeper) -> None:
        for call in calls:
            keeper.keep(await self._ask(call, keeper))

    async def _ask(self, call: Call, keeper: Keeper) -> JournalEntry:
        """Send a call until it has an outcome or its class of failure is used up."""
        payload = self._payload(call)
        started = time.monotonic()
        failures: dict[str, int] = {}
        while True:
            keeper.sent(call.key)
            reply = await self._send(payload)
            attempts = sum(failures.values()) + 1
            if isinstance(reply, Outcome):
                return self._entry(call, reply, attempts, started)
            failures[reply.kind] = failures.get(reply.kind, 0) + 1
            self._stop_if_hopeless(reply)
            pause = wait_s(reply, attempts, call.key, self._endpoint.base_wait_s, self._endpoint.max_wait_s)
            used_up = reply.kind not in PASSING or failures[reply.kind] >= self._attempts[reply.kind]
            if used_up or pause > _LONGEST_WAIT_S:
                text = self._clean(f"{reply.kind}: {reply.message}")
                log.warning("request %s failed after %d sendings: %s", call.custom_id, attempts, text)
                failed = Outcome(status="failed", text=None, error=text, raw=self._clean_raw(reply.raw))
                return self._entry(call, failed, attempts, started)
            log.debug("request %s: %s, again in %.1f s", call.custom_id, reply.kind, pause)
            await asyncio.sleep(pause)

    async def _send(self, payload: bytes) -> Outcome | Failure:
        """Send once; the clock starts here."""
        try:
            async with self._session.post(self._url, data=payload, allow_redirects=False) as response:
                return of_http(response.status, response.headers, await response.read(), self._names)
        except TimeoutError:
            return Failure(kind="timeout", message=f"no reply within {self._endpoint.timeout_s:g} s")
        except aiohttp.ClientPayloadError:
            return Failure(kind="cut_stream", message="the reply ended before its end")
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
            return Failure(kind="not_http", message=type(error).__name__)
        except (aiohttp.ClientConnectionError, OSError) as error:
            # The exception's text names the port, which differs from run to run.
            return Failure(kind="connection", message=type(error).__name__)

    def _stop_if_hopeless(self, failure: Failure) -> None:
        if failure.kind == "auth":
            where = (
                f"environment variable {self._key_env}"
                if self._key_env
                else "`api_key_env`, which is not set"
            )
            raise RemeasureError(
                self._clean(f"{self._url}: the endpoint refuses the key ({failure.message}); check {where}")
            )
        reason = self._died() if failure.kind == "connection" else None
        if reason:
            raise RemeasureError(reason)

    def _payload(self, call: Call) -> bytes:
        wire = requests.translate(
            call.body, self._dialect, self._served_name, self._endpoint.thinking_default
        )
        return msgspec.json.encode(requests.with_image_urls(wire, self._data_url))

    def _data_url(self, ref: ImageRef) -> str:
        data = self._images.read(msgspec.structs.replace(ref, path=str(self._root / ref.path)))
        return f"data:{images.media_type(data)};base64,{base64.b64encode(data).decode('ascii')}"

    def _entry(self, call: Call, outcome: Outcome, attempts: int, started: float) -> JournalEntry:
        return JournalEntry(
            key=call.key,
            custom_id=call.custom_id,
            status=outcome.status,
            text=outcome.text,
            finish=outcome.finish,
            usage=outcome.usage,
            model=outcome.model,
            error=outcome.error,
            attempts=attempts,
            seconds=round(time.monotonic() - started, 3),
            raw=outcome.raw,
        )

    def _clean(self, text: str) -> str:
        """Take the key out of a text that a server may have echoed it in."""
        return text.replace(self._secret, "[key]") if self._secret else text

    def _clean_raw(self, raw: Any) -> Any:
        return msgspec.json.decode(self._clean(msgspec.json.encode(raw).decode())) if self._secret else raw


def _secret(api_key_env: str | None) -> str | None:
    if api_key_env is None:
        return None
    secret = os.environ.get(api_key_env, "").strip()
    if not secret:
        raise RemeasureError(
            f"environment variable {api_key_env} is not set; export it with the endpoint's key and rerun"
        )
    return secret


def _first(group: BaseExceptionGroup) -> BaseException:
    """Return the exception that ended the work: the first user error, else the first of all."""
    user_errors = group.subgroup(RemeasureError)
    found: BaseException = user_errors or group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
