"""Follow one number of a table back to its sources and hash every file on the way again."""

import argparse
import logging
from pathlib import Path

from remeasure import cli, jsonl
from remeasure.errors import RemeasureError
from remeasure.records import Score
from remeasure.tables import chain
from remeasure.tables.chain import CellChain, Link, Provenance

log = logging.getLogger("remeasure.trace")


def describe(link: Link) -> str:
    """Return one line for a file of the chain."""
    return f"  {link.sha256[:12]}  {link.stage or 'source':<22}  {link.path}"


def check_number(cell: CellChain, metric: str, score: Score) -> None:
    """Check that a number of the table is still the one in the cell's score file."""
    found, ours = score.metrics.get(metric), cell.numbers[metric].value
    if found is None or found.published.value != ours:
        now = "nothing" if found is None else found.published.value
        raise RemeasureError(f"{cell.score} says {now} for {metric}, the table {ours}; rerun the table")


def name_of(cell: CellChain, metric: str, provenance: Provenance) -> str:
    """Return bench and arm, with model and metric where the table has several."""
    several_models = len({one.model for one in provenance.cells}) > 1
    several_metrics = any(len(one.numbers) > 1 for one in provenance.cells)
    more = [*([cell.model] if several_models else []), *([metric] if several_metrics else [])]
    return " ".join([cell.bench, cell.arm, *more])


def work(args: argparse.Namespace) -> None:
    """Read, print, hash."""
    provenance = jsonl.read_json(args.provenance, Provenance)
    cell, metric = chain.find(provenance, args.bench, args.arm, args.model, args.metric)
    number = cell.numbers[metric]
    printed = "undefined" if number.printed is None else f"{number.printed} {provenance.unit}"
    print(f"{provenance.table} {name_of(cell, metric, provenance)} = {printed}")
    value = "nothing graded" if number.value is None else number.value
    print(f"  {value}, n {number.n}, by {cell.grader}, reader {cell.model}, run {provenance.run}")
    for link in cell.chain:
        print(describe(link), flush=True)
        chain.check([link], {link.path: chain.hash_now(link.path)})
    check_number(cell, metric, jsonl.read_json(Path(cell.score), Score))
    n_sources = sum(link.stage is None for link in cell.chain)
    print(f"  {len(cell.chain)} files, {n_sources} of them sources: all hashes fit")


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("provenance", type=Path, help="results/<table>.json")
    parser.add_argument("bench", help="bench of the cell, for example nq")
    parser.add_argument("arm", help="arm of the cell, for example base")
    parser.add_argument("model", nargs="?", help="model of the cell, where the table has several")
    parser.add_argument("metric", nargs="?", help="metric; left out: the headline metric")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
