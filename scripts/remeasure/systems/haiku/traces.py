"""What a run of the library did, read from its messages and its state."""

import difflib
import re
from collections import Counter
from typing import Any

NOTHING_FOUND = "No results found."
"""What a search tells the model that found nothing."""
OUT_OF_CODE = "Code-execution limit reached"
"""How it begins when the budget of code is spent."""
CUTOFF = 0.75
"""Likeness (difflib) from which a cited id is taken as a damaged one of those retrieved."""
NO_SUCH_TOOL = "Unknown tool name"
"""How it begins when a tool is called that there is not, or no longer."""
_IGNORED = re.compile(r"ignored (\d+) unresolvable id")
_KINDS = ("search", "cite", "execute_code")


def kind_of_tool(name: str | None) -> str | None:
    """Return ``search``, ``cite`` or ``execute`` for a tool's name in any version; null for others."""
    for kind in _KINDS:
        if name is not None and (name == kind or name.endswith(f"_{kind}")):
            return kind.removesuffix("_code")
    return None


def _calls(messages: list[Any]) -> list[Any]:
    from pydantic_ai.messages import ModelResponse, ToolCallPart

    responses = [message for message in messages if isinstance(message, ModelResponse)]
    return [part for message in responses for part in message.parts if isinstance(part, ToolCallPart)]


def _cited_ids(call: Any) -> list[str]:
    try:
        given = call.args_as_dict().get("chunk_ids") if call is not None else None
    except (ValueError, AssertionError):
        return []
    return [each.strip("[]") for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _is_null(message: Any) -> bool:
    from pydantic_ai.messages import TextPart, ToolCallPart

    said = (part for part in message.parts if isinstance(part, TextPart) and part.content.strip())
    return not any(isinstance(part, ToolCallPart) for part in message.parts) and next(said, None) is None


class _Counting:
    """Counts message by message what happened; a tool's reply belongs to a call of the response before it."""

    def __init__(self, retrieved: list[str], known: set[str]) -> None:
        self._retrieved, self._known = retrieved, known
        self._asked: dict[str, Any] = {}
        self.events: Counter[str] = Counter()
        self.n_requests = 0

    def response(self, message: Any) -> None:
        self.n_requests += 1
        self.events["null_answers"] += _is_null(message)
        self._asked = {call.tool_call_id: call for call in _calls([message])}

    def retry(self, part: Any) -> None:
        """Count an answer that told the model to try again."""
        if part.tool_name is None:  # a message with nothing in it
            return
        gone = isinstance(part.content, str) and part.content.startswith(NO_SUCH_TOOL)
        if gone or part.tool_name not in self._known or isinstance(part.content, list):
            self.events["unknown_tools"] += 1
            return
        self.events["tool_errors"] += 1
        if kind_of_tool(part.tool_name) == "cite":
            self.events["unresolved_citations"] += len(_cited_ids(self._asked.get(part.tool_call_id)))

    def returned(self, part: Any) -> None:
        """Count what a tool gave back."""
        kind, said = kind_of_tool(part.tool_name), str(part.content)
        if getattr(part, "outcome", None) == "failed":
            if kind == "search":
                self.events["rejected_searches"] += 1
            elif kind == "execute" and said.startswith(OUT_OF_CODE):
                self.events["rejected_executions"] += 1
            else:
                self.events["tool_errors"] += 1
        elif kind == "search" and said == NOTHING_FOUND:
            self.events["empty_searches"] += 1
        elif kind == "cite":
            ignored = _IGNORED.search(said)
            self.events["unresolved_citations"] += int(ignored[1]) if ignored else 0
            ids = _cited_ids(self._asked.get(part.tool_call_id))
            lost = [each for each in ids if each not in self._retrieved]
            self.events["repaired_citations"] += sum(
                bool(difflib.get_close_matches(each, self._retrieved, n=1, cutoff=CUTOFF)) for each in lost
            )


def events_of(
    messages: list[Any], retrieved: list[str], known: set[str], limit: int | None
) -> dict[str, int]:
    """Count what else happened.

    Args:
        messages: of one question, in order.
        retrieved: ids of chunks that its searches returned.
        known: names of the tools that there are.
        limit: requests before only citing is left.
    """
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, ToolReturnPart

    counting = _Counting(retrieved, known)
    for message in messages:
        if isinstance(message, ModelResponse):
            counting.response(message)
            continue
        for part in message.parts:
            if isinstance(part, RetryPromptPart):
                counting.retry(part)
            elif isinstance(part, ToolReturnPart):
                counting.returned(part)
    if limit is not None and counting.n_requests > limit:
        counting.events["request_limit_reached"] = 1
    return {name: count for name, count in sorted(counting.events.items()) if count}


def trace_of(messages: list[Any], state: Any, capability: Any) -> dict[str, Any]:
    """Return the trace of one question, without what was before and how long it took.

    Args:
        messages: of this question alone.
        state: what the capability keeps, as its own type.
        capability: that answered.
    """
    from haiku.rag.capabilities.ledger import citation_status
    from pydantic_ai.messages import ModelResponse

    index = state.citation_index
    cited = dict.fromkeys(index[chunk].document_uri for chunk in state.citations if chunk in index)
    found = [result for results in state.searches.values() for result in results]
    retrieved = [result.chunk_id for result in found if result.chunk_id]
    tools = Counter(kind for call in _calls(messages) if (kind := kind_of_tool(call.tool_name)))
    events = events_of(messages, retrieved, set(capability.tool_names), capability.request_limit)
    if state.searches:
        events["search_keys"] = len(state.searches)
    record = state.evidence
    known = record.question is not None
    return {
        "cited": [uri for uri in cited if uri],
        "cited_chunks": list(state.citations),
        "searched": [uri for uri in dict.fromkeys(result.document_uri for result in found) if uri],
        "citation_status": citation_status([record], question=record.question) if known else None,
        "requests": [
            {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens}
            for message in messages
            if isinstance(message, ModelResponse)
        ],
        "tools": dict(sorted(tools.items())),
        "events": events,
    }
