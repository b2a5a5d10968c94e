"""One sending over HTTP: what goes out, what comes back, and what a broken connection means."""

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from remeasure.executors import Call, bounded
from remeasure.executors.keys import Key
from remeasure.executors.payload import Payloads
from remeasure.executors.replies import Failure, Outcome, of_http

_MAX_REPLY_BYTES = 16 * 2**20
# So many requests with images are read and going out at one time; a few keep any network busy.
_IMAGE_TURNS = 16


class Transport:
    """Sends bodies to the addresses of one model. An asynchronous context manager.

    Args:
        names: model names that are right in a reply.
        timeout_s: per sending, from the moment it is sent.
        key: the endpoint's key.
        payloads: makes the bodies.
    """

    def __init__(self, names: tuple[str, ...], timeout_s: float, key: Key, payloads: Payloads) -> None:
        self._names, self._timeout_s, self._key, self._payloads = names, timeout_s, key, payloads
        self._image_turns = asyncio.Semaphore(_IMAGE_TURNS)
        # One thread reads, hashes and encodes images: the loop goes on meanwhile.
        self._reading = concurrent.futures.ThreadPoolExecutor(1)

    async def __aenter__(self) -> "Transport":
        self.session = aiohttp.ClientSession(
            # No limit in the connector: a request must not wait there while its clock runs.
            connector=_Connector(limit=0),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            # Compressed replies could unpack to anything; answers are short.
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"} | self._key.headers(),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_) -> None:
        self._reading.shutdown(wait=False, cancel_futures=True)
        await self.session.close()

    async def send(self, url: str, template: bytes, about_to_send: Callable[[], None]) -> Outcome | Failure:
        """Send a body without images; the clock starts here."""
        about_to_send()
        return await self._post(url, template, None)

    async def send_images(
        self, url: str, call: Call, template: bytes, about_to_send: Callable[[], None]
    ) -> Outcome | Failure:
        """Send a body with images, read only now and let go of while they go out: memory stays flat.

        Raises:
            RemeasureError: an image is missing, damaged or another one than the reference says.
        """
        turn = _Turn(self._image_turns)
        await turn.take()
        try:
            loop = asyncio.get_running_loop()
            pieces = await loop.run_in_executor(self._reading, self._payloads.pieces, call, template)
            headers = {"Content-Length": str(sum(map(len, pieces)))}
            about_to_send()
            return await self._post(url, _given_away(pieces, turn.give), headers)
        finally:
            turn.give()

    async def _post(
        self, url: str, data: bytes | AsyncIterator[bytes], headers: dict[str, str] | None
    ) -> Outcome | Failure:
        try:
            async with self.session.post(url, data=data, headers=headers, allow_redirects=False) as response:
                body = await _read(response)
                if body is None:
                    text = f"the reply is larger than {_MAX_REPLY_BYTES} bytes"
                    return Failure(kind="rejected", message=text, status=response.status)
                return of_http(response.status, response.headers, self._key.out_of_bytes(body), self._names)
        except TimeoutError:
            return Failure(kind="timeout", message=f"no reply within {self._timeout_s:g} s")
        except aiohttp.ClientPayloadError:
            return Failure(kind="cut_stream", message="the reply ended before its end")
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
            return Failure(kind="not_http", message=type(error).__name__)
        except (aiohttp.ClientConnectionError, OSError) as error:
            # The exception's text names the port, which differs from run to run.
            return Failure(kind="connection", message=type(error).__name__)


class _Connector(aiohttp.TCPConnector):
    """Never reuses a connection on which something came that nobody had asked for.

    A server or proxy that sends a reply twice would have the second copy taken as the answer to the next
    question. ``_get`` is not public: a test watches that it is still what hands out idle connections.
    """

    async def _get(self, *args: Any, **named: Any) -> Any:
        while (connection := await super()._get(*args, **named)) is not None:
            if not connection.protocol.should_close:
                return connection
            connection.close()
        return None


class _Turn:
    """A place among the requests that are going out; given back once, by whoever is first."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns, self._has_it = turns, False

    async def take(self) -> None:
        await self._turns.acquire()
        self._has_it = True

    def give(self) -> None:
        if self._has_it:
            self._has_it = False
            self._turns.release()


async def _given_away(pieces: list[bytes], done: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield pieces and let go of each, so that memory holds what is being sent and not what was."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()
    done()


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    """Return the body of a reply; null where it is unreasonably large."""
    is_plain = "Content-Encoding" not in response.headers
    if is_plain and response.content_length is not None and response.content_length <= _MAX_REPLY_BYTES:
        return await response.read()  # in one piece, and cheaper
    return await bounded.read(response, _MAX_REPLY_BYTES)
