"""Copy a run's table to where the default target expects it, with the run named in every file."""

import argparse
import logging
from pathlib import Path

from remeasure import cli, files
from remeasure.errors import RemeasureError
from remeasure.tables import csv_text

log = logging.getLogger("remeasure.publish_table")


def with_run(path: Path, run: str) -> str:
    """Return a CSV file's text with a last column ``run``."""
    columns, rows = csv_text.read_table(path)
    if not columns:
        raise RemeasureError(f"{path}: has no header; delete it and rerun")
    return csv_text.render([*columns, "run"], [row | {"run": run} for row in rows])


def copy(source: Path, run: str) -> str:
    """Return what a copy holds; files other than CSV must name their run already.

    Raises:
        RemeasureError: the file belongs to another run.
    """
    if source.suffix == ".csv":
        return with_run(source, run)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise RemeasureError(f"{source}: cannot be read ({error.strerror}); rerun the table") from None
    names = {
        ".json": f'"run": "{run}"',
        ".md": f"Run `{run}`",
        ".svg": f"run {run}",
        ".html": f"Made from run {run};",
    }
    if source.suffix not in names or names[source.suffix] not in text:
        raise RemeasureError(
            f"{source}: does not name run {run!r}; delete it and rerun, or give that run's files"
        )
    return text


def work(args: argparse.Namespace) -> None:
    """Read, add the run, write."""
    if [path.suffix for path in args.inputs] != [path.suffix for path in args.outputs]:
        raise RemeasureError(
            "--inputs and --outputs must name the same kinds of files in the same order; correct them"
        )
    for source, target in zip(args.inputs, args.outputs, strict=True):
        files.write_text(target, copy(source, args.run))
    log.info("%d files of run %s copied to %s", len(args.outputs), args.run, args.outputs[0].parent)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="name of the run")
    parser.add_argument(
        "--inputs", type=Path, nargs="+", required=True, help="files under results/<run>/tables/"
    )
    parser.add_argument("--outputs", type=Path, nargs="+", required=True, help="copies, same order and kinds")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
