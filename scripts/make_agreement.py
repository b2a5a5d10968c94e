"""Make the table of judge agreement: share, Cohen's kappa and raw counts for every pair of judges."""

import argparse
import logging
from pathlib import Path

import msgspec
from msgspec import Struct

from remeasure import cli, jsonl, provenance
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file, write_text
from remeasure.graders import by_name
from remeasure.options import decode
from remeasure.records import Response
from remeasure.tables import agreement, csv_text
from remeasure.tables.agreement import Picked

log = logging.getLogger("remeasure.make_agreement")


class AgreementTableSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which judges are compared and how their replies are read."""

    judges: dict[str, str]
    """Slug to title, in table order."""
    grader: str


def load_picked(paths: list[Path]) -> list[Picked]:
    """Read the answers; every judge must have been shown the same.

    Raises:
        RemeasureError: the files differ.
    """
    hashes = {sha256_file(path): path for path in paths}
    if len(hashes) > 1:
        raise RemeasureError(f"{' and '.join(map(str, hashes.values()))} differ; delete them and rerun")
    return list(jsonl.read(paths[0], Picked))


def work(args: argparse.Namespace) -> None:
    """Read, compare, write."""
    settings = decode(args.settings, AgreementTableSettings)
    grader = by_name(settings.grader)
    if not grader.judged:
        raise RemeasureError(
            f"grader {grader.label} has no judge; choose a judged bench under judge_agreement"
        )
    paths = {path.parent.name: path for path in args.responses}
    if set(paths) != set(settings.judges):
        raise RemeasureError(
            f"--responses are of judges {sorted(paths)}, the settings name {sorted(settings.judges)}; give "
            "one file results/<run>/judges/<judge>/responses.jsonl per judge"
        )
    answers = load_picked(args.picked)
    replies = {judge: list(jsonl.read(paths[judge], Response)) for judge in settings.judges}
    rows = agreement.rows(grader, answers, replies, settings.judges)
    write_text(args.out, csv_text.render(agreement.COLUMNS, rows))
    provenance.write_stage(
        args.record,
        stage="make_agreement",
        script="make_agreement.py",
        settings=msgspec.to_builtins(settings),
        inputs=[*args.picked, *args.responses],
        outputs=[args.out],
        packages=["numpy"],
        counts={"answers": len(answers), "judges": len(replies)},
    )
    for row in rows:
        log.info(
            "%s and %s: agreement %s, kappa %s", row["first"], row["second"], row["agreement"], row["kappa"]
        )


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: judges and grader")
    parser.add_argument("--picked", type=Path, nargs="+", required=True, help="picked.jsonl of every judge")
    parser.add_argument(
        "--responses", type=Path, nargs="+", required=True, help="responses.jsonl of every judge"
    )
    parser.add_argument("--out", type=Path, required=True, help="judges.csv")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
