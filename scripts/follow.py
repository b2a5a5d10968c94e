"""Follow one number of a table back to its sources and hash every file on the way again."""

import argparse
import logging
from pathlib import Path

from remeasure import cli, jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.records import Score
from remeasure.tables import chain
from remeasure.tables.chain import CellChain, Link, Provenance

log = logging.getLogger("remeasure.trace")


def describe(link: Link) -> str:
    """Return one line for a file of the chain."""
    return f"  {link.sha256[:12]}  {link.stage or 'source':<22}  {link.path}"


def check_number(cell: CellChain, score: Score) -> None:
    """Check that the number of the table is still the one in the cell's score file."""
    if score.value != cell.value:
        raise RemeasureError(f"{cell.score} says {score.value}, the table {cell.value}; rerun the table")


def work(args: argparse.Namespace) -> None:
    """Read, print, hash."""
    provenance = jsonl.read_json(args.provenance, Provenance)
    cell = chain.find(provenance, args.bench, args.arm)
    print(f"{provenance.table} {cell.bench} {cell.arm} = {cell.printed} {provenance.unit}")
    print(f"  {cell.value} by {cell.grader}, reader {cell.model}, run {provenance.run}")
    for link in cell.chain:
        print(describe(link), flush=True)
        found = sha256_file(Path(link.path)) if Path(link.path).is_file() else None
        chain.check([link], {link.path: found})
    check_number(cell, jsonl.read_json(Path(cell.score), Score))
    n_sources = sum(link.stage is None for link in cell.chain)
    print(f"  {len(cell.chain)} files, {n_sources} of them sources: all hashes fit")


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("provenance", type=Path, help="results/<table>.json")
    parser.add_argument("bench", help="row of the table, for example nq")
    parser.add_argument("arm", help="column of the table, for example base")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
