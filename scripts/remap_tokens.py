"""Turn the local descriptors of a piece into the tokens that a reranker works on, once for all pairs."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.files import sha256_file
from remeasure.instances.ames import scoring, tokens, weights
from remeasure.instances.ames.layouts import Locals
from remeasure.instances.ames.settings import Remapping

log = logging.getLogger("remeasure.remap_tokens")


def work(args: argparse.Namespace) -> None:
    """Read descriptors, map, write tokens."""
    settings = options.decode(args.settings, Remapping)
    opened = Locals(args.locals, settings.dim, settings.n)
    log.info("%s: %d photographs, layout %s", args.locals, opened.n_photos, opened.layout)
    model = scoring.opened(weights.read(args.checkpoint, settings), settings, "fp32", "cpu")
    about = {
        "checkpoint_sha256": sha256_file(args.checkpoint),
        "extractor": opened.extractor,
        "layout": opened.layout,
    }
    gallery = args.piece != "queries"
    n_empty = tokens.write(args.out, opened, model, gallery, about)
    provenance.write_stage(
        args.record,
        stage="remap_tokens",
        script="remap_tokens.py",
        settings=msgspec.to_builtins(settings) | {"piece": args.piece},
        inputs=[args.locals, args.checkpoint],
        outputs=[args.out],
        packages=["torch", "numpy", "h5py"],
        counts={"photographs": opened.n_photos, "without_descriptors": n_empty},
        facts={"layout": opened.layout, "tokens": opened.n},
        known={str(args.checkpoint): about["checkpoint_sha256"]},
    )
    log.info("%d photographs, %d without descriptors", opened.n_photos, n_empty)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: sizes of the reranker, tokens to keep")
    parser.add_argument("--piece", required=True, help="which piece; tokens of `queries` are not rounded")
    parser.add_argument(
        "--locals", type=Path, required=True, help="local descriptors, ours or published, .h5"
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="weights, .safetensors")
    parser.add_argument("--out", type=Path, required=True, help="tokens, .h5")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
