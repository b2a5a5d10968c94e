"""What the graders of systems that search documents share: names of metrics, options, strata."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from remeasure import yaml_files
from remeasure.graders.base import MetricName, Unit
from remeasure.records import Graded, Item, Metric

RETRIEVAL = (
    MetricName("map", "MAP"),
    MetricName("recall@5", "R@5"),
    MetricName("recall@10", "R@10"),
    MetricName("ndcg@5", "nDCG@5"),
    MetricName("ndcg@10", "nDCG@10"),
    MetricName("documents", "Documents per query", kind="number"),
)

# What answers cost and cite; of every bench with answers.
CITING = (
    MetricName("cited_map", "Citation MAP", shows_n=True),
    MetricName("cite_rate", "Cite rate"),
    MetricName("citations", "Citations per case", kind="number"),
    MetricName("requests", "Requests per case", kind="number"),
    MetricName("tokens_per_request", "Input tokens per request", better="low", kind="number"),
    MetricName("seconds", "Seconds per case", better="low", kind="number", is_tested=False),
)

CONVERSING = (
    MetricName("macro_accuracy", "Accuracy by conversation", per_group=True),
    MetricName("macro_cited_map", "Citation MAP by conversation", per_group=True),
    MetricName("refusal_precision", "Refusal precision", if_none=0.0, shows_n=True, of_answers=True),
    MetricName("refusal_recall", "Refusal recall", if_none=0.0, shows_n=True, of_answers=True),
)

ANSWERS = (MetricName("accuracy", "Accuracy"), MetricName("accuracy_of_all", "Accuracy, failures as wrong"))


class NoOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a grader that has none."""


class RagGrader:
    """What the three share; items are graded alone, each with its group."""

    version = 1
    compares: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()
    averaged: ClassVar[tuple[str, ...]] = ()
    needs_form: ClassVar[bool] = False
    questions: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str]
    judged: ClassVar[bool] = False
    metrics: ClassVar[tuple[MetricName, ...]]
    headline: ClassVar[str]
    kind: ClassVar[type] = NoOptions
    """Of the options."""

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    def options(self, options: Mapping[str, Any]) -> Any:
        """Return the options, checked.

        Raises:
            RemeasureError: one is missing, unknown or wrong.
        """
        return yaml_files.convert(dict(options), self.kind, Path(f"options of grader {self.name}"))

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return what the grader works with."""
        raise NotImplementedError

    def unit_of(self, item: Item) -> str:
        """Return the unit that an item belongs to: itself."""
        return item.item_id

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the units of one cell."""
        raise NotImplementedError

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Check that the shares are shares; ``measures`` cannot make others."""
        shares = {one.name for one in self.metrics if one.kind == "share"}
        for name in shares & metrics.keys():
            for number in (metrics[name].published, metrics[name].strict):
                assert number.value is None or 0.0 <= number.value <= 1.0, (name, number)


def strata_of(item: Item) -> dict[str, str]:
    """Return what a table may be broken down by, as the dataset says."""
    return {
        name: part for name, part in item.meta.get("strata", {}).items() if isinstance(part, str) and part
    }
