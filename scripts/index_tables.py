"""Read tables with images inside, check every row, and write the study's index and its images, each once."""

import argparse
import logging
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, images, jsonl, looking, provenance, studies, table_report, yaml_files
from remeasure.errors import RemeasureError
from remeasure.files import Named, atomic_open
from remeasure.options import decode
from remeasure.progress import Progress
from remeasure.records import Record
from remeasure.table_indexing import TableIndex
from remeasure.table_report import TablesReport

log = logging.getLogger("remeasure.index_tables")

_MAX_LINES = 50
PROBLEMS = "index_problems.txt"
"""Written beside the report where tables cannot be used; no rule makes it, so it outlives a failed job."""


class Settings(Record, kw_only=True):
    """Settings of ``index_tables``."""

    files: list[str]
    """Names of the files that are written, in the order of ``--out``; the store of images follows them."""
    options: dict[str, Any]
    """What the study's own module is told."""
    tables: list[str]
    """The files that lines are written to, in the order of ``--tables``."""


def work(args: argparse.Namespace) -> None:
    """Read, check, write."""
    study = studies.load(args.study, "index")
    settings = decode(args.settings, Settings)
    options = yaml_files.convert(settings.options, study.Settings, Path(f"index options of {args.study}"))
    outs, store = {out.name: out for out in args.out[:-1]}, args.out[-1]
    report_out = _report_out(settings, args, outs)
    study.check(options, settings.tables)
    index = TableIndex(
        dict(zip(settings.tables, args.tables, strict=True)),
        study.Reader(),
        options.expected,
        options.exclude,
    )
    log.info("reading %s", ", ".join(map(str, args.tables)))
    try:
        _read(index, {name: outs[name] for name in settings.tables}, store)
    except _Unusable:
        report = index.report()
        for out in (*outs.values(), store, args.record):  # of an earlier run, other than this report
            out.unlink(missing_ok=True)
        _tell(report, report_out)
        raise RemeasureError(
            f"{' and '.join(map(str, args.tables))}: {report.n_problems} problems in {report.n_rows} rows, "
            f"so there is no index (first: {report.problems[0]}); all stand in "
            f"{report_out.parent / PROBLEMS}: correct the tables, or leave rows out under `index: {{exclude: "
            "{…}}` of the study in the run"
        ) from None
    report = index.report()
    _tell(report, report_out)
    provenance.write_stage(
        args.record,
        stage="index_tables",
        script="index_tables.py",
        settings=msgspec.to_builtins(settings) | {"study": args.study},
        inputs=args.tables,
        outputs=args.out,
        packages=looking.PACKAGES,
        counts=report.counts,
        facts={file: table.facts for file, table in report.tables.items()},
        also=(f"remeasure.studies.{args.study}_index",),
    )
    log.info("%s", table_report.summary(report))


def _report_out(settings: Settings, args: argparse.Namespace, outs: dict[str, Path]) -> Path:
    """Return where the report goes: the one file that no table is made into."""
    rest = [name for name in settings.files if name not in settings.tables]
    if list(outs) != settings.files or len(args.tables) != len(settings.tables) or len(rest) != 1:
        raise RemeasureError(
            f"--out names {', '.join(outs)} before the store, --tables {len(args.tables)} tables; settings "
            f"name {', '.join(settings.files)} and {len(settings.tables)} tables; give the same names in "
            "order, one of them the report"
        )
    return outs[rest[0]]


class _Unusable(Exception):
    """There are problems; what was written so far goes."""


def _read(index: TableIndex, outs: dict[str, Path], store: Path) -> None:
    """Read the tables into index files and store, all of them or none."""
    progress = Progress(log, "images", None)
    with warnings.catch_warnings(), ExitStack() as opened:
        warnings.simplefilter(
            "ignore"
        )  # Pillow warns of large and of odd files; what matters is in the report
        streams = {
            name: Named(opened.enter_context(atomic_open(out, "wb")), out) for name, out in outs.items()
        }

        def members():
            yield from index.read(streams, progress.add)
            if index.n_problems:
                raise _Unusable

        images.write_store(store, members())
    progress.finish()


def _tell(report: TablesReport, report_out: Path) -> None:
    """Write the report, and its first lines to the log."""
    for line in table_report.told(report)[:_MAX_LINES]:
        log.info("%s", line)
    for problem in report.problems[:_MAX_LINES]:
        log.warning("%s", problem)
    if report.n_problems > _MAX_LINES:
        log.warning("and %d further lines of this kind", report.n_problems - _MAX_LINES)
    jsonl.write_json(report_out, report)
    table_report.write_problems(report_out.parent / PROBLEMS, report.problems, report.n_problems)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="name of the study's module")
    parser.add_argument(
        "--settings", required=True, help='JSON: {"files": [...], "options": {...}, "tables": [...]}'
    )
    parser.add_argument("--tables", type=Path, nargs="+", required=True, help="the tables, in order")
    parser.add_argument(
        "--out",
        type=Path,
        nargs="+",
        required=True,
        help="the index files, in order, and the store of images",
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
