"""Why there is no answer, or not all of it: classes that every table counts and names."""

import re
from collections.abc import Iterable, Iterator

from remeasure import oversize, thinking
from remeasure.records import Failed, Response

MISSING = "missing"
EMPTY = "empty"
TRUNCATED = "truncated"
UNFINISHED = "unfinished"
MARKED = "marker"
REFUSED = "refused"
OTHER = "other"
MARKER = "Failed to obtain answer"
"""Stands in the text of a row whose model call failed, in tables of VLMEvalKit, which repeats such rows."""
SENTENCE = f"{MARKER} via API"
"""Begins an answer that is nothing but that, wherever it comes from."""

KINDS = (
    "http_4xx",
    "rate_limit",
    "http_5xx",
    "timeout",
    "connection",
    *oversize.KINDS,
    REFUSED,
    EMPTY,
    TRUNCATED,
    UNFINISHED,
    MISSING,
    MARKED,
    "bad_reply",
    "wrong_model",
    "quota",
    "raised",
    OTHER,
)
"""The classes, in the order of their columns. ``unfinished``: thinking that never ends, though the token
limit did not cut it off; ``marker``: an answer that says itself that it is none, imported (VLMEvalKit) or
not; ``bad_reply``: something came back that is no reply; ``raised``: an imported case ended with an
exception. A class that is none of these stays as it is called; what is no name of a class is ``other``."""

# What executors and imports call them; statuses decide about the first two.
_CALLED = {
    "server_error": "http_5xx",
    "rejected": "bad_reply",
    "auth": "http_4xx",
    "cut_stream": "connection",
    "not_json": "bad_reply",
    "html": "bad_reply",
    "not_http": "bad_reply",
    "not_a_completion": "bad_reply",
    "expired": "timeout",
    "cancelled": MISSING,
    "not_sent": MISSING,
    "content_filter": REFUSED,
    "cut_off": TRUNCATED,
    # Exceptions of the clients behind imported answers.
    "APITimeoutError": "timeout",
    "TimeoutError": "timeout",
    "APIConnectionError": "connection",
    "ConnectionError": "connection",
    "RateLimitError": "rate_limit",
    "BadRequestError": "http_4xx",
    "AuthenticationError": "http_4xx",
    "PermissionDeniedError": "http_4xx",
    "NotFoundError": "http_4xx",
    "UnprocessableEntityError": "http_4xx",
    "InternalServerError": "http_5xx",
}
_DECIDED_BY_STATUS = ("server_error", "rejected", "BadRequestError", "APIStatusError", "")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
# Ours, and that of OpenAI's client.
_STATUS = re.compile(r"(?:^|: )(?:status|Error code:) ([1-5]\d\d)\b")


def kind_of(response: Response) -> str | None:
    """Return the class of a failure: what an executor calls it, or what became of the answer.

    Null for an answer that is whole: something stands behind the thinking (``thinking.behind``) and does not
    begin with the sentence of a failed request. An answer that the token limit cut off is a failure here,
    whether or not a grader looks at what there is of it.
    """
    if response.status == "not_sent":
        return MISSING
    if response.status == "refused":
        return REFUSED
    if response.status == "failed":
        return of_error(response.error or "")
    if response.status == "cut_off":
        return TRUNCATED
    found = thinking.behind(response.text or "")
    if not found.ends:
        return UNFINISHED
    if found.text.lstrip().startswith(SENTENCE):
        return MARKED
    return None if found.text.strip() else EMPTY


def of_error(error: str) -> str:
    """Return the class that an error's text says: ``kind: message``, or what another system has written.

    Edges:
        A kind that nobody knows stays as it is; without one a status decides, and without either it is
        ``other``.
    """
    called = error.partition(":")[0].strip()
    if not _NAME.fullmatch(called):
        called = ""
    if called in KINDS:
        return called
    if called in _DECIDED_BY_STATUS and (found := _STATUS.search(error)):
        return _of_status(int(found[1]), error)
    return _CALLED.get(called, called) or OTHER


def _of_status(status: int, text: str) -> str:
    if status == 429:
        return "rate_limit"
    named = {4: "http_4xx", 5: "http_5xx"}.get(status // 100, "bad_reply")
    return oversize.kind_of(status, text) or named


def in_order(kinds: Iterable[str]) -> list[str]:
    """Return classes each once, in the order of ``KINDS``; those that are none of them behind, by name."""
    found = set(kinds)
    return [kind for kind in KINDS if kind in found] + sorted(found - set(KINDS))


def failed(item_id: str, response: Response, reply: Response | None) -> Iterator[Failed]:
    """Yield what failed about one item: the reader's answer, the judge's reply to it."""
    kind = kind_of(response)
    if kind is not None:
        yield Failed(item_id=item_id, role="reader", kind=kind, error=response.error)
    if reply is not None:
        yield from failed_reply(item_id, reply)


def failed_reply(item_id: str, reply: Response) -> Iterator[Failed]:
    """Yield what failed about a judge's reply.

    Args:
        item_id: of the item, or of a further question about it (``building.further_id``).
        reply: what came back.
    """
    kind = kind_of(reply)
    if kind is not None:
        yield Failed(item_id=item_id, role="judge", kind=kind, error=reply.error)
