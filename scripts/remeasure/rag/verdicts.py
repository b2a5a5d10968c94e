"""What a judge's reply says: passed or not, with a reason; anything else is unreadable."""

import json
from typing import NamedTuple


class Verdict(NamedTuple):
    """A judge's verdict."""

    passed: bool | None
    """Null where the reply cannot be read."""
    reason: str
    problem: str | None
    """Why it cannot be read."""


def read(text: str) -> Verdict:
    """Read a reply that is one JSON object with a boolean ``pass``."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Verdict(None, "", "the judge's reply has no verdict")
    if not isinstance(found, dict) or not isinstance(found.get("pass"), bool):
        return Verdict(None, "", "the judge's pass is neither true nor false")
    return Verdict(found["pass"], str(found.get("reason") or ""), None)
