"""What an answer cites: ids of chunks as a model writes them, brought back to chunks that there are."""

import difflib
from collections.abc import Sequence

ALIKE = 0.75
"""Least similarity (``difflib``'s ratio) of an id to the one that it is taken for."""


def bare(told: str) -> str:
    """Return an id without the brackets and blanks that a model puts around it."""
    return told.strip().strip("[]").strip()


def repaired(told: str, retrieved: Sequence[str]) -> str:
    """Return the retrieved id that is most like one that a model wrote, or the latter where none is.

    Args:
        told: without brackets.
        retrieved: ids that the searches for this question returned, in order; the first of equals wins.

    Source:
        RAG card 2.4: the closest retrieved id from a ratio of 0.75 on.
    """
    best, ratio = told, 0.0
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(told)
    for one in retrieved:
        if one == told:
            return told
        matcher.set_seq1(one)
        if (found := matcher.ratio()) >= ALIKE and found > ratio:
            best, ratio = one, found
    return best
