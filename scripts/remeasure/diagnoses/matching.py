"""Whether a candidate is the right diagnosis: the original's rule, and a strict one.

Published: equal, or one a substring of the other, or token F1 of at least 0.6, over forms with punctuation
deleted. Strict: the same three on whole words, where no generic word and no short one matches by itself, and
two that name different types of a disease are two diseases.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Struct

from remeasure import text
from remeasure.diagnoses import names

F1_AT_LEAST = 0.6
FEWEST_LETTERS = 4
"""Letters that a name of one word needs to match a longer one."""
GENERIC = frozenset(
    "disease diseases syndrome syndromes disorder disorders tumor tumors tumour tumours cancer cancers "
    "carcinoma carcinomas neoplasm neoplasms neoplasia malignancy malignancies infection infections "
    "inflammation inflammatory lesion lesions mass condition conditions illness deficiency anomaly anomalies "
    "malformation malformations defect defects abnormality abnormalities autoimmune genetic hereditary "
    "inherited congenital familial metabolic systemic rare malignant benign acute chronic primary secondary "
    "idiopathic unknown unspecified other of and with in due to type".split()
)
"""Words that say of no disease which one it is."""


class Hit(Struct, frozen=True):
    """Why a candidate is the right diagnosis."""

    how: str
    """Which rule said so: equal, substring, token F1."""
    name: str
    """The accepted name that it was compared with."""
    f1: float | None = None
    """Of token F1."""

    @property
    def note(self) -> str:
        """The same in a few words."""
        value = "" if self.f1 is None else f" {self.f1:.2f}"
        return f"{self.how}{value}: {self.name}"


class Plain(Struct, frozen=True):
    """A name as the original compares it."""

    form: str
    words: frozenset[str]


class Strict(Struct, frozen=True):
    """A name as the strict rule compares it."""

    words: tuple[str, ...]
    padded: str
    """The words with a space before, between and behind them."""
    distinct: frozenset[str]
    types: frozenset[str]
    """Letters and numbers that tell diseases of one name apart."""
    can_match: bool
    """Whether it may match a name that it is not equal to."""


def hits_published(candidates: Sequence[str], accepted: Sequence[str]) -> tuple[Hit | None, ...]:
    """Return for each candidate by which accepted name it hits; null for a miss.

    The first accepted name that matches is taken. Floating-point operations stand in the original's order:
    9 shared words of 13 and 17 are below the threshold.

    Source:
        MRareBench card, section 5.
    """
    return _hits(candidates, accepted, plain, _published)


def hits_strict(candidates: Sequence[str], accepted: Sequence[str]) -> tuple[Hit | None, ...]:
    """Return the same under the strict rule."""
    return _hits(candidates, accepted, strict, _strict)


def _hits(
    candidates: Sequence[str],
    accepted: Sequence[str],
    prepare: Callable[[str], Plain | Strict],
    match: Callable[[Plain | Strict, Plain | Strict], tuple[str, float | None] | None],
) -> tuple[Hit | None, ...]:
    prepared = [(name, prepare(name)) for name in accepted]
    found: list[Hit | None] = []
    for candidate in candidates:
        one, hit = prepare(candidate), None
        for name, other in prepared:
            matched = match(one, other)
            if matched is not None:
                hit = Hit(how=matched[0], name=name, f1=matched[1])
                break
        found.append(hit)
    return tuple(found)


def plain(name: str) -> Plain:
    """Prepare a name for the published rule."""
    return _short_plain(name) if len(name) <= names.LONGEST_CACHED else _plain(name)


def _plain(name: str) -> Plain:
    form = text.normalise(name)
    return Plain(form, frozenset(form.split()))


_short_plain = lru_cache(maxsize=names.CACHED)(_plain)


def _published(one: Plain, other: Plain) -> tuple[str, float | None] | None:
    if not one.form or not other.form:
        return None
    if one.form == other.form:
        return "equal", None
    if other.form in one.form or one.form in other.form:
        return "substring", None
    f1 = token_f1(one.words, other.words)
    return ("token F1", f1) if f1 >= F1_AT_LEAST else None


def token_f1(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the harmonic mean of the two shares of common words, 0 without any."""
    shared = len(one & other)
    if not shared:
        return 0.0
    precision, recall = shared / len(one), shared / len(other)
    return 2 * precision * recall / (precision + recall)


def strict(name: str) -> Strict:
    """Prepare a name for the strict rule."""
    return _short_strict(name) if len(name) <= names.LONGEST_CACHED else _strictly(name)


def _strictly(name: str) -> Strict:
    words = names.words(name)
    distinct = frozenset(words)
    n_letters = sum(map(str.isalpha, words[0])) if len(words) == 1 else FEWEST_LETTERS
    return Strict(
        words=words,
        padded=f" {' '.join(words)} ",
        distinct=distinct,
        types=names.designators(words) - GENERIC,
        can_match=n_letters >= FEWEST_LETTERS and not distinct <= GENERIC,
    )


_short_strict = lru_cache(maxsize=names.CACHED)(_strictly)


def _strict(one: Strict, other: Strict) -> tuple[str, float | None] | None:
    if not one.words or not other.words:
        return None
    if one.words == other.words:
        return "equal", None
    if not one.can_match or not other.can_match or _differ_in_type(one, other):
        return None
    if other.padded in one.padded or one.padded in other.padded:
        return "substring", None
    if one.distinct & other.distinct <= GENERIC:
        return None
    f1 = token_f1(one.distinct, other.distinct)
    return ("token F1", f1) if f1 >= F1_AT_LEAST else None


def _differ_in_type(one: Strict, other: Strict) -> bool:
    """Say whether both name a type and none of them is the same."""
    return bool(one.types and other.types) and one.types.isdisjoint(other.types)
