"""Write what a judge is asked about the answers of one cell; only answers that can be graded are in it."""

import argparse
from pathlib import Path

from remeasure import building, cells, cli, items, jsonl, options, prompts, provenance, studies
from remeasure.cells import JudgeSettings


def work(args: argparse.Namespace) -> None:
    """Read items and responses, build messages, write requests."""
    settings = options.decode(args.settings, JudgeSettings)
    study = studies.load(args.study, "messages")
    texts = prompts.load(settings.prompts)
    n_items = 0

    def questions():
        nonlocal n_items
        for item in items.read(args.items, with_answers=settings.with_answers):
            n_items += 1
            yield item

    further = getattr(study, "further_judge_messages", None)
    requests = building.judge_requests(
        questions(), args.responses, study.judge_messages, settings, texts, further
    )
    n_requests = jsonl.write(args.out, requests)
    provenance.write_stage(
        args.record,
        stage="build_judge_requests",
        script="build_judge_requests.py",
        settings=cells.as_json(settings),
        inputs=[args.items, args.responses],
        outputs=[args.out],
        counts={"requests": n_requests, "not_judged": n_items - n_requests},
        also=(f"remeasure.studies.{args.study}_messages",),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: model, grader, gold, prompts, sampling, …")
    parser.add_argument("--study", required=True, help="name of the study's module")
    parser.add_argument("--items", type=Path, required=True, help="items.jsonl")
    parser.add_argument("--responses", type=Path, required=True, help="responses.jsonl of the reader")
    parser.add_argument("--out", type=Path, required=True, help="judge/requests.jsonl")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
