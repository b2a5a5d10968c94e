"""HotpotQA, setting ``distractor``: ten paragraphs with every question, two of them right.

All paragraphs of all questions are the documents. Two with one title are one document, the first that comes;
what another says is lost, as in the original.

Source:
    RAG card, section 1.4.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remeasure import jsonl
from remeasure.datasets import single
from remeasure.datasets.base import Loaded, Loader
from remeasure.datasets.reading import read_records, wrong
from remeasure.errors import RemeasureError
from remeasure.files import is_regular
from remeasure.records import Document, Question, Record

_COLUMNS = ["id", "question", "answer", "type", "level", "supporting_facts", "context"]
_ROWS_AT_ONCE = 256


class Options(Record, kw_only=True):
    """None."""


class _Facts(msgspec.Struct):
    title: list[str]


class _Context(msgspec.Struct):
    title: list[str]
    sentences: list[list[str]]


class _Row(msgspec.Struct):
    id: str
    question: str
    answer: str
    type: str
    level: str
    supporting_facts: _Facts
    context: _Context


def _rows(path: Path) -> Iterator[tuple[int, _Row]]:
    """Yield rows with their numbers from a Parquet file, or from JSON lines of the same shape."""
    if path.suffix == ".jsonl":
        yield from read_records(path, _Row)
        return
    if not is_regular(path):
        raise jsonl.unreadable(path, FileNotFoundError(2, "no such file"))
    for number, row in enumerate(_of_parquet(path), start=1):
        try:
            yield number, msgspec.convert(row, _Row)
        except msgspec.ValidationError as error:
            raise wrong(f"{path} row {number}", f"not a valid record ({error})") from None


def _of_parquet(path: Path) -> Iterator[dict]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise RemeasureError(
            f"{path}: reading it needs the package pyarrow, which is not installed; run `make setup`"
        ) from None
    try:
        with parquet.ParquetFile(path) as store:
            missing = [name for name in _COLUMNS if name not in store.schema_arrow.names]
            if missing:
                raise wrong(path, f"has no column {missing[0]}")
            for batch in store.iter_batches(_ROWS_AT_ONCE, columns=_COLUMNS):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        said = str(error).partition("\n")[0]
        raise wrong(path, f"no Parquet file that can be read ({said[:200]})") from None


def _documents(path: Path, counts: Counter) -> Iterator[Document]:
    seen: dict[str, int] = {}
    counts.update(paragraphs=0, other_texts=0)
    for number, row in _rows(path):
        titles, sentences = row.context.title, row.context.sentences
        if len(titles) != len(sentences):
            raise wrong(f"{path} row {number}", f"has {len(titles)} titles and {len(sentences)} paragraphs")
        for title, one in zip(titles, sentences, strict=True):
            text = " ".join(one)
            counts["paragraphs"] += 1
            if title in seen:
                counts["other_texts"] += seen[title] != hash(text)
                continue
            seen[title] = hash(text)
            yield Document(uri=title, title=title, text=text)


def _questions(path: Path, counts: Counter) -> Iterator[Question]:
    counts["blank_questions"] = 0
    for _, row in _rows(path):
        if not row.question.strip():
            counts["blank_questions"] += 1
            continue
        relevant = tuple(dict.fromkeys(row.supporting_facts.title))
        yield single.question(
            row.id, row.question, row.answer, relevant, {"type": row.type, "level": row.level}
        )


def load(files: Mapping[str, Path], options: Options) -> Loaded:
    """Read the questions with their paragraphs, twice."""
    counts: Counter = Counter()
    return Loaded(_documents(files["questions"], counts), _questions(files["questions"], counts), counts)


LOADER = Loader(load, ("questions",), Options)
