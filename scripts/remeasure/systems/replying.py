"""What an adapter's reply to a question means: one outcome per question, and nothing taken on trust."""

from typing import Any

import msgspec

from remeasure.executors.replies import one_line
from remeasure.records import Record, Status, Trace, Turn, is_uri
from remeasure.systems.contract import KINDS

_LONGEST_HIT = 500
_MOST = 10**12


class Answered(Record, kw_only=True):
    """What became of a question."""

    status: Status
    text: str | None = None
    finish: str | None = None
    error: str | None = None
    """``kind: message`` of a failure."""
    trace: Trace
    carry: Any = None
    """Of a live turn that was answered: what the next one is given."""

    @property
    def kind(self) -> str | None:
        """Class of the failure; null without one."""
        return self.error.partition(":")[0] if self.error else None


def failed(
    kind: str, message: Any, seconds: float, trace: Any = None, before: tuple[Turn, ...] = ()
) -> Answered:
    """Return the outcome of a question that has no answer; a kind that is none is ``server_error``."""
    kind = kind if kind in KINDS else "server_error"
    try:
        kept = _trace(trace, seconds, before)
    except msgspec.ValidationError:
        kept = Trace(seconds=round(seconds, 3), before=before)
    said = one_line(str(message or "no reason given"))
    status = "refused" if kind == "refused" else "failed"
    return Answered(status=status, error=f"{kind}: {said}", trace=kept)


def of_answer(reply: dict[str, Any], seconds: float, before: tuple[Turn, ...] = ()) -> Answered:
    """Return the outcome that a reply to ``answer`` or ``converse`` tells.

    Args:
        reply: as it came.
        seconds: from the question to the reply.
        before: of a live turn, the turns before it as they went.
    """
    if not reply["ok"]:
        return failed(str(reply.get("kind")), reply.get("error"), seconds, reply.get("trace"), before)
    text, finish = reply.get("text"), reply.get("finish")
    try:
        trace = _trace(reply.get("trace"), seconds, before)
        text = msgspec.convert(text, str | None)
        finish = msgspec.convert(finish, str | None)
    except msgspec.ValidationError as error:
        return failed("server_error", f"the adapter's answer is none: {error}", seconds, before=before)
    status = "cut_off" if finish == "length" else "answered"
    return Answered(status=status, text=text or "", finish=finish, trace=trace, carry=reply.get("carry"))


def of_searches(reply: dict[str, Any], n: int, limit: int, seconds: float) -> list[Answered]:
    """Return the outcomes of several searches in one command, each with its share of the time.

    Args:
        reply: as it came.
        n: how many there were.
        limit: most hits that a list may have.
        seconds: from the command to the reply.
    """
    share, results = seconds / n, reply.get("results")
    if not reply["ok"]:
        return [failed(str(reply.get("kind")), reply.get("error"), share)] * n
    if not isinstance(results, list) or len(results) != n:
        found = len(results) if isinstance(results, list) else "no"
        return [failed("server_error", f"the adapter gave {found} results for {n} queries", share)] * n
    return [of_search(one, limit, share) for one in results]


def reason(reply: dict[str, Any]) -> str:
    """Return what a reply says went wrong, as one line."""
    return one_line(str(reply.get("error") or "no reason given"))


def of_search(found: Any, limit: int, seconds: float) -> Answered:
    """Return the outcome that one result of ``search`` tells.

    Args:
        found: one of ``results``.
        limit: most hits that a list may have.
        seconds: from the question to the reply; of several in one command each its share.
    """
    if not isinstance(found, dict):
        return failed("server_error", "the adapter's result is no object", seconds)
    if found.get("error") is not None:
        return failed(str(found.get("kind", "server_error")), found["error"], seconds)
    try:
        trace = _trace({name: found.get(name, ()) for name in ("found", "found_documents")}, seconds)
        trouble = _odd(trace, limit)
    except msgspec.ValidationError as error:
        trouble = f"the adapter's result is none: {error}"
    if trouble:
        return failed("server_error", trouble, seconds)
    ranked = dict.fromkeys(hit.uri for hit in trace.found)
    return Answered(status="answered", text="\n".join(ranked), trace=trace)


def usage(trace: Trace) -> dict[str, int] | None:
    """Return the tokens of all requests of a question together; null where there was none."""
    if not trace.requests:
        return None
    return {
        "prompt_tokens": sum(one.input_tokens for one in trace.requests),
        "completion_tokens": sum(one.output_tokens for one in trace.requests),
    }


def _odd(trace: Trace, limit: int) -> str | None:
    uris = [hit.uri for hit in trace.found_documents]
    longest = max(len(trace.found), len(uris))
    if longest > limit:
        return f"the adapter gave {longest} hits, the limit is {limit}"
    if len(set(uris)) < len(uris):
        return "the adapter named a document twice in found_documents"
    if not all(is_uri(hit.uri) for hit in (*trace.found, *trace.found_documents)):
        return "the adapter gave a hit without a uri, or one that is no line of text"
    return None


def _trace(given: Any, seconds: float, before: tuple[Turn, ...] = ()) -> Trace:
    told = dict(given) if isinstance(given, dict) else {}
    told |= {"seconds": round(seconds, 3), "before": []}
    trace = msgspec.convert(told, Trace)
    tokens = [n for one in trace.requests for n in (one.input_tokens, one.output_tokens)]
    if any(n < 0 for n in tokens):
        raise msgspec.ValidationError("a count of tokens is negative")
    if any(n < 0 for n in (*trace.tools.values(), *trace.events.values())):
        raise msgspec.ValidationError("a count is negative")
    if any(n > _MOST for n in (*tokens, *trace.tools.values(), *trace.events.values())):
        raise msgspec.ValidationError(f"a count is above {_MOST}")
    hits = {name: tuple(map(_short, getattr(trace, name))) for name in ("found", "found_documents")}
    return msgspec.structs.replace(trace, before=before, **hits)


def _short(hit):
    return msgspec.structs.replace(hit, text=hit.text[:_LONGEST_HIT]) if len(hit.text) > _LONGEST_HIT else hit


def versions(reply: dict[str, Any]) -> dict[str, str]:
    """Return the versions that a reply to ``describe`` tells; what is no version is left out."""
    told = reply.get("versions")
    told = told if isinstance(told, dict) else {}
    return {one_line(name, 80): one_line(value, 80) for name, value in told.items() if isinstance(value, str)}
