"""The words of the chat protocol for tools: what is offered, what is called, and what came back."""

from typing import Any, Literal

from msgspec import Struct

# Words of a request that only engines with tools understand (``Engine.more_words``).
TOOL_WORDS = ("tools", "tool_choice", "parallel_tool_calls")


class Words(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the request's parts: an unknown key is refused by name, never dropped."""


class Function(Words, kw_only=True):
    """A function that the model may ask to have called."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] = {}
    """JSON schema of its arguments."""
    strict: bool | None = None


class Tool(Words, kw_only=True, tag_field="type", tag="function"):
    """A tool; there are only functions."""

    function: Function


class NamedFunction(Words, kw_only=True):
    """A function by its name."""

    name: str


class NamedTool(Words, kw_only=True, tag_field="type", tag="function"):
    """The tool that must be called."""

    function: NamedFunction


class FunctionCall(Words, kw_only=True):
    """A function with its arguments, JSON as text."""

    name: str
    arguments: str


class ToolCall(Words, kw_only=True, tag_field="type", tag="function"):
    """A call that the model asked for."""

    id: str
    function: FunctionCall


ToolChoice = Literal["none", "auto", "required"] | NamedTool


def problems(offered: list[Tool], choice: ToolChoice | None) -> list[tuple[bool, str]]:
    """Return what may be wrong with the tools of a request: whether it is, and what is said."""
    names = [tool.function.name for tool in offered]
    named = choice.function.name if isinstance(choice, NamedTool) else None
    return [
        (len(set(names)) != len(names), "tools: a name stands twice"),
        (not all(names), "tools: a name is empty"),
        (choice not in (None, "none") and not names, "tool_choice needs tools"),
        (named is not None and named not in names, f"tool_choice: {named!r} is not among the tools"),
    ]


def messages_problems(messages: list[Any]) -> list[tuple[bool, str]]:
    """Return what may be wrong with the calls and results in a conversation.

    Args:
        messages: ``chat.Message``, in order.
    """
    called: set[str] = set()
    empty = misplaced = unknown = False
    for message in messages:
        calls = message.tool_calls or []
        empty |= message.content is None and not calls
        misplaced |= bool(calls) and message.role != "assistant"
        misplaced |= (message.tool_call_id is not None) != (message.role == "tool")
        unknown |= message.role == "tool" and message.tool_call_id not in called
        called |= {call.id for call in calls}
    return [
        (empty, "messages: content is missing; only a message with tool_calls does without"),
        (
            misplaced,
            "messages: tool_calls belong to the assistant, tool_call_id to the role tool and is needed there",
        ),
        (unknown, "messages: tool_call_id is that of no call before it"),
    ]
