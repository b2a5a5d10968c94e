"""Choose the pages of an archive that a run uses, and the set that each belongs to."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, provenance, selection
from remeasure.archive import Archive
from remeasure.errors import RemeasureError
from remeasure.options import decode

log = logging.getLogger("remeasure.select_pages")


def work(args: argparse.Namespace) -> None:
    """List the archive's pages, choose, write."""
    settings = decode(args.settings, selection.Settings)
    if args.facts is None and settings.selection is not None:
        raise RemeasureError(
            "--settings: `selection` parts an archive with facts; give --facts or leave it out"
        )
    entries = selection.content_pages(args.archive)
    pages = selection.select(entries, settings)
    if not pages:
        raise RemeasureError(
            f"{args.archive}: no pages chosen of {len(entries)}; raise a number under `pages`"
        )
    jsonl.write(args.out, pages)
    log.info("%d of %d pages", len(pages), len(entries))
    counts = {"archive": len(entries)}
    for page in pages:
        counts[page.set] = counts.get(page.set, 0) + 1
    provenance.write_stage(
        args.record,
        stage="select_pages",
        script="select_pages.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.archive] + ([args.facts] if args.facts else []),
        outputs=[args.out],
        packages=["libzim"],
        counts=counts,
        # By it and by its time later stages know the archive again without hashing it (archive_record).
        facts={"archive": Archive(args.archive).identity},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, required=True, help="ZIM archive")
    parser.add_argument("--facts", type=Path, help="facts of the archive, where it has any")
    parser.add_argument(
        "--settings", required=True, help="number of pages per set and the partition, as JSON"
    )
    parser.add_argument("--out", type=Path, required=True, help="chosen pages, JSONL")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
