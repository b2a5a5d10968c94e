"""Exact match after normalisation."""

from remeasure.graders.base import Case, Grader, no_answer, reading
from remeasure.records import Reading
from remeasure.text import after_label, drop_label, normalise


def published(case: Case) -> Reading:
    """Compare as the original does: a missing reply is an empty answer, and empty equals empty.

    Source:
        PixelRAG, exact match for NQ and NQ-Tables. An empty answer equals a gold answer such as "A" or
        "The"; such cases have a verdict of their own, so that they are counted.
    """
    answer = normalise(drop_label(case.answer))
    if answer not in {normalise(reference) for reference in case.references}:
        return reading("incorrect", "equals no reference" if answer else "empty answer")
    return reading("correct", "equals a reference") if answer else reading("correct_empty", "empty = empty")


def strict(case: Case) -> Reading:
    """Compare answers only; the label may stand in any case or markup; nothing empty is equal."""
    missing = no_answer(case)
    if missing:
        return missing
    answer = normalise(after_label(case.strict_answer))
    if not answer:
        return reading("incorrect", "empty answer")
    if any(answer == normalise(reference) for reference in case.references):
        return reading("correct", "equals a reference")
    return reading("incorrect", "equals no reference")


EM = Grader(name="em", version=1, judged=False, published=published, strict=strict)
