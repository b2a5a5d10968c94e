"""Build a search index over the vectors of one encoder; ids are the row positions of the order file."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance, vectors
from remeasure.errors import RemeasureError

log = logging.getLogger("remeasure.build_index")


def check_encoder(settings: vectors.IndexSettings, found: vectors.Identity, place: Path) -> None:
    """Refuse vectors that the configured encoder cannot have made.

    Raises:
        RemeasureError: another unit, or an adapter on one side only.
    """
    said = settings.encoder
    if said.unit != found.unit or said.trained != (found.adapter_sha256 is not None):
        made = "with" if found.adapter_sha256 else "without"
        raise RemeasureError(
            f"{place}: vectors of {found.unit} made {made} an adapter, but encoder {said.name} is of "
            f"{said.unit} and trained is {str(said.trained).lower()}; delete it and rerun the embedding"
        )


def work(args: argparse.Namespace) -> None:
    """Read and check vectors, build, write."""
    settings = options.decode(args.settings, vectors.IndexSettings)
    found = vectors.read_descriptors(args.descriptors, args.order)
    check_encoder(settings, found.identity, args.descriptors)
    index, facts = vectors.build_index(found.vectors, settings)
    vectors.write_index(args.out, index)
    n_repeated = vectors.n_repeated(found.vectors)
    provenance.write_stage(
        args.record,
        stage="build_index",
        script="build_index.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.descriptors, args.order],
        outputs=[args.out],
        packages=["faiss-cpu", "numpy"],
        counts={"vectors": len(found.order), "repeated": n_repeated},
        facts=facts
        | {
            "identity": msgspec.to_builtins(found.identity),
            "order_sha256": vectors.order_sha256(found.order),
        },
    )
    log.info(
        "%s: %d vectors of %d dimensions (%d repeat an earlier one), %s",
        args.out, len(found.order), found.identity.dim, n_repeated, settings.kind,
    )  # fmt: skip


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--settings", required=True, help='JSON: {"kind": "flat" or "ivf", ..., "encoder": {...}}'
    )
    parser.add_argument("--descriptors", type=Path, required=True, help="vectors, descriptors.h5")
    parser.add_argument("--order", type=Path, required=True, help="ids of the rows, order.txt")
    parser.add_argument("--out", type=Path, required=True, help="index.faiss")
    parser.add_argument("--record", type=Path, required=True, help="stage record, index.json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
