"""Train a head, its epoch chosen as published and by held-out classes, or take one that is there."""

import argparse
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from remeasure import cli, fingerprint, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes, sha256_file
from remeasure.instances.heads import checkpoint, model, reporting, sampling, selection, training
from remeasure.instances.heads.selection import Bench
from remeasure.instances.heads.settings import HeadSettings
from remeasure.instances.heads.vectors import OnDevice, TrainingVectors
from remeasure.instances.vector_checks import check_alike

log = logging.getLogger("remeasure.train_head")
PUBLISHED, HOLDOUT = "published", "holdout"


class Made(NamedTuple):
    """Heads by how their epoch was chosen, and what is reported of them."""

    tensors: dict[str, dict[str, np.ndarray]]
    facts: dict[str, Any]


def read_benches(args: argparse.Namespace, settings: HeadSettings) -> tuple[dict[str, Bench], list]:
    """Return the benchmark of every gallery, and the files of all vectors.

    Raises:
        RemeasureError: the options do not name the same sets.
    """
    given = (args.labels, args.audits, args.query_cls, args.gallery_cls)
    if any(len(paths) != len(settings.sets) for paths in given):
        raise RemeasureError(
            f"--labels, --audits, --query-cls and --gallery-cls name {', '.join(str(len(p)) for p in given)} "
            f"files, expected one for each of {', '.join(settings.sets)}; give them in this order"
        )
    benches, files = {}, []
    for name, *paths in zip(settings.sets, *given, strict=True):
        benches[name], more = selection.read_bench(*paths, settings.backbone.dim)
        files += more
    return {gallery: benches[name] for gallery, name in settings.photos_of}, files


def train_both(
    args: argparse.Namespace, settings: HeadSettings, benches: Mapping[str, Bench], files: list, device: str
) -> Made:
    """Train twice: on all classes, chosen as published, and without the held-out classes, chosen by these."""
    vectors = TrainingVectors(args.cls, settings.backbone.dim)
    check_alike([*vectors.files, *files])
    photos, n_without = vectors.photos(args.plan)
    chosen, left_out = sampling.choose(photos, settings.min_class, decontaminated=settings.decontaminated)
    rest, out = sampling.hold_out(chosen, settings.holdout_share)
    held = selection.held_out(vectors, out)
    left_out = {"photos_without_vector": n_without} | left_out
    log.info("%d photographs of %d classes on %s", len(chosen.row), chosen.n_classes, device)
    log.info("held out by the other choice: %d photographs of %d classes", len(out.row), out.n_classes)
    bench = benches[settings.select_on]
    measures = {
        PUBLISHED: (chosen, lambda head: bench.measure(selection.projection(head, device))["medium"]),
        HOLDOUT: (rest, lambda head: held.measure(selection.projection(head, device))),
    }
    on_device = OnDevice(vectors, device)
    code = fingerprint.of_script("train_head.py")
    key = sha256_bytes(msgspec.json.encode([settings, device, code, known_inputs(args)], order="sorted"))
    trained = {}
    for name, (photos_of, measure) in measures.items():
        kept = checkpoint.of(args.checkpoints, name, key)
        trained[name] = training.Training(on_device, photos_of, settings, device).run(measure, kept, name)
    facts = {
        "rows": len(chosen.row),
        "classes": chosen.n_classes,
        "left_out": left_out,
        "best_epoch": {name: one.best_epoch for name, one in trained.items()},
        "epochs": {name: checkpoint.builtins(one.history) for name, one in trained.items()},
        "held_out": reporting.held_out(held, rest, trained[HOLDOUT].history),
    }
    return Made({name: one.tensors for name, one in trained.items()}, facts)


def take(path: Path, settings: HeadSettings) -> Made:
    """Read a head that is there already; both choices are this one."""
    found, others = model.read(path, settings.backbone.dim, settings.hidden, settings.dim)
    if others:
        log.info("%s: left out: %s", path, ", ".join(others))
    return Made({PUBLISHED: found, HOLDOUT: found}, {"weights_left_out": others})


def known_inputs(args: argparse.Namespace) -> dict[str, str]:
    """Return the SHA-256 of every file that decides a result, by path; taken once."""
    if not hasattr(args, "known"):
        named = [*([args.weights] if args.weights else [args.plan, *args.cls])]
        named += [*args.labels, *args.audits, *args.query_cls, *args.gallery_cls]
        args.known = {str(path): sha256_file(path) for path in named}
    return args.known


def work(args: argparse.Namespace) -> None:
    """Read, train or take, measure, write."""
    settings = options.decode(args.settings, HeadSettings)
    if (args.weights is None) == (args.plan is None or not args.cls):
        raise RemeasureError("give either --weights, or --plan and --cls")
    begin = time.monotonic()
    device = training.use(args.threads)
    benches, files = read_benches(args, settings)
    check_alike(files)
    made = (
        take(args.weights, settings) if args.weights else train_both(args, settings, benches, files, device)
    )
    for name, path in ((PUBLISHED, args.out), (HOLDOUT, args.holdout)):
        model.write(path, made.tensors[name])
    report = reporting.report(settings, made.tensors, made.facts, benches, device)
    jsonl.write_json(args.report, report)
    provenance.write_stage(
        args.record,
        stage="train_head",
        script="train_head.py",
        settings=msgspec.to_builtins(settings),
        inputs=map(Path, known_inputs(args)),
        outputs=[args.out, args.holdout, args.report],
        packages=["h5py", "numpy", "torch"],
        counts={name: value for name, value in made.facts.items() if isinstance(value, int)},
        known=known_inputs(args),
    )
    if args.checkpoints:
        checkpoint.remove(args.checkpoints)
    log.info("%s: %s, wall_s=%.1f", args.out, reporting.line(report), time.monotonic() - begin)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="settings of the head, JSON")
    parser.add_argument("--plan", type=Path, help="classes and photographs of the training set, Parquet")
    parser.add_argument("--cls", type=Path, nargs="+", default=[], help="vectors of its pieces, in order")
    parser.add_argument("--weights", type=Path, help="a head that is there already; nothing is trained then")
    parser.add_argument(
        "--labels", type=Path, nargs="+", required=True, help="labels.json of every benchmark"
    )
    parser.add_argument("--audits", type=Path, nargs="+", required=True, help="audit.json of each")
    parser.add_argument("--gallery-cls", type=Path, nargs="+", required=True, help="vectors of each gallery")
    parser.add_argument("--query-cls", type=Path, nargs="+", required=True, help="vectors of cropped queries")
    parser.add_argument("--threads", type=int, default=1, help="of the processor")
    parser.add_argument("--checkpoints", type=Path, help="folder where a killed training goes on from")
    parser.add_argument("--out", type=Path, required=True, help="head at the published choice, safetensors")
    parser.add_argument("--holdout", type=Path, required=True, help="head at the choice by held-out classes")
    parser.add_argument("--report", type=Path, required=True, help="how it went, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
