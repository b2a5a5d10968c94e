"""Answers with citations, by a judge; refusals against answerability.

Readings: ``published`` treats a judge that failed as the bench says (``judge_failure``), and leaves out what
the system did not answer, of a live conversation all of it (``task_failure: conversation``). ``strict``
leaves out what is no answer or has no verdict, keeps the answered turns of a broken conversation, and takes
an empty answer for wrong without asking. ``accuracy_of_all`` counts in both whatever did not pass as wrong:
the lower bound.

Source:
    RAG card, sections 2.5 to 2.7 and 3.2 to 3.6.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from remeasure.graders.base import Case, Unit, no_answer
from remeasure.graders.rag_base import ANSWERS, CITING, CONVERSING, RagGrader, strata_of
from remeasure.graders.rag_readings import (
    ELIGIBLE,
    JUDGE_UNREADABLE,
    Outcome,
    Said,
    reading,
    refusal_scores,
    said_by,
)
from remeasure.rag import traces
from remeasure.records import Graded, Item, Reading, Shown

REFUSAL = "refusal"
"""Name of the further question to the judge."""


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the grader: the published policies."""

    judge_failure: Literal["wrong", "exclude"]
    """What an answer counts as whose judge failed or cannot be read."""
    task_failure: Literal["case", "conversation"] = "case"
    """What is left out with a question that the system did not answer: itself, or its conversation."""


class JudgeRagAnswer(RagGrader):
    """Gives every answer the judge's verdict, its citations, and whether it rightly refused."""

    name = "judge_rag_answer"
    judged = True
    metrics = (*ANSWERS, *CITING, *CONVERSING)
    headline = "accuracy"
    needs_form = True
    questions = (REFUSAL,)
    kind = Options

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the policies."""
        found = self.options(options)
        return {
            "judge_failure": f"published: {found.judge_failure}; strict: exclude",
            "task_failure": f"published: {found.task_failure} excluded; strict: case excluded",
            "verdict": "structured, else the last one @1",
        }

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the answers of one cell."""
        return Grading(self.label, self.options(options))


class Grading:
    """Grades the answers of one cell; is shown whole conversations before, since one failure is of all."""

    by_group = True
    """What ``foresee`` is shown: all units of a group."""

    def __init__(self, label: str, options: Options) -> None:
        self._label = label
        self._options = options
        self._broken: set[str] = set()

    def foresee(self, units: Sequence[Unit]) -> None:
        """Note whether a conversation has a turn that the system did not answer."""
        lost = any(traces.is_lost(unit.responses[0]) for unit in units)
        self._broken = {units[0].items[0].group} if lost else set()

    def __call__(self, unit: Unit) -> Graded:
        """Grade one answer."""
        (item,), (response,), (reply,) = unit.items, unit.responses, unit.judge
        case = Case(references=item.references, response=response, judge=reply, thinking=unit.thinking)
        said = said_by(reply)
        refusal = self._refusal(unit)
        outcomes = self._published(item, case, said), _strict(case, said)
        published, strict = (_reading(item, case, outcome, refusal) for outcome in outcomes)
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=None if response.text is None else case.answer,
            grader=self._label,
            judge_key=reply.key if reply else None,
            judge_status=reply.status if reply else None,
            published=published,
            strict=strict,
            strata=strata_of(item),
            counts=traces.counts(response) | self._counts(item, case, outcomes[0], refusal),
            shown=_shown(said, refusal) if reply else (),
        )

    def _refusal(self, unit: Unit) -> Said | None:
        """Return what the judge says to the further question; null where it was not asked."""
        further = unit.further[0] if unit.further else {}
        return said_by(further[REFUSAL]) if REFUSAL in further else None

    def _published(self, item: Item, case: Case, said: Said) -> Outcome:
        if traces.is_lost(case.response):
            return Outcome("ungraded", None, f"system {case.response.status}: left out", counted=False)
        if self._is_broken(item):
            return Outcome("ungraded", None, "another turn failed: conversation left out", counted=False)
        if said.problem is None:
            return _judged(said)
        if self._options.judge_failure == "wrong":
            return Outcome(said.problem, 0.0, f"{said.reason}: counted as wrong")
        return Outcome(said.problem, None, f"{said.reason}: left out")

    def _is_broken(self, item: Item) -> bool:
        return self._options.task_failure == "conversation" and item.group in self._broken

    def _counts(self, item: Item, case: Case, published: Outcome, refusal: Said | None) -> dict[str, int]:
        label = item.meta.get("answerability")
        judged = refusal is not None and refusal.passed is not None and published.counted
        eligible = label in ELIGIBLE and judged
        failed = refusal is not None and refusal.problem is not None
        return {
            "scored": int(published.score is not None),
            "left_out_with_conversation": int(self._is_broken(item) and not traces.is_lost(case.response)),
            "refusals": int(eligible and bool(refusal and refusal.passed)),
            "unanswerable": int(eligible and label == "UNANSWERABLE"),
            "refusal_judge_failed": int(failed and refusal.problem != JUDGE_UNREADABLE),
            "refusal_judge_unreadable": int(failed and refusal.problem == JUDGE_UNREADABLE),
        }


def _judged(said: Said) -> Outcome:
    return Outcome("correct", 1.0, "judge: pass") if said.passed else Outcome("incorrect", 0.0, "judge: fail")


def _strict(case: Case, said: Said) -> Outcome:
    missing = no_answer(case)
    if missing:
        return Outcome(missing.verdict, None, missing.reason, counted=not traces.is_lost(case.response))
    if not case.strict_answer.strip():
        return Outcome("incorrect", 0.0, "empty answer")
    return Outcome(said.problem, None, said.reason) if said.problem else _judged(said)


def _reading(item: Item, case: Case, outcome: Outcome, refusal: Said | None) -> Reading:
    found = reading(item, case.response, outcome, refusal_scores(item, refusal, outcome.counted))
    macro = {"macro_accuracy": outcome.score, "macro_cited_map": found.scores["cited_map"]}
    return Reading(
        verdict=found.verdict,
        score=found.score,
        reason=found.reason,
        scores=found.scores | macro,
        weights=found.weights,
    )


def _shown(said: Said, refusal: Said | None) -> tuple[Shown, ...]:
    lines = [Shown(title="Judge", lines=(said.shown(),))]
    if refusal is not None:
        lines.append(Shown(title="Judge: does it decline?", lines=(refusal.shown(is_verdict=False),)))
    return tuple(lines)


JUDGE_RAG_ANSWER = JudgeRagAnswer()
