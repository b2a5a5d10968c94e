"""Draw answers that a judge let pass and others, and write a sheet on which people label them."""

import argparse
import logging
from pathlib import Path

import msgspec
from msgspec import Struct

from remeasure import cli, items, jsonl, provenance
from remeasure.calibration import picking, sheet
from remeasure.errors import RemeasureError
from remeasure.files import write_text
from remeasure.options import decode

log = logging.getLogger("remeasure.pick_answers")


class PickSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is drawn from which cells."""

    cells: tuple[tuple[str, str, str], ...]
    """Bench, arm and model, in the order of the files."""
    benches: tuple[str, ...]
    """In the order of ``--items``."""
    n: int
    seed: int


def folders(settings: PickSettings, graded: list[Path], responses: list[Path]) -> list[picking.Folder]:
    """Return the cells with their files.

    Raises:
        RemeasureError: not one file of each kind per cell.
    """
    if not len(settings.cells) == len(graded) == len(responses):
        raise RemeasureError(
            f"--graded and --responses: {len(graded)} and {len(responses)} files for {len(settings.cells)} "
            "cells; give one of each per cell"
        )
    return [
        picking.Folder(*cell, *paths) for cell, *paths in zip(settings.cells, graded, responses, strict=True)
    ]


def work(args: argparse.Namespace) -> None:
    """Draw, write."""
    settings = decode(args.settings, PickSettings)
    cells = folders(settings, args.graded, args.responses)
    if len(args.items) != len(settings.benches):
        raise RemeasureError(
            f"--items: {len(args.items)} files for {len(settings.benches)} benches; give one each"
        )
    questions = dict(zip(settings.benches, args.items, strict=True))
    drawn, pool = picking.draw(cells, settings.n, settings.seed)
    if not drawn:
        raise RemeasureError(
            f"none of {len(cells)} cells has an answer with a readable verdict; look at their "
            "judge's responses"
        )
    chosen = picking.collect(drawn, lambda bench: items.read(questions[bench]), settings.seed)
    n_passed = sum(one.passed for one in chosen)
    if len(chosen) < settings.n:
        log.warning(
            "only %d of %d wanted answers: %d passed and %d failed in all; half of each was wanted",
            len(chosen),
            settings.n,
            pool.n_passed,
            pool.n_failed,
        )
    jsonl.write(args.picked, chosen)
    write_text(args.sheet, sheet.render(chosen))
    provenance.write_stage(
        args.record,
        stage="pick_answers",
        script="pick_answers.py",
        settings=msgspec.to_builtins(settings),
        inputs=[*args.items, *args.graded, *args.responses],
        outputs=[args.picked, args.sheet],
        counts={
            "picked_passed": n_passed,
            "picked_failed": len(chosen) - n_passed,
            "passed": pool.n_passed,
            "failed": pool.n_failed,
        },
    )
    log.info("%d answers that passed and %d that failed on %s", n_passed, len(chosen) - n_passed, args.sheet)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: cells, benches, n, seed")
    parser.add_argument("--items", type=Path, nargs="+", required=True, help="items.jsonl of every bench")
    parser.add_argument("--graded", type=Path, nargs="+", required=True, help="graded.jsonl of every cell")
    parser.add_argument(
        "--responses", type=Path, nargs="+", required=True, help="responses.jsonl, same order"
    )
    parser.add_argument("--picked", type=Path, required=True, help="the answers, picked.jsonl")
    parser.add_argument("--sheet", type=Path, required=True, help="the sheet to label, CSV")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
