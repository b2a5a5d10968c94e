"""Replies that can neither fill memory nor take for ever: for aiohttp, and for the ``openai`` package."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp
    import httpx2

# A list of a hundred batches has some 100 kB; result files are written to disk piece by piece.
_MAX_BYTES = 16 * 2**20
_FILE = "/content"


async def read(response: "aiohttp.ClientResponse", limit: int) -> bytes | None:
    """Return the body of a reply, unpacked if it came packed; null where it has more than ``limit`` bytes."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > limit:
            return None
    return b"".join(parts)


def client(timeout_s: float) -> "httpx2.Client":
    """Return a client that ends a reply which is too long, too slow as a whole, or compressed.

    Args:
        timeout_s: for a whole reply, from its headers to its end, seconds; a result file may take longer.
    """
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self):
            size, ends = 0, time.monotonic() + timeout_s
            for piece in self._stream:
                size += len(piece)
                if size > _MAX_BYTES:
                    raise httpx2.ReadError(f"the reply is larger than {_MAX_BYTES} bytes")
                if time.monotonic() > ends:
                    raise httpx2.ReadTimeout(f"no whole reply within {timeout_s:g} s")
                yield piece

        def close(self) -> None:
            self._stream.close()

    def bound(response: "httpx2.Response") -> None:
        if "content-encoding" in response.headers:
            raise httpx2.ReadError("the reply is compressed, which was not asked for")
        if not response.request.url.path.endswith(_FILE):
            response.stream = Bounded(response.stream)

    return httpx2.Client(
        timeout=timeout_s, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bound]}
    )
