"""Write what one judge is asked about the answers of a sample, in the words of the study's own judging."""

import argparse
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, prompts, provenance
from remeasure.calibration import asking
from remeasure.calibration.picking import Chosen
from remeasure.cells import JudgeSettings
from remeasure.options import decode


def work(args: argparse.Namespace) -> None:
    """Read, build, write."""
    settings = decode(args.settings, JudgeSettings)
    texts = prompts.load(settings.prompts)
    asked = (
        asking.request(one.answer_id, one.item, one.response, settings, args.study, texts)
        for one in jsonl.read(args.picked, Chosen)
    )
    n = jsonl.write(args.out, asked)
    provenance.write_stage(
        args.record,
        stage="build_calibration_requests",
        script="build_calibration_requests.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.picked],
        outputs=[args.out],
        counts={"requests": n},
        also=(f"remeasure.studies.{args.study}_messages",),
    )


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: model, grader, gold, prompts, sampling, …")
    parser.add_argument("--study", required=True, help="name of the study's module")
    parser.add_argument("--picked", type=Path, required=True, help="the answers, picked.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="requests.jsonl for the judge")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
