"""Describe every photograph of a piece by one vector per scale, or take vectors that somebody has."""

import argparse
import logging
from itertools import islice
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.instances import backbones, describing, given, making, repeating
from remeasure.instances.backbones import N_COMPARED, Gated, Told
from remeasure.instances.pieces import Piece

log = logging.getLogger("remeasure.extract_cls")


def extract(told: Told, args: argparse.Namespace) -> tuple[dict[str, int], dict, list[Path]]:
    """Describe the photographs; return their counts by status, what made the file, and what was read."""
    named = (*backbones.NEEDED[told.backend], *backbones.OPTIONAL.get(told.backend, ()))
    files = making.files_of(args, named)
    instruction = "query" if args.piece == "instructed" else "document"
    settings = msgspec.to_builtins(told)
    with making.open_piece(args) as piece:
        log.info("%s: %d photographs of %s, %d threads", told.name, len(piece), piece.name, args.threads)
        describer = backbones.open_backbone(told, files, args.threads, instruction)
        about = making.about(settings, files, piece) | {"instruction": instruction}
        if isinstance(describer, Gated):
            compare_with_released(describer, piece)
        counts = describing.describe(piece, describer, args.out, about, rule="rounded", threads=args.threads)
        # Of 8 bits of a number a batch beside other photographs leaves less than the limit asks for.
        if told.precision != "bfloat16":
            repeating.check(piece, describer, args.out, "rounded")
    return counts, about, [*making.pictures_of(args), *files.values()]


def compare_with_released(describer: Gated, piece: Piece) -> None:
    """Stop before anything is described where a backbone is not what its released package is."""
    pictures = (describer.decode(piece.read(i)).pixels for i in range(len(piece)))
    first = list(islice((pixels for pixels in pictures if pixels is not None), N_COMPARED))
    if first:
        log.info("as released: the largest difference is %.3g", describer.check_released(first))


def work(args: argparse.Namespace) -> None:
    """Describe or take over, then record."""
    told = options.decode(args.settings, Told)
    if args.given is None:
        counts, about, inputs = extract(told, args)
    else:
        counts, about = given.take_over(told, args.given, args.labels, args.piece, args.out)
        inputs = [args.given, *([args.labels] if args.labels else [])]
    provenance.write_stage(
        args.record,
        stage="extract_cls",
        script="extract_cls.py",
        settings=msgspec.to_builtins(told),
        inputs=inputs,
        outputs=[args.out],
        packages=making.packages(told.backend if args.given is None else "given"),
        counts=counts,
        facts={"piece": args.piece, "extractor": about["extractor"]},
    )
    log.info("%s: %s", args.out, ", ".join(f"{word} {n}" for word, n in counts.items()))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: the backbone")
    making.add_piece(parser)
    parser.add_argument(
        "--given", type=Path, help="vectors that somebody has (.h5, .npz, .pt), not extracted"
    )
    parser.add_argument("--model", type=Path, help="weights: an ONNX file, or a folder of transformers")
    parser.add_argument("--package", type=Path, help="released package, if not in --model")
    parser.add_argument("--threads", type=int, required=True, help="photographs in work at once")
    parser.add_argument(
        "--out", type=Path, required=True, help="vectors, .h5; <out>.blocks beside it meanwhile"
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
