"""A case with its answer: what graders of evidence points look at, worked out once for all readings."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from remeasure import roundtrip
from remeasure.errors import RemeasureError
from remeasure.records import Item, Response
from remeasure.rubrics import behind_thinking, overlap
from remeasure.rubrics.overlap import Overlap
from remeasure.rubrics.points import Rubric, rubric_of
from remeasure.rubrics.similarity import NoWords, Similar, lenient

Overlaps = dict[str, Overlap | None]
"""By backend; null where it cannot be worked out."""


class Facts(Struct, frozen=True):
    """What the items of the study know of a case: a part of ``Item.meta``."""

    points: list[Any]
    rationale: str | None
    n_images: int
    decisive: list[int]
    supporting: list[int]
    task_type: str | None = None


class Case(Struct, frozen=True):
    """A case, and its answer as two readings see it."""

    facts: Facts
    rubric: Rubric
    response: Response
    published: str | None
    """The text that the original grades; null where it has no row."""
    strict: behind_thinking.Strict
    said: list[str]
    """Sentences of the published text, the first ``MAX_SENTENCES`` of them."""
    said_strict: list[str]
    n_beyond: int
    """Sentences of the published text behind those that are compared."""
    n_beyond_strict: int
    overlaps: Overlaps
    overlaps_strict: Overlaps


def facts_of(item: Item) -> Facts:
    """Return what an item knows of its case.

    Raises:
        RemeasureError: something is missing or of another kind.
    """
    try:
        return msgspec.convert(item.meta, Facts)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"item {item.item_id!r}: meta: {error}; expected points, rationale, n_images, decisive and "
            "supporting: delete items.jsonl and rerun, or correct the items"
        ) from None


def case_of(item: Item, response: Response, backends: Mapping[str, Similar]) -> Case:
    """Compare an answer with its case.

    Args:
        item: the case.
        response: the answer.
        backends: by name how alike texts are.
    """
    facts = facts_of(item)
    rubric = rubric_of(facts.points)
    published, strict = roundtrip.answer(response), behind_thinking.strict(response)
    (said, n_beyond), (said_strict, n_beyond_strict) = map(_sentences, (published, strict.text))
    gold = overlap.sentences(roundtrip.cell(facts.rationale))
    gold_strict = overlap.sentences(facts.rationale or "")
    overlaps: Overlaps = {}
    if published is not None:
        overlaps = {name: _published(said, rubric, gold, similar) for name, similar in backends.items()}
    overlaps_strict: Overlaps = {}
    if strict.text is not None:
        is_same = (said, gold) == (said_strict, gold_strict)
        for name, similar in backends.items():
            known = overlaps.get(name) if is_same and said else None
            overlaps_strict[name] = known or _strict(said_strict, rubric, gold_strict, similar)
    return Case(
        facts=facts,
        rubric=rubric,
        response=response,
        published=published,
        strict=strict,
        said=said,
        said_strict=said_strict,
        n_beyond=n_beyond,
        n_beyond_strict=n_beyond_strict,
        overlaps=overlaps,
        overlaps_strict=overlaps_strict,
    )


def texts_of(item: Item, response: Response) -> Iterator[str]:
    """Yield the texts that are compared for a case, most of them once, in no order."""
    facts = facts_of(item)
    rubric = rubric_of(facts.points)
    yield from (point.text for part in (rubric.required, rubric.optional) for point in part)
    yield from overlap.sentences(roundtrip.cell(facts.rationale))
    yield from _sentences(roundtrip.answer(response))[0]


def _sentences(text: str | None) -> tuple[list[str], int]:
    """Return the sentences of an answer that are compared, and how many there are behind them."""
    found = overlap.sentences(text or "")
    return found[: overlap.MAX_SENTENCES], max(0, len(found) - overlap.MAX_SENTENCES)


def _published(said: list[str], rubric: Rubric, gold: list[str], similar: Similar) -> Overlap | None:
    """Return null where the original would end: no value is better than none of the whole table."""
    try:
        return overlap.overlap(said, rubric, gold, similar)
    except NoWords:
        return None


def _strict(said: list[str], rubric: Rubric, gold: list[str], similar: Similar) -> Overlap:
    """Return the overlap where an answer without sentences states nothing, and no word is like no word."""
    return overlap.overlap(said, rubric, gold, lenient(similar)) if said else overlap.silent(rubric)
