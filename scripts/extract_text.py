"""Extract the text of an archive's pages and cut it into passages; pages without text are recorded."""

import argparse
import collections
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import archive_record, cli, jsonl, parts, passages, provenance
from remeasure.archive import Archive
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.progress import Progress
from remeasure.records import ExtractedPage, Page, Passage

log = logging.getLogger("remeasure.extract_text")


def read_page(archive: Archive, page: Page) -> bytes:
    """Return the HTML that a reader of the page sees, redirects followed.

    Raises:
        RemeasureError: no such entry, a loop, or an entry that is no page.
    """
    entry = archive.resolve(page.path)
    if not entry.is_page:
        raise RemeasureError(f"the entry is {entry.mimetype or 'of no type'}, not a page")
    return entry.data


def all_passages(
    archive: Archive,
    pages: Iterable[Page],
    settings: passages.TextSettings,
    tokenizer: Any,
    outcomes: list[ExtractedPage],
    may_be_empty: bool,
) -> Iterator[Passage]:
    """Yield the passages of all pages in order and append what became of each page to ``outcomes``.

    Raises:
        RemeasureError: not one page gave a passage, and that may not be.
    """
    import lxml.etree

    total = 0
    for page in pages:
        try:
            text = passages.extract(read_page(archive, page), settings)
        except (RemeasureError, lxml.etree.LxmlError, ValueError, RecursionError) as error:
            outcomes.append(passages.failure(page, f"{type(error).__name__}: {error}"))
            log.warning("%s: failed: %s", page.page_id, error)
            continue
        found = list(passages.passages_of(page, text, tokenizer, settings))
        outcomes.append(passages.outcome(page, text, len(found)))
        total += len(found)
        yield from found
    if total == 0 and not may_be_empty:
        reasons = collections.Counter(done.reason for done in outcomes)
        reason, count = reasons.most_common(1)[0] if reasons else ("the page list is empty", 1)
        raise RemeasureError(
            f"no passage in {len(outcomes)} pages ({count} times: {reason}); "
            "correct the page list or the archive"
        )


def work(args: argparse.Namespace) -> None:
    """Extract, cut, write."""
    settings = decode(args.settings, passages.TextSettings)
    if settings.max_tokens < 1:
        raise RemeasureError(f"--settings: max_tokens is {settings.max_tokens}, expected at least 1")
    archive = Archive(args.archive)
    tokenizer = passages.load_tokenizer(args.tokenizer)
    part = parts.read_part(args.part) if args.part else None
    listed = jsonl.unique(jsonl.read(args.pages, Page), "page_id", args.pages)
    pages = [page for page in listed if part is None or part.holds(page.page_id)]
    progress = Progress(log, "pages", len(pages))
    outcomes: list[ExtractedPage] = []

    def counted() -> Iterator[Page]:
        for page in pages:
            yield page
            progress.add()

    n_passages = jsonl.write(
        args.passages_out,
        all_passages(archive, counted(), settings, tokenizer, outcomes, may_be_empty=part is not None),
    )
    jsonl.write(args.extraction_out, outcomes)
    counts = collections.Counter(extracted=0, empty=0, failed=0, passages=n_passages)
    counts.update(done.status for done in outcomes)
    provenance.write_stage(
        args.record,
        stage="extract_text",
        script="extract_text.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.archive, args.pages, args.tokenizer],
        outputs=[args.passages_out, args.extraction_out],
        packages=["libzim", "lxml", "tokenizers", "trafilatura"],
        counts=dict(counts),
        known=archive_record.known_hash(archive, args.pages),
    )
    progress.finish()
    log.info("extracted=%(extracted)d empty=%(empty)d failed=%(failed)d passages=%(passages)d", counts)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, required=True, help="ZIM archive")
    parser.add_argument("--pages", type=Path, required=True, help="pages to extract, pages.jsonl")
    parser.add_argument("--settings", required=True, help="passage size and what is kept, as JSON")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of the text encoder")
    parser.add_argument("--part", help="extract only this part of the pages, such as 2of3")
    parser.add_argument("--passages-out", type=Path, required=True, help="passages, JSONL")
    parser.add_argument("--extraction-out", type=Path, required=True, help="outcome of every page, JSONL")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
