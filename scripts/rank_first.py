"""Rank a whole gallery for every query by one descriptor per photograph."""

import argparse
import logging
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.instances import descriptor_files, first_file, gallery_order, ranking, shortlist
from remeasure.instances import labels as labels_file
from remeasure.instances.first_file import First
from remeasure.instances.ranking import Kept

log = logging.getLogger("remeasure.rank_first")


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides which part of a ranking is kept."""

    gallery: str
    photos: str
    projection: str
    shortlist: int
    """Photographs per query and difficulty that are reranked at most."""


def check_audit(path: Path | None) -> None:
    """Refuse a benchmark whose audit failed."""
    if path is not None and jsonl.read_json(path, dict[str, Any]).get("ok") is not True:
        raise RemeasureError(f"{path}: the audit of this benchmark failed; see its checks and repair it")


def work(args: argparse.Namespace) -> None:
    """Open, rank, write."""
    told = options.decode(args.settings, Told)
    check_audit(args.audit)
    labels = labels_file.read(args.labels)
    order = gallery_order.read(args.order) if args.order else None
    gallery = descriptor_files.open_gallery(labels, args.gallery, args.distractors, order)
    queries = descriptor_files.read_queries(labels, args.queries, args.gallery)
    log.info("%s: %d queries, %d photographs", told.gallery, len(queries), gallery.n)
    kept = Kept(
        shortlist.kept(labels, told.shortlist, gallery.n), [labels.labelled(q) for q in range(len(queries))]
    )
    found: First = ranking.first_stage(queries, gallery, kept, args.threads)
    tops = enumerate(found.top_id)
    reach = [shortlist.reach(top, labels.settings(q), told.shortlist) for q, top in tops]
    first_file.write(args.out, {"": found}, {"projection": told.projection}, reach=reach)
    counts = {
        "queries": len(queries),
        "gallery": gallery.n,
        "kept": found.top_id.shape[1],
        "unreadable": len(gallery.unreadable),
        "tied": sum(row.n_tied for row in found.labelled),
    }
    inputs = [args.labels, args.audit, args.order, args.queries, args.gallery, *args.distractors]
    provenance.write_stage(
        args.record,
        stage="rank_first",
        script="rank_first.py",
        settings=msgspec.to_builtins(told),
        inputs=[path for path in inputs if path],
        outputs=[args.out],
        packages=["h5py", "numpy"],
        counts=counts,
    )
    log.info(
        "%s: %d kept per query, %d labelled with a tied score, %d photographs could not be decoded",
        args.out,
        counts["kept"],
        counts["tied"],
        counts["unreadable"],
    )


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="which gallery, how much is kept, JSON")
    parser.add_argument("--labels", type=Path, required=True, help="labels.json of the benchmark")
    parser.add_argument("--audit", type=Path, help="its audit.json, which must have passed")
    parser.add_argument("--queries", type=Path, required=True, help="descriptors of its queries, HDF5")
    parser.add_argument("--gallery", type=Path, required=True, help="descriptors of its gallery, HDF5")
    parser.add_argument("--order", type=Path, help="order.json of the distractors")
    parser.add_argument(
        "--distractors", type=Path, nargs="+", default=[], help="their descriptors, one file per piece"
    )
    parser.add_argument("--threads", type=int, default=1, help="queries that are ranked at the same time")
    parser.add_argument("--out", type=Path, required=True, help="the ranking, HDF5")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
