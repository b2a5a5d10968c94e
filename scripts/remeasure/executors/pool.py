"""The addresses that serve one model: who gets the next request, and how many at a time.

Each address has a limit of its own for requests in flight. It starts at the configured bound, is halved when
the address shows that it has too many (429, 503, no reply in time), and grows again by one per limit's worth
of answers: additive increase, multiplicative decrease, as in TCP. An address that cannot be reached is taken
out and looked at again after 1, 2, 4 … 30 s; requests wait meanwhile, none is used up for looking.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from remeasure.errors import RemeasureError

log = logging.getLogger("remeasure.pool")
_LONGEST_LOOK_WAIT_S = 30.0
# So many connections must break one after the other, nothing answered between, before an address is out: one
# may break because the server closed an idle connection just when it was used.
_BROKEN_IN_A_ROW = 3
_PAUSE_WORTH_SAYING_S = 5.0


class Address:
    """One address and its state."""

    def __init__(self, url: str, bound: int) -> None:
        self.url = url
        self.bound = bound
        self.limit = float(bound)
        self.in_flight = 0
        self.is_out = False
        self.n_out = 0
        """How often it was taken out."""
        self.paused_until = 0.0
        self._n_broken = 0
        self._cut_at = 0.0

    def answered(self) -> None:
        """Note a reply of any kind: the address is there."""
        self._n_broken = 0

    def did_well(self) -> None:
        """Note an answer: there may be room for more."""
        if self.limit < self.bound:
            self.limit = min(self.bound, self.limit + 1 / self.limit)

    def is_overloaded(self, sent_at: float, now: float) -> None:
        """Halve the limit, once for all requests that were under way together."""
        if sent_at >= self._cut_at:
            self.limit, self._cut_at = max(1.0, self.limit / 2), now

    def broke(self) -> bool:
        """Note a broken connection; return whether the address counts as unreachable now."""
        self._n_broken += 1
        return self._n_broken >= _BROKEN_IN_A_ROW


class Pool:
    """Gives out addresses, least loaded first. For one event loop.

    Args:
        urls: addresses up to ``/v1``, at least one.
        bound: most requests in flight to one address.
        patience_s: how long no address at all may be reachable, seconds.
        is_there: asks whether an address answers again.
    """

    def __init__(
        self, urls: list[str], bound: int, patience_s: float, is_there: Callable[[str], Awaitable[bool]]
    ) -> None:
        self.addresses = [Address(url, bound) for url in urls]
        self.n_waiting = 0
        self._patience_s = patience_s
        self._is_there = is_there
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._looking: set[asyncio.Task[None]] = set()
        self._closed: BaseException | None = None
        self._loop = asyncio.get_running_loop()

    async def take(self) -> Address:
        """Return an address with room, waiting for one; ``give`` it back.

        Raises:
            RemeasureError: no address could be reached for too long.
            BaseException: what ``close`` was given.
        """
        while True:
            if self._closed is not None:
                raise self._closed
            found = self._best()
            if found is not None:
                found.in_flight += 1
                return found
            future = self._loop.create_future()
            self._waiting.append(future)
            try:
                await future
            except asyncio.CancelledError:
                self._wake()  # a wake-up that came together with the end belongs to somebody else
                raise

    def give(self, address: Address) -> None:
        """Take an address back after a sending."""
        address.in_flight -= 1
        self._wake()

    def pause(self, address: Address, seconds: float) -> None:
        """Send nothing more to an address for so long: the server asked for it."""
        until = self._loop.time() + seconds
        if seconds >= _PAUSE_WORTH_SAYING_S and address.paused_until <= self._loop.time():
            log.warning("%s asks to wait %.0f s; nothing is sent to it meanwhile", address.url, seconds)
        if until > address.paused_until:
            address.paused_until = until
            self._loop.call_at(until, self._wake_all)

    def take_out(self, address: Address, reason: str) -> None:
        """Send nothing more to an address until it answers again."""
        if address.is_out or self._closed is not None:
            return
        address.is_out = True
        address.n_out += 1
        log.warning("%s cannot be reached (%s); it is tried again", address.url, reason)
        task = self._loop.create_task(self._look(address, reason))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    def close(self, reason: BaseException) -> None:
        """Raise ``reason`` to all who wait and will ask."""
        self._closed = self._closed or reason
        for task in self._looking:
            task.cancel()
        self._wake_all()

    async def _look(self, address: Address, reason: str) -> None:
        wait_s, began = 1.0, self._loop.time()
        while True:
            await asyncio.sleep(wait_s)
            if await self._is_there(address.url):
                break
            wait_s = min(_LONGEST_LOOK_WAIT_S, wait_s * 2)
            out_s = self._loop.time() - began
            if out_s >= self._patience_s and all(other.is_out for other in self.addresses):
                urls = ", ".join(other.url for other in self.addresses)
                self.close(
                    RemeasureError(
                        f"{urls}: not reachable for {out_s:.0f} s ({reason}); start the server or correct "
                        "base_url, then run the same command again: finished answers are kept"
                    )
                )
                return
        log.warning("%s answers again after %.0f s", address.url, self._loop.time() - began)
        address.is_out = False
        address.answered()
        self._wake_all()

    def _best(self) -> Address | None:
        now, best = self._loop.time(), None
        for one in self.addresses:
            if one.is_out or one.in_flight >= int(one.limit) or one.paused_until > now:
                continue
            if best is None or one.in_flight < best.in_flight:
                best = one
        return best

    def _wake(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    def _wake_all(self) -> None:
        for _ in range(len(self._waiting)):
            self._wake()
