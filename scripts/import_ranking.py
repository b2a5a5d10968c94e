"""Read a published ranking of a gallery, to be used instead of a first stage of ours."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.instances import first_file, given_ranking
from remeasure.instances import labels as labels_file

log = logging.getLogger("remeasure.import_ranking")


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is ranked."""

    gallery: str
    photos: str


def work(args: argparse.Namespace) -> None:
    """Read, check, write."""
    told = options.decode(args.settings, Told)
    labels = labels_file.read(args.labels)
    # All of it: how much is reranked may change without another import.
    found = given_ranking.read(args.ranking, labels, len(labels.imlist), may_be_cut=args.truncate)
    first_file.write(args.out, {"": found}, {"given": True})
    counts = {
        "queries": len(found.top_id),
        "gallery": found.n_gallery,
        "listed": found.n_listed,
        "tied": sum(row.n_tied for row in found.labelled),
    }
    provenance.write_stage(
        args.record,
        stage="import_ranking",
        script="import_ranking.py",
        settings=msgspec.to_builtins(told) | {"truncate": args.truncate},
        inputs=[args.ranking, args.labels],
        outputs=[args.out],
        packages=["h5py", "numpy"],
        counts=counts,
    )
    log.info("%s: %d of %d photographs ranked for %d queries", args.out, *_told(counts))


def _told(counts: dict[str, int]) -> tuple[int, int, int]:
    return counts["listed"], counts["gallery"], counts["queries"]


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="which gallery, JSON")
    parser.add_argument("--ranking", type=Path, required=True, help="the published file (nn_*.pkl)")
    parser.add_argument("--labels", type=Path, required=True, help="labels.json of the benchmark")
    parser.add_argument(
        "--truncate", action="store_true", help="take a list that names a part of the gallery only"
    )
    parser.add_argument("--out", type=Path, required=True, help="the ranking, HDF5")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
