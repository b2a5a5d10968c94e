"""Get every request of a cell answered, keep each answer at once, write the responses in request order."""

import argparse
from pathlib import Path

import msgspec

from remeasure import cli, collecting, executors, jsonl, options, provenance
from remeasure.journal import Journal


def work(args: argparse.Namespace) -> None:
    """Plan, ask what is missing, write what is complete."""
    settings = options.decode(args.settings, collecting.CollectSettings)
    executor = collecting.read_executor(args.executor)
    with Journal(args.journal) as journal:
        plan = collecting.make_plan(args.requests, settings, journal, args.images_root)
        collecting.check_dialect(args.requests, plan, executor, settings.served_name)
        n_asked = collecting.ask(
            args.requests,
            plan,
            journal,
            lambda: executors.opened(executor, settings.served_name, args.images_root, args.journal),
        )
        counts = collecting.counts(plan, journal)
        collecting.check_failed(plan, journal, settings, args.journal)
        jsonl.write(args.out, collecting.responses(plan, journal))
    provenance.write_stage(
        args.record,
        stage="collect_responses",
        script="collect_responses.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.requests, *map(Path, collecting.served_files(executor))],
        outputs=[args.out],
        counts=counts,
    )
    text = " ".join(f"{status}={n}" for status, n in counts.items())
    collecting.log.info("%s: %d responses %s, %d asked this time", args.out, len(plan.rows), text, n_asked)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=Path, required=True, help="requests.jsonl")
    parser.add_argument("--settings", required=True, help="JSON: model, served_name, identity, …")
    parser.add_argument("--executor", required=True, help="how the model is reached: JSON, or a file with it")
    parser.add_argument("--images-root", type=Path, default=Path("."), help="where image paths start")
    parser.add_argument("--journal", type=Path, required=True, help="folder that keeps every answer")
    parser.add_argument("--out", type=Path, required=True, help="responses.jsonl, one line per request")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
