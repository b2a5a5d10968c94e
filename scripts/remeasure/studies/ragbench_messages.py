"""What systems and judges are shown in the RAG benchmarks.

A system gets its question and nothing else: how it searches and answers is its own. A judge gets tagged
sections, in the order and form of pydantic-evals' rubric judge; the prompts are rubrics, and
what stands before them.

Source:
    RAG benchmark card, 2.3 (search), 2.5 and 2.6 (conversations), 2.7 (judge).
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from remeasure import prompts
from remeasure.cells import Cell, JudgeCell
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.evidence import Evidence
from remeasure.messages import prompt_line
from remeasure.records import Item, Response, Turn
from remeasure.systems.contract import DOES, TARGETS

REFUSAL = "refusal"
REFUSAL_LABELS = ("ANSWERABLE", "UNANSWERABLE")
"""Answerability of the turns where declining is right or wrong; others are not asked about."""
_ROLES = {"user": "user", "agent": "assistant"}
# An answer must not end its own section.
_TAG = re.compile(r"<(?=\s*/?\s*(?:Input|Output|ExpectedOutput|Rubric)\s*>)", re.IGNORECASE)


class Arm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of an arm."""

    target: str | None = None
    """How an answer is made; null where there is only a search."""


class Told(msgspec.Struct, frozen=True):
    """What requests and judges take from ``meta`` of an item."""

    turns: list[Turn] = []
    """The conversation with reference answers, ending with the question."""
    turn: int | None = None
    """Number of the turn; null where the question stands alone."""
    answerability: str | None = None


def messages(item: Item, evidence: Evidence, cell: Cell) -> list[dict[str, Any]]:
    """Return what a system is asked.

    Returns:
        Of a search the query as one user message; of an answer the conversation as it is given; of a live
        conversation the user's questions so far. A preamble of the bench stands before as a system message.

    Raises:
        RemeasureError: nothing that a system does; an item without conversation.
    """
    does = (cell.task or {}).get("do")
    if does not in DOES:
        raise RemeasureError(
            f"task.do is {does!r}; expected {', '.join(DOES)}: correct task of the bench in "
            "config/studies/ragbench.yaml"
        )
    if does == "search":
        return [{"role": "user", "content": item.question}]
    turns = _told(item, needs_turns=True).turns
    if does == "converse":
        turns = [turn for turn in turns if turn.speaker == "user"]
    preamble = (
        [] if cell.instruction is None else [_system(prompt_line(cell, f"instruction_{cell.instruction}"))]
    )
    return [*preamble, *({"role": _ROLES[turn.speaker], "content": turn.text} for turn in turns)]


def check_arm(options: dict[str, Any], file: str, grader: str) -> None:
    """Check that an arm belongs to a bench's grader, before anything is asked.

    Args:
        options: of the arm.
        file: not used; there is no index of images.
        grader: of the bench.

    Raises:
        RemeasureError: unknown options, an unknown target, answers in a search or none where they are graded.
    """
    try:
        arm = msgspec.convert(options, Arm)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"options {json.dumps(options, sort_keys=True)} of an arm: {error}; expected target: "
            f"{' or '.join(TARGETS)}, or nothing for a search"
        ) from None
    if arm.target is not None and arm.target not in TARGETS:
        raise RemeasureError(
            f"options.target of an arm is {arm.target!r}{did_you_mean(arm.target, TARGETS)}; expected "
            f"{' or '.join(TARGETS)}"
        )
    if (arm.target is None) != (grader == "ranked_documents"):
        wanted = (
            "no target: it only searches"
            if grader == "ranked_documents"
            else f"a target, {' or '.join(TARGETS)}"
        )
        raise RemeasureError(f"options.target of an arm is {arm.target!r}; grader {grader} needs {wanted}")


def judge_messages(item: Item, response: Response, cell: JudgeCell) -> list[dict[str, Any]]:
    """Return what the judge is shown to compare an answer with its reference.

    Raises:
        RemeasureError: a prompt that is not there, or an item without conversation.
    """
    sections = {
        "Input": _input(item, response),
        "Output": response.text or "",
        "ExpectedOutput": item.references[0] if item.references else "",
    }
    return _judged(cell, cell.grader, sections)


def further_judge_messages(
    item: Item, response: Response, cell: JudgeCell
) -> dict[str, list[dict[str, Any]]]:
    """Return what the judge is shown to say whether an answer declines, where that is right or wrong."""
    if _told(item, needs_turns=False).answerability not in REFUSAL_LABELS:
        return {}
    return {REFUSAL: _judged(cell, f"judge_{REFUSAL}", {"Output": response.text or ""})}


def _judged(cell: JudgeCell, name: str, sections: dict[str, str]) -> list[dict[str, Any]]:
    """Return the system message and the tagged sections, the rubric last."""
    own = f"{name}_system"
    system = prompts.get(cell.prompts, own if own in cell.prompts else "judge_system")
    rubric = prompts.get(cell.prompts, name).removesuffix("\n")
    fenced = {tag: _TAG.sub("&lt;", text) for tag, text in sections.items()} | {"Rubric": rubric}
    told = "\n".join(f"<{tag}>\n{text}\n</{tag}>" for tag, text in fenced.items())
    return [_system(system.removesuffix("\n")), {"role": "user", "content": told}]


def _input(item: Item, response: Response) -> str:
    """Return the conversation that the answer belongs to: as it went where it was live, else as it was given.

    A question that stands alone is shown bare.
    """
    told = _told(item, needs_turns=True)
    if told.turn is None:
        return told.turns[-1].text
    went = response.trace.before if isinstance(response.trace, msgspec.Struct) else ()
    return _transcript([*went, told.turns[-1]] if went else told.turns)


def _transcript(turns: Sequence[Turn]) -> str:
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)


def _told(item: Item, needs_turns: bool) -> Told:
    try:
        told = msgspec.convert(item.meta, Told)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"item {item.item_id!r}: meta: {error}; expected turns of speaker and text: correct the "
            "question file"
        ) from None
    if needs_turns and (not told.turns or told.turns[-1].speaker != "user"):
        raise RemeasureError(
            f"item {item.item_id!r}: meta.turns does not end with a question of the user; correct the "
            "question file"
        )
    return told


def _system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}
