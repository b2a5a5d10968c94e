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
from remeasure.studies.mrarebench_cases import DiagnosisCase, EvidenceCase, has_word, wrong_image

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


class _Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What messages and graders need of an item; it may have further keys."""

    context: str
    index: str | None = None


class _DiagnosisMeta(_Meta, kw_only=True):
    findings: str | None


class _PointMeta(Record, kw_only=True):
    point: str
    image: str = ""
    credit: Literal["required", "optional"]
    category: str = ""


class _EvidenceMeta(_Meta, kw_only=True):
    diagnosis: str
    rationale: str
    points: list[_PointMeta]
    labels: list[str] | None = None
    n_images: int | None = None
    decisive: list[int] = []
    supporting: list[int] = []
    task_type: str | None = None


def units(found: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Yield a user's own items, each alone, with what may be left out of their meta filled in.

    What has `points` in its meta is of the bench `evidence`, all else of `diagnosis`; a file has one kind.

    Raises:
        RemeasureError: an item lacks something that messages or graders need, its diagnosis cannot be
            withheld, or a number names an image that it has not; names item and key.
    """
    first: Item | None = None
    for item in found:
        first = first or item
        if ("points" in item.meta) != ("points" in first.meta):
            raise RemeasureError(
                f"item {item.item_id!r}: {'has' if 'points' in item.meta else 'lacks'} meta.points, other "
                f"than the first item {first.item_id!r}; put items of diagnosis and of evidence into files "
                "of their own"
            )
        if not item.images or not item.question.strip():
            raise _refused(item, f"has {len(item.images)} images and question {item.question!r}, needs both")
        own = _own_evidence(item) if "points" in item.meta else _own_diagnosis(item)
        yield (msgspec.structs.replace(item, meta=item.meta | msgspec.to_builtins(own)),)


def _decoded(item: Item, kind: type[Any]) -> Any:
    try:
        own = msgspec.convert(item.meta, kind)
    except msgspec.ValidationError as error:
        said = str(error).replace("`$.", "`meta.").replace("`$`", "`meta`")
        raise _refused(item, said) from None
    return own if own.index is not None else msgspec.structs.replace(own, index=item.item_id)


def _refused(item: Item, said: str) -> RemeasureError:
    return RemeasureError(f"item {item.item_id!r}: {said}; correct the question file (docs/mrarebench.md)")


def _own_diagnosis(item: Item) -> _DiagnosisMeta:
    meta = _decoded(item, _DiagnosisMeta)
    if not meta.context.strip():
        raise _refused(item, "meta.context is empty, expected the case")
    if meta.findings is not None and not meta.findings.strip():
        raise _refused(item, "meta.findings is empty, expected the imaging findings, or null")
    if not item.references:
        raise _refused(item, "has no references, expected the diagnosis and its other names")
    if not has_word(item.references[0]):
        raise _refused(item, f"its first reference {ascii(item.references[0])} has no letter and no digit")
    return meta


def _own_evidence(item: Item) -> _EvidenceMeta:
    meta, n_images = _decoded(item, _EvidenceMeta), len(item.images)
    if item.references:
        raise _refused(item, f"has {len(item.references)} references, which nothing reads; take them out")
    for name in ("context", "diagnosis", "rationale"):
        if not getattr(meta, name).strip():
            raise _refused(item, f"meta.{name} is empty")
    if (said := mrarebench_text.leak(meta.context, meta.diagnosis)) is not None:
        raise _refused(item, f"meta.context {said.replace('final_diagnosis', 'meta.diagnosis')}")
    if mrarebench_text.names(meta.diagnosis, item.question):
        raise _refused(item, "the question holds meta.diagnosis, and NoDx asks it, too")
    if any(not point.point.strip() for point in meta.points):
        raise _refused(item, "meta.points has one without text")
    if not any(point.credit == "required" for point in meta.points):
        raise _refused(item, f"none of its {len(meta.points)} points is required, expected at least one")
    if (said := wrong_image(map(msgspec.structs.asdict, meta.points), n_images)) is not None:
        raise _refused(item, f"meta.points {said}")
    labels = [f"Image {n}" for n in range(1, n_images + 1)] if meta.labels is None else meta.labels
    if len(labels) != n_images or meta.n_images not in (None, n_images):
        raise _refused(
            item,
            f"has {n_images} images, {len(labels)} labels and meta.n_images {meta.n_images}; expected as "
            "many of each",
        )
    if (said := mrarebench_text.label_problem(labels, meta.diagnosis)) is not None:
        raise _refused(item, f"meta.labels: {said.replace('final_diagnosis', 'meta.diagnosis')}")
    for key, ids in (("decisive", meta.decisive), ("supporting", meta.supporting)):
        if outside := [number for number in ids if not 1 <= number <= n_images]:
            raise _refused(item, f"meta.{key} names image {outside[0]}, there are 1 to {n_images}")
    return msgspec.structs.replace(meta, labels=labels, n_images=n_images)
