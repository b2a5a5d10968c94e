"""Why there is no answer, or not all of it: classes that every table counts and names."""

from collections.abc import Iterator

from remeasure.records import Failed, Response
from remeasure.text import strip_thinking

MISSING = "missing"
EMPTY = "empty"
TRUNCATED = "truncated"
REFUSED = "refused"
UNKNOWN = "other"
MARKER = "Failed to obtain answer"
"""Stands in the text of a row whose model call failed, in tables of VLMEvalKit, which repeats such rows."""


def kind_of(response: Response) -> str | None:
    """Return the class of a failure: what an executor calls it, or what became of the answer.

    Null for an answer that is whole. An answer that the token limit cut off is a failure here, whether or not a
    grader looks at what there is of it.
    """
    if response.status == "not_sent":
        return MISSING
    if response.status == "refused":
        return REFUSED
    if response.status == "failed":
        return (response.error or "").partition(":")[0].strip() or UNKNOWN
    if response.status == "cut_off":
        return TRUNCATED
    return None if strip_thinking(response.text or "")[0].strip() else EMPTY


def failed(item_id: str, response: Response, reply: Response | None) -> Iterator[Failed]:
    """Yield what failed about one item: the reader's answer, the judge's reply to it."""
    for role, found in (("reader", response), ("judge", reply)):
        kind = kind_of(found) if found is not None else None
        if kind is not None:
            yield Failed(item_id=item_id, role=role, kind=kind, error=found.error)
