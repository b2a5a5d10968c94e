"""Put together what the parts of a corpus made, in page order: the same bytes however many parts there were.

Tiles stay where they are: the store that is written says in which part each one lies. Text is hashed while it
is read and must be what its part's record says. Of tiles the store's directory is compared with the manifest,
and of vectors every row is read: their hashes are taken from the parts' records.
"""

import argparse
import contextlib
import hashlib
import logging
import os
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from remeasure import cli, images, jsonl, parts, provenance, vectors
from remeasure.encoders import batched
from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.records import ExtractedPage, OcrImage, Page, Passage, RenderedPage, Stage

log = logging.getLogger("remeasure.merge_parts")

BLOCK = 256
T = TypeVar("T")
_REDO = "delete it and run again, only this part is made again"


class Rows(NamedTuple):
    """A JSONL file of a part."""

    name: str
    kind: type
    page_of: Callable[[Any], str]
    counts: tuple[str, ...]
    """Names in the stage record whose sum is the number of rows."""
    one_each: bool


ROWS = {
    "tiles": [Rows("manifest.jsonl", RenderedPage, lambda row: row.page_id, ("rendered", "failed"), True)],
    "ocr": [Rows("ocr.jsonl", OcrImage, lambda row: parts.page_of(row.tile_id), ("tiles",), False)],
    "passages": [
        Rows("passages.jsonl", Passage, lambda row: row.page_id, ("passages",), False),
        Rows(
            "extraction.jsonl",
            ExtractedPage,
            lambda row: row.page_id,
            ("extracted", "empty", "failed"),
            True,
        ),
    ],
}
# Files of a part that are merged.
MADE = {what: [rows.name for rows in found] for what, found in ROWS.items()} | {
    "vectors": ["descriptors.h5", "order.txt"]
}
MADE["tiles"].append("tiles.zip")
# Counts that say nothing once they are added up: a tile may be read in several parts.
NOT_ADDED = ("distinct",)


def read_records(paths: list[Path]) -> list[Stage]:
    """Read the stage records of all parts.

    Raises:
        RemeasureError: one is missing, tells hashes of files that do not lie beside it, or two parts were
            made in different ways.
    """
    found = [jsonl.read_json(path, Stage) for path in paths]
    for path, stage in zip(paths, found, strict=True):
        for name in stage.outputs:
            if os.path.abspath(os.path.dirname(name)) != os.path.abspath(path.parent):
                raise RemeasureError(
                    f"{path}: says that it made {name[:200]!r}, expected files beside it in {path.parent}; "
                    f"{_REDO}"
                )
    for path, stage in zip(paths[1:], found[1:], strict=True):
        for field in ("stage", "settings", "packages", "facts"):
            first, here = getattr(found[0], field), getattr(stage, field)
            if first != here:
                differ = [here]
                if isinstance(first, dict):
                    differ = [key for key in {**first, **here} if first.get(key) != here.get(key)]
                raise RemeasureError(
                    f"{path}: made with other {field} than {paths[0]} ({', '.join(differ)}); parts "
                    "must be made alike: delete the one that is wrong and run again"
                )
    return found


def told_hash(record: Path, stage: Stage, name: str) -> str:
    """Return the SHA-256 that a part's record tells of a file beside it.

    Raises:
        RemeasureError: it tells none.
    """
    # Where they lie was checked: beside the record.
    found = {os.path.basename(path): sha256 for path, sha256 in stage.outputs.items()}.get(name)
    if not found:
        raise RemeasureError(f"{record}: tells no hash of {name} beside it; {_REDO}")
    return found


def told_count(record: Path, stage: Stage, names: tuple[str, ...]) -> int:
    """Return how many rows a part's record counts.

    Raises:
        RemeasureError: it lacks one of the counts.
    """
    missing = [name for name in names if name not in stage.counts]
    if missing:
        raise RemeasureError(f"{record}: lacks its counts of {', '.join(missing)}; {_REDO}")
    return sum(stage.counts[name] for name in names)


def unchanged(rows: Iterator[T], digest: Any, expected: str, path: Path) -> Iterator[T]:
    """Pass the rows of a file through and stop at its end where its bytes are not those that its stage wrote.

    Args:
        rows: reading them adds the file's bytes to the digest.
        digest: SHA-256 of what was read so far.
        expected: hash in the part's record.
        path: the file.

    Raises:
        RemeasureError: another hash.
    """
    yield from rows
    if digest.hexdigest() != expected:
        raise RemeasureError(
            f"{path}: has SHA-256 {digest.hexdigest()[:12]}…, its stage wrote {expected[:12]}…: it was "
            f"changed since; {_REDO}"
        )


