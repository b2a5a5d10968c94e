"""Find the phrases of a lexicon in a caption: longest first, whole words, never across a barrier."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Literal, NamedTuple

from remeasure.mentions import grammar
from remeasure.mentions.lemmas import Lemmas
from remeasure.mentions.lexicon import Entry, Lexicon, Table
from remeasure.mentions.preparing import Prepared

MatcherName = Literal["phrase", "phrase+context", "lemma"]
VERSION = 1
"""Of the rules; part of every result's provenance."""


def matcher_label(name: MatcherName) -> str:
    """Return name and version, for example ``phrase@1``."""
    return f"{name}@{VERSION}"


class Hit(NamedTuple):
    """A mention, by tokens."""

    label: str
    phrase: str
    start: int
    """First token."""
    stop: int
    """Token behind the last one."""


class Mention(NamedTuple):
    """A mention, by characters of the raw caption."""

    label: str
    """Class, or ``o`` or ``r`` for an object outside the table."""
    phrase: str
    """The phrase that was found in some form."""
    start: int
    stop: int


class Found(NamedTuple):
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
        tokens = self.text.tokens
        if not grammar.may_be_denied(tokens):
            return []
        return [hit for hit in self.hits if grammar.denied(tokens, hit.start, hit.stop)]


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

    def with_own(self, forms: dict[str, Entry]) -> "Matcher":
        """Return a matcher that looks for further forms too; they win over equal ones of the lexicon."""
        if not forms:
            return self
        return replace(self, table=self.table.extended(self.lemmas.forms(forms) if self.lemmas else forms))

    def read(self, caption: str | Prepared) -> Found:
        """Look through a caption, prepared or as it stands; time is linear in its length.

        Source:
            TOSC card, section 4.4, step 3; section 4.1 for ``lemma``.
        """
        text = Prepared(caption) if isinstance(caption, str) else caption
        if self.lemmas is None:
            hits = scan(text.tokens, self.table)
        else:
            hits = _without_seats_of_toilets(scan(self.lemmas.of(text.tokens), self.table))
        if self.name == "phrase+context":
            hits = [hit for hit in hits if _counts_in_context(text, hit)]
        return Found(text, hits)


def scan(keys: list[str], table: Table) -> list[Hit]:
    """Return what a caption mentions, going left to right and taking the longest form at each place.

    Args:
        keys: the tokens of the caption, or what stands for each in the table: its lemma.
        table: the forms.
    """
    heads, forms = table.heads, table.forms
    hits: list[Hit] = []
    free, n_keys = 0, len(keys)
    for start in compress(range(n_keys), map(heads.__contains__, keys)):
        if start < free:
            continue
        form = keys[start]
        most, stop = heads[form], start + 1
        if most > 1:
            # No form has a barrier in it, so nothing that is joined across one is found.
            for end in range(min(start + most, n_keys), stop, -1):
                longer = " ".join(keys[start:end])
                if longer in forms:
                    form, stop = longer, end
                    break
        entry = forms.get(form)
        if entry is not None:
            free = stop
            label, phrase = entry
            if label is not None:
                hits.append(_hit((label, phrase, start, stop)))
    return hits


# As Hit(...), in a third of the time.
_hit = partial(tuple.__new__, Hit)


def _counts_in_context(text: Prepared, hit: Hit) -> bool:
    """Say whether a hit counts under the context rule.

    Source:
        TOSC card, section 4.4, ``phrase+context``.
    """
    tokens = text.tokens
    if hit.stop < len(tokens) and tokens[hit.stop] in grammar.LIKENESS and text.hyphen_behind(hit.stop - 1):
        return False
    return grammar.counts_in_context(tokens, hit.start, hit.stop)


def _without_seats_of_toilets(hits: list[Hit]) -> list[Hit]:
    """Drop every seat where the caption has a toilet.

    Source:
        TOSC card, section 4.1; the lineage means "the seat of the toilet", which is no chair.
    """
    if any(hit.phrase in ("toilet", "toilet seat") for hit in hits):
        return [hit for hit in hits if hit.phrase != "seat"]
    return hits
