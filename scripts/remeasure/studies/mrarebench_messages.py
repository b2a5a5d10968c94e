"""MRareBench: what a model is shown in each of the six conditions, and what a judge is told.

The conditions of a track differ in one thing each, which a test proves. What stands in a request is what the
published module puts there, to the byte; with our own wording only the wording differs.

Source:
    MRareBench card, sections 3 (requests), 6.1 and 7 (judge); read beside the published module.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from remeasure import prompts, roundtrip
from remeasure.cells import Cell, JudgeCell
from remeasure.errors import RemeasureError
from remeasure.evidence import Evidence
from remeasure.messages import image_part, prompt_line, text_part
from remeasure.records import Item, Response
from remeasure.studies.mrarebench_text import without_diagnosis

# What would break a line of JSON for readers that cut at every line end that Unicode knows.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})

# What belongs to which track.
_FILES = {"diagnosis.jsonl": "diagnosis", "evidence.jsonl": "evidence"}
_GRADERS = {"ranked_list": "diagnosis", "judge_ranked_list": "diagnosis", "judge_rubric": "evidence"}


class DiagnosisArm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a condition of the diagnosis track."""

    findings: bool
    """Whether the case is told with what its images show."""
    basis: Literal["images", "text"]
    """What the instruction says that the diagnosis rests on; not derived from whether there are images."""


