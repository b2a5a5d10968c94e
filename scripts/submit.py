"""Submit a run to the cluster and see it through; one may log out meanwhile.

Starts the driver (`snakemake --profile slurm`) in a session of its own, ends what a killed driver left, and
starts it again after an outage, a lost driver or a time limit as long as it gets on. Ctrl-C, or `kill` with
this process's number, is passed on: jobs are cancelled, the same command goes on later.

Examples:
    .venv/bin/python scripts/submit.py results/table1.csv
    nohup .venv/bin/python scripts/submit.py results/table1.csv -- --config run=mine > submit.log 2>&1 &
"""

import argparse
import sys
from pathlib import Path

from remeasure import cli


def words_for(targets: list[str], extra: list[str]) -> list[str]:
    """Return what Snakemake is called with."""
    has_profile = any(word == "--profile" or word.startswith("--profile=") for word in extra)
    return [*targets, *([] if has_profile else ["--profile", "slurm"]), *extra]


def main(argv=None) -> int:
    """Command-line entry."""
    from remeasure.cluster.submission import Submission

    argv = list(sys.argv[1:] if argv is None else argv)
    at = argv.index("--") if "--" in argv else len(argv)

    def work(args: argparse.Namespace) -> None:
        found = Submission(Path.cwd(), words_for(args.targets, argv[at + 1 :]), args.max_starts)
        raise SystemExit(found.run())

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files to make; words after -- are Snakemake's"
    )
    parser.add_argument("--max-starts", type=int, default=20, help="attempts that may be made (%(default)s)")
    return cli.run(parser, work, argv[:at])


if __name__ == "__main__":
    raise SystemExit(main())
