"""Open one page in a browser tab, wait until it is still, take its tiles and compare them with it."""

import asyncio
import base64
import re
import time
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from remeasure import probe, tiles
from remeasure.files import sha256_bytes
from remeasure.page_server import host_of, url_of
from remeasure.records import PictureRef, RenderedPage, TileRef

# Caps of single waits inside a page; the limit of the whole page stands in the settings.
WAIT_MS = 10_000
SETTLE_MS = 3_000
_BLOCKED = ("file:*", "ftp:*", "ws:*", "wss:*", "https:*")
_NET_ERROR = re.compile(r"net::(ERR_\w+)")


class RenderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides how a page looks as tiles."""

    width_px: int
    tile_height_px: int
    jpeg_quality: int
    page_timeout_s: float
    max_height_px: int


class PageFailed(Exception):
    """The page itself cannot be rendered; trying again would not help. The text is the recorded reason."""


class CaptureTrouble(Exception):
    """The capture went wrong, not the page; worth a second, more careful try."""


class CapturedPage(Struct, frozen=True, kw_only=True):
    """A rendered page with the bytes of its tiles, in the order of ``page.tiles``."""

    page: RenderedPage
    tiles: tuple[bytes, ...]
    n_blank: int
    n_repeated: int
    dropped_bottom_px: int
    dropped_right_px: int


@dataclass
class Tab:
    """An open tab with its protocol session, and what must be remembered from page to page.

    Attributes:
        page: Playwright page.
        session: Playwright protocol session of that page.
        frame_id: identity of the main frame.
        world: identity of the probe's world on the present page.
        host: host name of the present page.
        last: hashes of the texts and of the first tile of the page before, to notice a left-over picture.
        capture_s: seconds spent inside the browser's capture call so far.
        notes: what happened on the present page beside rendering.
    """

    page: Any
    session: Any
    frame_id: str
    world: int = 0
    host: str = ""
    last: tuple[str, str] = ("", "")
    capture_s: float = 0.0
    notes: set[str] = field(default_factory=set)


async def open_tab(context: Any) -> Tab:
    """Open a tab that closes every dialog and notes requests that were refused."""
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    tree = await session.send("Page.getFrameTree")
    tab = Tab(page, session, tree["frameTree"]["frame"]["id"])

    async def answer(dialog: Any) -> None:
        tab.notes.add("dialogs were closed")
        await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())

    def refused(request: Any) -> None:
        if not request.url.startswith((f"http://{tab.host}/", "data:", "blob:", "about:")):
            tab.notes.add("requests that leave the archive were blocked")

    page.on("dialog", answer)
    page.on("requestfailed", refused)
    await session.send("Network.enable")
    await session.send("Network.setBlockedURLs", {"urls": list(_BLOCKED)})
    return tab


async def capture_page(
    tab: Tab, page_id: str, path: str, settings: RenderSettings, careful: bool = False
) -> CapturedPage:
    """Render one page; the caller sets the time limit.

    Args:
        tab: tab of a context whose viewport is ``width_px`` x ``tile_height_px``.
        page_id: identity of the page, becomes part of the names of tiles.
        path: entry path in the archive that is served.
        settings: size and quality.
        careful: scroll through the page first and wait longer; for the second try.

    Raises:
        PageFailed: the page is empty, too high, never still, or leaves the archive.
        CaptureTrouble: a tile is damaged, blank where the page has content, or a copy of another one.
    """
    tab.notes.clear()
    tab.host = host_of(path)
    if careful:
        await tab.page.goto("about:blank")
        tab.last = ("", "")
    await _open(tab, path)
    options = f"{{careful:{str(careful).lower()},wait_ms:{WAIT_MS},settle_ms:{SETTLE_MS}," + (
        f"max_height_px:{settings.max_height_px}}}"
    )
    seen = await _ask(tab, f"settle({options})", install=True)
    _refuse(seen, tab, settings)
    grid = tiles.cut(seen["width"], seen["height"], settings.width_px, settings.tile_height_px)
    captures = await _take(tab, grid, seen["left"], settings)
    await _compare(tab, seen, grid, captures)
    if all(capture.blank for capture in captures) and not seen["text"] and not seen["media"]:
        raise PageFailed("the page is empty: no text, no picture, one colour")
    return _record(tab, page_id, seen, grid, captures)


async def _open(tab: Tab, path: str) -> None:
    from playwright.async_api import Error

    await tab.session.send("Network.clearBrowserCookies")
    try:
        response = await tab.page.goto(url_of(path), wait_until="load", timeout=0)
    except Error as error:
        found = _NET_ERROR.search(error.message)
        if found is None:
            raise
        raise PageFailed(f"the page cannot be opened ({found[1]})") from None
    if response is not None and response.status >= 400:
        raise PageFailed(f"the archive's server answered {response.status}")
    world = await tab.session.send("Page.createIsolatedWorld", {"frameId": tab.frame_id})
    tab.world = world["executionContextId"]


async def _ask(tab: Tab, call: str, install: bool = False) -> Any:
    """Call a function of the probe in its own world and return its value."""
    target = f"(globalThis.__probe = {probe.SCRIPT.strip()})" if install else "globalThis.__probe"
    answer = await tab.session.send(
        "Runtime.evaluate",
        {
            "expression": f"{target}.{call}",
            "contextId": tab.world,
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    if "exceptionDetails" in answer:
        thrown = answer["exceptionDetails"].get("exception", {}).get("description") or "unknown error"
        raise CaptureTrouble(f"the page could not be measured: {thrown.splitlines()[0]}")
    return answer["result"].get("value")


def _refuse(seen: dict[str, Any], tab: Tab, settings: RenderSettings) -> None:
    if not seen["url"].startswith(f"http://{tab.host}/"):
        raise PageFailed("the page left the archive")
    for side in ("height", "width"):
        if seen[side] > settings.max_height_px and (seen["settled"] or seen["first"] == seen["height"]):
            raise PageFailed(
                f"the page has a {side} of {seen[side]} px, the limit is {settings.max_height_px} px"
            )
    if not seen["settled"]:
        raise PageFailed("the page keeps changing its height, its layout never settles")
    if seen["height"] < 1:
        raise PageFailed("the page is empty: its content has no height")


async def _take(tab: Tab, grid: tiles.Grid, left_px: int, settings: RenderSettings) -> list[tiles.Capture]:
    """Take the tiles in order; each is scrolled into view, so that the browser draws it as for a reader.

    ``left_px`` is the part of the content that lies to the left of the browser's own origin.
    """
    checks = []
    for place in grid.rectangles:
        x, y, width, height = place.x_px, place.y_px, place.width_px, place.height_px
        at = [left_px, 0]
        if at != [x, y]:
            at = await _ask(tab, f"scroll({x},{y},{str(len(checks) == 1).lower()})")
        options: dict[str, Any] = {
            "format": "jpeg",
            "quality": settings.jpeg_quality,
            "captureBeyondViewport": False,
        }
        if at != [x, y] or (width, height) != (settings.width_px, settings.tile_height_px):
            options["clip"] = {"x": x - left_px, "y": y, "width": width, "height": height, "scale": 1}
        start = time.perf_counter()
        answer = await tab.session.send("Page.captureScreenshot", options)
        tab.capture_s += time.perf_counter() - start
        checks.append(asyncio.create_task(asyncio.to_thread(_decode, answer["data"], width, height)))
    return list(await asyncio.gather(*checks))


def _decode(text: str, width_px: int, height_px: int) -> tiles.Capture:
    return tiles.check(base64.b64decode(text), width_px, height_px)


async def _compare(tab: Tab, seen: dict[str, Any], grid: tiles.Grid, captures: list[tiles.Capture]) -> None:
    """Compare the tiles with the page: nothing torn, missing, left over, or changed meanwhile."""
    for index, capture in enumerate(captures):
        if capture.problem is not None:
            raise CaptureTrouble(f"tile {index} {capture.problem}")
    words = sha256_bytes(repr((seen["text"], [url.split("/", 3)[-1] for url in seen["sources"]])).encode())
    before, tab.last = tab.last, (words, captures[0].sha256)
    if before[1] == captures[0].sha256 and before[0] != words and not captures[0].blank:
        raise CaptureTrouble("the first tile shows the page before")
    after = await _ask(tab, "measure()") if len(captures) > 1 else seen
    if (after["height"], after["width"]) != (seen["height"], seen["width"]):
        raise CaptureTrouble("the page changed its size while it was captured")
    for index, (place, capture) in enumerate(zip(grid.rectangles, captures, strict=True)):
        for start, height in capture.flat:
            await _compare_flat(tab, index, place, capture, start, height)
    first_of: dict[str, int] = {}
    for index, capture in enumerate(captures):
        other = first_of.setdefault(capture.sha256, index)
        if other != index and not capture.blank:
            here, there = [await _described(tab, grid.rectangles[number]) for number in (index, other)]
            if here != there:
                raise CaptureTrouble(f"tile {index} is a copy of tile {other}, but the page differs there")


async def _compare_flat(
    tab: Tab, index: int, place: tiles.Rectangle, capture: tiles.Capture, start_px: int, height_px: int
) -> None:
    """Accept a stretch of one colour only where the page has nothing that one could see."""
    part = tiles.Rectangle(place.x_px, place.y_px + start_px, place.width_px, height_px)
    content = [item for item in await _described(tab, part) if item[-1]]
    if content and tiles.is_flat(capture.data, start_px, height_px):
        raise CaptureTrouble(
            f"tile {index} is blank from {start_px} to {start_px + height_px} px, but the page has "
            f"{len(content)} texts or pictures there (first: {content[0][1][:40]!r})"
        )


async def _described(tab: Tab, place: tiles.Rectangle) -> list[Any]:
    return await _ask(tab, f"describe({place.x_px},{place.y_px},{place.width_px},{place.height_px})")


def _tile_refs(page_id: str, grid: tiles.Grid, captures: list[tiles.Capture]) -> tuple[TileRef, ...]:
    return tuple(
        TileRef(
            tile_id=f"{page_id}/{index:04d}",
            member=f"{page_id}/tile_{index:04d}.jpg",
            sha256=capture.sha256,
            x_px=place.x_px,
            y_px=place.y_px,
            width_px=place.width_px,
            height_px=place.height_px,
        )
        for index, (place, capture) in enumerate(zip(grid.rectangles, captures, strict=True))
    )


def _record(
    tab: Tab, page_id: str, seen: dict[str, Any], grid: tiles.Grid, captures: list[tiles.Capture]
) -> CapturedPage:
    notes = set(tab.notes)
    if grid.dropped_bottom_px:
        notes.add(f"remainder rule: the last {grid.dropped_bottom_px} px of the height were left out")
    if grid.dropped_right_px:
        notes.add(f"remainder rule: the last {grid.dropped_right_px} px of the width were left out")
    pictures = tuple(
        PictureRef(
            picture_id=f"{page_id}/picture-{index:02d}", x_px=x, y_px=y, width_px=width, height_px=height
        )
        for index, (x, y, width, height) in enumerate(seen["pictures"])
    )
    hashes = {capture.sha256 for capture in captures if not capture.blank}
    return CapturedPage(
        page=RenderedPage(
            page_id=page_id,
            status="rendered",
            reason="; ".join(sorted(notes)) or None,
            width_px=seen["width"],
            height_px=seen["height"],
            tiles=_tile_refs(page_id, grid, captures),
            pictures=pictures,
        ),
        tiles=tuple(capture.data for capture in captures),
        n_blank=sum(capture.blank for capture in captures),
        n_repeated=sum(not capture.blank for capture in captures) - len(hashes),
        dropped_bottom_px=grid.dropped_bottom_px,
        dropped_right_px=grid.dropped_right_px,
    )