def check_members(record: Path) -> None:
    """Check that the store of a part has every tile that the part's manifest names; tiles are not read.

    Raises:
        RemeasureError: the store cannot be opened, or lacks one.
    """
    path = record.with_name("tiles.zip")
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as store:
            members = set(store.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, struct.error) as error:
        raise RemeasureError(
            f"{path}: not a store of tiles ({getattr(error, 'strerror', None) or error}); {_REDO}"
        ) from None
    for page in jsonl.read(record.with_name("manifest.jsonl"), RenderedPage):
        for tile in page.tiles:
            if tile.member not in members:
                raise RemeasureError(
                    f"{path}: lacks {tile.member!r}, which manifest.jsonl beside it names ({len(members)} "
                    f"tiles are there); {_REDO}"
                )


def merged_rows(rows: Rows, pages: Path, records: list[Path], stages: list[Stage]) -> Iterator[Any]:
    """Yield the rows of one file of all parts in page order."""

    def named(record: Path, stage: Stage) -> tuple[str, Iterator[tuple[str, Any]]]:
        path = record.with_name(rows.name)
        digest = hashlib.sha256()
        read = jsonl.read(path, rows.kind, digest)
        found = parts.counted(read, told_count(record, stage, rows.counts), str(path))
        found = unchanged(found, digest, told_hash(record, stage, rows.name), path)
        return str(path), ((rows.page_of(row), row) for row in found)

    streams = [named(record, stage) for record, stage in zip(records, stages, strict=True)]
    ids = (page.page_id for page in jsonl.read(pages, Page))
    return parts.in_page_order(ids, streams, one_each=rows.one_each)


def merge_vectors(args: argparse.Namespace, stages: list[Stage]) -> int:
    """Write the vectors of all parts in page order; returns their number."""
    with contextlib.ExitStack() as opened:
        streams, identities = [], []
        for record, stage in zip(args.records, stages, strict=True):
            path = record.with_name("descriptors.h5")
            found = opened.enter_context(vectors.DescriptorRows(path, record.with_name("order.txt")))
            identities.append(found.identity)
            rows = parts.counted(found, told_count(record, stage, (found.identity.unit,)), str(path))
            written = told_hash(record, stage, "order.txt")
            rows = unchanged(rows, found.order_digest, written, record.with_name("order.txt"))
            streams.append((str(path), ((parts.page_of(name), (name, row)) for name, row in rows)))
        ids = (page.page_id for page in jsonl.read(args.pages, Page))
        ordered = parts.in_page_order(ids, streams, one_each=False)
        blocks = (
            ([name for name, _ in block], np.stack([row for _, row in block]))
            for block in batched(ordered, BLOCK)
        )
        return vectors.write_descriptors(args.outs[0], args.outs[1], blocks, identities[0])


def merge_files(args: argparse.Namespace, stages: list[Stage]) -> int:
    """Write every JSONL file in page order, and where the tiles lie; returns the rows of the first."""
    if args.what == "tiles":
        for record in args.records:
            # One at a time: the names of all tiles of a large corpus do not fit into memory at once.
            check_members(record)
    written = [
        jsonl.write(out, merged_rows(rows, args.pages, args.records, stages))
        for rows, out in zip(ROWS[args.what], args.outs, strict=False)
    ]
    if args.what == "tiles":
        images.write_parted_store(args.outs[1], [record.with_name("tiles.zip") for record in args.records])
    return written[0]


def work(args: argparse.Namespace) -> None:
    """Check that the parts belong together, merge, write."""
    stages = read_records(args.records)
    for record, stage in zip(args.records, stages, strict=True):
        for name in MADE[args.what]:
            told_hash(record, stage, name)
    n_rows = merge_vectors(args, stages) if args.what == "vectors" else merge_files(args, stages)
    counts = Counter()
    for stage in stages:
        counts.update({name: n for name, n in stage.counts.items() if name not in NOT_ADDED})
    if not n_rows or (args.what == "tiles" and not counts["rendered"]):
        for out in args.outs:
            out.unlink()
        raise RemeasureError(
            f"{args.outs[0]}: {len(stages)} parts and nothing in them ({dict(counts)}); look at the logs of "
            "the parts, correct the page list or the archive, and run again"
        )
    hashes = {
        str(record.with_name(name)): told_hash(record, stage, name)
        for record, stage in zip(args.records, stages, strict=True)
        for name in MADE[args.what]
    }
    provenance.write_stage(
        args.record,
        stage=f"merge_{args.what}",
        script="merge_parts.py",
        settings={"parts": len(stages)},
        inputs=[args.pages, *args.records, *map(Path, hashes)],
        outputs=args.outs,
        counts=dict(counts),
        facts=stages[0].facts,
        known=hashes,
    )
    log.info("%s: %d rows of %d parts", args.outs[0], n_rows, len(stages))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", choices=[*ROWS, "vectors"], required=True, help="what the parts made")
    parser.add_argument("--pages", type=Path, required=True, help="all pages of the corpus, pages.jsonl")
    parser.add_argument(
        "--records",
        type=Path,
        nargs="+",
        required=True,
        help="stage records of all parts in order; what they describe lies beside them",
    )
    parser.add_argument(
        "--outs",
        type=Path,
        nargs="+",
        required=True,
        help="manifest and tiles; ocr; passages and extraction; or descriptors and order",
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
