"""Put together what the parts of a corpus made, in page order: the same bytes however many parts there were.

Tiles stay where they are: the store that is written says in which part each one lies.
"""

import argparse
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remeasure import cli, images, jsonl, parts, provenance, vectors
from remeasure.encoders import batched
from remeasure.errors import RemeasureError
from remeasure.records import ExtractedPage, OcrImage, Page, Passage, RenderedPage, Stage

log = logging.getLogger("remeasure.merge_parts")

BLOCK = 256


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
# Counts that say nothing once they are added up: a tile may be read in several parts.
NOT_ADDED = ("distinct",)


def read_records(paths: list[Path]) -> list[Stage]:
    """Read the stage records of all parts.

    Raises:
        RemeasureError: one is missing, or two parts were made in different ways.
    """
    found = [jsonl.read_json(path, Stage) for path in paths]
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


def merged_rows(rows: Rows, pages: Path, records: list[Path], stages: list[Stage]) -> Iterator[Any]:
    """Yield the rows of one file of all parts in page order."""

    def named(record: Path, stage: Stage) -> tuple[str, Iterator[tuple[str, Any]]]:
        path = record.with_name(rows.name)
        expected = sum(stage.counts[name] for name in rows.counts)
        found = parts.counted(jsonl.read(path, rows.kind), expected, str(path))
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
            rows = parts.counted(found, stage.counts[found.identity.unit], str(path))
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
    hashes = {path: sha256 for stage in stages for path, sha256 in stage.outputs.items()}
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
