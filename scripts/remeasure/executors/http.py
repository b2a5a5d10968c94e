"""The HTTP executor: many requests in flight to one or several endpoints of a model, one retry layer.

aiohttp and not the ``openai`` package: see ``benchmarks/README.md``.
"""

import asyncio
import contextlib
import logging
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp

from remeasure import interruption
from remeasure.errors import RemeasureError
from remeasure.executors import Call, Endpoint, Keeper, served
from remeasure.executors.keys import Key
from remeasure.executors.pacing import Pacing
from remeasure.executors.payload import Payloads
from remeasure.executors.pool import Address, Pool
from remeasure.executors.replies import HOPELESS, PASSING, Failure, Outcome, entry_of
from remeasure.executors.transport import Transport
from remeasure.records import JournalEntry

log = logging.getLogger("remeasure.http")
# A server that asks for a longer wait than this has closed for the day; the request fails.
_LONGEST_WAIT_S = 600.0
# How long requests in flight may go on when the process is told to end: cluster systems kill after 30 s.
_DRAIN_S = 10.0
# So many failed requests in a row, no outcome between, are an outage and not bad luck.
_FAILED_IN_A_ROW = 25
_OTHER_FILES = 100
# The end of a job reaches a server and us in one moment; a broken connection may be seen a little earlier.
_MOMENT_S = 0.1
# Rough tokens of an image where a limit of tokens per minute is kept; replaced by what the server counts.
_IMAGE_TOKENS = 1000


def wait_s(failure: Failure, n_failures: int, key: str, base_s: float, max_s: float) -> float:
    """Return how long to wait before the next sending, seconds.

    The server's word counts; else the wait doubles from ``base_s`` up to ``max_s``, and up to a quarter is
    added so that requests do not come back all at once (from the key, so that nothing is random).
    """
    if failure.wait_s is not None:
        return failure.wait_s
    return min(max_s, base_s * 2 ** min(n_failures - 1, 30)) * (1 + int(key[:4], 16) / 0xFFFF / 4)


