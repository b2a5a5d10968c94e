"""What every grader shares: the case that it is shown, the closed list of verdicts, two readings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

from remeasure.errors import RemeasureError
from remeasure.records import Graded, Item, Metric, Reading, Response
from remeasure.text import strip_thinking

SCORES: dict[str, float | None] = {
    "correct": 1.0,
    "correct_empty": 1.0,
    "incorrect": 0.0,
    "not_attempted": 0.0,
    "hit_first": 1.0,
    "hit_later": 0.0,
    "miss": 0.0,
    "search_failed": 0.0,
    "parse_failed": 0.0,
    "unreadable": 0.0,
    "judge_failed": None,
    "judge_unreadable": None,
    "ungraded": None,
}
"""Every verdict and its score; null leaves the denominator.

``correct_empty``: an empty answer equals a gold answer that normalises to nothing (the original's trap).
``hit_first``, ``hit_later``, ``miss``: where the right answer stands in a ranked list; what scores is its
head, or the precision of the whole list. ``search_failed``: there is no list; it stays in the mean.
``parse_failed``: the reader's reply is no list; the reader's fault, so it counts as wrong.
``unreadable``: the reader's reply shows no choice; the reader's fault, so it counts as wrong.
``judge_unreadable``, ``judge_failed``: the judge's fault, so the item is not counted; where a published
protocol counts it as wrong, its reading says so.
``ungraded``: there is no answer to grade.
"""


@dataclass(frozen=True)
class Case:
    """One item with what was answered, ready for grading."""

    references: tuple[str, ...]
    """Accepted answers, at least one, none of them blank."""
    response: Response
    judge: Response | None
    """The judge's reply; None where the grader has no judge or the judge was not asked."""
    thinking: bool
    """Whether the cell's protocol lets the reader think, so that an untagged cut-off reply is thinking."""

    @cached_property
    def _stripped(self) -> tuple[str, bool | None]:
        return strip_thinking(self.response.text or "")

    @property
    def answer(self) -> str:
        """What the original grades: a missing reply is the empty string; unclosed thinking is the answer."""
        return self._stripped[0]

    @property
    def strict_answer(self) -> str:
        """The answer without unclosed thinking, which is no answer."""
        answer, closed = self._stripped
        return "" if closed is False else answer

    @property
    def still_thinking(self) -> bool:
        """Whether the reply ended inside the thinking part."""
        closed = self._stripped[1]
        return closed is False or (closed is None and self.thinking and self.response.status == "cut_off")


def reading(verdict: str, reason: str) -> Reading:
    """Return a reading with the score that belongs to the verdict."""
    return Reading(verdict=verdict, score=SCORES[verdict], reason=reason)


def no_answer(case: Case) -> Reading | None:
    """Return the strict reading of an item that has no answer to grade; None where there is one.

    Failed, refused and unsent requests are no answers, and neither is thinking that the token limit cut off.
    """
    if case.response.status in ("failed", "refused", "not_sent"):
        return reading("ungraded", f"reader {case.response.status}")
    if case.response.status == "cut_off" and case.still_thinking:
        return reading("ungraded", "reader cut off while thinking")
    return None


Kind = Literal["share", "difference", "number"]
"""What a unit's score is: 0 to 1, a difference of two such, or a number of its own scale, such as a rank."""


@dataclass(frozen=True)
class MetricName:
    """A metric as tables name it."""

    name: str
    title: str
    better: Literal["high", "low"] = "high"
    kind: Kind = "share"
    if_none: float | None = None
    """What the original says where no unit is in the denominator; null where it says nothing."""
    per_group: bool = False
    """Whether it is the mean over groups of their means, each group counted once."""
    shows_n: bool = False
    """Whether its number means nothing without its denominator, which then stands beside it."""
    of_answers: bool = False
    """Whether an answer decides if it is in the denominator, so that two cells differ by two ratios."""
    is_tested: bool = True
    """Whether differences are tested: not of times, since cells run beside each other."""


@dataclass(frozen=True)
class Unit:
    """What one score is given to: items that belong together, each with its answer."""

    unit_id: str
    items: tuple[Item, ...]
    responses: tuple[Response, ...]
    """In the order of the items."""
    judge: tuple[Response | None, ...]
    """The judge's replies, in the order of the items; null where it was not asked."""
    thinking: bool
    """Whether the cell's protocol lets the reader think."""
    further: tuple[dict[str, Response], ...] = ()
    """The judge's replies to further questions by name, in the order of the items."""


ACCURACY = (MetricName("accuracy", "Accuracy"),)


@dataclass(frozen=True)
class Grader:
    """A named, versioned way to give one item a verdict, in two readings.

    The published reading repeats the original study's code, flaws included. The strict reading corrects
    them: items without an answer leave the denominator, replies must say what they mean.
    """

    name: str
    version: int
    judged: bool
    """Whether it reads a judge's reply."""
    published: Callable[[Case], Reading]
    strict: Callable[[Case], Reading]
    metrics: tuple[MetricName, ...] = ACCURACY
    headline: ClassVar[str] = "accuracy"
    compares: ClassVar[bool] = True
    """Whether every item needs a gold answer."""
    packages: ClassVar[tuple[str, ...]] = ()
    averaged: ClassVar[tuple[str, ...]] = ()
    needs_form: ClassVar[bool] = False
    questions: ClassVar[tuple[str, ...]] = ()

    @property
    def label(self) -> str:
        """Name and version, for example ``em@1``."""
        return f"{self.name}@{self.version}"

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Name and version say it; there are no options."""
        if options:
            raise RemeasureError(f"grader {self.name} has no option {next(iter(options))!r}; take it out")
        return {}

    def unit_of(self, item: Item) -> str:
        """Return the unit that an item belongs to: itself."""
        return item.item_id

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the units of one cell.

        Args:
            options: `options` of the bench.

        Raises:
            RemeasureError: options that the grader does not have.
        """
        self.method(options)
        return self._grade

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """One number has nothing to agree with."""

    def _grade(self, unit: Unit) -> Graded:
        (item,), (response,), (reply,) = unit.items, unit.responses, unit.judge
        case = Case(references=item.references, response=response, judge=reply, thinking=unit.thinking)
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=None if response.text is None else case.answer,
            grader=self.label,
            judge_key=reply.key if reply else None,
            judge_status=reply.status if reply else None,
            published=self.published(case),
            strict=self.strict(case),
        )


class UnitGrader(Protocol):
    """What the grading stage needs of a grader; ``Grader`` is the one for single items."""

    name: str
    judged: bool
    metrics: tuple[MetricName, ...]
    """In the order of the table."""
    headline: str
    """The metric of ``Reading.score``."""
    compares: bool
    """Whether every item needs a gold answer."""
    packages: tuple[str, ...]
    """Distributions whose versions can change a verdict."""
    averaged: tuple[str, ...]
    """Divisions (``Graded.strata``) whose parts are averaged, each counted once."""
    questions: tuple[str, ...]
    """Further questions that the judge may be asked about an answer, in this order
    (``<study>_messages.further_judge_messages``)."""
    needs_form: bool
    """Whether a judge's reply that keeps to no form makes a published number wrong, rather than being one
    that the original has a reading for."""

    @property
    def label(self) -> str:
        """Name and version."""

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return what the grader works with, for the record of every number.

        Raises:
            RemeasureError: an option that is missing, unknown or wrong.
        """

    def unit_of(self, item: Item) -> str:
        """Return the unit that an item belongs to; items of a unit stand next to each other."""

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the units of one cell."""

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Check that the numbers of a cell fit together; an AssertionError is a defect of ours."""
