"""Train a small reranker on classes that no table asks about, where no published one can be had."""

import argparse
import logging
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.instances.ames import training, weights
from remeasure.instances.ames.drawing import Photos
from remeasure.instances.ames.layouts import Locals
from remeasure.instances.ames.settings import Training
from remeasure.instances.ames.training import Trained

log = logging.getLogger("remeasure.train_reranker")
_AT_ONCE = 256


def read_classes(path: Path) -> dict[str, int]:
    """Read the class of every photograph of a training set by id; classes that leak are left out.

    Raises:
        RemeasureError: no plan of a training set.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=["image_id", "landmark_id", "leak"])
    except (OSError, pa.ArrowException, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise RemeasureError(f"{path}: cannot be read as a plan ({reason}); delete it and rerun") from None
    rows = zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    return {name: number for name, number, leaks in rows if not leaks}


def read_photos(paths: list[Path], classes: dict[str, int], settings: Training) -> tuple[Photos, int]:
    """Read descriptors of photographs whose class is known.

    Returns:
        Photographs with at least one descriptor, and how many had none.

    Raises:
        RemeasureError: as of ``Locals``; none at all.
    """
    parts, n_empty = [], 0
    for path in paths:
        opened = Locals(path, settings.dim, settings.n)
        ids = [classes.get(Path(name).stem, -1) for name in opened.names()]
        for start, block in opened.blocks(_AT_ONCE):
            known = np.array(ids[start : start + len(block.n_valid)], np.int64)
            n_empty += int(((known >= 0) & (block.n_valid == 0)).sum())
            kept = (known >= 0) & (block.n_valid > 0)
            parts.append(Photos(block.descriptors[kept].astype(np.float16), block.n_valid[kept], known[kept]))
    if not sum(len(part.classes) for part in parts):
        raise RemeasureError(
            f"{paths[0]}: no photograph of the plan has local descriptors; rerun their extraction"
        )
    return Photos(*(np.concatenate(column) for column in zip(*parts, strict=True))), n_empty


def report(trained: Trained, settings: Training, photos: Photos) -> dict:
    """Return what people want to know about the training, ready for JSON."""
    before, after = trained.checks[0], trained.checks[trained.chosen]
    numbers = (
        f"accuracy on pairs of held-out classes {before.accuracy:.3f} before, {after.accuracy:.3f} after; "
        "AUC "
        f"{before.auc:.3f} before, {after.auc:.3f} after, {trained.auc_of_means:.3f} by mean descriptors "
        "alone"
    )
    return {
        "outcome": f"step {after.step} is used: {numbers}",
        "criterion": "lowest loss on pairs of held-out classes, then earliest step; step 0 is a plain "
        "matcher",
        "helps": after.auc > trained.auc_of_means,
        "chosen_step": after.step,
        "accuracy_before": before.accuracy,
        "accuracy_after": after.accuracy,
        "auc_before": before.auc,
        "auc_after": after.auc,
        "auc_of_mean_descriptors": trained.auc_of_means,
        "n_held_out_pairs": training.N_HELD_OUT_PAIRS,
        "n_photographs": len(photos.classes),
        "n_classes": len(np.unique(photos.classes)),
        "n_parameters": settings.n_parameters(),
        "deterministic": True,
        "checks": [check._asdict() for check in trained.checks],
    }


def work(args: argparse.Namespace) -> None:
    """Read, train, write weights and report."""
    settings = options.decode(args.settings, Training)
    weights.check_shape(settings)
    photos, n_empty = read_photos(args.locals, read_classes(args.plan), settings)
    log.info("%d photographs of %d classes", len(photos.classes), len(np.unique(photos.classes)))
    trained = training.train(photos, settings, args.plan)
    weights.write(args.out, trained.tensors)
    summary = report(trained, settings, photos)
    jsonl.write_json(args.report, summary)
    provenance.write_stage(
        args.record,
        stage="train_reranker",
        script="train_reranker.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.plan, *args.locals],
        outputs=[args.out, args.report],
        packages=["torch", "numpy"],
        counts={"photographs": len(photos.classes), "without_descriptors": n_empty},
        facts={"outcome": summary["outcome"]},
    )
    log.info("%d steps, %s", settings.steps, summary["outcome"])


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: sizes, steps, batch, learning rate, seed")
    parser.add_argument("--plan", type=Path, required=True, help="classes of the training set, plan.parquet")
    parser.add_argument("--locals", type=Path, nargs="+", required=True, help="its local descriptors, .h5")
    parser.add_argument("--out", type=Path, required=True, help="the weights, .safetensors")
    parser.add_argument("--report", type=Path, required=True, help="how training went, .report.json")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
