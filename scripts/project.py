"""Apply a head to the vectors of a piece: the descriptors that are ranked."""

import argparse
import logging
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, options, provenance
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.instances import projecting, vectors_file
from remeasure.instances.decode import STATUSES, UNDECODABLE
from remeasure.instances.describing import CLS, STATUS
from remeasure.instances.heads import model
from remeasure.instances.vectors_file import NAME, Column, Rows

log = logging.getLogger("remeasure.project")

DESCRIPTOR = "descriptor"


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides a projection."""

    name: str
    hidden: int
    dim: int
    backbone: str


def work(args: argparse.Namespace) -> None:
    """Read vectors in blocks, project, write."""
    told = options.decode(args.settings, Told)
    rows = Rows(args.cls)
    rows.check(CLS, None, None, kinds="f")
    n_scales, width = rows.columns[CLS].row
    if not n_scales:
        raise RemeasureError(f"{args.cls}: vectors at no scale; delete it and run its target again")
    head, _ = model.read(args.head, width, told.hidden, told.dim)
    rows.check(STATUS, kinds="u")
    rows.check(NAME, kinds="S")
    about = {
        "projection": told.name,
        "head": sha256_file(args.head),
        "extractor": rows.about.get("extractor"),
        "piece": rows.about.get("piece"),
    }
    columns = {NAME: rows.columns[NAME], DESCRIPTOR: Column(np.float32, (told.dim,)), STATUS: Column("u1")}
    counts = np.zeros(len(STATUSES), dtype=np.int64)
    with vectors_file.writing(args.out, len(rows), columns, about) as put:
        for start, cls in rows.blocks(CLS):
            span = slice(start, start + len(cls))
            status = np.array(rows.array(STATUS)[span])
            _check(cls, status, start, args.cls)
            found = projecting.project(head, model.mean_of_scales(cls))
            found[status == UNDECODABLE] = 0
            _check_projected(found, status, start, args)
            put(start, **{NAME: rows.array(NAME)[span], DESCRIPTOR: found, STATUS: status})
            counts += np.bincount(status, minlength=len(STATUSES))
    provenance.write_stage(
        args.record,
        stage="project",
        script="project.py",
        settings=msgspec.to_builtins(told),
        inputs=[args.head, args.cls],
        outputs=[args.out],
        packages=["h5py", "numpy", "scipy"],
        counts={word: int(n) for word, n in zip(STATUSES, counts, strict=True)},
    )
    log.info("%s: %d descriptors", args.out, len(rows))


def _check(cls: np.ndarray, status: np.ndarray, start: int, path: Path) -> None:
    """Refuse a status that there is not, and rows of zeros that do not say why.

    Raises:
        RemeasureError: names the first such row.
    """
    bad = (status >= len(STATUSES)) | ((status != UNDECODABLE) & ~cls.any(axis=2).all(axis=1))
    if bad.any():
        row = int(np.argmax(bad))
        raise RemeasureError(
            f"{path}: row {start + row} has the status {status[row]} and a vector of zeros, which a decoded "
            "photograph has not; delete it and run its target again"
        )


def _check_projected(found: np.ndarray, status: np.ndarray, start: int, args: argparse.Namespace) -> None:
    """Refuse a head that leaves nothing of a photograph: all such would be equally like every query.

    Raises:
        RemeasureError: names the first such row.
    """
    lost = (status != UNDECODABLE) & ~found.any(axis=1)
    if lost.any():
        raise RemeasureError(
            f"{args.head}: leaves nothing of row {start + int(np.argmax(lost))} of {args.cls}, and of "
            f"{int(lost.sum()) - 1} more in these rows: its weights are zero; train it again, or give others"
        )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: sizes of the head")
    parser.add_argument("--head", type=Path, required=True, help="weights, .safetensors")
    parser.add_argument("--cls", type=Path, required=True, help="vectors of the piece, .h5")
    parser.add_argument("--out", type=Path, required=True, help="descriptors, .h5")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
