"""Whether a database holds what it should, and finds it."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.records import Record
from remeasure.systems import batches, fulltext, replying

log = logging.getLogger("remeasure.ingest")
Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Counts(Record, kw_only=True):
    """What ``finish`` tells."""

    n_documents: int
    """With chunks."""
    n_chunks: int
    n_indexed: int
    """Chunks in the full text index."""


def counts_of(reply: dict[str, Any], place: Path) -> Counts:
    """Return the counts of a reply.

    Raises:
        RemeasureError: the adapter does not count.
    """
    try:
        return msgspec.convert({name: reply.get(name) for name in Counts.__struct_fields__}, Counts)
    except msgspec.ValidationError as error:
        raise RemeasureError(f"{place}: the adapter's `finish` does not count: {error}; repair it") from None


def check_counts(counts: Counts, documents: Path, n_missing: tuple[int, int], place: Path) -> None:
    """Compare a database with the documents that it is made of.

    Args:
        counts: what it says.
        documents: ``documents.jsonl``.
        n_missing: how many documents may be missing, at least and at most.
        place: the database.

    Raises:
        RemeasureError: the full text index does not cover it, or it holds more or fewer documents.
    """
    if counts.n_indexed != counts.n_chunks:
        raise RemeasureError(
            f"{place}: the full text index covers {counts.n_indexed} of {counts.n_chunks} chunks, so that "
            "rankings would be wrong without a word; build the database again"
        )
    n_all = jsonl.count(documents)
    if not n_missing[0] <= n_all - counts.n_documents <= n_missing[1]:
        raise RemeasureError(
            f"{place}: holds {counts.n_documents} documents with chunks, the dataset has {n_all}, of which "
            f"{n_missing[1]} may be missing; build it again, or take a database of these documents"
        )


def check_full_text(ask: Ask, documents: Path, failed: set[str], place: Path) -> None:
    """Look for words that stand in one document only.

    Args:
        ask: gives a command and returns the reply.
        documents: ``documents.jsonl``.
        failed: uris that are not in the database.
        place: the database.

    Raises:
        RemeasureError: they are not found.
    """
    words = fulltext.probes(one for one in batches.read(documents) if one.uri not in failed)
    if not words:
        log.info("no document has a word of its own: full text search is not tested")
    asked = [probe.word for probe in words] or fulltext.common(batches.read(documents))
    if not asked:
        return
    reply = ask(
        {
            "do": "search",
            "queries": asked,
            "limit": fulltext.LIMIT,
            "filter": None,
            "mode": "text",
        }
    )
    found = replying.of_searches(reply, len(asked), fulltext.LIMIT, 0.0)
    if bad := next((one for one in found if one.error), None):
        raise RemeasureError(
            f"{place}: full text search for {len(asked)} words: {bad.error}; repair the adapter"
        )
    uris = [(one.text or "").splitlines() for one in found]
    lost = fulltext.missed(words, uris) if words else []
    if lost:
        raise RemeasureError(
            f"{place}: full text search does not find {lost[0].word!r}, which stands in document "
            f"{lost[0].uri!r} ({len(lost)} of {len(words)} such words): its index is incomplete, or the "
            "database holds other documents; build it again"
        )
    strange = {uri for some in uris for uri in some}.difference(one.uri for one in batches.read(documents))
    if strange:
        raise RemeasureError(
            f"{place}: holds document {min(strange)[:80]!r}, which is not in the dataset; build it again, or "
            "take a database of these documents"
        )
