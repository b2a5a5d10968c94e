"""Write the rare diseases of Orphanet with their phenotypes, and all phenotype terms, into one file."""

import argparse
import logging
from pathlib import Path

from remeasure import cli, provenance
from remeasure.phenotypes import records, sources

log = logging.getLogger("remeasure.write_phenotypes")


def work(args: argparse.Namespace) -> None:
    """Read both files, write what is used of them and the record."""
    book, counts = sources.read_book(args.ontology, args.annotations)
    records.write(args.out, book)
    log.info("release %s: %s", book.release, ", ".join(f"{n} {name}" for name, n in counts.items()))
    provenance.write_stage(
        args.record,
        stage="write_phenotypes",
        script="write_phenotypes.py",
        settings={},
        inputs=[args.ontology, args.annotations],
        outputs=[args.out],
        counts=counts,
        facts={"release": book.release, "attribution": book.attribution},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ontology", type=Path, required=True, help="hp.obo")
    parser.add_argument("--annotations", type=Path, required=True, help="phenotype.hpoa of the same release")
    parser.add_argument("--out", type=Path, required=True, help="diseases and terms, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
