"""Numbers in answers against a gold number: "NumberMatch (haiku.rag rules)", and a strict reading beside it.

The official scorer of T²-RAGBench was not available: this is not it. A question that the system did not
answer leaves the denominator; ``accuracy_of_all`` counts it as wrong, as the public leaderboard does.

Source:
    RAG card, sections 1.3 and 3.4.
"""

from collections.abc import Callable, Mapping
from typing import Any

from remeasure.graders.base import Case, Unit, no_answer
from remeasure.graders.rag_base import ANSWERS, CITING, RagGrader, strata_of
from remeasure.graders.rag_readings import Outcome, reading
from remeasure.rag import numbers, strict_numbers, traces
from remeasure.records import Graded, Shown, ShownLine


class NumberMatch(RagGrader):
    """Gives every answer 1 or 0 by its number."""

    name = "number_match"
    metrics = (*ANSWERS, *CITING)
    headline = "accuracy"

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the rules and their tolerance."""
        self.options(options)
        scales = ", ".join(f"{scale:g}" for scale in numbers.SCALES)
        return {
            "numbers": f"published: haiku.rag rules @1, tolerance {numbers.TOLERANCE:g}, sign ignored, times "
            f"{scales}",
            "numbers_strict": "one number on the answer line, sign counts, times 1, 0.01, 100 @1",
        }

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the answers of one cell."""
        self.options(options)
        return self._grade

    def _grade(self, unit: Unit) -> Graded:
        (item,), (response,) = unit.items, unit.responses
        case = Case(references=item.references, response=response, judge=None, thinking=unit.thinking)
        gold = item.references[0] if item.references else ""
        outcomes = _published(gold, case), _strict(gold, case)
        published, strict = (reading(item, response, outcome, {}) for outcome in outcomes)
        only_loose = published.score == 1.0 and strict.score != 1.0
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=None if response.text is None else case.answer,
            grader=self.label,
            published=published,
            strict=strict,
            strata=strata_of(item),
            counts=traces.counts(response)
            | {
                "scored": int(published.score is not None),
                "gold_without_number": int(not numbers.numbers(gold)),
                "answer_lines": int(numbers.answer_line(case.answer) is not None),
                "matched_only_loosely": int(only_loose),
            },
            shown=_shown(gold, case),
        )


def _published(gold: str, case: Case) -> Outcome:
    if traces.is_lost(case.response):
        return Outcome("ungraded", None, f"system {case.response.status}: left out", counted=False)
    if numbers.matches(gold, case.answer):
        return Outcome("correct", 1.0, "a number matches")
    if not numbers.numbers(gold):
        return Outcome("incorrect", 0.0, "gold answer without a number")
    return Outcome("incorrect", 0.0, "no number matches" if case.answer.strip() else "empty answer")


def _strict(gold: str, case: Case) -> Outcome:
    missing = no_answer(case)
    if missing:
        return Outcome(missing.verdict, None, missing.reason, counted=not traces.is_lost(case.response))
    wanted = strict_numbers.numbers(gold)
    if not wanted:
        return Outcome("ungraded", None, "gold answer without a number")
    if not case.strict_answer.strip():
        return Outcome("incorrect", 0.0, "empty answer")
    found = strict_numbers.answer(case.strict_answer)
    if found.value is None:
        return Outcome("unreadable", 0.0, found.problem or "")
    if strict_numbers.matches(wanted[0], found.value):
        return Outcome("correct", 1.0, "the number matches")
    return Outcome("incorrect", 0.0, "another number")


def _shown(gold: str, case: Case) -> tuple[Shown, ...]:
    """Return the gold number and what was taken for the answer."""
    if traces.is_lost(case.response):
        return ()
    found = strict_numbers.answer(case.strict_answer)
    line = numbers.answer_line(case.answer)
    return (
        Shown(
            title="Number",
            lines=(
                ShownLine(text=gold, note="gold"),
                ShownLine(text="" if line is None else line.strip(), note="answer line"),
                ShownLine(
                    text="" if found.value is None else f"{found.value:g}",
                    note=found.problem or "strict reading",
                ),
            ),
        ),
    )


NUMBER_MATCH = NumberMatch()
