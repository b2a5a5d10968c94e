"""The tools that the answering model is offered, and how their arguments are read."""

import json
from typing import Annotated, Any

import msgspec
from msgspec import Meta

INSTRUCTIONS = (
    "You answer questions from a collection of documents that you can search.\n"
    "Call `search` with a short query of your own before you answer; search again with other words where "
    "the results do not hold the answer. In a conversation, put names into the query where the question only "
    'says "it" or "they".\n'
    "Answer from what the searches returned and from nothing else. Where they do not hold the answer, say "
    "that the information is not available in the documents.\n"
    "Before the answer call `cite` with the ids of the chunks that it rests on, those in square brackets at "
    "the start of each result; with an empty list where it rests on none.\n"
    "Then write the answer, without ids in it."
)
_LIMIT = {"type": "integer", "description": "most chunks to return", "minimum": 1, "maximum": 20}

SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the documents by words and by meaning. Returns chunks, best first.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "what to look for"},
                "limit": _LIMIT,
            },
            "required": ["query"],
        },
    },
}
CITE = {
    "type": "function",
    "function": {
        "name": "cite",
        "description": "Say which chunks the answer rests on. An empty list says that it rests on none.",
        "parameters": {
            "type": "object",
            "properties": {"chunk_ids": {"type": "array", "items": {"type": "string"}}},
            "required": ["chunk_ids"],
        },
    },
}


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of ``search``."""

    query: Annotated[str, Meta(min_length=1)]
    limit: Annotated[int, Meta(ge=1, le=20)] | None = None


class Cite(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of ``cite``."""

    chunk_ids: list[str]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a model asked for it."""

    id: str
    name: str
    arguments: str


KINDS = {"search": Search, "cite": Cite}


def arguments(call: Call) -> Search | Cite:
    """Read the arguments of a call.

    Raises:
        ValueError: a tool that there is not, or arguments that are not what it takes; says which.
    """
    kind = KINDS.get(call.name)
    if kind is None:
        raise ValueError(f"there is no tool {call.name[:60]!r}; there are search and cite")
    try:
        return msgspec.json.decode(call.arguments or "{}", type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"arguments of {call.name}: {error}") from None


def calls_of(message: dict[str, Any]) -> list[Call]:
    """Return the calls that a message asks for.

    Raises:
        ValueError: they are not in the protocol's form.
    """
    told = message.get("tool_calls") or []
    try:
        return [
            Call(
                id=str(one["id"]),
                name=str(one["function"]["name"]),
                arguments=_as_text(one["function"].get("arguments")),
            )
            for one in told
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"tool_calls: {type(error).__name__}: {error}") from None


def _as_text(told: Any) -> str:
    """Return arguments as text: the protocol's form; some servers send the object itself."""
    return told if isinstance(told, str) else json.dumps(told or {})
