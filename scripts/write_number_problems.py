"""Write the documents and questions of config/data/number_problems; `--check` only compares.

One page of a report for each of 24 invented companies, with a table and sentences, and one question about it
whose answer is a number. Figures are drawn from a fixed seed; answers are computed from the figures as they
are printed.
"""

import argparse
import random
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import NamedTuple

from remeasure import cli, files, jsonl
from remeasure.errors import RemeasureError

FOLDER = Path(__file__).resolve().parent.parent / "config" / "data" / "number_problems"
SEED = 20261
COMPANIES = (
    ("Alderquist Freight", "Industrials", "moves goods by rail"),
    ("Brennholt Dairies", "Consumer Staples", "makes cheese and yoghurt"),
    ("Corvane Optics", "Information Technology", "grinds lenses for microscopes"),
    ("Dunmarrow Water", "Utilities", "supplies towns with drinking water"),
    ("Eskerby Paper", "Materials", "makes paper from straw"),
    ("Fjellhaven Cruises", "Consumer Discretionary", "sails small ships along northern coasts"),
    ("Gantrell Cranes", "Industrials", "builds harbour cranes"),
    ("Holloway Pharmica", "Health Care", "makes vaccines for cattle"),
    ("Istrova Salt", "Materials", "mines rock salt"),
    ("Juniper Quay Hotels", "Consumer Discretionary", "runs hotels in old warehouses"),
    ("Kestrelmoor Wind", "Utilities", "owns wind farms"),
    ("Lomberg Instruments", "Information Technology", "builds scales for laboratories"),
    ("Marrowdale Seeds", "Consumer Staples", "breeds seeds of vegetables"),
    ("Norrvik Telecom", "Communication Services", "lays cables under the sea"),
    ("Osterby Insurance", "Financials", "insures fishing boats"),
    ("Pellgrave Tiles", "Materials", "fires tiles for roofs"),
    ("Quillhurst Press", "Communication Services", "prints school books"),
    ("Ravensund Shipping", "Industrials", "carries grain in bulk"),
    ("Sallowfield Orchards", "Consumer Staples", "grows apples and presses juice"),
    ("Tarnwick Batteries", "Information Technology", "makes cells for hearing aids"),
    ("Ulverton Bicycles", "Consumer Discretionary", "makes bicycles that carry loads"),
    ("Vantmere Clinics", "Health Care", "runs clinics for eyes"),
    ("Westerholm Bank", "Financials", "lends to farmers"),
    ("Yarrowgate Homes", "Real Estate", "lets small houses"),
)
KINDS = ("revenue", "loss", "rate", "people", "difference", "percent", "share", "per_head")


class Figures(NamedTuple):
    """What a page tells of the year (first) and the year before, as printed: millions, percent, people."""

    year: int
    revenue: tuple[Decimal, Decimal]
    expenses: tuple[Decimal, Decimal]
    other: tuple[Decimal, Decimal]
    """Below zero: a loss."""
    rate: tuple[Decimal, Decimal]
    people: tuple[int, int]


def draw(generator: random.Random) -> Figures:
    """Draw the figures of a company."""
    year = 2012 + int(generator.random() * 8)
    before = 300 + generator.random() * 4000
    after = before * (0.9 + generator.random() * 0.3)
    share = 0.6 + generator.random() * 0.25
    people = 900 + int(generator.random() * 9000)
    return Figures(
        year=year,
        revenue=(_round(after, 1), _round(before, 1)),
        expenses=(_round(after * share, 1), _round(before * (share + 0.02), 1)),
        other=(_round(-5 - generator.random() * 60, 1), _round(-5 - generator.random() * 60, 1)),
        rate=(_round(18 + generator.random() * 12, 1), _round(18 + generator.random() * 12, 1)),
        people=(people + int(generator.random() * 900) + 37, people),
    )


def _round(value: float | Decimal, digits: int) -> Decimal:
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)


