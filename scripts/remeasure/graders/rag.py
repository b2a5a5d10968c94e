"""Graders of systems that search documents and answer with citations."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

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
    MetricName("seconds", "Seconds per case", better="low", kind="number"),
)

CONVERSING = (
    MetricName("macro_accuracy", "Accuracy by conversation", per_group=True),
    MetricName("macro_cited_map", "Citation MAP by conversation", per_group=True),
    MetricName("refusal_precision", "Refusal precision", if_none=0.0, shows_n=True),
    MetricName("refusal_recall", "Refusal recall", if_none=0.0, shows_n=True),
)

ANSWERS = (MetricName("accuracy", "Accuracy"), MetricName("accuracy_of_all", "Accuracy, failures as wrong"))


class _Grader:
    """What the three share."""

    version = 1
    compares: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()
    averaged: ClassVar[tuple[str, ...]] = ()
    needs_form: ClassVar[bool] = False
    questions: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str]

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Nothing yet."""
        return {}

    def unit_of(self, item: Item) -> str:
        """Return the unit that an item belongs to: itself."""
        return item.item_id

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """To be written."""
        raise NotImplementedError

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Nothing yet."""


class RankedDocuments(_Grader):
    """Ranked documents against gold labels."""

    name = "ranked_documents"
    judged = False
    metrics = RETRIEVAL
    headline = "map"


class JudgeRagAnswer(_Grader):
    """Answers with citations, by a judge; refusals against answerability."""

    name = "judge_rag_answer"
    judged = True
    metrics = (*ANSWERS, *CITING, *CONVERSING)
    headline = "accuracy"
    questions = ("refusal",)


class NumberMatch(_Grader):
    """Numbers in answers against a number, by haiku.rag's rules."""

    name = "number_match"
    judged = False
    metrics = (*ANSWERS, *CITING)
    headline = "accuracy"


RANKED_DOCUMENTS = RankedDocuments()
JUDGE_RAG_ANSWER = JudgeRagAnswer()
NUMBER_MATCH = NumberMatch()
