"""Merge an adapter into its base model, or none, and write the folder that vLLM reads."""

import argparse
import json
import logging
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.adapters.building import MODELS, MergeSettings, Model
from remeasure.adapters.folder import Folder
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes, sha256_file

log = logging.getLogger("remeasure.merge_adapter")


def write_weights(model: Model, folder: Folder) -> dict[str, str]:
    """Write or link the weights; return the SHA-256 of files that were written."""
    unchanged = model.unchanged()
    if unchanged:
        for path in unchanged:
            folder.link(path)
        return {}
    canonical = {name: key for key, name in model.names.items()}
    specs = {name: model.weights.spec(key) for name, key in canonical.items()}
    folder.check_room(sum(spec.n_bytes for spec in specs.values()))
    return folder.write_weights(specs, lambda name: model.weights.blocks(canonical[name]))


def work(args: argparse.Namespace) -> None:
    """Open, merge, convert, write."""
    settings = options.decode(args.settings, MergeSettings)
    if settings.family not in MODELS:
        raise RemeasureError(f"--settings: family {settings.family!r}; expected one of {', '.join(MODELS)}")
    model = MODELS[settings.family](settings, args.base, args.adapter, args.vision)
    log.info("%s: %d tensors, %s", args.base, len(model.names), settings.family)
    inputs = {str(path): sha256_file(path) for path in model.read}
    key = sha256_bytes(json.dumps([msgspec.to_builtins(settings), inputs], sort_keys=True).encode())
    folder = Folder(args.out, key)
    written = write_weights(model, folder)
    model.write_files(folder)
    hashes = folder.finish(written)
    if model.weights.n_base_not_finite:
        log.warning("%d numbers of the base are infinite or none at all", model.weights.n_base_not_finite)
    provenance.write_stage(
        args.record,
        stage="merge_adapter",
        script="merge_adapter.py",
        settings=msgspec.to_builtins(settings),
        inputs=dict.fromkeys(model.read),
        outputs=map(Path, hashes),
        packages=["numpy", "ml_dtypes"],
        counts=model.counts
        | {"tensors": len(model.names), "base_numbers_that_are_not_finite": model.weights.n_base_not_finite},
        facts=model.facts,
        known=inputs | hashes,
    )
    counts = " ".join(f"{name}={n}" for name, n in model.counts.items())
    log.info("%s: %d tensors in %d files, %s", args.out, len(model.names), len(hashes), counts)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: family, system, trained_projector")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base model")
    parser.add_argument("--adapter", type=Path, help="folder of the adapter; without it the base alone")
    parser.add_argument(
        "--vision", type=Path, help="LLaVA: folder of CLIP, where the image encoder comes from"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder that vLLM reads; must not be there yet"
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