def text(company: str, what: str, told: Figures) -> str:
    """Return the page: two sentences, a table, four sentences."""
    year, last = told.year, told.year - 1
    losses = [f"( {abs(value)} )" for value in told.other]
    return f"""# {company} Inc.: results of {year}

{company} Inc. {what}. \
The table shows selected results for the years ended December 31, in millions of dollars unless noted.

| | {year} | {last} |
| --- | --- | --- |
| revenue | $ {told.revenue[0]:,} | $ {told.revenue[1]:,} |
| operating expenses | {told.expenses[0]:,} | {told.expenses[1]:,} |
| other income ( expense ), net | {losses[0]} | {losses[1]} |
| effective tax rate | {told.rate[0]}% | {told.rate[1]}% |
| employees at year end | {told.people[0]:,} | {told.people[1]:,} |

Revenue of {company} Inc. was ${told.revenue[0]:,} million in {year}, \
compared with ${told.revenue[1]:,} million in {last}. \
Operating expenses were ${told.expenses[0]:,} million in {year} and ${told.expenses[1]:,} million in {last}.

Other expense, net, was $({abs(told.other[0])}) million in {year}, mostly interest. \
The effective tax rate was {told.rate[0]}% in {year} and {told.rate[1]}% in {last}. \
At December 31, {year}, {company} Inc. employed {told.people[0]:,} people.
"""


def ask(kind: str, company: str, told: Figures) -> tuple[str, Decimal]:
    """Return a question about a page and its answer."""
    name, year, last = f"{company} Inc.", told.year, told.year - 1
    revenue, expenses = told.revenue, told.expenses
    return {
        "revenue": (f"What was the revenue of {name} in {year}, in millions of dollars?", revenue[0]),
        "loss": (
            f"What was the other income (expense), net, of {name} in {year}, in millions?",
            told.other[0],
        ),
        "rate": (f"What was the effective tax rate of {name} in {year}?", told.rate[0] / 100),
        "people": (
            f"How many people did {name} employ at the end of {year}?",
            Decimal(told.people[0]),
        ),
        "difference": (
            f"By how many millions of dollars did the revenue of {name} change from {last} to {year}?",
            revenue[0] - revenue[1],
        ),
        "percent": (
            f"What was the percentage change in the revenue of {name} from {last} to {year}?",
            _round((revenue[0] - revenue[1]) / revenue[1], 5),
        ),
        "share": (
            f"What was the ratio of operating expenses to revenue of {name} in {year}?",
            _round(expenses[0] / revenue[0], 5),
        ),
        "per_head": (
            f"What was the revenue per employee of {name} in {year}, in dollars?",
            _round(revenue[0] * 1_000_000 / told.people[0], 2),
        ),
    }[kind]


def rows() -> Iterator[tuple[dict, dict]]:
    """Yield the document and the question of each company; kinds take turns."""
    generator = random.Random(SEED)
    for number, (company, sector, what) in enumerate(COMPANIES):
        told, kind = draw(generator), KINDS[number % len(KINDS)]
        context_id = f"{company.lower().replace(' ', '-')}-{told.year}"
        question, answer = ask(kind, company, told)
        document = {
            "context_id": context_id,
            "company_name": f"{company} Inc.",
            "company_sector": sector,
            "report_year": told.year,
            "text": text(company, what, told),
        }
        yield (
            document,
            {
                "id": f"number-{number + 1:02}",
                "context_id": context_id,
                "question": question,
                "program_answer": str(answer),
                "kind": kind,
            },
        )


def work(args: argparse.Namespace) -> None:
    """Write or compare."""
    documents, questions = zip(*rows(), strict=True)
    for name, found in (("documents", documents), ("questions", questions)):
        path = FOLDER / f"{name}.jsonl"
        made = "".join(f"{jsonl.encode(row).decode()}\n" for row in found)
        if not args.check:
            files.write_text(path, made)
        elif not path.is_file() or path.read_text(encoding="utf-8") != made:
            raise RemeasureError(f"{path}: does not fit this script; run scripts/write_number_problems.py")


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 2 where a file is out of date")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
