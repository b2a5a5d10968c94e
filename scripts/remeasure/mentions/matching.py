"""Find the phrases of a lexicon in a caption: longest first, whole words, never across a barrier."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from remeasure.mentions import grammar
from remeasure.mentions.lemmas import Lemmas
from remeasure.mentions.lexicon import Entry, Lexicon, Table
from remeasure.mentions.preparing import Prepared

MatcherName = Literal["phrase", "phrase+context", "lemma"]
VERSION = 1
"""Of the rules; part of every result's provenance."""


class Hit(NamedTuple):
    """A mention, by words."""

    label: str
    phrase: str
    start: int
    """First word."""
    stop: int
    """Word behind the last one."""


class Mention(NamedTuple):
    """A mention, by characters of the raw caption."""

    label: str
    """Class, or ``o`` or ``r`` for an object outside the table."""
    phrase: str
    """The phrase that was found in some form."""
    start: int
    stop: int


@dataclass(frozen=True)
class Found:
    """A caption that was looked through: its words and what was found, left to right."""

    text: Prepared
    hits: list[Hit]

    def labels(self) -> set[str]:
        """Return what is mentioned at least once."""
        return {hit.label for hit in self.hits}

    def mentions(self) -> list[Mention]:
        """Return the hits with their characters."""
        return [Mention(hit.label, hit.phrase, *self.text.span(hit.start, hit.stop)) for hit in self.hits]

    def denied(self) -> list[Hit]:
        """Return the hits that negation takes back."""
        if not grammar.may_be_denied(self.text):
            return []
        return [hit for hit in self.hits if grammar.denied(self.text, hit.start, hit.stop)]


@dataclass(frozen=True)
class Matcher:
    """One way to find mentions.

    ``phrase``: surface forms. ``phrase+context``: the same with the context rule. ``lemma``: forms and words
    of the caption by their lemma as nouns, with the lineage's rule that a toilet takes all seats.
    """

    name: MatcherName
    table: Table
    lemmas: Lemmas | None = None

    @classmethod
    def of(cls, name: MatcherName, lexicon: Lexicon) -> "Matcher":
        """Return the matcher of that name for a lexicon; ``lemma`` needs lemminflect."""
        if name != "lemma":
            return cls(name, lexicon.table)
        lemmas = Lemmas()
        return cls(name, lemmas.table(lexicon.table), lemmas)

    @property
    def label(self) -> str:
        """Name and version, for example ``phrase@1``."""
        return f"{self.name}@{VERSION}"

    def with_own(self, forms: dict[str, Entry]) -> "Matcher":
        """Return a matcher that looks for further forms too; they win over equal ones of the lexicon."""
        if not forms:
            return self
        return replace(self, table=self.table.extended(self.lemmas.forms(forms) if self.lemmas else forms))

    def read(self, caption: str) -> Found:
        """Look through a caption; time is linear in its length.

        Source:
            TOSC card, section 4.4, step 3; section 4.1 for ``lemma``.
        """
        text = Prepared(caption)
        if self.lemmas is None:
            hits = scan(text, text.words, self.table)
        else:
            hits = _without_seats_of_toilets(scan(text, self.lemmas.of(text.words), self.table))
        if self.name == "phrase+context":
            hits = [hit for hit in hits if grammar.counts_in_context(text, hit.start, hit.stop)]
        return Found(text, hits)


def scan(text: Prepared, keys: list[str], table: Table) -> list[Hit]:
    """Return what a caption mentions, going left to right and taking the longest form at each place.

    Args:
        text: the caption.
        keys: what stands for each of its words in the table: the word itself, or its lemma.
        table: the forms.
    """
    heads, forms = table.heads, table.forms
    hits: list[Hit] = []
    free = 0
    for start in [index for index, key in enumerate(keys) if key in heads]:
        if start < free:
            continue
        stop, entry = start + 1, None
        most = heads[keys[start]]
        if most > 1:
            stop, entry = _longest(text, keys, forms, start, most)
        if entry is None:
            stop, entry = start + 1, forms.get(keys[start])
        if entry is not None:
            free = stop
            if entry.label is not None:
                hits.append(Hit(entry.label, entry.phrase, start, stop))
    return hits


def _longest(
    text: Prepared, keys: list[str], forms: dict[str, Entry], start: int, most: int
) -> tuple[int, Entry | None]:
    """Return the end and the entry of the longest form of two words or more that begins at ``start``."""
    stop, last = start + 1, min(start + most, len(keys))
    while stop < last and not text.barrier(stop - 1):
        stop += 1
    for end in range(stop, start + 1, -1):
        entry = forms.get(" ".join(keys[start:end]))
        if entry is not None:
            return end, entry
    return start + 1, None


def _without_seats_of_toilets(hits: list[Hit]) -> list[Hit]:
    """Drop every seat where the caption has a toilet.

    Source:
        TOSC card, section 4.1; the lineage means "the seat of the toilet", which is no chair.
    """
    if any(hit.phrase in ("toilet", "toilet seat") for hit in hits):
        return [hit for hit in hits if hit.phrase != "seat"]
    return hits
