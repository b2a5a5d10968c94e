"""Turn the torch weights of EfficientNet-Lite0 into an ONNX model, without torch."""

import argparse
import logging
from pathlib import Path

from remeasure import cli, provenance, torch_file
from remeasure.encoders import photo_model
from remeasure.files import atomic_open

log = logging.getLogger("remeasure.convert_photo_model")


def work(args: argparse.Namespace) -> None:
    """Read weights, build the graph, write it."""
    weights = torch_file.read(args.weights)
    log.info("%s: %d tensors", args.weights, len(weights))
    with atomic_open(args.out, "wb") as stream:
        stream.write(photo_model.to_onnx(weights))
    provenance.write_stage(
        args.record,
        stage="convert_photo_model",
        script="convert_photo_model.py",
        settings={},
        inputs=[args.weights],
        outputs=[args.out],
        packages=["onnx", "numpy"],
        counts={"tensors": len(weights)},
    )
    log.info("%s written", args.out)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="torch weight file, .pth")
    parser.add_argument("--out", type=Path, required=True, help="ONNX model")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
