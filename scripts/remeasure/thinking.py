"""Whether there is an answer behind the thinking: one rule for classes of failures and strict readings.

Published readings of other studies cut thinking off in their own ways (``text.strip_thinking``).

Source:
    MRareBench card, sections 4 and 9.
"""

import re
from typing import NamedTuple

_OPENING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


class Behind(NamedTuple):
    """A reply without its thinking."""

    text: str
    """What stands behind the last closing tag, or all of it; empty where the thinking does not end."""
    ends: bool
    """Whether the thinking ends, or there is none."""
    thought: bool
    """Whether thinking, more than white space, stood before."""


def behind(reply: str) -> Behind:
    """Part a reply from its thinking.

    Edges:
        Tags are ``<think>`` and ``<thinking>`` in any case. Thinking ends with its last closing tag, whether
        or not the reply has the opening one (a chat template may have it). An opening tag behind that is
        thinking that never ends: there is no answer, whatever stands before the tag.
    """
    start, end = 0, 0
    for closing in _CLOSING.finditer(reply):
        start, end = closing.span()
    if _OPENING.search(reply, end):
        return Behind("", ends=False, thought=True)
    return Behind(reply[end:], ends=True, thought=bool(_OPENING.sub("", reply[:start]).strip()))
