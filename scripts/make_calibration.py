"""Make the table of a judge's calibration: agreement, kappa and self-preference of judges, and of labels."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from remeasure import cli, graders, jsonl, provenance
from remeasure.calibration import asking, comparing, sheet
from remeasure.calibration.picking import Chosen, Pool
from remeasure.errors import RemeasureError
from remeasure.files import write_text
from remeasure.options import decode
from remeasure.records import Response, Stage
from remeasure.tables import csv_text

log = logging.getLogger("remeasure.make_calibration")


class CalibrationSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which raters are compared and how replies are read."""

    judges: dict[str, str]
    """Name to title, in table order."""
    own_models: dict[str, tuple[str, ...]]
    """Judge to the readers whose answers its own model wrote."""
    table_judge: str
    """Title of the judge whose verdicts stand in the table."""
    grader: str
    options: dict[str, dict[str, Any]]
    """Of the grader, bench by bench."""
    seed: int


def votes_of(
    replies: Sequence[Response], answers: Sequence[Chosen], settings: CalibrationSettings, path: Path
) -> list[bool | None]:
    """Return what a judge says of every answer; null where its reply cannot be read.

    Raises:
        RemeasureError: its replies are not those to the answers.
    """
    if [reply.custom_id for reply in replies] != [one.answer_id for one in answers]:
        raise RemeasureError(
            f"{path}: {len(replies)} replies do not fit the {len(answers)} picked answers; delete the "
            "requests.jsonl beside it and rerun"
        )
    grader = graders.by_name(settings.grader)
    return [
        asking.passes(
            asking.verdict(grader, settings.options[one.bench], one.item, one.response, reply, "strict")
        )
        for one, reply in zip(answers, replies, strict=True)
    ]


def labels_of(path: Path, answers: Sequence[Chosen]) -> tuple[list[bool | None], int]:
    """Return the labels of the answers, null where one has none, and how many labels are of other answers.

    Raises:
        RemeasureError: as ``sheet.read``, or no label belongs to an answer of the sample.
    """
    known = sheet.read(path)
    found = [known.get(one.key) for one in answers]
    n_here, n_else = len(found) - found.count(None), len(known.keys() - {one.key for one in answers})
    if not n_here:
        raise RemeasureError(
            f"{path}: none of its {len(known)} labels belongs to one of the {len(answers)} picked answers; "
            "label the sheet of this sample, or take `labels` out"
        )
    if n_else:
        log.warning("%s: %d labels belong to answers that are not in the sample", path, n_else)
    log.info("%s: %d of %d answers have a label", path, n_here, len(answers))
    return found, n_else


def work(args: argparse.Namespace) -> None:
    """Read, compare, write."""
    settings = decode(args.settings, CalibrationSettings)
    grader = graders.by_name(settings.grader)
    paths = {path.parent.name: path for path in args.responses}
    if set(paths) != set(settings.judges):
        raise RemeasureError(
            f"--responses are of judges {sorted(paths)}, the settings name {sorted(settings.judges)}; give "
            "one file <judge>/responses.jsonl per judge"
        )
    answers = list(jsonl.read(args.picked, Chosen))
    counts = jsonl.read_json(args.sample, Stage).counts
    votes: dict[str, Sequence[bool | None]] = {comparing.TABLE: [one.passed for one in answers]}
    titles = {comparing.TABLE: f"{settings.table_judge}: verdicts in the table"} | settings.judges
    for judge in settings.judges:
        replies = list(jsonl.read(paths[judge], Response))
        votes[judge] = votes_of(replies, answers, settings, paths[judge])
    labelled: dict[str, int] = {}
    if args.labels:
        found, n_else = labels_of(args.labels, answers)
        votes[comparing.LABELS] = found
        titles[comparing.LABELS] = "labels"
        labelled = {"labels": len(found) - found.count(None), "labels_of_other_answers": n_else}
    own = {
        judge: [one.model in settings.own_models.get(judge, ()) for one in answers]
        for judge in settings.judges
    }
    pool = Pool(counts["passed"], counts["failed"])
    rows = comparing.rows(answers, votes, titles, own, grader.label, pool, settings.seed)
    comparing.say_unused(rows, labelled.get("labels_of_other_answers", 0))
    write_text(args.out, csv_text.render(comparing.COLUMNS, rows))
    provenance.write_stage(
        args.record,
        stage="make_calibration",
        script="make_calibration.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.picked, args.sample, *args.responses, *([args.labels] if args.labels else [])],
        outputs=[args.out],
        packages=["numpy"],
        counts={"answers": len(answers), "judges": len(settings.judges)} | labelled,
    )
    for row in rows:
        if row["kind"] == "agreement":
            log.info(
                "%s and %s: agreement %s, kappa %s",
                *(row[name] for name in ("first", "second", "agreement", "kappa")),
            )


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: judges, grader, options, seed, …")
    parser.add_argument("--picked", type=Path, required=True, help="the answers, picked.jsonl")
    parser.add_argument("--sample", type=Path, required=True, help="stage record of the draw, .json")
    parser.add_argument(
        "--responses", type=Path, nargs="+", required=True, help="responses.jsonl of every judge"
    )
    parser.add_argument("--labels", type=Path, help="the labelled sheet, CSV")
    parser.add_argument("--out", type=Path, required=True, help="<table>.judges.csv")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
