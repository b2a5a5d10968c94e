"""Render the pages of an archive into JPEG tiles, with a manifest that holds every page, failed ones too.

With ``--part`` only the pages of that part; a later step puts the parts together.
"""

import argparse
import collections
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import archive_record, browser, cli, images, jsonl, parts, provenance, rendered
from remeasure.archive import Archive
from remeasure.capture import RenderSettings
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.options import decode
from remeasure.page_server import PageServer
from remeasure.records import Page, RenderedPage
from remeasure.render import Job, Pool
from remeasure.spool import Spool, page_key

log = logging.getLogger("remeasure.render_tiles")

# Part of every key: a changed way to render must not pick up what an older one left behind.
PROTOCOL = "tiles@1"
COUNTS = (
    *("rendered", "failed", "tiles", "blank_tiles", "repeated_tiles"),
    *("pages_with_remainder", "pages_with_note"),
)


def make_jobs(
    archive: Archive, pages: list[Page], surroundings: tuple[str, ...]
) -> tuple[list[Job], dict[str, str]]:
    """Return what to render, in page order, and the reasons of pages that cannot be.

    Args:
        archive: opened archive.
        pages: the page list.
        surroundings: everything beside the page that decides the result; becomes part of each key.
    """
    jobs, failures = [], {}
    for page in pages:
        try:
            entry = archive.resolve(page.path)
        except RemeasureError as error:
            failures[page.page_id] = f"the page cannot be read from the archive: {error}"
            continue
        if not entry.is_page:
            failures[page.page_id] = f"the entry is {entry.mimetype or 'of no type'}, not a page"
            continue
        key = page_key(*surroundings, page.page_id, entry.path, sha256_bytes(entry.data))
        jobs.append(Job(page.page_id, entry.path, key))
    return jobs, failures


def outcomes(
    pages: list[Page], jobs: dict[str, Job], failures: dict[str, str], spool: Spool
) -> Iterator[RenderedPage]:
    """Yield what became of every page, in page order."""
    for page in pages:
        if page.page_id in failures:
            yield RenderedPage(page_id=page.page_id, status="failed", reason=failures[page.page_id])
        else:
            yield spool.take(jobs[page.page_id].key).page


def members(
    pages: list[Page], jobs: dict[str, Job], failures: dict[str, str], spool: Spool, counts: dict[str, int]
) -> Iterator[tuple[str, bytes]]:
    """Yield the tiles of all rendered pages, in page order, and count."""
    for page in pages:
        if page.page_id in failures:
            counts["failed"] += 1
            continue
        done = spool.take(jobs[page.page_id].key)
        counts["rendered"] += 1
        counts["tiles"] += len(done.tiles)
        counts["blank_tiles"] += done.n_blank
        counts["repeated_tiles"] += done.n_repeated
        counts["pages_with_remainder"] += done.dropped_bottom_px > 0 or done.dropped_right_px > 0
        counts["pages_with_note"] += done.page.reason is not None
        for ref, data in zip(done.page.tiles, done.tiles, strict=True):
            yield ref.member, data


def read_pages(path: Path, part: parts.Part | None) -> list[Page]:
    """Return the page list, or what a part of it holds: that may be nothing.

    Raises:
        RemeasureError: the whole list is empty, or names a page twice.
    """
    pages = list(jsonl.unique(jsonl.read(path, Page), "page_id", path))
    if not pages:
        raise RemeasureError(f"{path}: no pages; expected at least one")
    return [page for page in pages if part is None or part.holds(page.page_id)]


def require_some(args: argparse.Namespace, pages: list[Page], failures: dict[str, str]) -> None:
    """Stop when nothing at all was rendered; of a part that is said when all are put together.

    Raises:
        RemeasureError: all pages failed; names the most frequent reason.
    """
    if len(failures) < len(pages) or args.part:
        return
    reason, count = collections.Counter(failures.values()).most_common(1)[0]
    raise RemeasureError(
        f"{args.pages}: none of {len(pages)} pages could be rendered ({count} times: {reason}); "
        "look at the log, correct the page list or the archive, and run again"
    )


