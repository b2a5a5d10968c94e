"""PixelRAG: what the reader and the judge are shown.

Source:
    Page-image card 1.7 (branch order of the messages), 7 (multiple choice with a picture), 8.3 and 8.4 (gold
    answer for the judge). One deliberate difference: the query image is shown whether or not something was
    retrieved; the original drops it after a failed retrieval (P12), which is an error here anyway.
"""

import json
from string import ascii_uppercase
from typing import Any

from remeasure import prompts
from remeasure.cells import Cell, JudgeCell
from remeasure.errors import RemeasureError
from remeasure.evidence import Evidence
from remeasure.messages import image_part, prompt_line, text_part
from remeasure.records import Item, Response
from remeasure.text import strip_thinking

_NOTES = {"tiles": "note_images", "text": "note_text", "none": "note_none"}


def messages(item: Item, evidence: Evidence, cell: Cell) -> list[dict[str, Any]]:
    """Return what the reader is shown for one item.

    Edges:
        Evidence without parts is shown as no evidence: note, system prompt and layout are those of ``none``.
    """
    kind = "tiles" if evidence.images else "text" if evidence.texts else "none"
    if cell.layout == "choice":
        return _choice(item, evidence, kind, cell)
    instruction = [prompt_line(cell, f"instruction_{cell.instruction}")] if cell.instruction else []
    if item.images:
        system, content = "system_multimodal", _with_query_image(item, evidence, kind, cell, instruction)
    elif kind == "tiles":
        system = "system_evidence"
        content = [text_part(item.question), *map(image_part, evidence.images), *map(text_part, instruction)]
    elif kind == "text":
        system = "system_evidence"
        content = "\n\n".join([*evidence.texts, f"Question: {item.question}", *instruction])
    else:
        system = "system_naive"
        content = "\n\n".join([item.question, *instruction])
    return [
        {"role": "system", "content": prompts.get(cell.prompts, system)},
        {"role": "user", "content": content},
    ]


def _with_query_image(
    item: Item, evidence: Evidence, kind: str, cell: Cell, instruction: list[str]
) -> list[dict[str, Any]]:
    """Return one text block, then the query image, then the tiles in rank order."""
    blocks = [f"Question: {item.question}", prompt_line(cell, _NOTES[kind])]
    blocks += ["\n\n".join(evidence.texts)] if kind == "text" else []
    text = "\n\n".join(blocks + instruction)
    return [text_part(text), *map(image_part, item.images), *map(image_part, evidence.images)]


def _lettered(options: list[str]) -> list[str]:
    """Return options as lines ``A. text``; one that has its letter already stays as it is."""
    pairs = zip(ascii_uppercase, options, strict=False)
    return [text if text.startswith(f"{letter}. ") else f"{letter}. {text}" for letter, text in pairs]


def _options(item: Item) -> list[str]:
    """Return the options of a multiple-choice question.

    Raises:
        RemeasureError: the question has none.
    """
    options = item.meta.get("options")
    if not isinstance(options, list) or len(options) < 2:
        raise RemeasureError(
            f"item {item.item_id!r}: a multiple-choice question needs meta.options, a list of at least two "
            f"texts (and as its reference the letter of the right one); found {options!r}; correct the "
            "question file"
        )
    return options


def _choice(item: Item, evidence: Evidence, kind: str, cell: Cell) -> list[dict[str, Any]]:
    """Return the multiple-choice layout: no system message; photo, tiles, one text block."""
    values = {
        "note": prompt_line(cell, _NOTES[kind]),
        "passages": "\n---\n".join(evidence.texts),
        "question": item.question,
        "options": "\n".join(_lettered(_options(item))),
    }
    text = prompts.fill(prompts.get(cell.prompts, "choice"), values)
    return [
        {
            "role": "user",
            "content": [*map(image_part, item.images), *map(image_part, evidence.images), text_part(text)],
        }
    ]


def gold(item: Item, form: str) -> str:
    """Return the gold answer as the judge is told it.

    Source:
        Page-image card 8.3 and 8.4: SimpleQA and MMSearch the first reference, EVQA "Any of:" with all of
        them, also for a single one.
    """
    return "Any of: " + " | ".join(item.references) if form == "any_of" else item.references[0]


def judge_messages(item: Item, response: Response, cell: JudgeCell) -> list[dict[str, Any]]:
    """Return what the judge is shown for one answer, thinking removed.

    The prompt may name the values question, target, predicted_answer, or answer_json (all three as one line
    of JSON). A system message is sent when the prompts hold ``judge_system``.
    """
    answer, _ = strip_thinking(response.text or "")
    target = gold(item, cell.gold)
    values = {
        "question": item.question,
        "target": target,
        "predicted_answer": answer,
        "answer_json": json.dumps(
            {"question": item.question, "gold": target, "answer": answer}, ensure_ascii=False
        ),
    }
    asked = [{"role": "user", "content": prompts.fill(prompts.get(cell.prompts, cell.grader), values)}]
    if "judge_system" in cell.prompts:
        return [{"role": "system", "content": cell.prompts["judge_system"]}, *asked]
    return asked
