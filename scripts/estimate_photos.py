"""Say what describing and reranking galleries will take: a row per step, and the sums of two plans."""

import argparse
import logging
from pathlib import Path

from remeasure import cli, files, options
from remeasure.errors import RemeasureError
from remeasure.instances import costs
from remeasure.records import Record
from remeasure.tables import csv_text

log = logging.getLogger("remeasure.estimate_photos")


class Settings(Record, kw_only=True):
    """Settings of ``estimate_photos``."""

    table: str
    run: str
    steps: tuple[costs.Step, ...]


def work(args: argparse.Namespace) -> None:
    """Multiply, write."""
    settings = options.decode(args.settings, Settings)
    if not settings.steps:
        raise RemeasureError(
            f"table {settings.table!r} of run {settings.run!r} has no step; nothing to estimate"
        )
    rows = costs.rows(settings.steps, settings.table, settings.run)
    files.write_text(args.out, csv_text.render(list(rows[0]), rows))
    for row in rows[-2:]:
        log.info("%s: %s hours, %s USD", row["step"], row["hours"], row["usd"])


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: table, run, steps")
    parser.add_argument("--out", type=Path, required=True, help="the table, .csv")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
