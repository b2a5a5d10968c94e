"""Get every request of a cell answered, keep each answer at once, write the responses in request order.

With ``--shard`` only that part is asked, and no responses are written: a later call without it does that.
"""

import argparse
from collections import Counter
from pathlib import Path

import msgspec

from remeasure import cli, collecting, executors, jsonl, options, provenance, request_plan
from remeasure.errors import RemeasureError
from remeasure.executors import importing
from remeasure.interruption import Terminated
from remeasure.journal import FINAL, Journal
from remeasure.spending import Spending


def work(args: argparse.Namespace) -> None:
    """Plan, ask what is missing, write what is complete."""
    settings = options.decode(args.settings, request_plan.CollectSettings)
    executor, imported = importing.located(collecting.read_executor(args.executor), args.imported)
    executor = collecting.with_records(executor, args.database, args.environment)
    settings = msgspec.structs.replace(
        settings, identity=settings.identity | imported | collecting.made_files(executor)
    )
    shard = request_plan.read_shard(args.shard) if args.shard else None
    if (shard is None) == (args.out is None):
        raise RemeasureError("give either --out, for a whole cell, or --shard, for a part of one")
    # What failed in a shard was tried there; asked again it is by running that shard again.
    settled = (*FINAL, "failed", "not_sent") if args.shards else FINAL
    name = shard.name if shard else "answers"
    planner = request_plan.Planner(args.requests, settings, executor, args.images_root)
    with (
        Journal(args.journal, name) as journal,
        Spending(executor.money, f"{args.journal}/{name}") as spending,
    ):
        spending.add_kept(args.journal / f"{name}.jsonl")
        plan = planner.plan(journal, shard, settled)
        planner.check_cost(plan, args.journal, spending.run_usd())
        try:
            n_asked = collecting.ask(
                planner.missing_calls(plan),
                plan,
                journal,
                spending,
                lambda: executors.opened(executor, settings.served_name, args.images_root, args.journal),
            )
            counts = collecting.counts(plan, journal)
            collecting.check_failed(plan, journal, settings, args.journal)
            answered_by = write_responses(args.out, plan, journal) if args.out else []
        except Terminated:
            raise collecting.to_be_continued(plan, journal) from None
    provenance.write_stage(
        args.record,
        stage="collect_responses",
        script="collect_responses.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.requests, *map(Path, collecting.served_files(executor))],
        outputs=[args.out] if args.out else [],
        known=collecting.known_hashes(executor),
        counts=counts,
        facts={"answered_by": answered_by} if args.out else {"shard": shard.name},
    )
    text = " ".join(f"{status}={n}" for status, n in counts.items())
    where = args.out or args.record
    collecting.log.info("%s: %d responses %s, %d asked this time", where, len(plan.rows), text, n_asked)


def write_responses(out: Path, plan: request_plan.Plan, journal: Journal) -> list[collecting.AnsweredBy]:
    """Write the responses of a whole cell; return who answered."""
    counted: Counter[tuple[str | None, str | None]] = Counter()
    jsonl.write(out, collecting.responses(plan, journal, counted))
    return collecting.answered_by(counted, out)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=Path, required=True, help="requests.jsonl")
    parser.add_argument("--settings", required=True, help="JSON: model, served_name, identity, …")
    parser.add_argument("--executor", required=True, help="how the model is reached: JSON, or a file with it")
    parser.add_argument(
        "--imported", type=Path, help="file that an import reads, where its path differs by cell"
    )
    parser.add_argument("--database", type=Path, help="record of the database that a system searches")
    parser.add_argument("--environment", type=Path, help="record of the environment that a system runs in")
    parser.add_argument("--images-root", type=Path, default=Path("."), help="where image paths start")
    parser.add_argument("--journal", type=Path, required=True, help="folder that keeps every answer")
    parser.add_argument("--shard", help="ask only this part, such as 3of8")
    parser.add_argument("--shards", type=Path, nargs="*", help="records of the shards that have been asked")
    parser.add_argument("--out", type=Path, help="responses.jsonl, one line per request")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
