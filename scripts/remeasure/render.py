"""A pool of browsers that turns pages of an archive into tiles; every page ends rendered or with a reason."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remeasure.browser import launch_flags
from remeasure.capture import (
    CapturedPage,
    CaptureTrouble,
    PageFailed,
    RenderSettings,
    Tab,
    capture_page,
    open_tab,
)
from remeasure.errors import RemeasureError

log = logging.getLogger("remeasure.render")

_ATTEMPTS = 2
_LAUNCH_ATTEMPTS = 3
_LAUNCH_TIMEOUT_S = 60
_CLOSE_TIMEOUT_S = 5
PROGRESS_S = 10


@dataclass(frozen=True)
class Job:
    """A page to render: identity, entry path, and the key under which the result is kept."""

    page_id: str
    path: str
    key: str


@dataclass
class Pool:
    """How many browsers of which kind run, and what they have done so far.

    Attributes:
        program: the browser.
        sandbox: whether its sandbox is on.
        port: port of the page server.
        n_browsers: number of browser processes.
        settings: what decides how tiles look.
        keep: called with every rendered page, in the order in which they finish.
        failures: reason by page id.
        n_done: pages that ended, failed ones included.
        n_restarts: browsers that were started again.
        capture_s: seconds inside the browser's capture call, all browsers together.
        seconds: seconds of all calls of ``render``.
    """

    program: Path
    sandbox: bool
    port: int
    n_browsers: int
    settings: RenderSettings
    keep: Callable[[Job, CapturedPage], None]
    failures: dict[str, str] = field(default_factory=dict)
    n_done: int = 0
    n_restarts: int = 0
    capture_s: float = 0.0
    seconds: float = 0.0

    def render(self, jobs: Iterable[Job]) -> None:
        """Render all jobs; returns when each has ended.

        Raises:
            RemeasureError: the browser does not start.
        """
        todo = list(jobs)
        start = time.monotonic()
        if todo:
            asyncio.run(self._render(todo))
        self.seconds += time.monotonic() - start

    @property
    def capture_share(self) -> float:
        """Share of the browsers' time that passed inside the browser's capture call, 0 to 1."""
        return self.capture_s / (self.seconds * self.n_browsers) if self.seconds else 0.0

    def summary(self, counts: Mapping[str, int]) -> str:
        """Return the last line of a log: what became of the pages, how long it took, and where time went."""
        return (
            f"pages ok={counts['rendered']} failed={counts['failed']} tiles={counts['tiles']} "
            f"blank={counts['blank_tiles']} rendered in {self.seconds:.1f} s, {self.capture_share:.0%} of it "
            f"inside capture calls, {self.n_restarts} browsers restarted"
        )

    async def _render(self, jobs: list[Job]) -> None:
        from playwright.async_api import async_playwright

        asyncio.get_running_loop().set_exception_handler(_quietly)
        queue = list(reversed(jobs))
        async with async_playwright() as driver:
            progress = asyncio.create_task(self._report(len(jobs)))
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.n_browsers, len(jobs))):
                        group.create_task(_Worker(self, driver).work(queue))
            except* RemeasureError as errors:
                raise errors.exceptions[0] from None
            finally:
                progress.cancel()

    async def _report(self, total: int) -> None:
        start = time.monotonic()
        while True:
            await asyncio.sleep(PROGRESS_S)
            rate = self.n_done / (time.monotonic() - start)
            left = f"{(total - self.n_done) / rate:.0f} s" if rate else "unknown"
            log.info(
                "pages %d/%d ok=%d failed=%d %.1f/s eta %s",
                self.n_done,
                total,
                self.n_done - len(self.failures),
                len(self.failures),
                rate,
                left,
            )


def _quietly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Answers that arrive for a browser that was ended meanwhile are no news."""
    log.debug("event loop: %s", context.get("exception") or context.get("message"))


