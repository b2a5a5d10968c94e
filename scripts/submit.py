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


def directory_of(extra: list[str]) -> Path:
    """Return the working directory that Snakemake is told to take; the current one where it is told none."""
    for word, following in zip(extra, [*extra, ""][1:], strict=True):
        if word in ("-d", "--directory") and following:
            return Path(following)
        if word.startswith("--directory="):
            return Path(word.partition("=")[2])
    return Path()


def main(argv=None) -> int:
    """Command-line entry."""
    from remeasure.cluster.submission import Submission

    argv = list(sys.argv[1:] if argv is None else argv)
    at = argv.index("--") if "--" in argv else len(argv)

    def work(args: argparse.Namespace) -> None:
        extra = argv[at + 1 :]
        root, here = directory_of(extra).resolve(), Path.cwd()
        root.mkdir(parents=True, exist_ok=True)
        raise SystemExit(Submission(root, words_for(args.targets, extra), args.max_starts, here).run())

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files to make; words after -- are Snakemake's"
    )
    parser.add_argument("--max-starts", type=int, default=20, help="attempts that may be made (%(default)s)")
    return cli.run(parser, work, argv[:at], keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
