"""Searches, with the limit counted in chunks and in documents."""

from typing import Any

from remeasure.systems import filters
from remeasure.systems.haiku import failures
from remeasure.systems.haiku.failures import Failed

WIDEST = 64
"""Times the limit, in chunks, that is looked through for documents."""
SHOWN = 300
"""Characters of a chunk that a hit shows."""
_ALL_FAIL = ("connection", "timeout", "fatal")


async def check_filter(rag: Any, clause: str | None) -> None:
    """Check a filter before anything is asked with it.

    Raises:
        Failed: it cannot be read as a condition over documents.
    """
    if clause is None:
        return
    if not filters.is_one(clause):
        raise Failed(
            "bad_filter", f"filter {clause!r} is no condition over documents: not one SQL expression"
        )
    try:
        whole = f"({clause})"
        await rag.store.document_meta_table.query().select(["id"]).where(whole).limit(1).to_list()
    except Exception as error:  # the database raises what its layers do; a filter that fails stops the step
        said = failures.one_line(error)
        raise Failed(
            "bad_filter", f"filter {clause!r} is no condition over id, uri, title, metadata: {said}"
        ) from error


def _hit(result: Any) -> dict[str, Any]:
    text = " ".join(result.content[: 2 * SHOWN].split())[:SHOWN]
    return {"uri": result.document_uri, "chunk": result.chunk_id, "score": float(result.score), "text": text}


async def _found(rag: Any, query: str, limit: int, clause: str | None, mode: str) -> list[dict[str, Any]]:
    kind = "fts" if mode == "text" else None
    results = await rag.search(
        query=query, limit=limit, search_type=kind, filter=clause, include_images=False
    )
    return [_hit(result) for result in results if result.document_uri]


async def one_search(rag: Any, query: str, limit: int, clause: str | None, mode: str) -> dict[str, Any]:
    """Return what one search finds.

    The list of documents begins with those of the chunks, each once. Where these are fewer than the limit,
    the search is repeated with twice, four times and up to ``WIDEST`` times as many chunks, and documents
    that are new are put behind. What comes first therefore never changes.
    """
    found = await _found(rag, query, limit, clause, mode)
    best: dict[str, dict[str, Any]] = {}
    for hit in found:
        best.setdefault(hit["uri"], hit)
    wide, n_last = 2, len(found)
    while len(best) < limit and wide <= WIDEST and n_last:
        more = await _found(rag, query, limit * wide, clause, mode)
        for hit in more:
            best.setdefault(hit["uri"], hit)
        if len(more) <= n_last:
            break
        wide, n_last = wide * 2, len(more)
    return {"found": found, "found_documents": list(best.values())[:limit]}


async def searched(rag: Any, command: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer a ``search`` command: one entry for every query, in order.

    Raises:
        Failed: the filter is none.
        Exception: embedder or reranker are not reached or refuse the key: that is no query's failure.
    """
    clause, mode = command.get("filter"), command.get("mode") or "hybrid"
    await check_filter(rag, clause)
    results: list[dict[str, Any]] = []
    for query in command["queries"]:
        try:
            results.append(await one_search(rag, query, command["limit"], clause, mode))
        except Exception as error:  # one search that fails costs itself; what hits all is raised again
            kind = failures.kind_of(error)
            if kind in _ALL_FAIL:
                raise
            results.append({"kind": kind, "error": f"{type(error).__name__}: {failures.one_line(error)}"})
    return results
