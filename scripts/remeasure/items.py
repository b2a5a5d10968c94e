"""Question files: one reader for all stages, whoever wrote the file."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.images import ImageReader, media_type
from remeasure.records import ImageRef, Item, Page, Record

ITEM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class OwnSettings(Record, kw_only=True):
    """Settings of ``build_items`` for a user's own questions."""

    own: str
    n_items: int | None = None
    """How many units are taken: questions, or groups of them that are graded together; null: all."""
    with_answers: bool = True
    """Whether every question needs an answer; not where the bench's grader compares with none."""
    task: dict[str, Any] | None = None
    """What the bench's items are for, where systems do it; null: a model answers."""


class DatasetSettings(Record, kw_only=True):
    """Settings of ``build_items`` for questions of a dataset."""

    n_items: int
    """How many units are taken, in the dataset's order."""
    task: dict[str, Any]
    """What the bench's items are for."""


class IndexSettings(Record, kw_only=True):
    """Settings of ``build_items`` for images of an index."""

    n_units: int
    """How many lines of the index are taken, in its order."""
    source: str
    """The folder or store that the index lists."""


class QuerySettings(Record, kw_only=True):
    """Settings of ``build_items`` for queries of a benchmark of photographs."""

    n_items: int
    """How many queries are taken, in the benchmark's order."""


def read(path: Path, *, check_images: bool = False, with_answers: bool = True) -> Iterator[Item]:
    """Read and check a question file, one question at a time; of the others only the ids are held.

    Args:
        path: JSONL of ``records.Item``.
        check_images: also read every image and compare its hash (slower).
        with_answers: whether every item needs an answer; not where the grader compares with none.

    Raises:
        RemeasureError: empty file, broken line, id twice or with other characters than ``[A-Za-z0-9_-]``,
            neither question nor image, no or empty answer, image file missing or changed; names line and
            item.
    """
    number = 0
    with ImageReader() as reader:
        found = jsonl.unique(_checked(jsonl.read(path, Item), path, with_answers), "item_id", path)
        for number, item in enumerate(found, start=1):
            for image in item.images:
                if not Path(image.path).is_file():
                    raise RemeasureError(
                        f"{path} line {number}: item {item.item_id!r} shows {image.path}, which is missing; "
                        "put it there or correct the path (relative to the working folder)"
                    )
                if check_images:
                    _check_image(reader, image, f"{path} line {number}: item {item.item_id!r}")
            yield item
    if not number:
        raise RemeasureError(f"{path}: holds no questions; add at least one line, or delete it and rerun")


def _check_image(reader: ImageReader, image: ImageRef, where: str) -> None:
    try:
        media_type(reader.read(image))
    except RemeasureError as error:
        found = str(error).partition(";")[0]
        raise RemeasureError(f"{where} shows {image.path}: {found}; correct the file or its sha256") from None


def own(
    path: Path,
    settings: OwnSettings,
    pages: Sequence[Page] | None,
    units: Callable[[Iterable[Item]], Iterator[tuple[Item, ...]]],
    uris: Sequence[str] = (),
) -> Iterator[Item]:
    """Yield a user's own questions: the first ones, images verified, pages named by id or by path.

    The whole file is checked whatever the number of questions that are taken.

    Args:
        path: the question file.
        settings: how many, and whether they need answers.
        pages: pages of the run; null where the study has none.
        units: puts together what is graded together; the study's.
        uris: documents of the run, where the study has such.

    Raises:
        RemeasureError: as ``read``, an item names a page or document that the run does not use, or a unit is
            not as the study needs it.
    """
    found = read(path, check_images=True, with_answers=settings.with_answers)
    for number, unit in enumerate(units(_on_pages(found, path, pages or (), uris)), start=1):
        if settings.n_items is None or number <= settings.n_items:
            yield from unit


def _on_pages(
    found: Iterable[Item], path: Path, pages: Sequence[Page], uris: Sequence[str]
) -> Iterator[Item]:
    """Yield items with the ids of the pages or documents that they name."""
    known = {page.path: page.page_id for page in pages} | {page.page_id: page.page_id for page in pages}
    known |= dict(zip(uris, uris, strict=True))
    kind, n_known = ("document", len(uris)) if uris else ("page", len(pages))
    for number, item in enumerate(found, start=1):
        strange = [page for page in item.relevant if page not in known]
        if strange:
            raise RemeasureError(
                f"{path} line {number}: item {item.item_id!r} names {kind} {strange[0]!r}, which is not "
                f"among the {n_known} {kind}s of the run{did_you_mean(strange[0], known)}; "
                f"correct it or use more {kind}s"
            )
        yield msgspec.structs.replace(item, relevant=tuple(known[page] for page in item.relevant))


def _checked(items: Iterable[Item], path: Path, with_answers: bool) -> Iterable[Item]:
    for number, item in enumerate(items, start=1):
        place = f"{path} line {number}"
        if not ITEM_ID.match(item.item_id):
            raise RemeasureError(
                f"{place}: item_id {item.item_id!r} is not allowed; use 1 to 64 of A-Z a-z 0-9 _ -"
            )
        if not item.question.strip() and not item.images:
            raise RemeasureError(
                f"{place}: item {item.item_id!r} has an empty question; write one or remove the line"
            )
        blank = any(not reference.strip() for reference in item.references)
        if blank or (with_answers and not item.references):
            raise RemeasureError(
                f"{place}: item {item.item_id!r} has no answer or an empty one in references; "
                "give every item at least one answer"
            )
        yield item
