"""Copy a run's table to where the default target expects it, with the run named in every file."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from remeasure import cli, files, jsonl
from remeasure.errors import RemeasureError
from remeasure.tables import csv_text
from remeasure.tables.limits import OverLimit

log = logging.getLogger("remeasure.publish_table")
MAX_PATHS = 3
"""So many files that are to be deleted are named."""


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


class Study(Struct, frozen=True):
    """Whose table it is."""

    study: str


class Told(Struct, frozen=True):
    """What is read of a table's provenance; everything else is passed over."""

    settings: Study
    over_limit: OverLimit | None = None


def check_limit(paths: Sequence[Path], run: str) -> None:
    """Stop where more answers of the table failed than its study allows.

    Raises:
        RemeasureError: what failed, how it is asked again, and which settings let the table pass.
    """
    for path in paths:
        if path.suffix != ".json":
            continue
        told = jsonl.read_json(path, Told)
        over = told.over_limit
        if over is not None and not over.allowed:
            raise RemeasureError(
                f"{path.with_suffix('.md')}: not published: {over.sentence.rstrip('.')}; {again(over)}; to "
                "publish it all the same set `allow_failures: true`, or a higher `max_failed_share`, under "
                f"studies.{told.settings.study} in config/runs/{run}.yaml"
            )


def again(over: OverLimit) -> str:
    """Return how what failed is asked again."""
    asked = [cell.responses for cell in over.cells if cell.n_asked_again]
    n_final = sum(cell.n_failed - cell.n_asked_again for cell in over.cells)
    parts = []
    if asked:
        more = f" (and those of {len(asked) - MAX_PATHS} more cells)" if len(asked) > MAX_PATHS else ""
        parts.append(f"to ask again what failed, delete {', '.join(asked[:MAX_PATHS])}{more} and rerun")
    if n_final:
        parts.append(
            f"the other {n_final:,} (cut off, refused or empty) stay, unless the journal folder beside them "
            "is deleted too"
        )
    return "; ".join(parts)


def taken_away(copies: Sequence[Path], run: str) -> str:
    """Delete the copies of an older table, whichever run it was of; return that, and where it still is.

    Snakemake has deleted them before, so that nothing here can say whose they were: what other runs still
    have is looked for.
    """
    folder, name = copies[0].parent, copies[0].name
    had = [path for path in copies if path.exists()]
    for path in had:
        path.unlink()
    found = sorted(path.parent for path in folder.glob(f"*/tables/{name}"))
    others = [path for path in found if path.parent.name != run]
    if not had and not others:
        return ""
    said = f"; older copies in {folder}/ are removed, of whichever run"
    kept = [f"those of run {path.parent.name} are still in {path}" for path in others[:MAX_PATHS]]
    return f"{said}: {', '.join(kept)}" if kept else said


def work(args: argparse.Namespace) -> None:
    """Read, add the run, write; where the table must not be published, nothing older stays in its place."""
    if [path.suffix for path in args.inputs] != [path.suffix for path in args.outputs]:
        raise RemeasureError(
            "--inputs and --outputs must name the same kinds of files in the same order; correct them"
        )
    try:
        check_limit(args.inputs, args.run)
    except RemeasureError as error:
        raise RemeasureError(f"{error}{taken_away(args.outputs, args.run)}") from None
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
