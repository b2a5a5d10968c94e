"""MTRAG ClapNQ: all passages, the queries of both kinds, and the conversations.

Source:
    RAG card, section 1.5; README of the data slice, traps 1 to 8.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from remeasure.datasets import mtrag
from remeasure.datasets.base import Loaded, Loader
from remeasure.datasets.reading import read_labels, read_records, records, wrong, zipped
from remeasure.records import Document, Question, Record, Turn

COLLECTION = "mt-rag-clapnq-elser-512-100-20240503"
"""What tasks about these passages name."""


class Options(Record, kw_only=True):
    """How it is read."""

    role_marker: Literal["keep", "strip"]
    """Of the queries. The published searches kept it: they searched for ``|user|: `` and the question."""


class _Passage(Struct):
    id: str = field(name="_id")
    title: str
    text: str


class _Query(Struct):
    id: str = field(name="_id")
    text: str


class _Message(Struct):
    speaker: Literal["user", "agent"]
    text: str


class _Target(Struct):
    text: str


class _Task(Struct):
    task_id: str
    collection: str = field(name="Collection")
    input: list[_Message] = []
    targets: list[_Target] = []
    answerability: list[str] = field(name="Answerability", default_factory=list)
    multi_turn: list[str] = field(name="Multi-Turn", default_factory=list)
    question_type: list[str] = field(name="Question Type", default_factory=list)


def _documents(path: Path) -> Iterator[Document]:
    with zipped(path, ".jsonl") as (stream, where):
        for _, row in records(stream, _Passage, where):
            yield Document(uri=row.id, title=row.title, text=row.text)


def _queries(path: Path, options: Options) -> dict[mtrag.Key, str]:
    def rows() -> Iterator[tuple[str, str, str]]:
        for number, row in read_records(path, _Query):
            where = f"{path} line {number}"
            if not row.text.startswith(mtrag.ROLE_MARKER):
                raise wrong(where, f"query {row.id[:80]!r} does not begin with {mtrag.ROLE_MARKER!r}")
            stripped = row.text.removeprefix(mtrag.ROLE_MARKER)
            yield row.id, where, row.text if options.role_marker == "keep" else stripped

    return mtrag.by_key(rows())


def _tasks(path: Path) -> Iterator[tuple[str, str, mtrag.Task]]:
    for number, row in read_records(path, _Task):
        if row.collection != COLLECTION:
            continue
        where = f"{path} line {number}"
        turns = tuple(Turn(speaker=one.speaker, text=one.text) for one in row.input)
        mtrag.check_turns(turns, where)
        if not (row.targets and row.answerability):
            raise wrong(where, "has no target, or no Answerability")
        strata = mtrag.strata(next(iter(row.multi_turn), "N/A"), row.question_type)
        yield row.task_id, where, mtrag.Task(turns, row.targets[0].text, row.answerability[0], strata)


def _questions(files: Mapping[str, Path], options: Options) -> Iterator[Question]:
    texts, rewrites = (_queries(files[name], options) for name in ("queries", "rewrites"))
    if texts.keys() != rewrites.keys():
        other = sorted(key.original for key in texts.keys() ^ rewrites.keys())
        raise wrong(files["rewrites"], f"has other queries than {files['queries']}, as {other[0]!r}")
    queries = {key: mtrag.Query(text, rewrites[key]) for key, text in texts.items()}
    labels = mtrag.by_key(
        (one, str(files["labels"]), found) for one, found in read_labels(files["labels"]).items()
    )
    yield from mtrag.questions(queries, mtrag.by_key(_tasks(files["tasks"])), labels, files["labels"])


def load(files: Mapping[str, Path], options: Options) -> Loaded:
    """Read the archive of passages, queries, rewrites, labels and generation tasks."""
    return Loaded(_documents(files["passages"]), _questions(files, options))


LOADER = Loader(load, ("passages", "queries", "rewrites", "labels", "tasks"), Options)
