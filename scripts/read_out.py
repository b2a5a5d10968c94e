"""Rank a gallery by every read-out of an encoder's stored vectors."""

import argparse
import logging
import math
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.instances import evaluation, first_file, ranking, read_outs
from remeasure.instances.heads.model import mean_of_scales
from remeasure.instances.labels import Labels
from remeasure.instances.labels import read as read_labels
from remeasure.instances.read_outs import FORMS, ReadOut, Side
from remeasure.instances.vector_checks import check_alike, check_audit, check_names, check_rows
from remeasure.instances.vectors_file import Rows

log = logging.getLogger("remeasure.read_out")


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the read-outs of a gallery."""

    gallery: str
    backbone: str
    dim: int


def open_vectors(path: Path, names: tuple[str, ...], labels: Path, dim: int) -> Rows:
    """Return a file of vectors in the order of the labels; errors as of what checks it."""
    rows = Rows(path)
    check_rows(rows, dim)
    check_names(rows, names, labels)
    return rows


def rank(
    sides: dict[str, Side], gallery: Side, name: ReadOut, labels: Labels, threads: int
) -> first_file.First:
    """Return the ranking of a gallery by one read-out."""
    queries = read_outs.descriptors(sides[name.query], name.dim, centred=name.centred)
    found = read_outs.descriptors(gallery, name.dim, centred=name.centred)
    source = ranking.Source(Path(gallery.place), found, gallery.unreadable)
    kept = ranking.Kept(read_outs.KEPT, [labels.labelled(i) for i in range(len(queries))])
    return ranking.first_stage(queries, ranking.Gallery([source]), kept, threads)


def work(args: argparse.Namespace) -> None:
    """Read, rank twelve times, write."""
    told = options.decode(args.settings, Told)
    check_audit(args.audit)
    labels = read_labels(args.labels)
    paths = {form: getattr(args, piece) for form, piece in FORMS.items()}
    files = {form: open_vectors(path, labels.qimlist, args.labels, told.dim) for form, path in paths.items()}
    files["gallery"] = open_vectors(args.gallery, labels.imlist, args.labels, told.dim)
    check_alike(list(files.values()))
    sides = {form: Side(str(rows.path), mean_of_scales(rows.read("cls"))) for form, rows in files.items()}
    names = read_outs.all_of(told.dim)
    found, maps = {}, []
    for place, name in enumerate(names):
        first = rank(sides, sides["gallery"], name, labels, args.threads)
        found[read_outs.prefix(place)] = first
        maps.append(
            {
                difficulty: None if math.isnan(value) else value
                for difficulty, value in evaluation.mean_ap(first.labelled, labels).items()
            }
        )
    about = {"backbone": told.backbone, "extractor": files["gallery"].about.get("extractor")}
    first_file.write(args.out, found, about, names=[msgspec.to_builtins(name) for name in names], map=maps)
    inputs = [args.labels, args.audit, args.gallery, *paths.values()]
    provenance.write_stage(
        args.record,
        stage="read_out",
        script="read_out.py",
        settings=msgspec.to_builtins(told),
        inputs=inputs,
        outputs=[args.out],
        packages=["h5py", "numpy"],
        counts={"queries": len(labels.qimlist), "gallery": len(labels.imlist), "read_outs": len(names)},
    )
    log.info("%s: %d read-outs of %d queries", args.out, len(names), len(labels.qimlist))


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: gallery, backbone, dim")
    parser.add_argument("--labels", type=Path, required=True, help="labels.json of the benchmark")
    parser.add_argument("--audit", type=Path, required=True, help="its audit.json")
    parser.add_argument("--gallery", type=Path, required=True, help="vectors of the gallery, .h5")
    parser.add_argument("--queries", type=Path, required=True, help="vectors of cropped queries")
    parser.add_argument("--whole", type=Path, required=True, help="vectors of whole queries")
    parser.add_argument("--instructed", type=Path, required=True, help="of crops with the query instruction")
    parser.add_argument("--threads", type=int, default=1, help="rows that are ranked at the same time")
    parser.add_argument("--out", type=Path, required=True, help="a ranking per read-out, .h5")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
