"""Choose the read-out that the table shows, by the published rule, and keep the whole grid."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.instances import read_outs
from remeasure.instances.first_file import FirstFile
from remeasure.instances.read_outs import Grid, ReadOut

log = logging.getLogger("remeasure.choose_read_out")


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose read-outs are chosen from."""

    backbone: str
    galleries: tuple[str, ...]
    """In the order of ``--read-outs``."""


class Facts(msgspec.Struct, frozen=True):
    """What is read of a file of read-outs."""

    names: tuple[ReadOut, ...]
    map: tuple[dict[str, float | None], ...]


def grid_of(gallery: str, path: Path) -> Grid:
    """Return what a file says of its read-outs.

    Raises:
        RemeasureError: it is no such file.
    """
    try:
        facts = msgspec.convert(FirstFile(path).facts, Facts)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"{path}: no file of read-outs ({error}); delete it and rerun read_out"
        ) from None
    return Grid(gallery, str(path), facts.names, facts.map)


def work(args: argparse.Namespace) -> None:
    """Read, choose, write."""
    told = options.decode(args.settings, Told)
    if len(args.read_outs) != len(told.galleries) or not told.galleries:
        raise RemeasureError(
            f"--read-outs: {len(args.read_outs)}, expected one for each of {', '.join(told.galleries)}: "
            "give them in this order"
        )
    pairs = zip(told.galleries, args.read_outs, strict=True)
    document = read_outs.choose([grid_of(gallery, path) for gallery, path in pairs])
    jsonl.write_json(args.out, document)
    provenance.write_stage(
        args.record,
        stage="choose_read_out",
        script="choose_read_out.py",
        settings=msgspec.to_builtins(told),
        inputs=args.read_outs,
        outputs=[args.out],
        counts={"chosen": document["chosen"], "read_outs": len(document["grid"])},
    )
    best = document["grid"][document["chosen"]]
    log.info("%s: read-out %d, sum of Medium %.4f", args.out, document["chosen"], best["sum_medium"])


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: backbone, galleries")
    parser.add_argument(
        "--read-outs", type=Path, nargs="+", required=True, help="a file per gallery, in order"
    )
    parser.add_argument("--out", type=Path, required=True, help="the chosen one and the grid, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
