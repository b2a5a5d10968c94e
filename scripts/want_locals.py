"""List the distractors whose local descriptors are wanted: those that some query shortlists, or all."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.instances import gallery_order, wanting

log = logging.getLogger("remeasure.want_locals")


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wanted."""

    photos: str
    all: bool
    """Whether all are wanted, shortlisted or not."""


def work(args: argparse.Namespace) -> None:
    """Read, unite, write."""
    told = options.decode(args.settings, Told)
    order = gallery_order.read(args.order)
    places = wanting.everything(order) if told.all else wanting.wanted(args.first, order)
    wanting.write(args.out, places)
    n_wanted = sum(len(place.rows) for place in places)
    provenance.write_stage(
        args.record,
        stage="want_locals",
        script="want_locals.py",
        settings=msgspec.to_builtins(told),
        inputs=[args.order, *args.first],
        outputs=[args.out],
        packages=["h5py", "numpy", "pyarrow"],
        counts={"wanted": n_wanted, "distractors": order.n},
    )
    log.info("%s: %d of %d distractors are wanted", args.out, n_wanted, order.n)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="which photo set, and whether all, JSON")
    parser.add_argument("--order", type=Path, required=True, help="order.json of the distractors")
    parser.add_argument(
        "--first", type=Path, nargs="*", default=[], help="rankings whose best are reranked, HDF5"
    )
    parser.add_argument("--out", type=Path, required=True, help="piece and row, Parquet")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
