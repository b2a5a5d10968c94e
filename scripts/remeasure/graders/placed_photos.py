"""mAP and mP@k of ranked galleries, from where the labelled photographs of a query stand.

Readings: ``published`` takes positions as numpy's default sort orders ties and divides P@k as the published
evaluator does; ``strict`` orders ties by gallery index and divides by k. ``truncated``, where it is asked
for, scores a list that was cut, as the reranker's own evaluator does with a file of the nearest ones only.

Source:
    Landmarks card, section 2.4.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Struct

from remeasure.errors import RemeasureError
from remeasure.graders.base import MetricName, Unit
from remeasure.instances.evaluation import average_precision, precision_at
from remeasure.records import Graded, Item, Metric, Placed, Reading
from remeasure.yaml_files import Positive

DIFFICULTIES = ("easy", "medium", "hard")
KAPPAS = (1, 5, 10)
Positions = Mapping[str, tuple[int, ...]]
"""By difficulty the places of the positives, from 0, ascending."""


def _metrics() -> tuple[MetricName, ...]:
    precisions = [MetricName(f"map_{name}", f"mAP {name.capitalize()}") for name in DIFFICULTIES]
    at_k = [
        MetricName(f"mp{k}_{name}", f"mP@{k} {name.capitalize()}") for name in DIFFICULTIES for k in KAPPAS
    ]
    return (*precisions, *at_k)


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the grader."""

    truncate: Positive | None = None
    """A further reading scores only so many of a first stage, ignored ones among them."""


class PlacedPhotos:
    """Gives every query its average precision and its precision among the first, by difficulty."""

    name = "placed_photos"
    version = 1
    judged = False
    metrics = _metrics()
    headline = "map_medium"
    compares = False
    packages: ClassVar[tuple[str, ...]] = ()
    averaged: ClassVar[tuple[str, ...]] = ()
    questions: ClassVar[tuple[str, ...]] = ()
    needs_form = False

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    def _options(self, options: Mapping[str, Any]) -> Options:
        try:
            return msgspec.convert(dict(options), Options)
        except msgspec.ValidationError as error:
            raise RemeasureError(
                f"grader {self.name}: options: {error}; it has `truncate`, a number from 1"
            ) from None

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the rules behind the numbers."""
        cut = self._options(options).truncate
        rules = {
            "average_precision": "trapezoids over all annotated positives; a query without any is left out "
            "@1",
            "ties": "published: numpy's default sort; strict: gallery order",
            "precision_at_k": "published: divided by the last positive's place where that is before k; "
            "strict: by k",
        }
        if cut:
            rules["truncated"] = f"the first {cut} of the first stage, ignored ones among them"
        return rules

    def unit_of(self, item: Item) -> str:
        """Return the unit that an item belongs to: itself."""
        return item.item_id

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the queries of one cell."""
        cut = self._options(options).truncate
        return lambda unit: self._grade(unit, cut)

    def _grade(self, unit: Unit, cut: int | None) -> Graded:
        (item,), (response,) = unit.items, unit.responses
        placed = response.placed
        if response.status != "answered" or placed is UNSET:
            nothing = Reading(verdict="ungraded", score=None, reason="no ranking", scores=_no_scores())
            published = strict = nothing
            also, counts = ({"truncated": nothing} if cut else {}), {"queries_without_ranking": 1}
        else:
            published = _reading({**placed.positions, **placed.as_sorted}, placed.n_positives, True)
            strict = _reading(placed.positions, placed.n_positives, False)
            also = {"truncated": _truncated(placed, cut)} if cut else {}
            counts = _counts(placed)
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=response.text,
            grader=self.label,
            published=published,
            strict=strict,
            also=also,
            counts=counts,
        )

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Nothing has to agree."""


def _no_scores() -> dict[str, float | None]:
    return {metric.name: None for metric in _metrics() if metric.name != PlacedPhotos.headline}


def _reading(at: Positions, n_positives: Mapping[str, int], published: bool) -> Reading:
    """Return the scores of a query; a difficulty without positives or places has none."""
    scores = _no_scores()
    for name in DIFFICULTIES:
        if name not in at or not n_positives.get(name):
            continue
        scores[f"map_{name}"] = average_precision(at[name], n_positives[name])
        for k in KAPPAS:
            scores[f"mp{k}_{name}"] = precision_at(at[name], k, published=published)
    score = scores.pop(PlacedPhotos.headline, None)
    verdict, reason = _verdict(at, score)
    return Reading(verdict=verdict, score=score, reason=reason, scores=scores)


def _verdict(at: Positions, score: float | None) -> tuple[str, str]:
    if score is None:
        return "ungraded", "no positive"
    places = at["medium"]
    if not places:
        return "miss", "no positive is ranked"
    return ("hit_first", "a positive is first") if places[0] == 0 else ("hit_later", "a positive is later")


def _truncated(placed: Placed, cut: int) -> Reading:
    """Return the scores of a list that was cut: what is behind it is not found, and not expected to be.

    The list is cut before what is ignored is taken out of it, so that it then has as many fewer places.
    """
    ignored = {name: sum(rank < cut for rank in ranks) for name, ranks in placed.ignored.items()}
    at = {
        name: tuple(place for place in places if place < cut - ignored.get(name, 0))
        for name, places in placed.positions.items()
    }
    n_positives = {name: min(n, cut) for name, n in placed.n_positives.items()}
    return _reading(at, n_positives, True)


def _counts(placed: Placed) -> dict[str, int]:
    """Count what a reader of the table wants to know beside the numbers."""
    counts = {f"queries_without_{name}": int(not placed.n_positives.get(name)) for name in DIFFICULTIES}
    return counts | {
        "queries_with_tied_positives": int(placed.n_tied > 0),
        "undecoded_positives": placed.n_undecoded,
    }


PLACED_PHOTOS = PlacedPhotos()
