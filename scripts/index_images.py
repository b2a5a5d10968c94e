"""List the images of a collection, decode each of them whole, and write the study's index of them."""

import argparse
import logging
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, image_tree, indexing, looking, provenance, studies, yaml_files
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.progress import Progress
from remeasure.records import Record

log = logging.getLogger("remeasure.index_images")

_MAX_LINES = 50


class Settings(Record, kw_only=True):
    """Settings of ``index_images``."""

    files: list[str]
    """Names of the files that are written, in the order of ``--out``."""
    options: dict[str, Any]
    """What the study's own module is told."""


def work(args: argparse.Namespace) -> None:
    """List, look, write."""
    study = studies.load(args.study, "index")
    settings = decode(args.settings, Settings)
    options = yaml_files.convert(settings.options, study.Settings, Path(f"index options of {args.study}"))
    given = [out.name for out in args.out]
    if given != settings.files or args.threads < 1:
        raise RemeasureError(
            f"--out names {', '.join(given)}, the settings {', '.join(settings.files)}; --threads is "
            f"{args.threads}; give the same names in the same order, and at least one thread"
        )
    study.check(options)
    with image_tree.open_tree(args.source) as tree, looking.Memory(args.journal) as memory:
        listing = tree.listing()
        wanted = study.wanted(listing.paths, options)
        n_others = len(listing.paths) - len(wanted) + len(listing.refused)
        log.info("%s: %d images to look at, %d other files", args.source, len(wanted), n_others)
        progress = Progress(log, "images", len(wanted))
        seen = looking.look_at_all(wanted, tree.read, memory, progress, args.threads)
    index = study.index(listing, seen, options)
    for line in index.problems[:_MAX_LINES]:
        log.warning("%s", line)
    if len(index.problems) > _MAX_LINES:
        log.warning("and %d further lines of this kind", len(index.problems) - _MAX_LINES)
    if index.error is not None:
        raise RemeasureError(f"{args.source}: {index.error}")
    indexing.write(index, args.out)
    provenance.write_stage(
        args.record,
        stage="index_images",
        script="index_images.py",
        settings=msgspec.to_builtins(settings) | {"study": args.study},
        inputs=[args.source],
        outputs=args.out,
        packages=looking.PACKAGES,
        counts=index.counts,
        also=(f"remeasure.studies.{args.study}_index",),
    )
    log.info("%s", index.summary)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="name of the study's module")
    parser.add_argument("--settings", required=True, help='JSON: {"files": [...], "options": {...}}')
    parser.add_argument("--source", type=Path, required=True, help="folder, or zip store, of images")
    parser.add_argument("--threads", type=int, required=True, help="how many images are decoded at a time")
    parser.add_argument("--journal", type=Path, required=True, help="folder that remembers decoded images")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help="the index files, in order")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
