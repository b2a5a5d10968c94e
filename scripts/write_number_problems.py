"""Write the documents and questions of config/data/number_problems; `--check` only compares.

One page of a report for each of 24 invented companies, with a table and sentences, and one question about it
whose answer is a number. Eight harder ones of seven other companies follow. Figures are drawn from a fixed
seed; answers are computed from the figures as they are printed.
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
# Of kinds that no rule of the embedded reader was written for; the first company has pages of two years.
HARDER = (
    ("two_years", "Abbotsreed Timber", "Materials", "saws oak for shipyards"),
    ("two_years_change", "Abbotsreed Timber", "Materials", "saws oak for shipyards"),
    ("thousands", "Birkmoor Looms", "Consumer Discretionary", "weaves blankets"),
    ("thousands_loss", "Cinderford Kilns", "Industrials", "builds kilns for potteries"),
    ("three_years", "Drayholm Ferries", "Industrials", "runs ferries to small islands"),
    ("words", "Ellerwick Bakeries", "Consumer Staples", "bakes rye bread"),
    ("words_each", "Foxglen Libraries", "Communication Services", "lends books in mountain towns"),
    ("negatives", "Grimsdal Wool", "Consumer Staples", "spins wool of mountain sheep"),
)
ONES = "one two three four five six seven eight nine".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


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


class More(NamedTuple):
    """What a harder page tells on top of its figures."""

    sites: int
    """Opened in the year, told in words: 21 to 99, no full ten."""
    earlier: tuple[Decimal, Decimal]
    """Revenue two and three years before, in millions."""


def draw_more(generator: random.Random, told: Figures) -> More:
    """Draw what stands in the last paragraph of a harder page."""
    sites = 10 * (2 + int(generator.random() * 8)) + 1 + int(generator.random() * 9)
    second = float(told.revenue[1]) * (0.85 + generator.random() * 0.2)
    return More(sites, (_round(second, 1), _round(second * (0.85 + generator.random() * 0.2), 1)))


def in_words(number: int) -> str:
    """Return a number from 21 to 99, no full ten, in words."""
    return f"{TENS[number // 10 - 2]}-{ONES[number % 10 - 1]}"


def paragraph(company: str, told: Figures, more: More) -> str:
    """Return the last paragraph of a harder page."""
    return f"""
Revenue was ${more.earlier[0]:,} million in {told.year - 2} \
and ${more.earlier[1]:,} million in {told.year - 3}. \
In {told.year}, {company} Inc. opened {in_words(more.sites)} sites.
"""


def ask_harder(kind: str, company: str, told: Figures, more: More) -> tuple[str, Decimal]:
    """Return a question of a harder kind and its answer."""
    name, year, last = f"{company} Inc.", told.year, told.year - 1
    revenue, other, thousand = told.revenue, told.other, Decimal(1000)
    return {
        "two_years": ask("revenue", company, told),
        "two_years_change": ask("percent", company, told),
        "thousands": (
            f"What was the revenue of {name} in {year}, in thousands of dollars?",
            _round(revenue[0] * thousand, 0),
        ),
        "thousands_loss": (
            f"What was the other income (expense), net, of {name} in {year}, in thousands of dollars?",
            _round(other[0] * thousand, 0),
        ),
        "three_years": (
            f"By what percentage did the revenue of {name} in {year} differ from that of three years before?",
            _round((revenue[0] - more.earlier[1]) / more.earlier[1], 5),
        ),
        "words": (f"How many sites did {name} open in {year}?", Decimal(more.sites)),
        "words_each": (
            f"How many people did {name} employ at the end of {year} for each site that it opened in {year}?",
            _round(Decimal(told.people[0]) / more.sites, 2),
        ),
        "negatives": (
            f"By how many millions of dollars did the other income (expense), net, of {name} change from "
            f"{last} to {year}?",
            other[0] - other[1],
        ),
    }[kind]


def rows() -> Iterator[tuple[dict, dict]]:
    """Yield each document with its question: kinds take turns, then the harder ones."""
    generator = random.Random(SEED)
    for number, (company, sector, what) in enumerate(COMPANIES, start=1):
        told, kind = draw(generator), KINDS[(number - 1) % len(KINDS)]
        page = text(company, what, told)
        yield _row(number, company, sector, told.year, page, kind, ask(kind, company, told))
    years: dict[str, int] = {}
    for number, (kind, company, sector, what) in enumerate(HARDER, start=len(COMPANIES) + 1):
        told = draw(generator)
        # The second page of a company is that of four years later: no year stands in both.
        told = told._replace(year=years.get(company, told.year - 4) + 4)
        years[company] = told.year
        more = draw_more(generator, told)
        page = text(company, what, told) + paragraph(company, told, more)
        yield _row(number, company, sector, told.year, page, kind, ask_harder(kind, company, told, more))


def _row(
    number: int, company: str, sector: str, year: int, page: str, kind: str, asked: tuple[str, Decimal]
) -> tuple[dict, dict]:
    context_id = f"{company.lower().replace(' ', '-')}-{year}"
    document = {
        "context_id": context_id,
        "company_name": f"{company} Inc.",
        "company_sector": sector,
        "report_year": year,
        "text": page,
    }
    question = {
        "id": f"number-{number:02}",
        "context_id": context_id,
        "question": asked[0],
        "program_answer": str(asked[1]),
        "kind": kind,
    }
    return document, question


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
