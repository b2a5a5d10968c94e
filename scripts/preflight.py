"""Check everything that a run needs before its first call, and name all problems in one list."""

import argparse
import sys
from pathlib import Path

from remeasure import cli, preamble
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan


def work(args: argparse.Namespace) -> None:
    """Check, print the list, raise the verdict where it is bad."""
    from remeasure import preflight
    from remeasure.preflight import cluster, report

    plan = Plan(args.config_folder)
    preamble.check_run(args.run, plan)
    cells = plan.cells_in(args.run)
    print(f"preflight of run {args.run!r}: {report.plural(len(cells), 'cell')}", file=sys.stderr, flush=True)
    profile = cluster.Profile(args.partitions, args.scratch, tuple(args.sbatch)) if args.cluster else None
    groups = preflight.check(plan, args.run, args.root, profile)
    print("\n".join(report.lines(groups)), file=sys.stderr, flush=True)
    verdict = report.verdict(args.run, groups)
    if report.problems(groups):
        raise RemeasureError(verdict)
    print(verdict, file=sys.stderr)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="name of a file in config/runs/, without .yaml")
    parser.add_argument("--config-folder", type=Path, default=SCRIPTS.parent / "config")
    parser.add_argument("--root", type=Path, default=Path("."), help="the folder that holds results/")
    parser.add_argument(
        "--cluster", action="store_true", help="jobs are sent to a SLURM cluster: look at it too"
    )
    parser.add_argument("--partitions", type=Path, help="its partitions.yaml")
    parser.add_argument("--scratch", help="folder on a node's own disk")
    parser.add_argument("--sbatch", action="append", default=[], help="argument that every job is sent with")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
