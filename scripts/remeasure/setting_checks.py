"""What checks of settings share: names that must be known, pairs that must be two, names of things."""

import re
from collections.abc import Collection

from remeasure.errors import RemeasureError, did_you_mean

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")


def check_known(kind: str, word: str, names: Collection[str], place: str) -> None:
    """Check that a word names one of several things.

    Raises:
        RemeasureError: it does not; names those that there are.
    """
    if word not in names:
        raise RemeasureError(
            f"{place}: {kind} {word!r} is not defined{did_you_mean(word, names)}; known: "
            f"{', '.join(names) or 'none'}"
        )


def check_pairs(pairs: list[tuple[str, str]], place: str) -> None:
    """Check that every pair is two, and once: a second one would count twice in the correction of tests.

    Raises:
        RemeasureError: one is not; names it.
    """
    seen: list[set[str]] = []
    for first, second in pairs:
        if first == second:
            raise RemeasureError(f"{place}: {first!r} with itself; name two")
        if {first, second} in seen:
            raise RemeasureError(f"{place}: {first!r} and {second!r} stand twice; remove one pair")
        seen.append({first, second})