class EvidenceArm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a condition of the evidence track."""

    diagnosis: bool
    """Whether the case begins with its diagnosis."""


class DiagnosisCase(msgspec.Struct, frozen=True):
    """What a request of the diagnosis track takes from ``meta`` of an item."""

    context: str
    findings: str | None
    """The findings as one text; null where there are none."""


class EvidenceCase(msgspec.Struct, frozen=True):
    """What a request of the evidence track takes from ``meta`` of an item."""

    context: str
    labels: list[str]
    """What each image is called, in their order."""


class JudgedCase(msgspec.Struct, frozen=True):
    """What a judge of the evidence track is told about an item."""

    diagnosis: str
    rationale: str
    points: list[dict[str, Any]]


def messages(item: Item, evidence: Evidence, cell: Cell) -> list[dict[str, Any]]:
    """Return one user message: the images, where the arm shows them, then one text.

    Raises:
        RemeasureError: options that are not those of a condition; an item that lacks what its track needs.
    """
    arm = _arm(cell.options)
    if isinstance(arm, DiagnosisArm):
        case = _read(item, item.meta, DiagnosisCase)
        if arm.findings and not case.findings:
            raise RemeasureError(
                f"item {item.item_id!r}: has no findings (meta.findings), and this condition tells them: it "
                "would be asked as if they were withheld; add them or leave the item out"
            )
        blocks = [_told(case, arm), _question(item), _diagnosis_instruction(cell, arm)]
        images = [image_part(ref) for ref in item.images]
    else:
        case = _read(item, item.meta, EvidenceCase)
        context = case.context if arm.diagnosis else without_diagnosis(case.context)
        blocks = [context, _question(item), prompt_line(cell, "instruction_evidence")]
        images = list(_labelled(item, case.labels))
    text = "\n\n".join(block for block in blocks if block)
    return [{"role": "user", "content": [*(images if cell.images else ()), text_part(text)]}]


def check_arm(options: dict[str, Any], file: str, grader: str) -> None:
    """Check that an arm is a condition of its bench's track, before anything is asked.

    Args:
        options: of the arm.
        file: the index file that the bench's items are made from.
        grader: of the bench.

    Raises:
        RemeasureError: options of no condition; or arm, index file and grader are not of one track.
    """
    track = "evidence" if isinstance(_arm(options), EvidenceArm) else "diagnosis"
    for what, value, others in (("index", file, _FILES), ("grader", grader, _GRADERS)):
        if others.get(value, track) != track:
            known = [name for name, of in others.items() if of == track]
            raise RemeasureError(
                f"{what} {value} is of the {others[value]} track, the arm has options of the {track} track; "
                f"use {' or '.join(known)}, or an arm of the other track"
            )


def _arm(options: dict[str, Any]) -> DiagnosisArm | EvidenceArm:
    kind = EvidenceArm if "diagnosis" in options else DiagnosisArm
    try:
        return msgspec.convert(options, kind)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"options {json.dumps(options, sort_keys=True)} of an arm: {error}; expected findings and "
            "basis (diagnosis track), or diagnosis (evidence track): correct arms in "
            "config/studies/mrarebench.yaml"
        ) from None


def _read(item: Item, value: Any, kind: type) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        names = ", ".join(kind.__struct_fields__)
        raise RemeasureError(
            f"item {item.item_id!r}: meta: {error}; expected {names}: correct the question file"
        ) from None


def _told(case: DiagnosisCase, arm: DiagnosisArm) -> str:
    """Return the case, with its findings where the arm tells them; only then its ends are stripped."""
    if not arm.findings:
        return case.context
    return f"{case.context}\n\n{case.findings}".strip() if case.context else case.findings


def _question(item: Item) -> str:
    return f"Question: {item.question}" if item.question else ""


def _diagnosis_instruction(cell: Cell, arm: DiagnosisArm) -> str:
    basis = prompt_line(cell, f"basis_{arm.basis}")
    return prompts.fill(prompt_line(cell, "instruction_diagnosis"), {"basis": basis})


def _labelled(item: Item, labels: list[str]) -> Iterator[dict[str, Any]]:
    if len(labels) != len(item.images):
        raise RemeasureError(
            f"item {item.item_id!r}: {len(item.images)} images and {len(labels)} labels (meta.labels); give "
            "one label for each: correct the question file"
        )
    for label, ref in zip(labels, item.images, strict=True):
        yield text_part(f"{label}:")
        yield image_part(ref)


def judge_messages(item: Item, response: Response, cell: JudgeCell) -> list[dict[str, Any]]:
    """Return what the judge is shown for one answer: its list of diagnoses, or all of it as it came.

    A prompt may name every value by itself, or ``case_json`` for all of them in one line of JSON.

    Raises:
        RemeasureError: a judge prompt that this study does not have.
    """
    kinds = {"judge_ranked_list": _ranked_list, "judge_rubric": _rubric}
    if cell.grader not in kinds:
        raise RemeasureError(
            f"judge prompt {cell.grader!r} is none of MRareBench's; there are {', '.join(kinds)}: correct "
            "the grader in config/studies/mrarebench.yaml"
        )
    values, case = kinds[cell.grader](item, _as_read(response))
    values["case_json"] = json.dumps(case, ensure_ascii=False).translate(_LINE_ENDS)
    text = prompts.get(cell.prompts, cell.grader).removesuffix("\n")
    return [{"role": "user", "content": prompts.fill(text, values)}]


# What reads answers and points is imported where it is used: a process that asks readers does without.


def _as_read(response: Response) -> str:
    """Return the answer as the published scorer reads it; an empty one is a word there."""
    text = roundtrip.answer(response)
    assert text is not None, response.status  # only answers are judged
    return text


def _ranked_list(item: Item, answer: str) -> tuple[dict[str, str], dict[str, Any]]:
    from remeasure.diagnoses import lists

    ranked = lists.published(answer)
    gold, *aliases = item.references or ("",)
    values = {
        "gold": gold,
        "aliases": "; ".join(aliases) or "(none)",
        "numbered": _numbered(ranked) or "(empty)",
    }
    return values, {"gold": gold, "aliases": aliases, "ranked": ranked}


def _rubric(item: Item, answer: str) -> tuple[dict[str, str], dict[str, Any]]:
    from remeasure.rubrics.points import rubric_of

    told = _read(item, item.meta, JudgedCase)
    rubric = rubric_of(told.points)
    required = [point.text for point in rubric.required]
    optional = [point.text for point in rubric.optional]
    values = {
        "diagnosis": told.diagnosis,
        "rationale": told.rationale,
        "answer": answer,
        "n_required": str(len(required)),
        "n_optional": str(len(optional)),
        "n_lines": str(rubric.n_lines),
        "required": _numbered(required) or "(none)",
        "optional": _numbered(optional) or "(none)",
    }
    case = {"diagnosis": told.diagnosis, "rationale": told.rationale, "answer": answer}
    return values, case | {"required": required, "optional": optional}


def _numbered(lines: list[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