def render_missing(
    args: argparse.Namespace,
    archive: Archive,
    program: Path,
    settings: RenderSettings,
    spool: Spool,
    jobs: list[Job],
) -> Pool:
    """Render the jobs that the spool does not hold yet; returns the pool with its failures and figures."""
    todo = [job for job in jobs if spool.get(job.key) is None]
    log.info(
        "%d already rendered, %d to render, %d browsers", len(jobs) - len(todo), len(todo), args.browsers
    )
    with PageServer(archive) as server:
        pool = Pool(
            program=program,
            sandbox=browser.use_sandbox(args.sandbox),
            port=server.port,
            n_browsers=args.browsers,
            settings=settings,
            keep=lambda job, page: spool.put(job.key, page),
        )
        pool.render(todo)
    return pool


def facts_of(archive: Archive, facts: dict[str, Any]) -> dict[str, Any]:
    """Return what decides the tiles beside settings and pages, as it stands in the stage record."""
    return {"renderer": "chromium", "protocol": PROTOCOL, "archive": archive.identity, **facts}


def work(args: argparse.Namespace) -> None:
    """Render what is not in the spool yet, then write tiles, manifest and record."""
    settings = decode(args.settings, RenderSettings)
    archive = Archive(args.archive)
    part = parts.read_part(args.part) if args.part else None
    pages = read_pages(args.pages, part)
    if args.browsers < 1:
        raise RemeasureError(f"--browsers {args.browsers}; expected at least one")
    program = browser.find_browser(args.browser)
    facts = {"browser": browser.version(program), "fonts": browser.fonts().as_facts()}
    surroundings = (PROTOCOL, archive.identity, jsonl.encode(settings).decode(), jsonl.encode(facts).decode())
    job_list, failures = make_jobs(archive, pages, surroundings)
    jobs = {job.page_id: job for job in job_list}
    spool = Spool(args.spool or args.tiles_out.parent / "spool")
    n_kept = rendered.take_over(args.earlier, args.tiles_out, settings, facts_of(archive, facts), jobs, spool)
    if n_kept:
        log.info("%d pages lie in tiles that were rendered for another number of parts", n_kept)
    pool = render_missing(args, archive, program, settings, spool, job_list)
    failures |= pool.failures
    require_some(args, pages, failures)
    counts: dict[str, int] = collections.Counter(dict.fromkeys(COUNTS, 0))
    images.write_store(args.tiles_out, members(pages, jobs, failures, spool, counts))
    jsonl.write(args.manifest_out, outcomes(pages, jobs, failures, spool))
    provenance.write_stage(
        args.record,
        stage="render_tiles",
        script="render_tiles.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.archive, args.pages],
        outputs=[args.manifest_out, args.tiles_out],
        packages=["libzim", "playwright"],
        counts=dict(counts),
        facts=facts_of(archive, facts),
        known=archive_record.known_hash(archive, args.pages),
    )
    # Other parts of the corpus may be at work in the same folder.
    spool.remove([job.key for job in job_list] if part else None)
    log.info("%s", pool.summary(counts))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, required=True, help="ZIM archive")
    parser.add_argument("--pages", type=Path, required=True, help="pages to render, pages.jsonl")
    parser.add_argument("--settings", required=True, help="size, quality and limits, as JSON")
    parser.add_argument("--browsers", type=int, required=True, help="browser processes at once, one per core")
    parser.add_argument(
        "--browser", type=Path, help="Chromium to use instead of the first on the search path"
    )
    parser.add_argument(
        "--sandbox",
        choices=("auto", "true", "false"),
        default="auto",
        help="the browser's own sandbox; auto: on wherever it can work",
    )
    parser.add_argument("--part", help="render only this part of the pages, such as 2of3")
    parser.add_argument(
        "--spool", type=Path, help="folder for finished pages of an unfinished run; default: beside the tiles"
    )
    parser.add_argument(
        "--earlier", type=Path, help="folder of the corpus: pages that lie in tiles there are not rendered"
    )
    parser.add_argument("--manifest-out", type=Path, required=True, help="outcome of every page, JSONL")
    parser.add_argument("--tiles-out", type=Path, required=True, help="the tiles, an uncompressed zip")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
