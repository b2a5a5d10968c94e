"""From responses to verdicts and the number of a cell, in one pass in item order."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from remeasure import stats
from remeasure.aligned import Aligned
from remeasure.errors import RemeasureError
from remeasure.graders import Case, Grader
from remeasure.records import Graded, Item, Ranked, Response, Score

_NEVER_JUDGED = ("failed", "refused", "not_sent")


class Bootstrap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Number of resamples and seed of every bootstrap of a stage."""

    n: int
    seed: int


class GradeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the grading of one cell depends on."""

    study: str
    bench: str
    arm: str
    model: str
    grader: str
    k: int
    """Retrieved items that the reader is shown; recall looks at these."""
    thinking: bool
    """Whether the reader thinks in this cell."""
    reader: str
    judge: str | None
    corpus: str
    bootstrap: Bootstrap
    max_judge_failed_share: float
    """Judge failures above this share of the judged items stop the rule."""


def check_references(items: Iterable[Item], path: Path | str) -> Iterator[Item]:
    """Pass items through; stop at the first without a usable gold answer.

    Raises:
        RemeasureError: references are missing or blank; every answer would be graded wrong.
    """
    for number, item in enumerate(items, start=1):
        if not item.references or not all(reference.strip() for reference in item.references):
            raise RemeasureError(
                f"{path} line {number}: item {item.item_id!r} has references {list(item.references)}, "
                "expected at least one and none blank; correct the items, or the cell cannot be graded"
            )
        yield item


@dataclass
class Tally:
    """What a cell's graded items add up to."""

    scores: list[float] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    strict_scores: list[float] = field(default_factory=list)
    n: int = 0
    n_differ: int = 0
    n_judged: int = 0
    n_found: int = 0
    n_with_gold_page: int = 0
    statuses: Counter = field(default_factory=Counter)
    judge_statuses: Counter = field(default_factory=Counter)
    verdicts: Counter = field(default_factory=Counter)
    verdicts_strict: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    """Items per reading and reason: fallbacks of parsers, empty answers and the like."""

    def add(self, graded: Graded) -> None:
        """Count one item."""
        self.n += 1
        self.statuses[graded.status] += 1
        self.verdicts[graded.published.verdict] += 1
        self.verdicts_strict[graded.strict.verdict] += 1
        self.reasons[f"published: {graded.published.reason}"] += 1
        self.reasons[f"strict: {graded.strict.reason}"] += 1
        self.n_differ += graded.published.score != graded.strict.score
        if graded.judge_status is not None:
            self.n_judged += 1
            self.judge_statuses[graded.judge_status] += 1
        if graded.published.score is not None:
            self.scores.append(graded.published.score)
            self.groups.append(graded.group)
        if graded.strict.score is not None:
            self.strict_scores.append(graded.strict.score)

    def add_ranking(self, item: Item, ranked: Ranked | None, k: int) -> None:
        """Count whether a relevant page is among the first k; without hits it is a miss.

        Items whose gold page is not known are not counted.
        """
        if not item.relevant:
            return
        self.n_with_gold_page += 1
        shown = {page_of(unit) for unit in ranked.ids[:k]} if ranked else set()
        self.n_found += not shown.isdisjoint(item.relevant)


def page_of(unit_id: str) -> str:
    """Return the page that a tile, passage or picture belongs to: what stands before the last slash."""
    return unit_id.rpartition("/")[0] or unit_id


def grade_item(
    grader: Grader, item: Item, response: Response, judge: Response | None, *, thinking: bool
) -> Graded:
    """Give one item both readings."""
    case = Case(references=item.references, response=response, judge=judge, thinking=thinking)
    return Graded(
        item_id=item.item_id,
        group=item.group,
        status=response.status,
        answer=None if response.text is None else case.answer,
        grader=grader.label,
        judge_key=judge.key if judge else None,
        judge_status=judge.status if judge else None,
        published=grader.published(case),
        strict=grader.strict(case),
    )


def grade_all(
    grader: Grader,
    items: Iterable[Item],
    responses: Aligned[Response],
    judge: Aligned[Response] | None,
    *,
    thinking: bool,
) -> Iterator[tuple[Item, Graded]]:
    """Yield every item with its verdict, in item order.

    Raises:
        RemeasureError: an item has no response, or an answer that needs a judge has no judge's reply.
    """
    for item in items:
        response = responses.take(item.item_id)
        if response is None:
            raise RemeasureError(
                f"item {item.item_id!r} has no line of its own in the responses, or stands out of order; "
                "each request ends in one: delete responses.jsonl and rerun, it is assembled from the journal"
            )
        reply = judge.take(item.item_id) if judge is not None else None
        graded = grade_item(grader, item, response, reply, thinking=thinking)
        if judge is not None and reply is None and _needs_judge(graded):
            raise RemeasureError(
                f"item {item.item_id!r} has an answer but no line in the judge's responses; delete the "
                "judge's requests.jsonl of this cell and rerun"
            )
        yield item, graded
    responses.finish()
    if judge is not None:
        judge.finish()


def _needs_judge(graded: Graded) -> bool:
    return graded.status not in _NEVER_JUDGED and bool((graded.answer or "").strip())


def check_judge(tally: Tally, max_failed_share: float) -> None:
    """Stop if the judge failed too often: failures leave the denominator and would flatter or empty the cell.

    Raises:
        RemeasureError: names both denominators.
    """
    n_failed = tally.verdicts["judge_failed"]
    if tally.n_judged and n_failed / tally.n_judged > max_failed_share:
        raise RemeasureError(
            f"the judge failed on {n_failed} of {tally.n_judged} answers ({n_failed / tally.n_judged:.1%}, "
            f"allowed {max_failed_share:.1%}); {len(tally.scores)} of {tally.n} items would be graded: "
            "repair the judge and rerun, or raise max_judge_failed_share"
        )


def score(settings: GradeSettings, grader: Grader, tally: Tally, *, retrieved: bool) -> Score:
    """Return the number of the cell with everything that it rests on."""
    value = stats.mean_with_interval(
        tally.scores, tally.groups, n_resamples=settings.bootstrap.n, seed=settings.bootstrap.seed
    )
    strict = tally.strict_scores
    has_recall = retrieved and tally.n_with_gold_page
    return Score(
        study=settings.study,
        bench=settings.bench,
        arm=settings.arm,
        model=settings.model,
        grader=grader.label,
        reader=settings.reader,
        judge=settings.judge,
        corpus=settings.corpus,
        value=value.mean,
        interval=value.interval,
        interval_method=value.method,
        value_strict=sum(strict) / len(strict) if strict else None,
        n=tally.n,
        n_graded=len(tally.scores),
        n_graded_strict=len(strict),
        n_differ=tally.n_differ,
        statuses=dict(tally.statuses),
        judge_statuses=dict(tally.judge_statuses),
        verdicts=dict(tally.verdicts),
        verdicts_strict=dict(tally.verdicts_strict),
        recall_at_k=tally.n_found / tally.n_with_gold_page if has_recall else None,
        k=settings.k if retrieved else None,
    )
