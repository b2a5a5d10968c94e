"""Documents of invented companies, and questions whose answers are numbers, in the shape of FinQA.

Source:
    README of the folder, ``config/data/number_problems``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from remeasure.datasets import single
from remeasure.datasets.base import Loaded, Loader
from remeasure.datasets.reading import read_records
from remeasure.records import Document, Question, Record


class Options(Record, kw_only=True):
    """None."""


class _Document(Struct):
    context_id: str
    company_name: str
    report_year: int
    company_sector: str
    text: str


class _Question(Struct):
    id: str
    context_id: str
    question: str
    program_answer: str
    kind: str


def _documents(path: Path) -> Iterator[Document]:
    for _, row in read_records(path, _Document):
        yield Document(
            uri=row.context_id,
            title=f"{row.company_name} {row.report_year}",
            text=row.text,
            metadata={
                "company_name": row.company_name,
                "report_year": str(row.report_year),
                "company_sector": row.company_sector,
            },
        )


def _questions(path: Path) -> Iterator[Question]:
    for _, row in read_records(path, _Question):
        answer, gold = row.program_answer, (row.context_id,)
        yield single.question(row.id, row.question, answer, gold, {"kind": row.kind})


def load(files: Mapping[str, Path], options: Options) -> Loaded:
    """Read the folder."""
    folder = files["folder"]
    return Loaded(_documents(folder / "documents.jsonl"), _questions(folder / "questions.jsonl"))


LOADER = Loader(load, ("folder",), Options)
