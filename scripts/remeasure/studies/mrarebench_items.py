"""Items of MRareBench: one for every case of an index, or a user's own, checked.

Source:
    MRareBench card, sections 2.1 (columns), 5 (accepted names) and 7 (points).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, Item, Record
from remeasure.studies import mrarebench_text
from remeasure.studies.mrarebench_cases import DiagnosisCase, EvidenceCase

Row = DiagnosisCase | EvidenceCase
"""What a line of an index file is, for the stage."""


def from_row(row: DiagnosisCase | EvidenceCase, ref: Callable[[str, str], ImageRef]) -> tuple[Item, ...]:
    """Return the item of a case.

    Args:
        row: a line of an index file.
        ref: gives the reference to an image from its name in the store and its hash.
    """
    made = _diagnosis(row) if isinstance(row, DiagnosisCase) else _evidence(row)
    images = tuple(ref(one.member, one.sha256) for one in row.images)
    return (msgspec.structs.replace(made, images=images),)


def _diagnosis(row: DiagnosisCase) -> Item:
    return Item(
        item_id=row.item_id,
        question=row.question,
        references=tuple(name for name in (row.answer.strip(), *row.aliases) if name),
        group=row.group,
        meta={"index": row.index, "context": row.context, "findings": row.findings},
    )


def _evidence(row: EvidenceCase) -> Item:
    meta = {
        "index": row.index,
        "context": row.context,
        "diagnosis": row.diagnosis,
        "rationale": row.rationale,
        "points": [msgspec.to_builtins(point) for point in row.points],
        "labels": [one.label for one in row.images],
        "n_images": len(row.images),
        "decisive": list(row.decisive),
        "supporting": list(row.supporting),
        "task_type": row.task_type,
    }
    return Item(item_id=row.item_id, question=row.question, group=row.group, meta=row.joined | meta)


class _DiagnosisMeta(Record, kw_only=True):
    """What messages and graders need of an item of the bench `diagnosis`."""

    context: str
    findings: str | None
    index: str | None = None


class _PointMeta(Record, kw_only=True):
    point: str
    image: str
    credit: Literal["required", "optional"]
    category: str


class _EvidenceMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What messages and graders need of an item of the bench `evidence`; it may have further keys."""

    context: str
    diagnosis: str
    rationale: str
    points: list[_PointMeta]
    labels: list[str]
    n_images: int
    decisive: list[int]
    supporting: list[int]
    task_type: str | None
    index: str | None = None


def units(found: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Yield a user's own items, each alone.

    What has `points` in its meta is one of the bench `evidence`, all else of `diagnosis`; a file has one kind.

    Raises:
        RemeasureError: an item lacks something that messages or graders need, or an id does not fit its
            images; names item and key.
    """
    first: Item | None = None
    for item in found:
        first = first or item
        if ("points" in item.meta) != ("points" in first.meta):
            raise RemeasureError(
                f"item {item.item_id!r}: {'has' if 'points' in item.meta else 'lacks'} meta.points, the first "
                f"item {first.item_id!r} does not do so; put items of diagnosis and evidence into files of their "
                "own"
            )
        if "points" in item.meta:
            _check_evidence(item, _decoded(item, _EvidenceMeta))
        else:
            _check_diagnosis(item, _decoded(item, _DiagnosisMeta))
        yield (item,)


def _decoded(item: Item, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(item.meta, kind)
    except msgspec.ValidationError as error:
        said = str(error).replace("$.", "meta.").replace("`$`", "`meta`")
        raise _refused(item, said) from None


def _refused(item: Item, said: str) -> RemeasureError:
    return RemeasureError(f"item {item.item_id!r}: {said}; correct the question file (docs/mrarebench.md)")


def _check_diagnosis(item: Item, meta: _DiagnosisMeta) -> None:
    if not meta.context.strip():
        raise _refused(item, "meta.context is empty, expected the case")
    if meta.findings is not None and not meta.findings.strip():
        raise _refused(item, "meta.findings is empty, expected the imaging findings, or null")
    if not item.references:
        raise _refused(item, "has no references, expected the diagnosis and its other names")
    _check_images(item)


def _check_evidence(item: Item, meta: _EvidenceMeta) -> None:
    _check_images(item)
    if item.references:
        raise _refused(item, "has references, but answers are judged by meta.points; leave them out")
    for name in ("context", "diagnosis", "rationale"):
        if not getattr(meta, name).strip():
            raise _refused(item, f"meta.{name} is empty")
    problems = mrarebench_text.leaks(meta.context, meta.diagnosis)
    if problems:
        raise _refused(item, f"meta.context {problems[0]}")
    if not any(point.credit == "required" for point in meta.points):
        raise _refused(item, f"none of its {len(meta.points)} points is required, expected at least one")
    if any(not point.point.strip() for point in meta.points):
        raise _refused(item, "meta.points has one without text")
    n_images = len(item.images)
    if meta.n_images != n_images or len(meta.labels) != n_images or not all(map(str.strip, meta.labels)):
        raise _refused(
            item,
            f"has {n_images} images, meta.n_images {meta.n_images} and {len(meta.labels)} labels; expected as "
            "many of each, and no empty label",
        )
    if outside := [number for number in meta.decisive if not 1 <= number <= n_images]:
        raise _refused(item, f"meta.decisive names image {outside[0]}, there are 1 to {n_images}")


def _check_images(item: Item) -> None:
    if not item.images:
        raise _refused(item, "has no image, expected at least one")
    if not item.question.strip():
        raise _refused(item, "has an empty question")
