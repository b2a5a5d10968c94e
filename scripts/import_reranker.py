"""Bring the published weights of a reranker into one open form; no code in their file is run."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, options, provenance
from remeasure.files import sha256_file
from remeasure.instances.ames import weights
from remeasure.instances.ames.settings import Remapping

log = logging.getLogger("remeasure.import_reranker")


def work(args: argparse.Namespace) -> None:
    """Read, check every tensor, write."""
    settings = options.decode(args.settings, Remapping)
    tensors = weights.read_published(args.checkpoint, settings)
    weights.write(args.out, tensors)
    n_parameters = sum(tensor.size for tensor in tensors.values())
    summary = {
        "outcome": f"imported: {n_parameters} parameters",
        "n_parameters": n_parameters,
        "binarises": weights.binarises(tensors),
        "source_sha256": sha256_file(args.checkpoint),
    }
    jsonl.write_json(args.report, summary)
    provenance.write_stage(
        args.record,
        stage="import_reranker",
        script="import_reranker.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.checkpoint],
        outputs=[args.out, args.report],
        packages=["numpy"],
        counts={"tensors": len(tensors), "parameters": n_parameters},
    )
    log.info("%s: %d tensors, %d parameters", args.checkpoint, len(tensors), n_parameters)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: sizes of the reranker")
    parser.add_argument(
        "--checkpoint", type=Path, required=True, help="published weights, .pt or .safetensors"
    )
    parser.add_argument("--out", type=Path, required=True, help="the weights, .safetensors")
    parser.add_argument("--report", type=Path, required=True, help="what was found, .report.json")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
