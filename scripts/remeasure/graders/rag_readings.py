"""From a judge's replies, or from a comparison, to the readings of an answer.

What became of an answer is an ``Outcome`` per reading; the scores follow from it in one place.
"""

from dataclasses import dataclass

from remeasure import thinking
from remeasure.rag import traces, verdicts
from remeasure.records import Item, Reading, Response, ShownLine

ELIGIBLE = ("ANSWERABLE", "UNANSWERABLE")
"""Answerability labels that make a refusal right or wrong."""
JUDGE_FAILED, JUDGE_UNREADABLE = "judge_failed", "judge_unreadable"


@dataclass(frozen=True)
class Said:
    """What a judge says about an answer: yes or no, or why it says nothing."""

    passed: bool | None
    reason: str
    problem: str | None = None
    """``judge_failed`` or ``judge_unreadable``; null where it says yes or no."""

    def shown(self, *, is_verdict: bool = True) -> ShownLine:
        """Return it as a line of the page; a yes or no that makes no answer good or bad is told in words."""
        if self.problem is not None:
            return ShownLine(text=self.reason, note=self.problem.replace("_", " "))
        word = "yes" if self.passed else "no"
        if not is_verdict:
            return ShownLine(text=self.reason, note=word)
        return ShownLine(text=self.reason, mark=word)


def said_by(reply: Response | None) -> Said:
    """Read a judge's reply.

    A reply that the token limit cut off, or that never ends its thinking, is unreadable: it is no verdict,
    and never 0.
    """
    if reply is None:
        return Said(None, "judge not asked", JUDGE_FAILED)
    if reply.status == "cut_off":
        return Said(None, "judge cut off", JUDGE_UNREADABLE)
    if reply.status != "answered":
        return Said(None, f"judge {reply.status.replace('_', ' ')}", JUDGE_FAILED)
    text = reply.text or ""
    if verdicts.whole(text) is None:
        found = thinking.behind(text)
        if not found.ends or not found.text.strip():
            return Said(None, "the judge's reply is empty", JUDGE_UNREADABLE)
        text = found.text
    verdict = verdicts.read(text)
    if verdict.passed is None:
        return Said(None, verdict.problem or "no verdict", JUDGE_UNREADABLE)
    return Said(verdict.passed, verdict.reason)


@dataclass(frozen=True)
class Outcome:
    """What an answer counts as under one reading."""

    verdict: str
    score: float | None
    """Null where it leaves the denominator."""
    reason: str
    counted: bool = True
    """Whether citations, costs and refusals of the answer count: not where the system gave none."""


def reading(item: Item, response: Response, outcome: Outcome, further: dict[str, float | None]) -> Reading:
    """Return the reading of an outcome with all that is measured beside it.

    Args:
        item: the question.
        response: the answer with its trace.
        outcome: what it counts as.
        further: scores that not every grader has.
    """
    trace = traces.trace_of(response) if outcome.counted else None
    citing = traces.citing_scores(item, trace) if outcome.counted else traces.no_citing_scores()
    costs, weights = traces.cost_scores(trace)
    scores = {"accuracy_of_all": outcome.score or 0.0, **citing, **costs, **further}
    return Reading(
        verdict=outcome.verdict, score=outcome.score, reason=outcome.reason, scores=scores, weights=weights
    )


def refusal_scores(item: Item, refusal: Said | None, counted: bool) -> dict[str, float | None]:
    """Return what a refusal, or a missing one, counts for precision and recall.

    Without a label that makes it right or wrong, or without a verdict on it, there is nothing: a cell that
    has neither has no such numbers, rather than zeros.

    Args:
        item: the question.
        refusal: what the judge says; null where it was not asked.
        counted: whether the answer counts in this reading; else both are null.

    Source:
        RAG card, section 3.5: precision over answers that refuse, recall over unanswerable questions; only
        answers whose refusal was judged.
    """
    label = item.meta.get("answerability")
    passed = refusal.passed if refusal else None
    if label not in ELIGIBLE or passed is None:
        return {}
    is_unanswerable = label == "UNANSWERABLE"
    return {
        "refusal_precision": float(is_unanswerable) if passed and counted else None,
        "refusal_recall": float(passed) if is_unanswerable and counted else None,
    }
