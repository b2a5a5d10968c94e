"""Pick stored answers of several cells, the same for every judge, and write what one judge is asked."""

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remeasure import cli, items, jsonl, prompts, provenance
from remeasure.aligned import Aligned
from remeasure.calibration import asking
from remeasure.cells import JudgeSettings
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.records import Graded, Response
from remeasure.tables import agreement

log = logging.getLogger("remeasure.build_agreement_requests")


class AgreementSettings(JudgeSettings, kw_only=True):
    """Settings of a judge's requests, and how many answers it is shown."""

    study: str
    n_answers: int


def open_cell(graded: Path, responses: Path) -> tuple[str, Iterator[tuple[Graded, Response]]]:
    """Return one cell's folder and its verdicts with their responses, read while they are asked for.

    Raises:
        RemeasureError: the two files lie in different folders; while read, they have different items.
    """
    if graded.parent != responses.parent:
        raise not_of_one_cell(graded, responses)
    return str(graded.parent), answers_of(graded, responses)


def answers_of(graded: Path, responses: Path) -> Iterator[tuple[Graded, Response]]:
    """Yield the verdicts of a cell with their responses.

    Raises:
        RemeasureError: the two files have different items, or have them in different order.
    """
    found = Aligned(jsonl.read(responses, Response), "custom_id", responses)
    lines = jsonl.read(graded, Graded)
    for line in lines:
        response = found.take(line.item_id)
        if response is None:
            if found.odd([line.item_id, *(rest.item_id for rest in lines)]):
                raise not_of_one_cell(graded, responses)
            raise RemeasureError(
                f"{graded} and {responses} have their items in different order (first at item "
                f"{line.item_id!r}); delete both and rerun"
            )
        yield line, response
    if found.ids_left():
        raise not_of_one_cell(graded, responses)


def not_of_one_cell(graded: Path, responses: Path) -> RemeasureError:
    """Return the error for two files that do not belong together."""
    return RemeasureError(
        f"{graded} and {responses} are not of one cell; give the files of the same cells in order"
    )


def work(args: argparse.Namespace) -> None:
    """Read, pick, write."""
    settings = decode(args.settings, AgreementSettings)
    if len(args.graded) != len(args.responses):
        raise RemeasureError(
            "--graded and --responses must name the same cells in the same order; correct them"
        )
    cells = [open_cell(*paths) for paths in zip(args.graded, args.responses, strict=True)]
    chosen = agreement.pick(items.read(args.items), cells, settings.n_answers)
    if not chosen:
        raise RemeasureError(
            f"none of {len(cells)} cells has an answer to show to a judge; look at their responses"
        )
    if len(chosen) < settings.n_answers:
        log.warning("only %d of %d wanted answers exist", len(chosen), settings.n_answers)
    texts = prompts.load(settings.prompts)
    asked = (
        asking.request(picked.answer_id, item, response, settings, settings.study, texts)
        for picked, item, response in chosen
    )
    jsonl.write(args.picked, (picked for picked, _, _ in chosen))
    jsonl.write(args.out, asked)
    provenance.write_stage(
        args.record,
        stage="build_agreement_requests",
        script="build_agreement_requests.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.items, *args.graded, *args.responses],
        outputs=[args.out, args.picked],
        counts={"answers": len(chosen), "cells": len(cells)},
        also=(f"remeasure.studies.{settings.study}_messages",),
    )
    log.info("%d answers of %d cells for %s", len(chosen), len(cells), settings.model)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: judge, prompts, study, n_answers")
    parser.add_argument("--items", type=Path, required=True, help="items.jsonl of the bench")
    parser.add_argument("--graded", type=Path, nargs="+", required=True, help="graded.jsonl of every cell")
    parser.add_argument(
        "--responses", type=Path, nargs="+", required=True, help="responses.jsonl, same order"
    )
    parser.add_argument("--picked", type=Path, required=True, help="the answers, picked.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="requests.jsonl for the judge")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
