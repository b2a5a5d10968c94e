"""A judge's verdict: a JSON object with ``pass`` and ``reason``, or nothing that could be read.

The whole reply is read first, as a server that keeps to a shape sends it; else the last object in the text
that says ``pass``, since earlier ones may be quoted from the answer, as are those amid words. A reply without
one is unreadable: nothing is guessed from prose, and nothing from a reply that was cut off.

Source:
    RAG benchmark card, 2.7 (only ``pass`` is used, ``score`` is ignored), R7 and R8. The original reads the
    arguments of a call of a tool, takes "yes", 1 and the like for true, and asks once more where it cannot.
"""

import json
from typing import Any

from msgspec import Struct

from remeasure.text import strip_thinking

# A verdict stands at the end; of a longer reply only so much is looked at.
MAX_CHARS = 100_000
# Braces that begin no object are tried one by one.
_MAX_TRIES = 2_000
_LOOKED_AT = 200


class Verdict(Struct, frozen=True):
    """What a judge said."""

    passed: bool | None
    """Null where it could not be read."""
    reason: str
    """The judge's own; empty without one."""
    problem: str = ""
    """Why it could not be read, in a few words; empty where it could."""


def read(text: str | None, cut: bool = False) -> Verdict:
    """Return the verdict in a reply.

    Args:
        text: the reply; null or empty where there is none.
        cut: whether it ended by its length; then it holds no verdict, whatever stands in it.
    """
    if cut:
        return _unreadable("the judge's reply is cut off")
    found = whole(text or "")
    if found is not None:
        return _verdict([found])
    answer, closed = strip_thinking(text or "")
    if closed is False:
        return _unreadable("the judge's reply ends while it thinks")
    if not answer.strip():
        return _unreadable("the judge's reply is empty")
    return _verdict(_objects(answer[-MAX_CHARS:]))


def whole(text: str) -> dict[str, Any] | None:
    """Return the object that a reply is, thinking before it left out; null where it is anything else.

    Tags of thinking inside the object are quoted from the answer and mean nothing.
    """
    bare = text.strip()
    if bare.startswith("<think"):
        bare = bare.partition("</think>")[2].strip()
    if not bare.startswith("{") or len(bare) > MAX_CHARS:
        return None
    try:
        return json.loads(bare, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None


def _verdict(found: list[dict[str, Any]]) -> Verdict:
    verdicts = [one for one in found if isinstance(one.get("pass"), bool)]
    if not verdicts:
        said = any("pass" in one for one in found)
        return _unreadable(
            "the judge's pass is neither true nor false" if said else "the judge's reply has no verdict"
        )
    reason = verdicts[-1].get("reason")
    # Half a character, as JSON can spell it, could not be written.
    said = reason.encode("utf-8", "replace").decode() if isinstance(reason, str) else ""
    return Verdict(passed=verdicts[-1]["pass"], reason=said)


def _unreadable(problem: str) -> Verdict:
    return Verdict(passed=None, reason="", problem=problem)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects in a text, in order; those inside others are not looked at.

    One with words before and behind it on its lines is quoted, such as from the answer, and passed over.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    found: list[dict[str, Any]] = []
    place = text.find("{")
    for _ in range(_MAX_TRIES):
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
            if not _is_quoted(text, place, end):
                found.append(value)
        except (ValueError, RecursionError):
            end = place + 1
        place = text.find("{", end)
    return found


def _is_quoted(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _LOOKED_AT) : start].rpartition("\n")[2]
    behind = text[end : end + _LOOKED_AT].partition("\n")[0]
    return any(map(str.isalpha, before)) and any(map(str.isalpha, behind))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a key that stands twice with two values says neither."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = value if found.get(key, value) == value else None
    return found
