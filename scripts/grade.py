"""Give every item of a cell one verdict in two readings, and the cell its number."""

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remeasure import cli, grading, jsonl, judge_limit, provenance
from remeasure.aligned import Aligned
from remeasure.errors import RemeasureError
from remeasure.graders import UnitGrader, by_name
from remeasure.grading import GradeSettings, Tally
from remeasure.options import decode
from remeasure.progress import Progress
from remeasure.records import Graded, Item, Ranked, Response

log = logging.getLogger("remeasure.grade")


def check_judge_given(grader: UnitGrader, judge_responses: Path | None) -> None:
    """Check that a judge's replies are there exactly if the grader reads them."""
    if grader.judged != (judge_responses is not None):
        raise RemeasureError(
            f"grader {grader.label} {'needs' if grader.judged else 'has no use for'} --judge-responses; "
            "give the file only to graders with a judge"
        )


def graded_lines(
    args: argparse.Namespace, settings: GradeSettings, grader: UnitGrader, tally: Tally
) -> Iterator[Graded]:
    """Yield the verdicts in item order and count them; check the judge's failures at the end."""
    progress = Progress(log, "items graded", jsonl.count(args.items))
    items = jsonl.unique(jsonl.read(args.items, Item), "item_id", args.items)
    if grader.compares:
        items = grading.check_references(items, args.items)
    responses = Aligned(jsonl.read(args.responses, Response), "custom_id", args.responses)
    judge = ranking = None
    if args.judge_responses:
        judge = Aligned(jsonl.read(args.judge_responses, Response), "custom_id", args.judge_responses)
    if args.ranking:
        ranking = Aligned(jsonl.read(args.ranking, Ranked), "item_id", args.ranking)
    found = grading.grade_all(
        grader, items, responses, judge, thinking=settings.thinking, options=settings.options
    )
    for unit, graded in found:
        tally.add(graded)
        for item, response in zip(unit.items, unit.responses, strict=True):
            tally.add_answer(response.status, response.text, is_text=response.placed is msgspec.UNSET)
            if ranking is not None:
                tally.add_ranking(item, ranking.take(item.item_id), settings.k)
        progress.add(len(unit.items))
        yield graded
    if ranking is not None:
        ranking.finish()
    if not tally.n:
        raise RemeasureError(
            f"{args.items}: no items; a cell needs at least one: correct the bench's settings"
        )
    judge_limit.check(
        tally,
        settings.max_judge_failed_share,
        needs_form=grader.needs_form,
        replies=args.judge_responses,
    )


def work(args: argparse.Namespace) -> None:
    """Read, grade, write."""
    settings = decode(args.settings, GradeSettings)
    grader = by_name(settings.grader)
    check_judge_given(grader, args.judge_responses)
    log.info("grading %s with %s", args.responses, grader.label)
    tally = Tally(grader.headline)
    jsonl.write(args.out, graded_lines(args, settings, grader, tally))
    score = grading.score(settings, grader, tally, retrieved=args.ranking is not None)
    jsonl.write_json(args.score, score)
    files = [Path(file["path"]) for file in settings.options.get("files", {}).values()]
    inputs = [args.items, args.responses, args.judge_responses, args.ranking, *files]
    provenance.write_stage(
        args.record,
        stage="grade",
        script="grade.py",
        settings=msgspec.to_builtins(settings),
        inputs=[path for path in inputs if path],
        outputs=[args.out, args.score],
        packages=["numpy", *grader.packages],
        counts={"n": tally.n, "judged": tally.n_judged, **tally.reasons},
    )
    for name, metric in score.metrics.items():
        log.info(
            "%s: %d units, %d graded (strict %d), value %s, strict %s, %d differ",
            name,
            score.n,
            metric.published.n,
            metric.strict.n,
            metric.published.value,
            metric.strict.value,
            metric.n_differ,
        )
    log.info("statuses %s", score.statuses)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="settings of the cell, JSON")
    parser.add_argument("--study", help="name of the study; must be the one in the settings")
    parser.add_argument("--items", type=Path, required=True, help="items.jsonl")
    parser.add_argument("--responses", type=Path, required=True, help="responses.jsonl of the reader")
    parser.add_argument("--judge-responses", type=Path, help="responses.jsonl of the judge")
    parser.add_argument("--ranking", type=Path, help="ranking.jsonl, for recall")
    parser.add_argument("--out", type=Path, required=True, help="graded.jsonl")
    parser.add_argument("--score", type=Path, required=True, help="score.json")
    parser.add_argument("--record", type=Path, required=True, help="stage record, grade.json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
