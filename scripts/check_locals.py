"""Compare local descriptors of ours with published ones, on the first photographs of a gallery."""

import argparse
import logging
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.instances import describing, local_check, local_models, making
from remeasure.instances.ames.layouts import Locals
from remeasure.instances.local_check import N_PHOTOS, Compared
from remeasure.instances.local_models import DESCRIPTOR, N_VALID, Told
from remeasure.instances.pieces import WHOLE, Piece

log = logging.getLogger("remeasure.check_locals")


def described(piece: Piece, describer: describing.Describer, n: int) -> list[np.ndarray]:
    """Return the descriptors of the first ``n`` photographs; none of one that cannot be decoded."""
    pictures = [describer.decode(piece.read(i)).pixels for i in range(n)]
    prepared = ((i, describer.prepare(p)) for i, p in enumerate(pictures) if p is not None)
    outputs = describing.batched_by_kind(describer, prepared)
    found = {i: describer.finish(output) for i, output in outputs.items()}
    nothing = np.zeros((0, 1), np.float16)
    return [found[i][DESCRIPTOR][: found[i][N_VALID]] if i in found else nothing for i in range(n)]


def published(path: Path, told: Told, n_gallery: int, n: int) -> list[np.ndarray]:
    """Return the descriptors of the first ``n`` photographs of a published file.

    Raises:
        RemeasureError: it is none, or it has another number of photographs than the gallery.
    """
    store = Locals(path, told.dim, told.n)
    if store.n_photos != n_gallery:
        raise RemeasureError(
            f"{path}: has {store.n_photos} photographs, the gallery {n_gallery}; give that of this gallery"
        )
    found: list[np.ndarray] = []
    for _, block in islice(store.blocks(n), 1):
        found += [rows[:valid] for rows, valid in zip(block.descriptors, block.n_valid, strict=True)]
    return found[:n]


def work(args: argparse.Namespace) -> None:
    """Describe, compare, write what came out; stop where it is not the same."""
    told = options.decode(args.settings, Told)
    files = making.files_of(args, local_models.NEEDED[told.backend])
    args.piece, args.shard, args.index = WHOLE, None, None
    with making.open_piece(args) as piece:
        n = min(N_PHOTOS, len(piece))
        theirs = published(args.published, told, len(piece), n)
        describer = local_models.open_local_model(told, files, args.threads)
        ours = described(piece, describer, n)
        compared: dict[str, Compared] = {
            name: local_check.compare(one, other)
            for name, one, other in zip(piece.names[:n], ours, theirs, strict=True)
        }
    found = local_check.verdict(compared)
    said = ", ".join(f"{c['name']} {c['value']:.4f} (at least {c['limit']})" for c in found["checks"])
    if not found["ok"]:
        failed = args.out.with_suffix(".failed.json")
        jsonl.write_json(failed, found)
        raise RemeasureError(
            f"{args.published}: local features {told.name} are not those of this file: {said} of {n} "
            f"photographs; look at {failed}, correct weights or photographs, or take `checked` out of "
            f"local_features.{told.name}"
        )
    jsonl.write_json(args.out, found)
    provenance.write_stage(
        args.record,
        stage="check_locals",
        script="check_locals.py",
        settings=msgspec.to_builtins(told),
        inputs=[args.pictures, args.labels, args.published, *files.values()],
        outputs=[args.out],
        packages=making.packages(told.backend),
        counts={"photographs": n},
    )
    log.info("%s: %s", args.published, said)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: the local features")
    parser.add_argument("--pictures", type=Path, required=True, help="folder or zip of the photographs")
    parser.add_argument("--labels", type=Path, required=True, help="labels.json of the benchmark")
    parser.add_argument("--published", type=Path, required=True, help="published descriptors of its gallery")
    parser.add_argument(
        "--model", type=Path, help="weights: an ONNX file, a folder of transformers, or a .pth"
    )
    parser.add_argument("--detector", type=Path, help="weights of the detector (dinov2-detector)")
    parser.add_argument("--threads", type=int, default=1, help="of the model; changes no value")
    parser.add_argument("--out", type=Path, required=True, help="what came out, check.json")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
