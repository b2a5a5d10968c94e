"""Graders by name: each gives one item a verdict in the published and in the strict reading."""

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.graders.base import Case, Grader, MetricName, Unit, UnitGrader
from remeasure.graders.choice import MCQ_LETTER
from remeasure.graders.exact import EM
from remeasure.graders.judged import JUDGE_ANYOF, JUDGE_OR10, JUDGE_SIMPLEQA, JUDGE_WORLDVQA
from remeasure.graders.placed_photos import PLACED_PHOTOS
from remeasure.graders.rag import JUDGE_RAG_ANSWER, NUMBER_MATCH, RANKED_DOCUMENTS
from remeasure.graders.ranked_list import JUDGE_RANKED_LIST, RANKED_LIST
from remeasure.graders.rubric import JUDGE_RUBRIC
from remeasure.graders.triplets import TRIPLETS

GRADERS: dict[str, UnitGrader] = {
    grader.name: grader
    for grader in (
        EM,
        MCQ_LETTER,
        JUDGE_SIMPLEQA,
        JUDGE_WORLDVQA,
        JUDGE_OR10,
        JUDGE_ANYOF,
        TRIPLETS,
        RANKED_LIST,
        JUDGE_RANKED_LIST,
        JUDGE_RUBRIC,
        RANKED_DOCUMENTS,
        JUDGE_RAG_ANSWER,
        NUMBER_MATCH,
        PLACED_PHOTOS,
    )
}

__all__ = ["GRADERS", "Case", "Grader", "MetricName", "Unit", "UnitGrader", "by_name"]


def by_name(name: str) -> UnitGrader:
    """Return the grader of that name.

    Raises:
        RemeasureError: there is none.
    """
    if name not in GRADERS:
        raise RemeasureError(
            f"grader {name!r} is not known{did_you_mean(name, GRADERS)}; graders are "
            f"{', '.join(sorted(GRADERS))}: correct `grader` of the bench in config/studies/<study>.yaml"
        )
    return GRADERS[name]
