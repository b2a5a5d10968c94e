"""Whether full text search finds what is there: words that stand in one document only are looked for.

An index that does not cover the rows fails no search: its rankings are merely wrong, and look plausible.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from remeasure.records import Document

LIMIT = 50
_WORD = re.compile(r"(?<!\w)[A-Za-z]{6,20}(?!\w)")
_MANY = None


class Probe(NamedTuple):
    """A word and the only document that holds it."""

    word: str
    uri: str


def probes(documents: Iterable[Document], n: int = 5) -> list[Probe]:
    """Return rare words of documents that are spread over the corpus.

    Args:
        documents: all that are in the database; those without text have no words.
        n: how many at most.

    Returns:
        Of each chosen document its longest word, the first by letter where several are as long, in small
        letters.

    Edges:
        None where no word stands in one document only.
    """
    holder: dict[str, str | None] = {}
    for document in documents:
        for word in {found.lower() for found in _WORD.findall(document.text or "")}:
            holder[word] = _MANY if word in holder else document.uri
    rare: dict[str, str] = {}
    for word, uri in holder.items():
        if uri is not None and (uri not in rare or (-len(word), word) < (-len(rare[uri]), rare[uri])):
            rare[uri] = word
    uris = list(rare)
    step = max(1, len(uris) // n)
    return [Probe(rare[uri], uri) for uri in uris[::step][:n]]


def common(documents: Iterable[Document], n: int = 5) -> list[str]:
    """Return words of the first documents, the longest of each: what is found by them must be of the corpus.

    Args:
        documents: all.
        n: how many words at most.
    """
    found: dict[str, None] = {}
    for document in documents:
        words = {word.lower() for word in _WORD.findall(document.text or "")}
        found |= {max(words, key=lambda word: (len(word), word)): None} if words else {}
        if len(found) == n:
            break
    return list(found)


def missed(asked: list[Probe], found: list[list[str]]) -> list[Probe]:
    """Return the words whose document was not found; none as long as most were.

    A word may be cut to its stem and be common then; an index that covers nothing finds none of them.

    Args:
        asked: the words.
        found: uris that the search for each gave.
    """
    lost = [probe for probe, uris in zip(asked, found, strict=True) if probe.uri not in uris]
    return lost if 2 * len(lost) >= len(asked) else []
