"""Ranked documents of a search against gold labels.

Readings: ``published`` takes the chunks that the search returned and lets those of one document collapse, so
that fewer documents than the limit are scored; ``strict`` takes as many documents as the limit. A search that
failed is 0 in both: the original leaves it out of the mean and prints the full number of queries beside it.

Source:
    RAG card, sections 0.5, 2.3 and 3.1.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from remeasure.graders.base import Unit
from remeasure.graders.rag_base import RETRIEVAL, RagGrader, strata_of
from remeasure.rag import measures, traces
from remeasure.records import Graded, Hit, Item, Reading, Response
from remeasure.yaml_files import Positive

_CUT_OFFS = {"recall@5": 5, "recall@10": 10, "ndcg@5": 5, "ndcg@10": 10}


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the grader."""

    limit: Positive | None = None
    """How many results a search was to give: measures of more are left out. Null: all are given."""


class RankedDocuments(RagGrader):
    """Gives every query its average precision and what it found among the first."""

    name = "ranked_documents"
    metrics = RETRIEVAL
    headline = "map"
    kind = Options

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the rules behind the numbers."""
        self.options(options)
        return {
            "ranking": "published: chunks collapse to documents; strict: documents",
            "failed_searches": "count as 0",
            "measures": "labels of 0 and 1, documents once @1",
        }

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Return the function that grades the queries of one cell."""
        limit = self.options(options).limit
        return lambda unit: self._grade(unit, limit)

    def _grade(self, unit: Unit, limit: int | None) -> Graded:
        (item,), (response,) = unit.items, unit.responses
        published, strict = rankings(response)
        n_chunks = len(_found(response))
        failed = traces.is_lost(response)
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=response.text,
            grader=self.label,
            published=_reading(item, response, published, limit),
            strict=_reading(item, response, strict, limit),
            strata=strata_of(item),
            counts={
                "searches_failed": int(failed),
                "searches_empty": int(not failed and not published),
                "queries_without_gold": int(not item.relevant),
                "chunks_collapsed": max(0, n_chunks - len(published)),
            },
        )


def rankings(response: Response) -> tuple[list[str], list[str]]:
    """Return the documents as published and strict; of a response without a trace its lines are both."""
    trace = traces.trace_of(response)
    if trace is None:
        lines = measures.collapsed((response.text or "").splitlines())
        return lines, lines
    return _uris(trace.found), _uris(trace.found_documents)


def _found(response: Response) -> Sequence[Hit]:
    trace = traces.trace_of(response)
    return trace.found if trace else ()


def _uris(hits: Sequence[Hit]) -> list[str]:
    return measures.collapsed(hit.uri for hit in hits)


def _reading(item: Item, response: Response, ranking: list[str], limit: int | None) -> Reading:
    found = measures.NOTHING if traces.is_lost(response) else measures.measured(ranking, item.relevant)
    precision, *rest = found
    scores: dict[str, float | None] = {
        name: None if limit is not None and k > limit else value
        for (name, k), value in zip(_CUT_OFFS.items(), rest, strict=True)
    }
    verdict, reason = _verdict(item, response, ranking)
    return Reading(
        verdict=verdict, score=precision, reason=reason, scores=scores | {"documents": float(len(ranking))}
    )


def _verdict(item: Item, response: Response, ranking: list[str]) -> tuple[str, str]:
    """Say where the first gold document stands; what went wrong with a search is a reason of its own."""
    if traces.is_lost(response):
        return "search_failed", f"search {response.status.replace('_', ' ')}, counted as 0"
    if not ranking:
        return "miss", "search found nothing"
    if not item.relevant:
        return "miss", "query without gold documents"
    ranks = measures.hit_ranks(ranking, set(item.relevant))
    if not ranks:
        return "miss", "no gold document found"
    return ("hit_first", "gold document first") if ranks[0] == 1 else ("hit_later", "gold document later")


RANKED_DOCUMENTS = RankedDocuments()
