"""FinQA of T²-RAGBench: questions about pages of annual reports as PDF files; answers are numbers.

Source:
    RAG card, section 1.3.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from remeasure.datasets import pdfs, single
from remeasure.datasets.base import Loaded, Loader
from remeasure.datasets.reading import read_records, wrong
from remeasure.files import sha256_file
from remeasure.records import Question, Record

SPLITS = ("dev", "test", "train")
"""In the order in which they follow each other."""


class Options(Record, kw_only=True):
    """How it is read."""

    allow_missing: bool
    """Whether pages may be missing; their questions remain."""
    metadata_sha256: dict[str, str] = {}
    """By split, of its ``metadata.jsonl``; a split without one is taken as it is."""


class _Row(Struct):
    id: str
    context_id: str
    split: str
    question: str
    file_name: str
    program_answer: str | int | float | None = None
    company_name: str | None = None
    company_symbol: str | None = None
    report_year: str | int | float | None = None
    company_sector: str | None = None


def _rows(folder: Path, options: Options) -> Iterator[_Row]:
    for split in SPLITS:
        path = folder / split / "metadata.jsonl"
        for number, row in read_records(path, _Row):
            if row.split != split:
                raise wrong(f"{path} line {number}", f"split is {row.split[:40]!r}, expected {split!r}")
            yield row


def _check_hashes(folder: Path, options: Options) -> None:
    strange = sorted(options.metadata_sha256.keys() - set(SPLITS))
    if strange:
        raise wrong("options.metadata_sha256", f"names split {strange[0]!r}, expected {', '.join(SPLITS)}")
    for split, expected in options.metadata_sha256.items():
        path = folder / split / "metadata.jsonl"
        if path.is_file() and (found := sha256_file(path)) != expected:
            raise wrong(path, f"SHA-256 is {found}, expected {expected}")


def _listed(folder: Path, options: Options) -> Iterator[pdfs.Listed]:
    _check_hashes(folder, options)
    seen: set[str] = set()
    for row in _rows(folder, options):
        if row.context_id in seen:
            continue
        seen.add(row.context_id)
        named = {
            "company_name": row.company_name,
            "company_symbol": row.company_symbol,
            "report_year": row.report_year,
            "company_sector": row.company_sector,
        }
        told = {name: str(value) for name, value in named.items() if value is not None}
        title = " ".join(str(value) for value in (row.company_name, row.report_year) if value)
        name = f"{row.split}/{row.file_name}"
        yield pdfs.Listed(row.context_id, title or row.context_id, name, {"file_name": row.file_name} | told)


def _questions(folder: Path, options: Options, counts: Counter) -> Iterator[Question]:
    counts.update(rows=0, blank_questions=0)
    for row in _rows(folder, options):
        counts["rows"] += 1
        if not row.question.strip():
            counts["blank_questions"] += 1
            continue
        answer = None if row.program_answer is None else str(row.program_answer)
        strata = {"split": row.split} | ({"sector": row.company_sector} if row.company_sector else {})
        yield single.question(row.id, row.question, answer, (row.context_id,), strata)


def load(files: Mapping[str, Path], options: Options) -> Loaded:
    """Read the folder, ``data/FinQA`` of the dataset: in each split its rows and its pages."""
    folder, counts, absent = files["folder"], Counter(), set()
    listed = _listed(folder, options)
    found = pdfs.documents(listed, folder, options.allow_missing, absent, counts)
    return Loaded(found, _questions(folder, options, counts), counts, absent)


LOADER = Loader(load, ("folder",), Options)
