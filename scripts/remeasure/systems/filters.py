"""Filters of documents: whether a text can be one SQL expression. Adapters of every Python import this.

LanceDB's parser takes the first expression and passes over what follows it, without a word: a filter with a
slip would filter otherwise than it says. What is checked here is the outside; put in brackets, the rest is
the parser's.
"""

import re

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


def is_one(where: str) -> bool:
    """Return whether brackets close in order, and there is no comment and no second statement."""
    bare = _QUOTED.sub("", where)
    depth = 0
    for mark in re.findall(r"[()]", bare):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            return False
    return depth == 0 and not re.search(r";|--|/\*", bare)
