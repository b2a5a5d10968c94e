"""Read the text of page tiles by OCR, every distinct tile once."""

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, options, parts, provenance
from remeasure.errors import RemeasureError
from remeasure.ocr import PACKAGES, OcrSettings, TileJournal, engine_version
from remeasure.progress import Progress
from remeasure.records import ImageRef, OcrImage, RenderedPage

log = logging.getLogger("remeasure.read_tiles")


def tiles_to_read(manifest: Path, tiles: Path, tiles_per_page: int) -> Iterator[tuple[str, ImageRef]]:
    """Yield (tile id, image) of the first tiles of every rendered page, in manifest order."""
    for page in jsonl.read(manifest, RenderedPage):
        for tile in page.tiles[:tiles_per_page]:
            yield tile.tile_id, ImageRef(sha256=tile.sha256, path=str(tiles), member=tile.member)


def missing(wanted: list[tuple[str, ImageRef]], journal: TileJournal) -> dict[str, tuple[str, ImageRef]]:
    """Return by hash the first tile of each content that the journal lacks."""
    found: dict[str, tuple[str, ImageRef]] = {}
    for tile_id, image in wanted:
        if image.sha256 not in journal:
            found.setdefault(image.sha256, (tile_id, image))
    return found


def work(args: argparse.Namespace) -> None:
    """Read what the journal lacks, then write all records in manifest order."""
    settings = options.decode(args.settings, OcrSettings)
    if settings.tiles_per_page < 1 or args.processes < 1:
        raise RemeasureError(
            f"tiles_per_page is {settings.tiles_per_page} and --processes is {args.processes}; "
            "both start at 1: correct them"
        )
    wanted = list(tiles_to_read(args.manifest, args.tiles, settings.tiles_per_page))
    part = parts.read_part(args.part).name if args.part else None
    if not wanted and not part:
        raise RemeasureError(f"{args.manifest}: no page has a tile; see its reasons and render again")
    with TileJournal(args.journal, engine_version(), part) as journal:
        todo = missing(wanted, journal)
        log.info(
            "%d tiles, %d distinct to read, %d processes",
            len(wanted),
            len(todo),
            min(args.processes, len(todo)),
        )
        if todo:
            read_missing(todo, journal, args.processes)
        counts = write_images(wanted, journal, args.out)
    provenance.write_stage(
        args.record,
        stage="read_tiles",
        script="read_tiles.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.manifest, args.tiles],
        outputs=[args.out],
        packages=PACKAGES,
        counts=counts,
        facts={"engine": engine_version()},
    )


def read_missing(todo: dict[str, tuple[str, ImageRef]], journal: TileJournal, processes: int) -> None:
    """Read tiles and remember each one as soon as it is read."""
    from remeasure.ocr_pool import Tile, read_tiles

    progress = Progress(log, "tiles", len(todo))
    queue = (Tile(tile_id, image) for tile_id, image in todo.values())
    for image in read_tiles(queue, min(processes, len(todo))):
        journal.add(image)
        progress.add()
    progress.finish()


def write_images(wanted: list[tuple[str, ImageRef]], journal: TileJournal, out: Path) -> dict[str, int]:
    """Write one record per tile in manifest order; returns counts of tiles and lines."""
    counts = {"distinct": len({image.sha256 for _, image in wanted}), "without_text": 0, "lines": 0}

    def counted() -> Iterator[OcrImage]:
        for tile_id, image in wanted:
            found = journal.get(image.sha256, tile_id)
            counts["without_text"] += not found.lines
            counts["lines"] += len(found.lines)
            yield found

    return {"tiles": jsonl.write(out, counted())} | counts


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="pages and their tiles, manifest.jsonl")
    parser.add_argument("--tiles", type=Path, required=True, help="tiles.zip")
    parser.add_argument("--settings", required=True, help='JSON: {"engine": "rapidocr", "tiles_per_page": 1}')
    parser.add_argument("--processes", type=int, required=True, help="each uses one core and 0.7 GB")
    parser.add_argument("--journal", type=Path, required=True, help="folder that keeps finished tiles")
    parser.add_argument("--part", help="which part of the corpus the manifest is of, such as 2of3")
    parser.add_argument("--out", type=Path, required=True, help="one record per tile, ocr.jsonl")
    parser.add_argument("--record", type=Path, required=True, help="stage record, ocr.json")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
