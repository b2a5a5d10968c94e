"""Say from the first part of a large set what describing the rest will take; stop where that is too much."""

import argparse
import csv
import json
import logging
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.instances import costs
from remeasure.records import Record

log = logging.getLogger("remeasure.project_costs")


class Settings(Record, kw_only=True):
    """Settings of ``project_costs``."""

    step: str
    what: str
    """Which of the steps was measured."""
    n_parts: int
    steps: tuple[costs.Step, ...]
    """Everything that our plan does, with the rates that the run gives."""
    usd_per_hour: float
    """Of the machine that the measured step runs on."""
    pause_if_usd: float


def seconds_of(path: Path) -> float:
    """Return how long a job took by Snakemake's record of it: the last attempt alone.

    Raises:
        RemeasureError: the file is missing or is no such record.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            row = next(csv.DictReader(stream, delimiter="\t"))
        return max(float(row["s"]), 1e-3)
    except (OSError, ValueError, KeyError, StopIteration, csv.Error) as error:
        raise RemeasureError(
            f"{path}: no time of the first part ({error.__class__.__name__}); delete that part and rerun"
        ) from None


def described(path: Path) -> int:
    """Return how many photographs a part describes, by its stage record.

    Raises:
        RemeasureError: it says nothing of them.
    """
    try:
        counts = json.loads(path.read_bytes())["counts"]
        return sum(counts.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise RemeasureError(f"{path}: counts no photographs; delete that part and rerun") from None


def work(args: argparse.Namespace) -> None:
    """Measure, multiply, compare, write."""
    settings = options.decode(args.settings, Settings)
    n, seconds = described(args.first_record), seconds_of(args.times)
    rate = n / seconds
    planned = {(step.step, step.what): step for step in settings.steps}
    known = planned.get((settings.step, settings.what))
    total = max(known.n if known else 0, n) if known and known.n else n * settings.n_parts
    measured = costs.Step(
        step=settings.step,
        what=settings.what,
        unit="photographs",
        n=total,
        per_s=max(rate, 1e-9),
        usd_per_hour=settings.usd_per_hour,
        stored_bytes=args.first.stat().st_size * total // max(n, 1),
    )
    others = [step for key, step in planned.items() if key != (settings.step, settings.what)]
    usd = sum(step.usd or 0.0 for step in (measured, *others) if step.way != "published")
    found = {
        "measured": msgspec.to_builtins(measured) | {"hours": measured.hours, "usd": measured.usd},
        "first_part": {"photographs": n, "seconds": seconds},
        "run_usd": usd,
        "pause_if_usd": settings.pause_if_usd,
    }
    said = (
        f"{settings.step} of {settings.what}: {n:,} photographs in {seconds:,.1f} s; all {total:,} will take "
        f"{measured.hours:,.2f} hours, {measured.usd:,.2f} USD and {measured.stored_bytes / 1e9:,.2f} GB; "
        f"the whole run {usd:,.2f} USD"
    )
    log.info("%s", said)
    if usd > settings.pause_if_usd:
        raise RemeasureError(
            f"{said}: above projection.pause_if_usd ({settings.pause_if_usd:g}) of the run; raise it to go "
            "on, what is described stays"
        )
    jsonl.write_json(args.out, found)
    provenance.write_stage(
        args.record,
        stage="project_costs",
        script="project_costs.py",
        settings={"step": settings.step, "what": settings.what, "pause_if_usd": settings.pause_if_usd},
        inputs=[args.first_record],
        outputs=[],  # times: they differ between two runs that make the same table
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: the step, all steps with rates, the limit")
    parser.add_argument("--first", type=Path, required=True, help="what the first part made")
    parser.add_argument("--first-record", type=Path, required=True, help="its stage record")
    parser.add_argument("--times", type=Path, required=True, help="Snakemake's times of its job")
    parser.add_argument("--out", type=Path, required=True, help="the projection, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
