"""Audit a benchmark before anything is ranked: every rule of the protocol; exit 2 where one does not hold."""

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, jsonl, provenance
from remeasure.errors import RemeasureError
from remeasure.instances import anchors, auditing, backbones, crops, describing, labels, making, parity
from remeasure.instances.auditing import Check, Query
from remeasure.instances.heads.model import mean_of_scales
from remeasure.instances.photo_store import open_photos
from remeasure.instances.vectors_file import Rows
from remeasure.options import decode

log = logging.getLogger("remeasure.audit_photos")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the stage reads."""

    photos: str
    expected: dict[str, int] = {}
    backbone: backbones.Told


class Again(msgspec.Struct, frozen=True):
    """The queries of a benchmark, decoded and described again."""

    queries: list[Query]
    crops: np.ndarray
    """float32 [nq, dim]; a row of zeros where there is nothing to describe."""
    whole: np.ndarray


def missing_photographs(args: argparse.Namespace, found: labels.Labels) -> list[Check]:
    """Check that there is a photograph for every name."""
    with open_photos(args.pictures) as photos:
        n = photos.count_missing({*found.imlist, *found.qimlist})
    return [auditing.counted("photographs_missing", n)]


def describe_again(args: argparse.Namespace, told: backbones.Told, found: labels.Labels) -> Again:
    """Decode every query, crop it by the rule, and describe crop and whole photograph."""
    files = making.files_of(args, backbones.NEEDED[told.backend])
    describer = backbones.open_backbone(told, files, args.threads)
    n, shape = len(found.qimlist), (len(told.scales), told.dim)
    made = {name: np.zeros((n, *shape), np.float32) for name in ("crops", "whole")}
    queries = []
    with open_photos(args.pictures) as photos:
        for i, (stem, truth) in enumerate(zip(found.qimlist, found.gnd, strict=True)):
            decoded = describer.decode(photos.read(stem))
            queries.append(Query(tuple(decoded.size), truth.bbx))
            if decoded.pixels is None:
                continue
            made["whole"][i] = describing.vectors_of(describer, [decoded.pixels])[0]
            try:
                left, top, right, bottom = crops.pillow_box(truth.bbx, decoded.size, stem)
            except RemeasureError as error:
                log.warning("%s", error)
                continue
            made["crops"][i] = describing.vectors_of(describer, [decoded.pixels[top:bottom, left:right]])[0]
    return Again(queries, mean_of_scales(made["crops"]), mean_of_scales(made["whole"]))


def read_stored(args: argparse.Namespace) -> dict[str, Rows]:
    """Open the stored vectors of queries, whole queries and gallery."""
    rows = {name: Rows(getattr(args, name)) for name in ("queries", "whole", "gallery")}
    for one in rows.values():
        one.check("cls", None, None, kinds="f")
    return rows


def check_crops(again: Again, stored: Mapping[str, Rows], found: labels.Labels) -> list[Check]:
    """Compare boxes and stored vectors with what was described again."""
    names = {piece: rows.names() for piece, rows in stored.items()}
    box = stored["queries"].read("box") if "box" in stored["queries"].columns else None
    if box is not None and box.shape != (len(found.qimlist), 4):
        raise RemeasureError(
            f"{stored['queries'].path}: boxes have the shape {box.shape}, expected ({len(found.qimlist)}, "
            "4); delete it and run its target again"
        )
    undecodable = sum(0 in query.size for query in again.queries)
    checks = [auditing.counted("queries_undecodable", undecodable), *auditing.boxes(again.queries)]
    if not all(check.ok for check in checks):
        return [*checks, auditing.skipped("crops", "boxes or photographs of queries are wrong", ok=False)]
    checks += auditing.stored(found, names, box, again.queries)
    if not all(check.ok for check in checks):
        return [*checks, auditing.skipped("crops", "the stored vectors are of something else", ok=False)]
    pooled = {piece: mean_of_scales(stored[piece].read("cls")) for piece in ("queries", "whole")}
    if pooled["queries"].shape != again.crops.shape or pooled["whole"].shape != again.whole.shape:
        return [*checks, auditing.skipped("crops", "the stored vectors have another length", ok=False)]
    return checks + auditing.crop(again.crops, again.whole, pooled["queries"], pooled["whole"])


def descriptor_sets(stored: Mapping[str, Rows]) -> dict[str, np.ndarray]:
    """Return matrices of scores, float32 [nq, n]: of the mean of scales, of one scale, and full of ties."""
    queries, gallery = (stored[name].read("cls") for name in ("queries", "gallery"))
    first = (mean_of_scales(queries), mean_of_scales(gallery))
    one = (queries[:, 0].astype(np.float32), gallery[:, 0].astype(np.float32))
    # Twelve signs of a vector: many photographs have the same score for a query.
    signs = tuple(np.sign(half[:, :12]) for half in first)
    pairs = {"mean": first, "first_scale": one, "tied": signs}
    return {name: ours @ theirs.T for name, (ours, theirs) in pairs.items()}


def check_metric(stored: Mapping[str, Rows], found: labels.Labels, upstream: Path | None) -> list[Check]:
    """Compare our measures with a plain form of them and, where it is there, with the published evaluator."""
    checks = []
    for name, scores in descriptor_sets(stored).items():
        ours, ranks = parity.ours(scores, found), parity.ranks_of(scores)
        plain = parity.difference(ours, parity.dense(ranks, found))
        checks.append(auditing.at_most(f"metric_{name}_plain", plain, parity.LIMIT))
        if upstream is not None:
            apart = parity.difference(ours, parity.upstream(ranks, found, upstream))
            checks.append(auditing.at_most(f"metric_{name}_published", apart, parity.LIMIT))
    if upstream is None:
        why = "the published evaluator is not named (anchor: {upstream: …})"
        checks.append(auditing.skipped("metric_published", why))
    return checks


def audit(args: argparse.Namespace, settings: Settings) -> tuple[str, list[Check]]:
    """Make all checks; what builds on a failed one is skipped and counts as failed."""
    found = labels.decode(args.labels)
    checks = auditing.protocol(found, settings.expected) + missing_photographs(args, found)
    if problems := labels.check(found):
        log.warning("%s: %s", args.labels, "; ".join(problems[:20]))
    if not all(check.ok for check in checks) or problems:
        checks.append(auditing.skipped("all_others", "the labels are wrong", ok=False))
        return found.dataset, checks
    stored = read_stored(args)
    checks += check_crops(describe_again(args, settings.backbone, found), stored, found)
    if any(
        len(stored[name]) != n
        for name, n in (("queries", len(found.qimlist)), ("gallery", len(found.imlist)))
    ):
        return found.dataset, checks
    checks += check_metric(stored, found, args.upstream)
    return found.dataset, checks + anchors.anchor(found, args.features)


def inputs_of(args: argparse.Namespace) -> list[Path]:
    """Return the files that were read."""
    names = ("labels", "pictures", "queries", "whole", "gallery", "model", "package", "features", "upstream")
    return [path for name in names if (path := getattr(args, name)) is not None]


def work(args: argparse.Namespace) -> None:
    """Check, write the verdict, and stop where it is no."""
    settings = decode(args.settings, Settings)
    dataset, checks = audit(args, settings)
    verdict = auditing.verdict(dataset, checks)
    for check in checks:
        log.info("%s %s", "ok" if check.ok else "FAILED", msgspec.to_builtins(check))
    failed = args.out.with_suffix(".failed.json")
    if not verdict["ok"]:
        jsonl.write_json(failed, verdict)
        raise RemeasureError(
            f"{settings.photos}: the audit failed: {auditing.told_failures(checks)}; nothing is ranked "
            f"until that is put right ({failed})"
        )
    failed.unlink(missing_ok=True)
    jsonl.write_json(args.out, verdict)
    provenance.write_stage(
        args.record,
        stage="audit_photos",
        script="audit_photos.py",
        settings=msgspec.to_builtins(settings),
        inputs=inputs_of(args),
        outputs=[args.out],
        packages=making.packages(settings.backbone.backend),
        counts={"checks": len(checks), "skipped": sum(check.skipped is not None for check in checks)},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="expected counts and the backbone, as JSON")
    parser.add_argument("--labels", type=Path, required=True, help="ground truth, JSON")
    parser.add_argument("--pictures", type=Path, required=True, help="folder or zip of the photographs")
    parser.add_argument("--queries", type=Path, required=True, help="stored vectors of cropped queries, .h5")
    parser.add_argument("--whole", type=Path, required=True, help="those of whole queries, .h5")
    parser.add_argument("--gallery", type=Path, required=True, help="those of the gallery, .h5")
    parser.add_argument("--model", type=Path, help="weights of the backbone")
    parser.add_argument("--package", type=Path, help="folder of the released package (fusion-embedding)")
    parser.add_argument("--features", type=Path, help="public descriptors whose numbers are known, .mat")
    parser.add_argument("--upstream", type=Path, help="the published evaluate.py; it is run, apart")
    parser.add_argument("--threads", type=int, default=1, help="of the model")
    parser.add_argument(
        "--out", type=Path, required=True, help="verdict, JSON; <out>.failed.json where it is no"
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
