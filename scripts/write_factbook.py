"""Write the country archive and the facts that its pages state."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, provenance
from remeasure.corpora import factbook, zim_writer
from remeasure.corpora.settings import ArchiveSettings
from remeasure.files import atomic_path
from remeasure.options import decode

log = logging.getLogger("remeasure.write_factbook")


def work(args: argparse.Namespace) -> None:
    """Read both wheels, write archive, facts and record."""
    settings = decode(args.settings, ArchiveSettings)
    entries, countries = zim_writer.entries(args.factbook, args.flags, settings)
    with atomic_path(args.archive_out) as temporary:
        zim_writer.write_archive(
            temporary,
            entries,
            main="mainpage",
            language=settings.language,
            date=settings.date,
            metadata=settings.metadata,
        )
    n_facts = jsonl.write(
        args.facts_out, (fact for country in countries for fact in factbook.facts(country, settings))
    )
    log.info("%d countries, %d entries, %d facts", len(countries), len(entries), n_facts)
    provenance.write_stage(
        args.record,
        stage="write_factbook",
        script="write_factbook.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.factbook, args.flags],
        outputs=[args.archive_out, args.facts_out],
        packages=["libzim"],
        counts={
            "countries": len(countries),
            "facts": n_facts,
            "pages": sum(entry.target is None and entry.media_type == "text/html" for entry in entries),
            "redirects": sum(entry.target is not None for entry in entries),
        },
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factbook", type=Path, required=True, help="data wheel with the country files")
    parser.add_argument("--flags", type=Path, required=True, help="data wheel with the flag pictures")
    parser.add_argument(
        "--settings", required=True, help="`archive` of config/corpora/factbook.yaml, as JSON"
    )
    parser.add_argument("--archive-out", type=Path, required=True, help="ZIM archive to write")
    parser.add_argument("--facts-out", type=Path, required=True, help="facts, JSONL")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
