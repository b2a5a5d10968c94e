"""From responses to verdicts and the number of a cell, in one pass in item order."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct, structs

from remeasure import failing, means
from remeasure.aligned import Aligned
from remeasure.building import further_id
from remeasure.errors import RemeasureError
from remeasure.graders import MetricName, Unit, UnitGrader
from remeasure.records import Failed, Graded, Item, Metric, Number, Ranked, Reading, Response, Score, Status
from remeasure.text import strip_thinking

_TOGETHER = 32
"""Units that are shown together to a grader that foresees: several seconds of work at most."""
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
    options: dict[str, Any] = {}
    """Settings of the grader itself."""
    k: int | None
    """Retrieved items that the reader is shown; recall looks at these."""
    thinking: bool
    """Whether the reader thinks in this cell."""
    reader: str
    judge: str | None
    corpus: str | None
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
class Scores:
    """The scores of one metric under one reading; what is not in its denominator is not here."""

    values: list[float] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    is_weighted: bool = False

    def add(self, value: float, group: str, weight: int | None) -> None:
        """Add a unit's score."""
        self.values.append(value)
        self.groups.append(group)
        self.weights.append(1 if weight is None else weight)
        self.is_weighted |= weight is not None

    def scored(self, metric: MetricName) -> means.Scored:
        """Return what the mean of a metric is taken of."""
        weights = self.weights if self.is_weighted else None
        return means.Scored(self.values, self.groups, weights, metric.kind == "share", metric.per_group)


def scores_of(reading: Reading, headline: str) -> dict[str, float | None]:
    """Return the scores of a reading by metric, the headline's first."""
    return {headline: reading.score, **reading.scores}


@dataclass
class Tally:
    """What a cell's graded units add up to.

    Args:
        headline: name of the metric of ``Reading.score``.
    """

    headline: str
    scores: dict[str, dict[str, Scores]] = field(default_factory=dict)
    """By metric and reading."""
    differ: Counter = field(default_factory=Counter)
    """Per metric the units whose score differs between the published and the strict reading."""
    n: int = 0
    n_answers: int = 0
    n_empty: int = 0
    n_words: list[int] = field(default_factory=list)
    n_judged: int = 0
    n_found: int = 0
    n_with_gold_page: int = 0
    statuses: Counter = field(default_factory=Counter)
    judge_statuses: Counter = field(default_factory=Counter)
    verdicts: Counter = field(default_factory=Counter)
    verdicts_strict: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    """Units per reading and reason: fallbacks of parsers, empty answers and the like."""
    counts: Counter = field(default_factory=Counter)
    failed: Counter = field(default_factory=Counter)
    judge_failed: Counter = field(default_factory=Counter)

    def add(self, graded: Graded) -> None:
        """Count one unit."""
        self.n += 1
        self.verdicts[graded.published.verdict] += 1
        self.verdicts_strict[graded.strict.verdict] += 1
        self.counts.update(graded.counts)
        for one in graded.failed:
            (self.failed if one.role == "reader" else self.judge_failed)[one.kind] += 1
        if graded.judge_status is not None:
            self.n_judged += 1
            self.judge_statuses[graded.judge_status] += 1
        readings = {"published": graded.published, "strict": graded.strict, **graded.also}
        for name, reading in readings.items():
            self.reasons[f"{name}: {reading.reason}"] += 1
            for metric, value in scores_of(reading, self.headline).items():
                found = self.scores.setdefault(metric, {}).setdefault(name, Scores())
                if value is not None:
                    found.add(value, graded.group, reading.weights.get(metric))
        strict = scores_of(graded.strict, self.headline)
        for metric, value in scores_of(graded.published, self.headline).items():
            self.differ[metric] += value != strict.get(metric)

    def add_answer(self, status: Status, answer: str | None, *, is_text: bool = True) -> None:
        """Count one answer: its status and, unless it is a ranking, its length."""
        self.n_answers += 1
        self.statuses[status] += 1
        if not is_text:
            return
        n_words = len(strip_thinking(answer or "")[0].split())
        self.n_empty += status == "answered" and not n_words
        if n_words:
            self.n_words.append(n_words)

    @property
    def n_graded(self) -> int:
        """Units in the denominator of the published headline."""
        return len(self.scores[self.headline]["published"].values)

    def add_ranking(self, item: Item, ranked: Ranked | None, k: int | None) -> None:
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


def units(
    grader: UnitGrader,
    items: Iterable[Item],
    responses: Aligned[Response],
    judge: Aligned[Response] | None,
    *,
    thinking: bool,
) -> Iterator[Unit]:
    """Yield the units of a cell, in item order.

    Raises:
        RemeasureError: an item has no response, or the items of a unit do not stand next to each other.
    """
    seen: set[str] = set()
    for unit_id, members in groupby(items, key=grader.unit_of):
        if unit_id in seen:
            raise RemeasureError(
                f"the items of unit {unit_id!r} do not stand next to each other; delete items.jsonl and rerun"
            )
        seen.add(unit_id)
        together = tuple(members)
        answers, replies, more = [], [], []
        for item in together:
            response = responses.take(item.item_id)
            if response is None:
                raise RemeasureError(
                    f"item {item.item_id!r} has no line of its own in the responses, or stands out of order; "
                    "each request ends in one: delete responses.jsonl and rerun, it is assembled from the "
                    "journal"
                )
            answers.append(response)
            replies.append(judge.take(item.item_id) if judge is not None else None)
            asked = {name: further_id(item.item_id, name) for name in grader.questions if judge is not None}
            found = {name: judge.take(custom_id) for name, custom_id in asked.items()}
            more.append({name: reply for name, reply in found.items() if reply is not None})
        yield Unit(
            unit_id=unit_id,
            items=together,
            responses=tuple(answers),
            judge=tuple(replies),
            thinking=thinking,
            further=tuple(more),
        )


