"""Ranked lists of diagnoses: does the right one stand in the list, and where?

Readings: ``published`` repeats the original, which scores the text of a failed request and "nan" for a
missing one, and takes any substring for a hit. ``strict`` leaves out what is no whole answer and compares
whole words. A judge, where there is one, says five things beside it; the headline does not depend on it.

Source:
    MRareBench card, sections 4 to 6.1.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from remeasure import failing
from remeasure.diagnoses import judging, matching, rankings, telling
from remeasure.diagnoses.judging import Judged
from remeasure.diagnoses.rankings import HEADLINE, RECALL_AT, Ranking
from remeasure.diagnoses.spans import MOST
from remeasure.graders.base import SCORES, Case, Grader, MetricName, Unit
from remeasure.records import Graded, Reading, Response

METRICS = (
    *(MetricName(f"recall@{k}", f"Recall@{k}") for k in RECALL_AT),
    MetricName("mrr", "MRR"),
    MetricName("mr", "MR", better="low", kind="number", if_none=0.0, shows_n=True),
    MetricName("hit_rate", "Hit rate"),
    MetricName("parse_fail_rate", "Parse failures", better="low"),
    MetricName("infer_fail_rate", "Failed requests", better="low"),
)
JUDGED = (
    MetricName("judge_score", "Judge score"),
    MetricName("judge_presence", "Judge: in the list"),
    MetricName("judge_top1", "Judge: first"),
    MetricName("judge_typematch", "Judge: type match (0-3)", kind="number"),
    MetricName("judge_specificity", "Judge: specific"),
    MetricName("judge_coherence", "Judge: coherent"),
)
_OF_JUDGE = tuple(metric.name for metric in JUDGED)
_SUBSTRING = "substring"
_MANY_IMAGES = 4


class Judgement(Struct, frozen=True):
    """The judge's five lines under both readings; null where a reading has none."""

    published: Judged | None
    strict: Judged | None
    problem: str | None = None
    """Why there is no strict one."""
    kind: str | None = None
    """What went wrong with the judge, as tables name it: ``judge_failed`` or ``judge_unreadable``."""


def judgement(reply: Response | None, published: Ranking, strict: Ranking) -> Judgement:
    """Read the judge's reply about a list.

    The original counts zeros where it has a row but no reply; the strict reading has no number then.
    """
    text = (reply.text or "") if reply is not None else ""
    zeros = judging.published(text) if text else judging.NOTHING
    as_published = None if published.left_out is not None else zeros
    if reply is None:
        missing = strict.left_out is None
        return Judgement(as_published, None, "judge: not asked", "judge_failed" if missing else None)
    state = _no_reply(reply)
    if state is not None:
        return Judgement(as_published, None, f"judge: {state}", "judge_failed")
    found = judging.strict(text)
    if isinstance(found, str):
        return Judgement(as_published, None, f"judge: {found}", "judge_unreadable")
    return Judgement(as_published, None if strict.failed else found)


def _no_reply(reply: Response) -> str | None:
    """Return why a judge said nothing about the list; null where it did, readable or not."""
    if reply.status != "answered":
        return reply.status.replace("_", " ")
    kind = failing.kind_of(reply)
    return {failing.EMPTY: "empty reply", failing.MARKED: "sentence of a failed request"}.get(kind or "")


def _judge_scores(judged: Judged | None) -> dict[str, float | None]:
    if judged is None:
        return dict.fromkeys(_OF_JUDGE)
    return dict(zip(_OF_JUDGE, (judged.score, *map(float, judged.values)), strict=True))


def _reading(ranking: Ranking, further: Mapping[str, float | None]) -> Reading:
    return Reading(
        verdict=ranking.verdict,
        score=SCORES[ranking.verdict],
        reason=ranking.reason,
        scores={**ranking.scores(), **further},
    )


def _both(case: Case) -> tuple[Ranking, Ranking]:
    return tuple(read(case.response, case.references) for read in (rankings.published, rankings.strict))


def _published(case: Case) -> Reading:
    return _reading(_both(case)[0], {})


