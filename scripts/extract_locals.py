"""Describe every photograph of a piece, or those that are wanted, by its strongest local descriptors."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.instances import describing, local_models, making
from remeasure.instances.local_models import Told

log = logging.getLogger("remeasure.extract_locals")


def work(args: argparse.Namespace) -> None:
    """Describe, then record."""
    told = options.decode(args.settings, Told)
    settings = msgspec.to_builtins(told)
    files = making.files_of(args, local_models.NEEDED[told.backend])
    with making.open_piece(args) as piece:
        log.info("%s: %d photographs of %s, %d threads", told.name, len(piece), piece.name, args.threads)
        describer = local_models.open_local_model(told, files, args.threads)
        about = making.about(settings, files, piece)
        counts = describing.describe(
            piece, describer, args.out, about, rule="truncated", threads=args.threads, with_rows=True
        )
    provenance.write_stage(
        args.record,
        stage="extract_locals",
        script="extract_locals.py",
        settings=settings,
        inputs=[*making.pictures_of(args), *files.values()],
        outputs=[args.out],
        packages=making.packages(told.backend),
        counts=counts,
        facts={"piece": args.piece, "extractor": about["extractor"]},
    )
    log.info("%s: %s", args.out, ", ".join(f"{word} {n}" for word, n in counts.items()))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: the local features")
    making.add_piece(parser)
    parser.add_argument(
        "--wanted", type=Path, help="rows of every piece that are wanted, .parquet; all without"
    )
    parser.add_argument(
        "--model", type=Path, help="weights: an ONNX file, a folder of transformers, or a .pth"
    )
    parser.add_argument("--detector", type=Path, help="weights of the detector (dinov2-detector)")
    parser.add_argument("--threads", type=int, required=True, help="photographs in work at once")
    parser.add_argument(
        "--out", type=Path, required=True, help="descriptors, .h5; <out>.blocks beside it meanwhile"
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