class HttpExecutor:
    """Sends calls over HTTP; see ``Executor``.

    Args:
        endpoint: dialect, bounds and waits.
        served_name: the model name that the server knows.
        images_root: folder that the paths of image references start from.
        base_url: one address or several that serve the same model, up to ``/v1``.
        api_key_env: name of the environment variable that holds the key.
        died: says why a server of ours is gone, null while it runs.
        described: what answers, where it is known already; else the server is asked.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        served_name: str,
        images_root: Path,
        base_url: str | tuple[str, ...],
        api_key_env: str | None = None,
        died: Callable[[], str | None] = lambda: None,
        described: str | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._names = (served_name, *endpoint.also_named)
        self._images_root = images_root
        self._urls = [url.rstrip("/") for url in ([base_url] if isinstance(base_url, str) else base_url)]
        self._key = Key(api_key_env)
        self._died = died
        self._described = described
        self._servers = dict.fromkeys(self._urls, described)
        self._attempts = {n: getattr(endpoint.attempts, n) for n in endpoint.attempts.__struct_fields__}
        self._stopped: BaseException | None = None
        self._pool: Pool | None = None
        self._failed_in_a_row = 0
        self._n_in_flight = self.max_in_flight = 0

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Answer all calls; see ``Executor.run``."""
        self._calls, self._keeper = calls, keeper
        with Payloads(self._endpoint, self._names[0], self._images_root) as self._payloads:
            asyncio.run(self._run())
        if self._stopped is not None:
            raise self._stopped

    # -- the whole -----------------------------------------------------------------------------------------

    async def _run(self) -> None:
        _allow_sockets(self._endpoint.concurrency * len(self._urls))
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._pacing = Pacing(
            getattr(self._endpoint, "requests_per_minute", None),
            getattr(self._endpoint, "tokens_per_minute", None),
        )
        self._transport = Transport(self._names, self._endpoint.timeout_s, self._key, self._payloads)
        async with self._transport:
            with self._signals():
                bad = await self._check_served()
                bound = self._endpoint.concurrency
                self._pool = Pool(self._urls, bound, self._endpoint.patience_s, self._is_there)
                for address in self._pool.addresses:
                    if address.url in bad:
                        self._pool.take_out(address, "did not answer at the start")
                # As many again may wait for their next try without keeping others from being sent.
                self._n_spare = bound * len(self._urls)
                async with asyncio.TaskGroup() as self._workers:
                    for _ in range(bound * len(self._urls)):
                        self._workers.create_task(self._work())
            if self._pool is not None:
                self._pool.close(asyncio.CancelledError())
                self._tell()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM end the step in order: what is in flight is waited for, and kept."""
        with interruption.told_in_loop(self._told, _DRAIN_S):
            try:
                yield
            except asyncio.CancelledError:
                if self._stopped is None:
                    raise

    def _told(self, reason: KeyboardInterrupt) -> None:
        log.warning("told to end: waiting up to %g s for what is in flight", _DRAIN_S)
        self._end(reason)

    def _end(self, reason: BaseException) -> None:
        """Send nothing more; the first reason is the one that is raised in the end."""
        if self._stopped is None:
            self._stopped = reason
        elif isinstance(self._stopped, KeyboardInterrupt) and isinstance(reason, RemeasureError):
            log.warning("while ending: %s", reason)
        self._ended.set()
        if self._pool is not None:
            self._pool.close(reason)

    def _tell(self) -> None:
        bounds = ", ".join(f"{a.url} {int(a.limit)} of {a.bound}" for a in self._pool.addresses)
        log.info("at most %d requests were in flight; bounds at the end: %s", self.max_in_flight, bounds)

    # -- before the first request --------------------------------------------------------------------------

    async def _check_served(self) -> list[str]:
        """Ask every address what it serves, three times at most; return the ones that cannot be reached.

        Raises:
            RemeasureError: none answers, or one serves other models.
        """
        for n_looks in (1, 2, 3):
            found = await asyncio.gather(*map(self._look, self._urls))
            bad = {u: one.message for u, one in zip(self._urls, found, strict=True) if _is_bad(one)}
            if len(bad) < len(self._urls):
                break
            if self._stopped is None and (reason := self._died()):
                raise RemeasureError(reason)
            if self._stopped is not None:
                break
            if n_looks == 3:
                said = self._key.out_of("; ".join(f"{url}: {text}" for url, text in bad.items()))
                raise RemeasureError(f"no endpoint answers: {said}; start the server, or correct base_url")
            await asyncio.sleep(self._endpoint.base_wait_s * n_looks)
        for url, one in zip(self._urls, found, strict=True):
            self._note_served(url, one)
        if self._stopped is not None:
            raise self._stopped
        return list(bad)

    async def _is_there(self, url: str) -> bool:
        """Return whether an address answers again; a server of ours that has ended never will."""
        if reason := self._died():
            self._end(RemeasureError(reason))
        found = await self._look(url)
        if _is_bad(found):
            return False
        self._note_served(url, found)
        return True

    def _note_served(self, url: str, found: "served.Served | Failure") -> None:
        """Note what an address serves; end the step where it is another model."""
        if isinstance(found, Failure):
            return
        if found.models and not set(self._names) & set(found.models):
            self._end(RemeasureError(served.wrong_name(url, self._names[0], found.models)))
        self._servers[url] = self._described or found.build

    async def _look(self, url: str) -> "served.Served | Failure":
        session, clean = self._transport.session, self._key.out_of_bytes
        return await served.look(session, url, self._names[0], clean)

    # -- one request after the other -----------------------------------------------------------------------

    async def _work(self) -> None:
        """Take calls until there are none; the calls that are left when the work ends are not sent."""
        try:
            while self._stopped is None:
                if reason := self._keeper.enough():
                    self._end(RemeasureError(reason))
                    return
                call = next(self._calls, None)
                if call is None:
                    return
                entry = await self._ask(call)
                self._keeper.keep(entry)
                self._count(entry)
        except _Ended:
            return
        except RemeasureError as error:
            self._end(error)

    def _count(self, entry: JournalEntry) -> None:
        self._failed_in_a_row = self._failed_in_a_row + 1 if entry.status == "failed" else 0
        if self._failed_in_a_row >= _FAILED_IN_A_ROW:
            raise RemeasureError(
                f"{', '.join(self._urls)}: {_FAILED_IN_A_ROW} requests failed one after the other, the last "
                f"({entry.custom_id!r}) with {entry.error}; repair the cause and run the same command again: "
                "finished answers are kept"
            )

    async def _ask(self, call: Call) -> JournalEntry:
        """Send a call until it has an outcome or its class of failure is used up."""
        template = self._payloads.template(call)
        n_images = template.count(b'"type":"image_url"')
        started = time.monotonic()
        failures: dict[str, int] = {}
        wasted: Counter[str] = Counter()
        while True:
            reply, address = await self._send_when_possible(call, template, n_images)
            n_sent = sum(failures.values()) + 1
            if isinstance(reply, Outcome):
                return self._entry(call, reply, n_sent, started, address, wasted)
            if reply.kind == "connection":
                await asyncio.sleep(_MOMENT_S)
            if isinstance(self._stopped, KeyboardInterrupt):
                raise _Ended  # the server may have been told to end as well: this is no failure of the model
            wasted.update(reply.usage or {})
            failures[reply.kind] = failures.get(reply.kind, 0) + 1
            self._stop_if_hopeless(reply, address)
            pause = wait_s(reply, n_sent, call.key, self._endpoint.base_wait_s, self._endpoint.max_wait_s)
            used_up = reply.kind not in PASSING or failures[reply.kind] >= self._attempts[reply.kind]
            if used_up or pause > _LONGEST_WAIT_S:
                said = f"{reply.kind}: {reply.message}"
                log.warning("request %s failed after %d sendings: %s", call.custom_id, n_sent, said)
                return self._entry(call, reply, n_sent, started, address, wasted)
            log.debug("request %s: %s, again in %.1f s", call.custom_id, reply.kind, pause)
            if reply.kind == "rate_limit" and reply.wait_s is not None:
                self._pool.pause(address, pause)  # for all requests, this one included
            else:
                await self._sleep(pause)

    def _entry(
        self,
        call: Call,
        reply: Outcome | Failure,
        n_sent: int,
        started: float,
        address: Address,
        wasted: Counter[str],
    ) -> JournalEntry:
        return entry_of(
            call.key,
            call.custom_id,
            reply,
            attempts=n_sent,
            seconds=time.monotonic() - started,
            server=self._servers[address.url],
            wasted=dict(wasted) or None,
        )

    async def _sleep(self, seconds: float) -> None:
        """Wait for the next try of one request, while another worker sends others in its stead."""
        if self._n_spare > 0:
            self._n_spare -= 1
            self._workers.create_task(self._work())
        await self._wait(seconds)

    async def _wait(self, seconds: float) -> None:
        """Wait, but no longer than the step lasts."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)
        if self._stopped is not None:
            raise _Ended

    async def _send_when_possible(
        self, call: Call, template: bytes, n_images: int
    ) -> tuple[Outcome | Failure, Address]:
        """Wait for limits and for an address with room, then send once."""

        def about_to_send() -> None:
            if self._stopped is not None:
                raise _Ended
            self._keeper.sent(call.key)

        n_tokens = 0.0
        if self._pacing.is_on:
            n_tokens = len(template) / 4 + n_images * _IMAGE_TOKENS + call.body.get("max_tokens", 0)
            if (wait := self._pacing.wait_s(n_tokens)) > 0:
                await self._wait(wait)
        try:
            address = await self._pool.take()
        except BaseException as reason:
            if self._stopped is not None:
                raise _Ended from None
            raise reason from None
        self._n_in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._n_in_flight)
        try:
            sent_at = self._loop.time()
            url = address.url + "/chat/completions"
            if n_images:
                reply = await self._transport.send_images(url, call, template, about_to_send)
            else:
                reply = await self._transport.send(url, template, about_to_send)
            self._learn(address, reply, sent_at)
        finally:
            self._n_in_flight -= 1
            self._pool.give(address)
        self._pacing.settle(n_tokens, getattr(reply, "usage", None))
        return reply, address

    def _learn(self, address: Address, reply: Outcome | Failure, sent_at: float) -> None:
        """Tell the pool what a reply says about the address."""
        if isinstance(reply, Failure) and reply.kind == "connection":
            refused = reply.message == aiohttp.ClientConnectorError.__name__
            if address.broke() or refused:
                self._pool.take_out(address, reply.message)
            return
        address.answered()
        if isinstance(reply, Outcome):
            address.did_well()
        elif reply.kind in ("rate_limit", "timeout") or reply.status in (503, 529):
            address.is_overloaded(sent_at, self._loop.time())

    def _stop_if_hopeless(self, failure: Failure, address: Address) -> None:
        if failure.kind == "connection" and (reason := self._died()):
            raise RemeasureError(reason)
        if failure.kind not in HOPELESS:
            return
        what = {
            "auth": f"the endpoint refuses the key ({failure.message}); check {self._key.where}",
            "quota": f"the quota is spent ({failure.message}); nothing more is sent: raise it, then run the "
            "same command again",
            "wrong_model": f"wrong model: {failure.message}; correct `served_name`, or add the name to "
            "`also_named` where it is the same model",
        }
        raise RemeasureError(
            self._key.out_of(f"{address.url}: {what[failure.kind]}; finished answers are kept")
        )


_NOTHING_THERE = ("connection", "timeout", "html", "not_http", "redirect")


class _Ended(Exception):
    """The work ended while a request waited: it is not sent, and asked next time."""


def _allow_sockets(n: int) -> None:
    """Let the process open so many connections.

    Raises:
        RemeasureError: the system allows fewer: they would look like a dead server.
    """
    needed = n + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise RemeasureError(
            f"{n} requests in flight need {needed} open files, the system allows {hard} (ulimit -Hn); "
            "lower `concurrency` of the model, or have the limit raised"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _is_bad(look: "served.Served | Failure") -> bool:
    """Return whether nothing can be asked; an endpoint without a list of models may still answer."""
    return isinstance(look, Failure) and look.kind in _NOTHING_THERE
