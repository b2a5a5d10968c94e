"""From requests to what an adapter is told: commands, and what belongs together in one."""

from collections.abc import Iterator
from typing import Any

from remeasure.errors import RemeasureError
from remeasure.executors import Call
from remeasure.records import Turn
from remeasure.systems.contract import DOES

MOST_QUERIES = 32
"""Searches in one command."""
_NOT_TOLD = ("model", "messages", "task")
_OF_SEARCHES = ("query", "limit")
_SPEAKERS = {"user": "user", "assistant": "agent"}


def task_of(call: Call) -> dict[str, Any]:
    """Return what is to be done with a request's messages.

    Raises:
        RemeasureError: the request does not say it, or nothing that a system does.
    """
    task = call.body.get("task")
    if not isinstance(task, dict) or task.get("do") not in DOES:
        raise RemeasureError(
            f"request {call.custom_id!r}: task {str(task)[:80]}; a system needs `do` of {', '.join(DOES)}: "
            "give the bench a `task`"
        )
    return task


def together(calls: Iterator[Call]) -> Iterator[list[Call]]:
    """Yield calls in the lists in which they are worked on.

    Searches stand together, a number of them; an answer alone; the turns of a conversation in their order, as
    far as each follows upon the one before it.
    """
    group: list[Call] = []
    for call in calls:
        if group and not _belongs(call, group):
            yield group
            group = []
        group.append(call)
    if group:
        yield group


def _belongs(call: Call, group: list[Call]) -> bool:
    task = task_of(call)
    if task["do"] == "search":
        return task == task_of(group[0]) and len(group) < MOST_QUERIES
    return call.after is not None and call.after == group[-1].custom_id


def search(calls: list[Call]) -> dict[str, Any]:
    """Return the command for several searches that ask the same of different queries."""
    task = task_of(calls[0])
    limit = task.get("limit")
    if type(limit) is not int or limit < 1:
        raise RemeasureError(f"request {calls[0].custom_id!r}: limit {limit!r}; expected a number from 1")
    return {
        "do": "search",
        "queries": [_question(call) for call in calls],
        "limit": limit,
        "filter": task.get("filter"),
        "mode": "hybrid",
    }


def answer(call: Call, thinking_default: bool | None) -> dict[str, Any]:
    """Return the command for an answer.

    Args:
        call: its messages are the conversation, ending with the question.
        thinking_default: whether the answerer thinks when nothing is said; null: not known.
    """
    turns = [{"speaker": turn.speaker, "text": turn.text} for turn in conversation(call)]
    return {"do": "answer", "turns": turns} | _told(call, thinking_default)


def converse(call: Call, carry: Any, thinking_default: bool | None) -> dict[str, Any]:
    """Return the command for one turn of a live conversation; ``carry`` is null at the first."""
    return {"do": "converse", "question": _question(call), "carry": carry} | _told(call, thinking_default)


def conversation(call: Call) -> list[Turn]:
    """Return the messages as turns, without what stands before them all.

    Raises:
        RemeasureError: a message of another role in between, or the last one is no question.
    """
    messages = call.body["messages"]
    if messages and messages[0].get("role") == "system":
        messages = messages[1:]
    roles = [message.get("role") for message in messages]
    if not roles or roles[-1] != "user" or not set(roles) <= set(_SPEAKERS):
        raise RemeasureError(
            f"request {call.custom_id!r}: messages of {', '.join(map(str, roles)) or 'nobody'}; a system "
            "is asked by user and assistant in turn, ending with the user"
        )
    return [Turn(speaker=_SPEAKERS[message["role"]], text=_text(call, message)) for message in messages]


def _question(call: Call) -> str:
    return conversation(call)[-1].text


def _told(call: Call, thinking_default: bool | None) -> dict[str, Any]:
    """Return task and sampling in the contract's words."""
    task = {name: value for name, value in task_of(call).items() if name not in ("do", *_OF_SEARCHES)}
    words = {name: value for name, value in call.body.items() if name not in _NOT_TOLD}
    if words.get("thinking") == thinking_default:
        words["thinking"] = None
    first = call.body["messages"][0]
    preamble = _text(call, first) if first.get("role") == "system" else None
    return words | task | {"preamble": preamble, "filter": task.get("filter")}


def _text(call: Call, message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [
        part.get("text") for part in content or () if isinstance(part, dict) and part.get("type") == "text"
    ]
    if not parts or len(parts) != len(content):
        raise RemeasureError(
            f"request {call.custom_id!r}: a message that is not text; systems are asked by text"
        )
    return "\n".join(parts)
