"""mAP and mP@k of ranked galleries, from where the labelled photographs of a query stand.

Readings: ``published`` takes positions as numpy's default sort orders ties and divides P@k as the published
evaluator does; ``strict`` orders ties by gallery index and divides by k.

Source:
    Landmarks card, section 2.4.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from remeasure.errors import RemeasureError
from remeasure.graders.base import MetricName, Unit
from remeasure.records import Graded, Item, Metric

DIFFICULTIES = ("easy", "medium", "hard")
KAPPAS = (1, 5, 10)


def _metrics() -> tuple[MetricName, ...]:
    precisions = [MetricName(f"map_{name}", f"mAP {name.capitalize()}") for name in DIFFICULTIES]
    at_k = [
        MetricName(f"mp{k}_{name}", f"mP@{k} {name.capitalize()}") for name in DIFFICULTIES for k in KAPPAS
    ]
    return (*precisions, *at_k)


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

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the rules behind the numbers."""
        if options:
            raise RemeasureError(f"grader {self.name} has no option {next(iter(options))!r}; take it out")
        return {}

    def unit_of(self, item: Item) -> str:
        """Return the unit that an item belongs to: itself."""
        return item.item_id

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the queries of one cell."""
        raise NotImplementedError

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Nothing has to agree."""


PLACED_PHOTOS = PlacedPhotos()
