"""The built file of diseases and phenotype terms: ``orpha-phenotypes.json``."""

from pathlib import Path
from typing import Literal

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import atomic_open
from remeasure.records import Record

Frequency = Literal["obligate", "very_frequent", "frequent", "occasional", "very_rare"]
# From the highest to the lowest; Orphanet gives 100 %, 80 to 99 %, 30 to 79 %, 5 to 29 %, 1 to 4 %.
FREQUENCIES: tuple[Frequency, ...] = ("obligate", "very_frequent", "frequent", "occasional", "very_rare")


class Term(Record, kw_only=True):
    """A phenotype: one term of the ontology."""

    id: str
    label: str
    synonyms: list[str]
    """Exact ones, without abbreviations, each once, in the order of the file."""
    parents: list[str]


class Disease(Record, kw_only=True):
    """A disease with what is seen in it."""

    id: str
    name: str
    phenotypes: dict[Frequency, list[str]]
    """Ids of terms by how often they are seen, sorted; what is excluded does not stand here."""

    def frequency_of(self) -> dict[str, Frequency]:
        """Return how often each phenotype is seen, the most frequent first."""
        return {term: name for name in FREQUENCIES for term in self.phenotypes.get(name, [])}


class Book(Record, kw_only=True):
    """All diseases and all terms below "Phenotypic abnormality"."""

    release: str
    """Release of both files, such as ``2025-01-16``."""
    attribution: str
    terms: list[Term]
    """Sorted by id; every parent stands in the list but that of the root."""
    diseases: list[Disease]
    """Sorted by the number in their id."""


def write(path: Path, book: Book) -> None:
    """Write the file as one line of JSON with sorted keys, whole or not at all."""
    with atomic_open(path, "wb") as stream:
        stream.write(jsonl.encode(book) + b"\n")


def read(path: Path) -> Book:
    """Read the file.

    Raises:
        RemeasureError: missing or damaged, or a disease or term names a term that is not there.
    """
    try:
        book = msgspec.json.decode(path.read_bytes(), type=Book)
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemeasureError(
            f"{path}: not a file of phenotypes ({error}); delete it, it is built again"
        ) from None
    known = {term.id for term in book.terms}
    used = {parent for term in book.terms for parent in term.parents}
    used |= {term for disease in book.diseases for term in disease.frequency_of()}
    if odd := sorted(used - known):
        raise RemeasureError(f"{path}: names {odd[0]}, which it does not describe; delete it")
    return book
