"""Compose cases with pictures whose labels can be read: two tables in the published layout."""

import argparse
import collections
import logging
import time
from pathlib import Path

import msgspec

from remeasure import cli, files, provenance
from remeasure.cases import settings, tables, wording
from remeasure.cases.choosing import Chooser
from remeasure.phenotypes import records
from remeasure.phenotypes.knowledge import Knowledge

log = logging.getLogger("remeasure.compose_cases")


def work(args: argparse.Namespace) -> None:
    """Choose the cases, draw and write them."""
    wanted, start = settings.read(args.settings), time.monotonic()
    book = records.read(args.phenotypes)
    composer = tables.Composer(Chooser(Knowledge(book), wanted), wanted)
    files.write_text(args.diagnosis_out, tables.as_tsv(composer.diagnosis_rows()))
    files.write_text(args.evidence_out, tables.as_tsv(composer.evidence_rows()))
    every = [*composer.diagnosis, *composer.evidence]
    kinds = collections.Counter(picture.kind for case in every for picture in case.pictures)
    provenance.write_stage(
        args.record,
        stage="compose_cases",
        script="compose_cases.py",
        settings=msgspec.to_builtins(wanted),
        inputs=[args.phenotypes],
        outputs=[args.diagnosis_out, args.evidence_out],
        packages=["pillow"],
        counts={
            "diagnosis": len(composer.diagnosis),
            "evidence": len(composer.evidence),
            "pictures": kinds.total(),
            "pictures_foreign": sum(not p.belongs for case in composer.evidence for p in case.pictures),
        },
        facts={
            "attribution": book.attribution,
            "pictures": dict(kinds),
            "task_types": dict(collections.Counter(map(wording.task_type, composer.evidence))),
            "diseases": [case.disease.id for case in every],
        },
    )
    log.info("%d cases, %d pictures in %.1f s", len(every), kinds.total(), time.monotonic() - start)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="resolved settings of the cases, JSON")
    parser.add_argument("--phenotypes", type=Path, required=True, help="diseases and phenotypes, JSON")
    parser.add_argument("--diagnosis-out", type=Path, required=True, help="table of the first track")
    parser.add_argument("--evidence-out", type=Path, required=True, help="table of the second track")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
