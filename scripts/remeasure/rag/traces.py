"""What a system's trace of one answer adds up to: citations, requests, tokens, tools, what went wrong."""

from msgspec import UNSET

from remeasure.rag import measures
from remeasure.records import Item, Response, Trace
from remeasure.systems.contract import EVENTS

LOST = ("failed", "refused", "not_sent")
"""Statuses of a question whose system gave no answer at all."""
TOOLS = ("search", "cite", "execute")
STATUSES = ("grounded", "ungrounded", "missing")
TOKENS = "tokens_per_request"


def trace_of(response: Response) -> Trace | None:
    """Return the trace; null where the response has none, such as one that was never sent."""
    return None if response.trace is UNSET else response.trace


def is_lost(response: Response) -> bool:
    """Return whether the system gave no answer at all."""
    return response.status in LOST


def cited(trace: Trace | None) -> list[str]:
    """Return the documents that an answer cites, each once, in the order of citation."""
    return measures.collapsed(trace.cited) if trace else []


def citing_scores(item: Item, trace: Trace | None) -> dict[str, float | None]:
    """Return the scores of an answer's citations; without gold documents there is none of their precision."""
    uris = cited(trace)
    precision = measures.average_precision(uris, item.relevant) if item.relevant else None
    return {"cited_map": precision, "cite_rate": float(bool(uris)), "citations": float(len(uris))}


def no_citing_scores() -> dict[str, float | None]:
    """Return the scores of citations where there is no answer."""
    return dict.fromkeys(("cited_map", "cite_rate", "citations"))


def cost_scores(trace: Trace | None) -> tuple[dict[str, float | None], dict[str, int]]:
    """Return requests, tokens per request and seconds of an answer, and the weight of the tokens.

    The mean of the tokens, weighted by requests, is all input tokens over all requests.
    """
    n = len(trace.requests) if trace else 0
    tokens = sum(one.input_tokens for one in trace.requests) if trace else 0
    scores = {
        "requests": float(n) if trace else None,
        TOKENS: tokens / n if n else None,
        "seconds": trace.seconds if trace else None,
    }
    return scores, {TOKENS: n} if n else {}


def counts(response: Response) -> dict[str, int]:
    """Count what a table says beside the numbers: tokens, tools, events, states of citation."""
    trace = trace_of(response)
    found = {f"tool_{name}": 0 for name in TOOLS} | dict.fromkeys(EVENTS, 0)
    found |= {f"citations_{name}": 0 for name in STATUSES}
    found |= {"tasks_failed": int(is_lost(response)), "requests": 0, "input_tokens": 0, "output_tokens": 0}
    if trace is None:
        return found
    for names, prefix, told in ((TOOLS, "tool_", trace.tools), (EVENTS, "", trace.events)):
        for name in names:
            found[f"{prefix}{name}"] += told.get(name, 0)
    if trace.citation_status is not None:
        found[f"citations_{trace.citation_status}"] += 1
    found["requests"] = len(trace.requests)
    found["input_tokens"] = sum(one.input_tokens for one in trace.requests)
    found["output_tokens"] = sum(one.output_tokens for one in trace.requests)
    return found
