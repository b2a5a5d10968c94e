"""Pages and tiles per second of our renderer against plain Playwright: full-page PNG, cut into PNG tiles.

Same Chromium, same pages, same server, in one run; the kinds take turns, and the median of the rounds counts.
Starting the browser is part of every time. Processor time (ours, the driver's and the browser's) is given
beside it, because it depends less on what else the machine does.
"""

import argparse
import io
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from remeasure import browser, cli, jsonl  # noqa: E402
from remeasure.archive import Archive  # noqa: E402
from remeasure.capture import CapturedPage, RenderSettings  # noqa: E402
from remeasure.page_server import DOMAIN, PageServer, url_of  # noqa: E402
from remeasure.records import Page  # noqa: E402
from remeasure.render import Job, Pool  # noqa: E402
from remeasure.spool import Spool, page_key  # noqa: E402

SETTINGS = RenderSettings(
    width_px=875, tile_height_px=1024, jpeg_quality=85, page_timeout_s=30, max_height_px=60000
)
CLOSE_LEVELS = 5


def plain(program: Path, sandbox: bool, port: int, jobs: list[Job]) -> dict[str, list[bytes]]:
    """Render as one would write it down first: open, full-page screenshot, cut with Pillow, save as PNG."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    done: dict[str, list[bytes]] = {}
    with sync_playwright() as driver:
        rules = f"--host-resolver-rules=MAP *.{DOMAIN}:80 127.0.0.1:{port}"
        launched = driver.chromium.launch(executable_path=program, chromium_sandbox=sandbox, args=[rules])
        page = launched.new_page(viewport={"width": SETTINGS.width_px, "height": SETTINGS.tile_height_px})
        for job in jobs:
            page.goto(url_of(job.path))
            with Image.open(io.BytesIO(page.screenshot(full_page=True))) as whole:
                done[job.page_id] = []
                for top in range(0, whole.height, SETTINGS.tile_height_px):
                    bottom = min(top + SETTINGS.tile_height_px, whole.height)
                    stream = io.BytesIO()
                    whole.crop((0, top, whole.width, bottom)).save(stream, "PNG")
                    done[job.page_id].append(stream.getvalue())
        launched.close()
    return done


def ours(
    program: Path, sandbox: bool, port: int, jobs: list[Job], n_browsers: int, spool: Spool
) -> tuple[dict[str, CapturedPage], float]:
    """Render with the pool, pages to the disk as in a real run; returns them and the share in capture."""
    kept: dict[str, CapturedPage] = {}

    def keep(job: Job, page: CapturedPage) -> None:
        spool.put(job.key, page)
        kept[job.page_id] = page

    pool = Pool(program, sandbox, port, n_browsers, SETTINGS, keep)
    pool.render(jobs)
    if pool.failures:
        raise SystemExit(f"pages failed: {pool.failures}")
    return kept, pool.capture_share


def differences(pages: dict[str, CapturedPage], pictures: dict[str, list[bytes]]) -> list[float]:
    """Return the mean absolute difference of each tile, 0 to 255, over pages that are not wide."""
    import numpy as np
    from PIL import Image

    def pixels(data: bytes) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int16)

    found = []
    for page_id, page in pages.items():
        for ref, data in zip(page.page.tiles, page.tiles, strict=True):
            if page.page.width_px > SETTINGS.width_px:
                continue
            ours_px, plain_px = pixels(data), pixels(pictures[page_id][ref.y_px // SETTINGS.tile_height_px])
            height = min(len(ours_px), len(plain_px))
            found.append(float(np.abs(ours_px[:height] - plain_px[:height]).mean()))
    return found


def processor_s() -> float:
    """Return the processor time of this process and of all that it started and that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(call: Callable[[], Any], took: list[tuple[float, float]]) -> Any:
    """Return the value of a call; seconds and processor seconds are appended to ``took``."""
    start, used = time.perf_counter(), processor_s()
    value = call()
    took.append((time.perf_counter() - start, processor_s() - used))
    return value


def show(took: dict[str, list[tuple[float, float]]], n_pages: int, n_tiles: int) -> None:
    """Print the table."""
    plain_s = [seconds for seconds, _ in took["plain"]]
    print("| renderer | s | pages/s | tiles/s | times plain | in each round | processor ms per page |")
    print("|---|---|---|---|---|---|---|")
    for name, pairs in took.items():
        middle = statistics.median(seconds for seconds, _ in pairs)
        used = 1000 * statistics.median(processor for _, processor in pairs) / n_pages
        rounds = ", ".join(f"{base / one:.2f}" for base, (one, _) in zip(plain_s, pairs, strict=True))
        print(
            f"| {name} | {middle:.1f} | {n_pages / middle:.1f} | {n_tiles / middle:.1f} |"
            f" {statistics.median(plain_s) / middle:.2f} | {rounds} | {used:.0f} |"
        )


def work(args: argparse.Namespace) -> None:
    """Take turns, compare, print."""
    archive = Archive(args.archive)
    pages = list(jsonl.read(args.pages, Page))[: args.limit]
    jobs = [Job(page.page_id, page.path, page_key(page.page_id)) for page in pages]
    program, sandbox = browser.find_browser(args.browser), browser.use_sandbox("auto")
    took: dict[str, list[tuple[float, float]]] = {"plain": [], "1 browser": [], "2 browsers": []}
    shares: list[float] = []
    with PageServer(archive) as server, tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder) / "spool")
        where = (program, sandbox, server.port, jobs)
        for _ in range(args.rounds):
            pictures = timed(lambda: plain(*where), took["plain"])
            rendered, share = timed(lambda: ours(*where, 1, spool), took["1 browser"])
            shares.append(share)
            timed(lambda: ours(*where, 2, spool), took["2 browsers"])
    n_tiles = sum(len(page.tiles) for page in rendered.values())
    far = differences(rendered, pictures)
    show(took, len(jobs), n_tiles)
    report = {
        "chromium": browser.version(program),
        "pages": len(jobs),
        "tiles": n_tiles,
        "mean_difference": round(statistics.mean(far), 3),
        "largest_difference": round(max(far), 3),
        "share_of_tiles_within_5": round(sum(value <= CLOSE_LEVELS for value in far) / len(far), 4),
        "share_inside_capture_1_browser": round(statistics.median(shares), 3),
    }
    print(json.dumps(report))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, required=True, help="ZIM archive")
    parser.add_argument("--pages", type=Path, required=True, help="pages to render, pages.jsonl")
    parser.add_argument("--limit", type=int, help="only so many of the first pages")
    parser.add_argument("--rounds", type=int, default=3, help="how often the kinds take turns")
    parser.add_argument(
        "--browser", type=Path, help="Chromium to use instead of the first on the search path"
    )
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