class _Worker:
    """One browser process with one tab; takes pages from the common queue."""

    def __init__(self, pool: Pool, driver: Any) -> None:
        self.pool = pool
        self.driver = driver
        self.browser: Any = None
        self.tab: Tab | None = None
        self.pid: int | None = None

    async def work(self, queue: list[Job]) -> None:
        """Render pages until the queue is empty; the browser is closed whatever happens."""
        try:
            while queue:
                job = queue.pop()
                await self._one(job)
                self.pool.n_done += 1
        finally:
            await self._close()

    async def _one(self, job: Job) -> None:
        from playwright.async_api import Error

        pool = self.pool
        reason = ""
        for attempt in range(_ATTEMPTS):
            await self._start()
            try:
                async with asyncio.timeout(pool.settings.page_timeout_s):
                    page = await capture_page(
                        self.tab, job.page_id, job.path, pool.settings, careful=attempt > 0
                    )
            except PageFailed as error:
                reason = str(error)
                # A page that was given up may still be on its way somewhere: the next one gets a new browser.
                await self._close()
                break
            except CaptureTrouble as error:
                reason = str(error)
                log.debug("%s: %s (attempt %d)", job.page_id, reason, attempt + 1)
            except TimeoutError:
                reason = f"not finished within {pool.settings.page_timeout_s:g} s (a script that never ends?)"
                await self._close()
                break
            except Error as error:
                reason = await self._recover(job, error.message.splitlines()[0])
            else:
                pool.keep(job, page)
                return
        pool.failures[job.page_id] = reason
        log.warning("%s: failed: %s", job.page_id, reason)

    async def _recover(self, job: Job, said: str) -> str:
        """Return the reason of an interrupted page; start a browser that is gone again with the next page."""
        if self.browser.is_connected() and "crash" not in said:
            await self._close()  # what sent it elsewhere may still be running
            return f"the page went elsewhere while it was looked at ({said})"
        log.warning("%s: the browser stopped (%s); starting it again", job.page_id, said)
        self.pool.n_restarts += 1
        await self._close()
        return f"the browser stopped ({said})"

    async def _start(self) -> None:
        from playwright.async_api import Error

        if self.tab is not None:
            return
        said = ""
        for _ in range(_LAUNCH_ATTEMPTS):
            try:
                async with asyncio.timeout(_LAUNCH_TIMEOUT_S):
                    await self._launch()
                return
            except (Error, TimeoutError) as error:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                said = next(
                    (line for line in lines if "ERROR" in line or "FATAL" in line), (lines or ["timeout"])[0]
                )
                await self._close()
        raise RemeasureError(
            f"{self.pool.program}: the browser does not start, tried {_LAUNCH_ATTEMPTS} times "
            f"({said[:300]}); run it by hand to see more, or give --sandbox false where its sandbox is not "
            "allowed; finished pages are kept"
        )

    async def _launch(self) -> None:
        pool = self.pool
        self.browser = await self.driver.chromium.launch(
            executable_path=pool.program,
            args=launch_flags(pool.port, pool.sandbox),
            chromium_sandbox=pool.sandbox,
            handle_sigint=False,
        )
        session = await self.browser.new_browser_cdp_session()
        processes = await session.send("SystemInfo.getProcessInfo")
        self.pid = next(row["id"] for row in processes["processInfo"] if row["type"] == "browser")
        context = await self.browser.new_context(
            viewport={"width": pool.settings.width_px, "height": pool.settings.tile_height_px},
            device_scale_factor=1,
            locale="en-US",
            timezone_id="UTC",
            color_scheme="light",
            reduced_motion="reduce",
            service_workers="block",
            accept_downloads=False,
        )
        self.tab = await open_tab(context)

    async def _close(self) -> None:
        """Close the browser; where it does not answer, end its process."""
        from playwright.async_api import Error

        browser, pid, tab = self.browser, self.pid, self.tab
        self.browser = self.pid = self.tab = None
        if tab is not None:
            self.pool.capture_s += tab.capture_s
        if browser is None:
            return
        closed: Awaitable[None] = browser.close()
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await closed
        except (Error, TimeoutError):
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
