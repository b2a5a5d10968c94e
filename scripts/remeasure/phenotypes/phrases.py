"""Finding phenotypes in words: labels and exact synonyms in texts, and in lines that OCR may have misread."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from remeasure.phenotypes.records import Term

_WORD = re.compile(r"[a-z0-9]+")
_LONGEST_PHRASE = 12  # words
_SHORTEST_KEY = 4  # letters; shorter ones are parts of other words too often
# A word before a phrase, or one of two before it, that says that it is not there.
_DENIES = frozenset(("no", "not", "without", "denies", "denied", "never", "absence"))
# A line may differ from a phrase by one letter in this many.
_LETTERS_PER_MISTAKE = 12
_NEAREST = 24


class Found(NamedTuple):
    """A phenotype in a text: the term, and the name that the text gives it, spelled as the ontology does."""

    term: str
    name: str


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, letters and digits only."""
    return _WORD.findall(text.lower())


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the number of letters to insert, delete or replace, or ``limit + 1`` where it is more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, theirs in enumerate(other, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != theirs))
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


class Phrases:
    """The names of terms, looked up without regard to case, spaces and punctuation.

    Args:
        terms: all terms; a name that two of them have belongs to the one whose label it is, else to neither.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        terms = list(terms)
        names: dict[str, Found] = {}
        spoiled: set[str] = set()
        for term in terms:
            for synonym in term.synonyms:
                key = "".join(words_of(synonym))
                if names.setdefault(key, Found(term.id, synonym)).term != term.id:
                    spoiled.add(key)
        for key in spoiled:
            del names[key]
        names |= {"".join(words_of(term.label)): Found(term.id, term.label) for term in terms}
        self._names = {key: found for key, found in names.items() if len(key) >= _SHORTEST_KEY}

    def find(self, text: str) -> list[Found]:
        """Return the phenotypes that a text names, in its order, the longest names first; denied ones not."""
        words, found, at = words_of(text), [], 0
        while at < len(words):
            for n in range(min(_LONGEST_PHRASE, len(words) - at), 0, -1):
                named = self._names.get("".join(words[at : at + n]))
                if named is not None:
                    if not _DENIES & {*words[max(0, at - 2) : at]}:
                        found.append(named)
                    at += n - 1
                    break
            at += 1
        return found

    def read(self, line: str) -> list[Found]:
        """Return the phenotypes that a line of an image names: as ``find``, or else the nearest name of all.

        Nearest is the name with the fewest wrong letters, at most one in twelve of the whole line.
        """
        found = self.find(line)
        if found:
            return found
        key = "".join(words_of(line))
        limit = len(key) // _LETTERS_PER_MISTAKE + (len(key) >= 8)
        if not limit:
            return []
        scored = [(edit_distance(key, name, limit), name) for name in self._near(key)]
        distance, name = min(scored, default=(limit + 1, ""))
        return [self._names[name]] if distance <= limit else []

    @functools.cached_property
    def _parts(self) -> tuple[list[str], dict[str, np.ndarray]]:
        """Return all names, and for three letters in a row the names that hold them."""
        names = sorted(self._names)
        places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            for part in {name[i : i + 3] for i in range(len(name) - 2)}:
                places.setdefault(part, []).append(place)
        return names, {part: np.array(found) for part, found in places.items()}

    def _near(self, key: str) -> list[str]:
        """Return the names that have the most in common with a key."""
        names, places = self._parts
        parts = [places[p] for p in {key[i : i + 3] for i in range(len(key) - 2)} if p in places]
        if not parts:
            return []
        counts = np.bincount(np.concatenate(parts), minlength=len(names))
        best = np.lexsort((np.arange(len(names)), -counts))[:_NEAREST]
        return [names[place] for place in best if counts[place]]
