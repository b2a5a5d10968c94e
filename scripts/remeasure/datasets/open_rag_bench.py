"""OpenRAG Bench: questions about 1,000 papers as PDF files, 400 of them right for some question.

Source:
    RAG card, section 1.2.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from remeasure.datasets import pdfs, single
from remeasure.datasets.base import Loaded, Loader
from remeasure.datasets.reading import read_json
from remeasure.records import Question, Record


class Options(Record, kw_only=True):
    """How it is read."""

    allow_missing: bool
    """Whether papers may be missing; their questions remain."""


class _Query(Struct):
    query: str
    type: str
    source: str


class _Label(Struct):
    doc_id: str | None = None


def _listed(path: Path) -> Iterator[pdfs.Listed]:
    for paper in read_json(path, dict[str, str]):
        yield pdfs.Listed(paper, paper, f"{paper}.pdf", {"arxiv_id": paper})


def _questions(files: Mapping[str, Path], counts: Counter) -> Iterator[Question]:
    papers = read_json(files["pdf_urls"], dict[str, str])
    labels = read_json(files["qrels"], dict[str, _Label])
    answers = read_json(files["answers"], dict[str, str])
    counts.update(blank_questions=0, not_searched=0)
    for name, row in read_json(files["queries"], dict[str, _Query]).items():
        if not row.query.strip():
            counts["blank_questions"] += 1
            continue
        gold = labels[name].doc_id if name in labels else None
        relevant = (gold,) if gold in papers else ()
        counts["not_searched"] += not relevant
        strata = {"type": row.type, "source": row.source}
        yield single.question(name, row.query, answers.get(name), relevant, strata)


def load(files: Mapping[str, Path], options: Options) -> Loaded:
    """Read the four lists and the folder of papers, ``<paper>.pdf``."""
    counts, absent = Counter(), set()
    listed = _listed(files["pdf_urls"])
    found = pdfs.documents(listed, files["pdfs"], options.allow_missing, absent, counts)
    return Loaded(found, _questions(files, counts), counts, absent)


LOADER = Loader(load, ("pdf_urls", "queries", "qrels", "answers", "pdfs"), Options)