def _strict(case: Case) -> Reading:
    return _reading(_both(case)[1], {})


def _published_judged(case: Case) -> Reading:
    published, strict = _both(case)
    return _reading(published, _judge_scores(judgement(case.judge, published, strict).published))


def _strict_judged(case: Case) -> Reading:
    published, strict = _both(case)
    return _reading(strict, _judge_scores(judgement(case.judge, published, strict).strict))


class RankedListGrader(Grader):
    """Grades one list per item; what it counts further and shows is the same with and without a judge."""

    headline = HEADLINE
    needs_form = True

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the rules behind the numbers and their thresholds."""
        super().method(options)
        shared = f"token F1 >= {matching.F1_AT_LEAST}"
        return {
            "lists": "published@1 strict@1",
            "hits_published": f"equal, substring, {shared} @1",
            "hits_strict": f"whole words: equal, substring, {shared}, one word >= {matching.FEWEST_LETTERS} "
            f"letters, {len(matching.GENERIC)} generic words @1",
        }

    def _grade(self, unit: Unit) -> Graded:
        (item,), (response,), (reply,) = unit.items, unit.responses, unit.judge
        case = Case(references=item.references, response=response, judge=reply, thinking=unit.thinking)
        published, strict = _both(case)
        by_reading = {"published": published, "strict": strict}
        said = judgement(reply, published, strict) if self.judged else None
        shown = list(telling.shown(by_reading, item.references))
        if said and reply is not None:
            shown.append(telling.shown_judgement(said.published, said.strict, said.problem))
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=None if response.text is None else case.answer,
            grader=self.label,
            judge_key=reply.key if reply else None,
            judge_status=reply.status if reply else None,
            published=_reading(published, _judge_scores(said.published) if said else {}),
            strict=_reading(strict, _judge_scores(said.strict) if said else {}),
            strata={
                "images": _images(len(item.images)),
                "names": "one" if len(item.references) == 1 else "more",
            },
            counts=_counts(published, strict) | (_judge_counts(said, published, strict) if said else {}),
            marks=telling.marks(item.item_id, by_reading, response.text),
            shown=tuple(shown),
        )


def _images(n: int) -> str:
    return str(n) if n < _MANY_IMAGES else f"{_MANY_IMAGES} or more"


def _counts(published: Ranking, strict: Ranking) -> dict[str, int]:
    """Count what a reader of the table wants to know beside the numbers."""
    n_strict = len(strict.parsed.found)
    return {
        "hits": int(published.rank is not None),
        "hits_strict": int(strict.rank is not None),
        "hits_published_only": int(published.rank is not None and strict.rank is None),
        "hits_strict_only": int(strict.rank is not None and published.rank is None),
        "hits_by_substring": int(published.first is not None and published.first.how == _SUBSTRING),
        "hits_of_no_answer": int(published.rank is not None and bool(strict.failed)),
        "doubled_diagnoses": strict.parsed.n_doubled,
        "diagnoses_beyond_ten": strict.parsed.n_beyond,
        "short_lists": int(0 < n_strict < MOST),
        "lists_read_differently": int(
            strict.left_out is None and published.parsed.candidates != strict.parsed.candidates
        ),
    }


def _judge_counts(said: Judgement, published: Ranking, strict: Ranking) -> dict[str, int]:
    """Count what is wrong with the judge's replies, and where it sees another list or another hit."""
    judged = said.strict
    other = judged is not None and published.parsed.candidates != strict.parsed.candidates
    return {
        "judge_failed": int(said.kind == "judge_failed"),
        "judge_unreadable": int(said.kind == "judge_unreadable"),
        "judge_contradicts_itself": int(judged is not None and bool(judged.contradictions)),
        "judge_against_rule": int(judged is not None and bool(judged.presence) != (strict.rank is not None)),
        "judge_saw_another_list": int(other),
    }


RANKED_LIST = RankedListGrader("ranked_list", 1, False, _published, _strict, METRICS)
JUDGE_RANKED_LIST = RankedListGrader(
    "judge_ranked_list", 1, True, _published_judged, _strict_judged, METRICS + JUDGED
)
