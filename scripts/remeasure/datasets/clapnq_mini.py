"""A small real part of MTRAG ClapNQ: passages, queries and whole conversations.

Queries are those of MTRAG, with rewrites, and of MTRAG-UN, without; their texts have no role marker.

Source:
    README of the folder, ``config/data/clapnq_mini``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from remeasure.datasets import mtrag
from remeasure.datasets.base import Loaded, Loader
from remeasure.datasets.reading import read_labels, read_records, wrong
from remeasure.records import Document, Question, Record, Turn


class Options(Record, kw_only=True):
    """None."""


class _Passage(Struct):
    id: str = field(name="_id")
    title: str
    text: str


class _Query(Struct):
    id: str = field(name="_id")
    lastturn: str
    rewrite: str | None = None
    answerability: str | None = None


class _Turn(Struct):
    task_id: str
    turns: tuple[Turn, ...]
    answer: str
    answerability: str
    multi_turn_type: str
    question_type: list[str]


def _documents(path: Path) -> Iterator[Document]:
    for _, row in read_records(path, _Passage):
        yield Document(uri=row.id, title=row.title, text=row.text)


def _queries(path: Path) -> dict[mtrag.Key, mtrag.Query]:
    return mtrag.by_key(
        (row.id, f"{path} line {number}", mtrag.Query(row.lastturn, row.rewrite, row.answerability))
        for number, row in read_records(path, _Query)
    )


def _tasks(path: Path) -> Iterator[tuple[str, str, mtrag.Task]]:
    for number, row in read_records(path, _Turn):
        where = f"{path} line {number}"
        mtrag.check_turns(row.turns, where)
        strata = mtrag.strata(row.multi_turn_type, row.question_type)
        yield row.task_id, where, mtrag.Task(row.turns, row.answer, row.answerability, strata)


def _labels(path: Path) -> dict[mtrag.Key, tuple[str, ...]]:
    return mtrag.by_key((query, str(path), found) for query, found in read_labels(path).items())


def _questions(folder: Path) -> Iterator[Question]:
    queries, other = (_queries(folder / f"queries_{name}.jsonl") for name in ("mtrag", "mtragun"))
    labels = _labels(folder / "qrels_mtrag.tsv") | _labels(folder / "qrels_mtragun.tsv")
    tasks = mtrag.by_key(_tasks(folder / "qa_turns.jsonl"))
    both = sorted(key.original for key in other.keys() & (queries.keys() | tasks.keys()))
    if both:
        raise wrong(folder, f"{len(both)} turns are of both sets, as {both[0]!r}")
    yield from mtrag.questions(queries | other, tasks, labels, folder, of_un=other.keys())


def load(files: Mapping[str, Path], options: Options) -> Loaded:
    """Read the folder."""
    folder = files["folder"]
    return Loaded(_documents(folder / "passages.jsonl"), _questions(folder))


LOADER = Loader(load, ("folder",), Options)
