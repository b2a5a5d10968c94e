"""Say what a run has done, does and still has to do; reads files and the queue, changes nothing.

Examples:
    .venv/bin/python scripts/status.py
    .venv/bin/python scripts/status.py --run paper --watch 30
    .venv/bin/python scripts/status.py --json | jq '.steps[] | select(.state == "failed") | .failure'
"""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

from remeasure import cli, jsonl
from remeasure.errors import RemeasureError
from remeasure.status import gather, report

PROJECT = Path(__file__).resolve().parents[1]


def work(args: argparse.Namespace) -> None:
    """Print the state once, or again and again until Ctrl-C."""
    if not os.path.isdir(args.directory):
        raise RemeasureError(
            f"--directory {str(args.directory)[:200]!r}: no such folder; give the working directory of the "
            "workflow"
        )
    show(args)
    with contextlib.suppress(KeyboardInterrupt):
        while args.watch:
            time.sleep(args.watch)
            show(args)


def show(args: argparse.Namespace) -> None:
    """Print the state."""
    status = gather.gather(PROJECT, args.directory, args.run, args.table)
    said = jsonl.encode(report.as_values(status)).decode() + "\n" if args.json else report.text(status)
    if args.watch and sys.stdout.isatty():
        said = f"\x1b[H\x1b[2J{said}"
    elif args.watch and not args.json:
        said += "\n"
    sys.stdout.write(said)
    sys.stdout.flush()


def seconds(text: str) -> float:
    """Read how long to wait between two reports."""
    value = float(text)
    if not 1 <= value <= 86400:
        raise argparse.ArgumentTypeError("expected 1 to 86400 seconds")
    return value


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", help="config/runs/<run>.yaml; default: the one that was worked on last")
    parser.add_argument("--table", help="only what stands behind one table, such as table1 or judges")
    parser.add_argument(
        "--directory", "-d", type=Path, default=Path("."), help="working directory of the workflow"
    )
    parser.add_argument("--watch", type=seconds, metavar="S", help="again every S seconds, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="one JSON document with every step")
    try:
        return cli.run(parser, work, argv)
    except BrokenPipeError:
        # `| head` has seen enough; what is left in the buffer must not complain at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
