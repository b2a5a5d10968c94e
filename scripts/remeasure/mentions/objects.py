"""Names of objects: their class, and what to look for where they have none."""

import functools
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.mentions.lexicon import Entry, Lexicon
from remeasure.mentions.plurals import numbers
from remeasure.mentions.preparing import Prepared, canonical_name

Side = Literal["o", "r"]
UnknownObjects = Literal["error", "other"]
Overlap = Literal["none", "same_class", "o_in_r", "r_in_o"]
# From here on two names are likely one misspelt; a monitor is no motorbike (0.63).
_ALIKE = 0.8


class Target(NamedTuple):
    """The original or the replacing object of a triplet, as a matcher looks for it."""

    name: str
    """Canonical name."""
    side: Side
    cls: str | None
    """Class of the lexicon; None for an object outside the table."""
    parent: str | None
    """Class of the name's last word where the whole name has none."""
    forms: tuple[str, ...]
    """Own forms of an object outside the table; empty for one that has a class."""

    @property
    def label(self) -> str:
        """What its mentions are called: the class, else ``o`` or ``r``."""
        return self.cls or self.side

    def entries(self) -> dict[str, Entry]:
        """Return its own forms as entries of a table."""
        return {form: Entry(self.side, self.name) for form in self.forms}

    @property
    def heads(self) -> frozenset[str]:
        """The last word of an own form of several words, in its own forms; empty for all else."""
        return frozenset(form.rpartition(" ")[2] for form in self.forms if " " in form)


@functools.lru_cache(maxsize=4096)
def own_forms(name: str) -> tuple[str, ...]:
    """Return what an object outside the table is called: both numbers of the last word, apart and joined.

    The name itself comes first. Hyphens need no form of their own: to the matchers they are spaces.

    Raises:
        RemeasureError: the name has no letter and no digit.

    Source:
        TOSC card, section 4.5.
    """
    words = Prepared(name).words
    if not words:
        raise RemeasureError(f"object {name!r} has no letter and no digit; correct the name of its file")
    *start, last = words
    forms: list[str] = []
    for end in numbers(last):
        forms += [" ".join([*start, end]), "".join([*start, end])]
    return tuple(dict.fromkeys(forms))


def resolve(
    name: str,
    side: Side,
    lexicon: Lexicon,
    *,
    unknown_objects: UnknownObjects,
    forms: tuple[str, ...] | None = None,
    extra_synonyms: Mapping[str, Sequence[str]] | None = None,
) -> Target:
    """Return what to look for when a triplet's object has this canonical name.

    Args:
        name: canonical name.
        side: whether it is the original (``o``) or the replacing object (``r``).
        lexicon: the classes and their forms.
        unknown_objects: what to do with a name that has no class: ``error``, or ``other``: look for the name.
        forms: own forms as the index stored them; None makes them.
        extra_synonyms: by canonical name further names of objects that have no class.

    Raises:
        RemeasureError: the name has no class and ``unknown_objects`` is ``error``.

    Source:
        TOSC card, section 4.5.
    """
    cls = lexicon.class_of(name)
    if cls is not None:
        return Target(name, side, cls, None, ())
    if unknown_objects == "error":
        hint = did_you_mean(name, lexicon.names, at_least=_ALIKE)
        raise RemeasureError(
            f"object {name!r} is not in the lexicon{hint}; add it to config/lexicons/coco.yaml and run "
            "scripts/write_lexicon.py, or set `unknown_objects: other` to look for the name itself"
        )
    words = Prepared(name).words
    parent = lexicon.class_of(words[-1]) if words else None
    if forms is None:
        names = (name, *map(canonical_name, (extra_synonyms or {}).get(name, ())))
        forms = tuple(dict.fromkeys(form for one in names for form in own_forms(one)))
    return Target(name, side, None, parent, forms)


def check_synonyms(extra_synonyms: Mapping[str, Sequence[str]], lexicon: Lexicon) -> None:
    """Check that further names are those of objects outside the lexicon, and no words of it.

    Raises:
        RemeasureError: a name that is not canonical or has a class, or a further name that has one.
    """
    for name, synonyms in extra_synonyms.items():
        place = f"extra_synonyms: {name!r}"
        if canonical_name(name) != name:
            raise RemeasureError(f"{place}: is written {canonical_name(name)!r} in captions; write it so")
        for word in (name, *synonyms):
            cls = lexicon.class_of(canonical_name(word))
            if cls is not None:
                raise RemeasureError(
                    f"{place}: {word!r} stands for {cls!r} in the lexicon already; take it out, or change "
                    "config/lexicons/coco.yaml"
                )


def conflict(o: Target, r: Target) -> str | None:
    """Return why a triplet cannot be scored, None where it can.

    Source:
        TOSC card, sections 4.5 and 4.6: equal names; two names outside the table that share a form.
    """
    if o.name == r.name:
        return f"original and replacing object are both {o.name!r}"
    shared = sorted(set(o.forms) & set(r.forms))
    if shared:
        return f"{o.name!r} and {r.name!r} share the form {shared[0]!r}"
    return None


def overlap(o: Target, r: Target) -> Overlap:
    """Return how two different objects are related, by the first rule that applies.

    ``o_in_r``, ``r_in_o``: the words of one name stand one after the other in the other name. ``same_class``:
    classes, or a parent in place of a missing class, are equal.

    Source:
        TOSC card, section 4.6.
    """
    if _within(o.name, r.name):
        return "o_in_r"
    if _within(r.name, o.name):
        return "r_in_o"
    classes = (o.cls or o.parent, r.cls or r.parent)
    return "same_class" if classes[0] is not None and classes[0] == classes[1] else "none"


def _within(inner: str, outer: str) -> bool:
    return f" {' '.join(Prepared(inner).words)} " in f" {' '.join(Prepared(outer).words)} "
