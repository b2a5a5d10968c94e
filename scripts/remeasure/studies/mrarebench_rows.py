"""Rows of the MRareBench tables: what each column must hold, and the case that comes of them.

Source:
    MRareBench card, sections 2.1 (columns), 2.2 (images), 2.3 (what fails), 3.2, 3.3 and 7 (points).
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from remeasure import held_images
from remeasure.data_tables import Columns
from remeasure.errors import RemeasureError
from remeasure.held_images import Held, Images
from remeasure.roundtrip import MISSING
from remeasure.studies import mrarebench_text
from remeasure.studies.mrarebench_cases import (
    JOIN_COLUMNS,
    DiagnosisCase,
    EvidenceCase,
    EvidencePoint,
    group,
    has_word,
    item_id,
    wrong_image,
)
from remeasure.table_indexing import Wrong
from remeasure.table_report import shown

FINDINGS = "image findings"
DIAGNOSIS_COLUMNS = Columns(
    needed=(("index",), ("question",), ("context",), ("answer",), ("answer_aliases",), ("image",)),
    optional=(FINDINGS, "figure_mapping", "image_path", "pmcid", "doc_id", "case_id"),
)
EVIDENCE_COLUMNS = Columns(
    needed=(
        *(("index",), ("context",), ("question_open", "question"), ("final_diagnosis",)),
        *(("acceptable_evidence_points",), ("gold_rationale", "gold_answer_open"), ("image",)),
    ),
    optional=("image_slot_map", "decisive_image_ids", "supporting_image_ids", "task_type", *JOIN_COLUMNS),
)
# The words that the published reader takes for no ids.
_NO_IDS = ("", "nan", "none", "null", "[]")
_MAX_ID_DIGITS = 9
# A list as Python or broken JSON writes it: parted by `;` it would be one name with brackets and quotes.
_LIST_OF_ANOTHER_KIND = re.compile(r"\s*[\[(]\s*['\"]")


class Broken(NamedTuple):
    """A cell that is not as it must be."""

    problem: str


def parsed(cell: str) -> Any:
    """Return the value of a JSON cell, or ``Broken``; nothing is ever evaluated."""
    try:
        return json.loads(cell)
    except RecursionError:
        return Broken("is nested too deep")
    except ValueError as error:
        return Broken(f"is no JSON ({error})" if cell.strip() else "is empty")


def aliases(cell: str) -> tuple[str, ...] | Broken:
    """Return the accepted names of a cell: a JSON list, the text form of other JSON, else parted by ``;``.

    Raises:
        RecursionError: JSON that is nested too deep.

    Edges:
        A cell that is a word for no value has no names: "NA" would stand in every carcinoma.
    """
    if cell.strip() in MISSING:
        return ()
    try:
        found = json.loads(cell) if cell else []
    except ValueError:
        if _LIST_OF_ANOTHER_KIND.match(cell):
            return Broken('begins like a list and is no JSON; write ["A", "B"] or A; B')
        names = cell.split(";")
    else:
        names = [str(name) for name in (found if isinstance(found, list) else [found])]
    return tuple(name.strip() for name in names if name.strip())


def image_ids(cell: str) -> tuple[int, ...] | Broken:
    """Return the numbers in a cell, ascending; every run of digits is one."""
    text = cell.strip()
    runs = [] if text.lower() in _NO_IDS else re.findall(r"\d+", text)
    if odd := [run for run in runs if not run.isascii()]:
        return Broken(f"names image {shown(odd[0])}, which is not written with digits 0 to 9")
    if long := [run for run in runs if len(run) > _MAX_ID_DIGITS]:
        return Broken(f"names image {shown(long[0])}, which there cannot be")
    return tuple(sorted({int(run) for run in runs}))


def points(cell: str) -> tuple[EvidencePoint, ...] | Broken:
    """Return the evidence points of a cell; entries that are no objects, or have no text, are dropped.

    An image may be a number, which is used as text: the published reading does that, too.
    """
    found = parsed(cell)
    if isinstance(found, Broken):
        return found
    if not isinstance(found, list):
        return Broken(f"is JSON of another kind ({type(found).__name__}), expected a list of points")
    for number, entry in enumerate(found, start=1):
        for key in ("point", "image", "credit", "category") if isinstance(entry, dict) else ():
            if not _is_text(entry.get(key)) and not (key == "image" and type(entry[key]) is int):
                return Broken(f"entry {number}: {key} is {_kind(entry[key])}, expected text")
    kept = [_point(entry) for entry in found if isinstance(entry, dict) and _text(entry, "point")]
    if not any(point.credit == "required" for point in kept):
        return Broken(f"has no required point among its {len(found)} entries, expected at least one")
    return tuple(kept)


def _point(entry: Mapping[str, Any]) -> EvidencePoint:
    required = _text(entry, "credit").lower() == "required"
    return EvidencePoint(
        point=_text(entry, "point"),
        image=_text(entry, "image"),
        credit="required" if required else "optional",
        category=_text(entry, "category"),
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key) or "").strip()


def _is_text(value: Any) -> bool:
    """Return whether a value is text, or not given."""
    return value is None or isinstance(value, str)


def _kind(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return f"{value} ({type(value).__name__})"[:40]


def _of_images(found: tuple[EvidencePoint, ...] | Broken, n_slots: int | None) -> Any:
    """Refuse points about images that there are not, where it is known how many there are."""
    if isinstance(found, Broken) or n_slots is None:
        return found
    said = wrong_image(map(msgspec.structs.asdict, found), n_slots)
    return found if said is None else Broken(said)


def labels(cell: str, n_slots: int | None) -> tuple[str, ...] | Broken:
    """Return the label of each image by a slot map; without one, or a word in it, the number of the slot."""
    found = parsed(cell) if cell.strip() else [{}] * (n_slots or 0)
    if isinstance(found, Broken):
        return found
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        return Broken("is no JSON list of objects with `public_slot`")
    for number, entry in enumerate(found, start=1):
        if not _is_text(entry.get("public_slot")):
            return Broken(f"slot {number}: public_slot is {_kind(entry['public_slot'])}, expected text")
    if n_slots not in (None, len(found)):
        return Broken(f"names {len(found)} slots, the row has {n_slots} images")
    return tuple(_text(entry, "public_slot") or f"Image {n}" for n, entry in enumerate(found, start=1))


class RowImages(NamedTuple):
    """The images of a row."""

    held: tuple[Held, ...]
    """In slot order, without those that cannot be used."""
    n_slots: int | None
    """Null where nobody can tell."""


def row_images(cells: Mapping[str, str], images: Images, wrong: Wrong) -> RowImages:
    """Look at the images of a row; says what is wrong with each that cannot be used."""
    found: list[Held] = []
    slot = 0
    try:
        for slot, entry in enumerate(held_images.slots(cells["image"]), start=1):
            try:
                found.append(images.take(entry, slot))
            except RemeasureError as error:
                wrong("image", f"slot {slot} {error}")
    except RemeasureError as error:
        wrong("image", str(error))
        return RowImages((), None)
    if slot == 0:
        said = "has no image"
        if cells.get("image_path", "").strip() not in ("", "[]"):
            said += "; files named in image_path are not read: put the images as base64 into column image"
        wrong("image", said)
    return RowImages(tuple(found), slot)


def _needed(cells: Mapping[str, str], names: tuple[str, ...], wrong: Wrong) -> str:
    """Return the first cell of some columns that is not empty."""
    for name in names:
        if cells.get(name, "").strip():
            return cells[name]
    wrong(names[0], "is empty" + "".join(f", and so is {name}" for name in names[1:] if name in cells))
    return ""


def _id(cells: Mapping[str, str], wrong: Wrong) -> str:
    index = cells["index"]
    if not index.strip():
        wrong("index", "is empty")
    return item_id(index)


def diagnosis_case(cells: Mapping[str, str], images: Images, wrong: Wrong) -> DiagnosisCase:
    """Return the case of a T1 row; of no use after ``wrong`` was told something."""
    texts = {name: _needed(cells, (name,), wrong) for name in ("question", "context", "answer")}
    if texts["answer"] and not has_word(texts["answer"]):
        wrong("answer", f"is {shown(texts['answer'])}: without a letter or digit nothing can match it")
    names = aliases(cells["answer_aliases"])
    if isinstance(names, Broken):
        wrong("answer_aliases", names.problem)
        names = ()
    findings = None
    if FINDINGS in cells:
        findings, problem, _ = mrarebench_text.findings_block(cells[FINDINGS])
        if problem is not None:
            wrong(FINDINGS, f"{problem}: with the findings shown nothing more would be shown than without")
    return DiagnosisCase(
        index=cells["index"],
        item_id=_id(cells, wrong),
        group=group(cells["index"], cells),
        findings=findings,
        aliases=names,
        images=row_images(cells, images, wrong).held,
        **texts,
    )


def evidence_case(cells: Mapping[str, str], images: Images, wrong: Wrong) -> EvidenceCase:
    """Return the case of a T2 row; of no use after ``wrong`` was told something."""
    asked, explained = EVIDENCE_COLUMNS.needed[2], EVIDENCE_COLUMNS.needed[5]
    texts = {name: _needed(cells, (name,), wrong) for name in ("context", "final_diagnosis")}
    question = _needed(cells, asked, wrong)
    if all(texts.values()) and (said := mrarebench_text.leak(*texts.values())) is not None:
        wrong("context", said)
    if question and texts["final_diagnosis"] and mrarebench_text.names(texts["final_diagnosis"], question):
        wrong(
            next(name for name in asked if cells.get(name) == question),
            "holds final_diagnosis, and NoDx asks it, too",
        )
    held, n_slots = row_images(cells, images, wrong)
    joined = {name: cells[name] or None for name in JOIN_COLUMNS if name in cells}
    made: dict[str, Any] = {
        "acceptable_evidence_points": _of_images(points(cells["acceptable_evidence_points"]), n_slots),
        "image_slot_map": _without_name(
            labels(cells.get("image_slot_map", ""), n_slots), texts["final_diagnosis"]
        ),
        "decisive_image_ids": _within(image_ids(cells.get("decisive_image_ids", "")), n_slots),
        "supporting_image_ids": image_ids(cells.get("supporting_image_ids", "")),
    }
    for column, value in made.items():
        if isinstance(value, Broken):
            wrong(column, value.problem)
            made[column] = ()
    return EvidenceCase(
        index=cells["index"],
        item_id=_id(cells, wrong),
        group=group(cells["index"], cells),
        question=question,
        context=texts["context"],
        diagnosis=texts["final_diagnosis"],
        rationale=_needed(cells, explained, wrong),
        points=made["acceptable_evidence_points"],
        images=tuple(
            msgspec.structs.replace(one, label=label)
            for one, label in zip(held, made["image_slot_map"], strict=False)
        ),
        decisive=made["decisive_image_ids"],
        supporting=made["supporting_image_ids"],
        task_type=cells.get("task_type") or None,
        joined=joined,
    )


def _without_name(found: tuple[str, ...] | Broken, diagnosis: str) -> tuple[str, ...] | Broken:
    """Refuse labels that cannot be shown, or that tell the diagnosis."""
    if isinstance(found, Broken):
        return found
    said = mrarebench_text.label_problem(found, diagnosis)
    return found if said is None else Broken(said)


def _within(ids: tuple[int, ...] | Broken, n_slots: int | None) -> tuple[int, ...] | Broken:
    """Refuse ids of images that there are not, where it is known how many there are."""
    if isinstance(ids, Broken) or n_slots is None:
        return ids
    outside = [number for number in ids if not 1 <= number <= n_slots]
    if outside:
        return Broken(f"names image {outside[0]}, the row has images 1 to {n_slots}")
    return ids
