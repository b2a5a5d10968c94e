"""Names of the TOSC benchmark: a file's says which triplet, which of its three images, and which objects.

Source:
    TOSC card, section 1.1.
"""

import re
from typing import Literal, NamedTuple

from remeasure.mentions.preparing import Prepared, canonical_name

State = Literal["origin", "removed", "replaced"]

# More digits than any benchmark has; an id made from them stays short.
_MAX_DIGITS = 15
_ORIGIN = re.compile(r"([0-9]+)\.jpe?g", re.IGNORECASE)
_MASKED = re.compile(r"([0-9]+)_masked_")
# With a look-ahead, because two of them may share an underscore.
_INSERT = re.compile(r"(?=_insert_)")
_KEY = re.compile(r"([0-9]+)[/-](origin|removed|replaced)")


class Name(NamedTuple):
    """What a file name says."""

    index: int
    state: State
    original: str | None = None
    """Spelling of the original object; null in the name of an original image."""
    replacement: str | None = None


class Fault(NamedTuple):
    """Why a file name says nothing."""

    problem: str
    is_error: bool
    """Whether it is a broken name of the benchmark; else it is another file, and passed over."""


def parse(name: str) -> Name | Fault:
    """Read a file name.

    Args:
        name: without its folder.

    Edges:
        Extensions may have any case. ``8_masked__repair.png``: an error, the name is empty.
    """
    if name.startswith("."):
        return Fault("is hidden", False)
    if found := _ORIGIN.fullmatch(name):
        return _numbered(found[1], "origin")
    masked = _MASKED.match(name)
    if masked is None:
        return Fault("has no name of the benchmark", False)
    stem, _, extension = name.rpartition(".")
    if extension.lower() != "png":
        return Fault("is no .png, which an edited image is", True)
    rest = stem[masked.end() :]
    n_inserts = len(_INSERT.findall(rest))
    if n_inserts > 1:
        return Fault("is ambiguous: `_insert_` stands in it more than once", True)
    if n_inserts:
        original, _, replacement = rest.partition("_insert_")
        if "_repair" in rest:
            return Fault("is ambiguous: it has both `_insert_` and `_repair`", True)
        return _named(masked[1], "replaced", original, replacement)
    if rest.endswith("_repair"):
        return _named(masked[1], "removed", rest.removesuffix("_repair"))
    return Fault("has no state: neither `_repair` nor `_insert_` and a name at its end", True)


def triplet_id(index: int) -> str:
    """Return what a triplet is called in items and verdicts."""
    return f"{index:06d}"


def image_id(index: int, state: State) -> str:
    """Return what an image of a triplet is called in items and requests."""
    return f"{triplet_id(index)}-{state}"


def parse_key(key: str) -> Name | Fault:
    """Read the key of an image: number and state with a slash (the card's) or a hyphen (``image_id``).

    Source:
        TOSC card, section 2.
    """
    found = _KEY.fullmatch(key)
    return _numbered(found[1], found[2]) if found else Fault("is no key of an image", False)


def _named(digits: str, state: State, *objects: str) -> Name | Fault:
    for raw in objects:
        if not canonical_name(raw):
            return Fault("has an empty object name", True)
        if not Prepared(canonical_name(raw)).words:
            return Fault(f"has an object name without a letter or digit ({raw!r})", True)
    return _numbered(digits, state, *objects)


def _numbered(digits: str, state: State, *objects: str) -> Name | Fault:
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        return Fault(f"has an index of {len(digits)} digits, at most {_MAX_DIGITS} are taken", True)
    return Name(int(digits), state, *objects)