def grade_all(
    grader: UnitGrader,
    items: Iterable[Item],
    responses: Aligned[Response],
    judge: Aligned[Response] | None,
    *,
    thinking: bool,
    options: Mapping[str, Any],
) -> Iterator[tuple[Unit, Graded]]:
    """Yield every unit with its verdict, in item order.

    Raises:
        RemeasureError: an item has no response, or an answer that needs a judge has no judge's reply.
    """
    grade = grader.begin(options)
    for unit in _foreseen(units(grader, items, responses, judge, thinking=thinking), grade):
        graded = grade(unit)
        lost = list(_failed(unit))
        graded = structs.replace(graded, failed=tuple(lost)) if lost else graded
        if judge is not None and None in unit.judge and _needs_judge(graded):
            raise RemeasureError(
                f"item {unit.unit_id!r} has an answer but no line in the judge's responses; delete the "
                "judge's requests.jsonl of this cell and rerun"
            )
        yield unit, graded
    responses.finish()
    if judge is not None:
        judge.finish()


def _foreseen(cell: Iterator[Unit], grade: Callable[[Unit], Graded]) -> Iterator[Unit]:
    """Pass units through; show some of them together to a function that wants to foresee what comes."""
    foresee = getattr(grade, "foresee", None)
    if foresee is None:
        yield from cell
        return
    for together in _groups(cell) if getattr(grade, "by_group", False) else _batches(cell):
        foresee(together)
        yield from together


def _batches(cell: Iterator[Unit]) -> Iterator[list[Unit]]:
    while together := list(islice(cell, _TOGETHER)):
        yield together


def _groups(cell: Iterator[Unit]) -> Iterator[list[Unit]]:
    """Yield the units of each group together; those of a conversation stand next to each other."""
    for _, together in groupby(cell, key=lambda unit: unit.items[0].group):
        yield list(together)


def _failed(unit: Unit) -> Iterator[Failed]:
    """Yield what failed of a unit: answers, the judge's verdicts, its replies to further questions."""
    for place, (item, response, reply) in enumerate(zip(unit.items, unit.responses, unit.judge, strict=True)):
        yield from failing.failed(item.item_id, response, reply)
        further = unit.further[place] if unit.further else {}
        for name, found in further.items():
            yield from failing.failed_reply(further_id(item.item_id, name), found)


def _needs_judge(graded: Graded) -> bool:
    return graded.status not in _NEVER_JUDGED and bool((graded.answer or "").strip())


def _numbers(
    tally: Tally, bootstrap: Bootstrap, named: Mapping[str, MetricName]
) -> dict[tuple[str, str], Number]:
    """Return the mean of every metric and reading with its interval; all intervals share their draws."""
    scores = {
        (metric, reading): found
        for metric, readings in tally.scores.items()
        for reading, found in readings.items()
    }
    sets = [found.scored(named[metric]) for (metric, _), found in scores.items()]
    drawn = means.means_with_intervals(sets, n_resamples=bootstrap.n, seed=bootstrap.seed)
    return {
        place: Number(value=one.mean, n=scored.n, interval=one.interval, interval_method=one.method)
        for place, scored, one in zip(scores, sets, drawn, strict=True)
    }


def score(settings: GradeSettings, grader: UnitGrader, tally: Tally, *, retrieved: bool) -> Score:
    """Return the numbers of the cell with everything that they rest on."""
    has_recall = retrieved and tally.n_with_gold_page
    named = {metric.name: metric for metric in grader.metrics}
    numbers = _numbers(tally, settings.bootstrap, named)
    metrics = {}
    for name in tally.scores:
        also = {reading: number for (metric, reading), number in numbers.items() if metric == name}
        published = also.pop("published")
        if not published.n:
            published = structs.replace(published, value=named[name].if_none)
        metrics[name] = Metric(
            published=published, strict=also.pop("strict"), also=also, n_differ=tally.differ[name]
        )
    grader.check(metrics)
    return Score(
        study=settings.study,
        bench=settings.bench,
        arm=settings.arm,
        model=settings.model,
        grader=grader.label,
        reader=settings.reader,
        judge=settings.judge,
        corpus=settings.corpus,
        headline=tally.headline,
        metrics=metrics,
        n=tally.n,
        n_answers=tally.n_answers,
        n_empty=tally.n_empty,
        n_words_mean=sum(tally.n_words) / len(tally.n_words) if tally.n_words else None,
        n_words_median=float(median(tally.n_words)) if tally.n_words else None,
        statuses=dict(tally.statuses),
        judge_statuses=dict(tally.judge_statuses),
        verdicts=dict(tally.verdicts),
        verdicts_strict=dict(tally.verdicts_strict),
        counts=dict(tally.counts),
        failed=dict(tally.failed),
        judge_failed=dict(tally.judge_failed),
        method=grader.method(settings.options),
        recall_at_k=tally.n_found / tally.n_with_gold_page if has_recall else None,
        k=settings.k if retrieved else None,
    )
