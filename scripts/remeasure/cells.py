"""What a request builder knows of its cell.

The settings as the workflow gives them, and the frozen view of them that a study's message functions see.
"""

from typing import Any, Literal

import msgspec

from remeasure.prompts import PromptFiles
from remeasure.records import Record

EvidenceKind = Literal["none", "text", "tiles"]


class Sampling(Record, kw_only=True, omit_defaults=True):
    """Neutral sampling words; a word that is not set is not sent."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: list[str] | None = None


class AskSettings(Record, kw_only=True):
    """Settings of ``build_requests``."""

    model: str
    evidence: EvidenceKind
    n_shown: int
    item_images: bool = True
    """Whether the images of the questions themselves are shown."""
    options: dict[str, Any] = {}
    """What the study's messages are told about the arm."""
    grader: str
    """Not used for the messages; kept so that the record says what the answers are meant for."""
    thinking: bool | None
    max_tokens: int
    sampling: Sampling
    instruction: str | None
    """Name of the task instruction: prompt ``instruction_<name>``."""
    layout: Literal["choice"] | None
    prompts: PromptFiles
    image_detail: Literal["auto", "low", "high"] | None = None
    """What is asked for with every image; null: nothing is said."""
    task: dict[str, Any] | None = None
    """What a system is to do (``systems.contract.Task``); null where a model is asked."""
    max_share_without_evidence: float = 0.0
    """Share of items that may be asked although nothing was retrieved for them; below 0.05."""


class JudgeSettings(Record, kw_only=True):
    """Settings of ``build_judge_requests``."""

    model: str
    grader: str
    """Name of the judge prompt."""
    gold: Literal["first", "any_of"]
    """What the judge is told: the first reference, or "Any of: a | b"."""
    max_tokens: int
    sampling: Sampling
    prompts: PromptFiles
    thinking: bool | None = None
    response_format: dict[str, Any] | None = None
    """Shape that a verdict must have."""
    with_answers: bool = True
    """Whether every item needs an answer; not where the grader compares with none."""


class Cell(Record, kw_only=True):
    """What a study's ``messages`` sees of a cell."""

    evidence: EvidenceKind
    thinking: bool | None
    instruction: str | None
    layout: Literal["choice"] | None
    prompts: dict[str, str]
    """Prompt name to text."""
    images: bool = True
    """Whether the images of the question itself are shown."""
    options: dict[str, Any] = {}
    """What the study's settings say about the arm."""
    task: dict[str, Any] | None = None
    """What a system is to do with the messages; null where a model is asked."""


class JudgeCell(Record, kw_only=True):
    """What a study's ``judge_messages`` sees of a cell."""

    grader: str
    gold: Literal["first", "any_of"]
    prompts: dict[str, str]


def as_json(settings: Any) -> dict[str, Any]:
    """Return settings as plain values for a stage record."""
    return msgspec.to_builtins(settings)
