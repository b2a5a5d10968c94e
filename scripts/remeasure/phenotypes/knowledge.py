"""What is known of diseases by phenotypes: ancestors, how telling a phenotype is, which diseases it fits.

Source:
    The idea of Phenomizer (Köhler et al. 2009, American Journal of Human Genetics 85, 457-464): what is seen
    is compared with what is known of each disease by the most telling term that both descend from, and how
    telling a term is, its information content, follows from how few diseases have it. Ours is the plain sum
    in one direction, weighted by frequency, without their p-values.
"""

import functools

import numpy as np

from remeasure.phenotypes.records import Book, Disease, Term

# How much a phenotype of a disease counts by how often it is seen there; a rare one is weak evidence.
WEIGHTS = {"obligate": 1.0, "very_frequent": 1.0, "frequent": 0.9, "occasional": 0.6, "very_rare": 0.3}


class Knowledge:
    """A book with the relations in it worked out.

    Args:
        book: diseases and terms.
    """

    def __init__(self, book: Book) -> None:
        self.book = book
        self.terms: dict[str, Term] = {term.id: term for term in book.terms}
        self.diseases: dict[str, Disease] = {disease.id: disease for disease in book.diseases}
        self._rows = {name: row for row, name in enumerate(self.diseases)}
        self._reached = self._weights_by_term()

    @functools.cached_property
    def children(self) -> dict[str, list[str]]:
        """Return the terms directly below each term that has any."""
        found: dict[str, list[str]] = {}
        for term in self.book.terms:
            for parent in term.parents:
                found.setdefault(parent, []).append(term.id)
        return found

    def ancestors(self, term: str) -> frozenset[str]:
        """Return a term and all above it, the root too."""
        return self._ancestors(term)

    @functools.cache  # noqa: B019 - one book per process
    def _ancestors(self, term: str) -> frozenset[str]:
        found, stack = set(), [term]
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += self.terms[name].parents
        return frozenset(found)

    def _weights_by_term(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return for each term the diseases that have it or one below it, and with which weight at most."""
        gathered: dict[str, dict[int, float]] = {}
        for name, disease in self.diseases.items():
            row = self._rows[name]
            for term, frequency in disease.frequency_of().items():
                weight = WEIGHTS[frequency]
                for above in self.ancestors(term):
                    known = gathered.setdefault(above, {})
                    known[row] = max(known.get(row, 0.0), weight)
        return {
            term: (np.fromiter(found, dtype=np.int64), np.fromiter(found.values(), dtype=np.float64))
            for term, found in gathered.items()
        }

    def n_diseases_with(self, term: str) -> int:
        """Return how many diseases have a phenotype or one below it."""
        return len(self._reached[term][0]) if term in self._reached else 0

    def information(self, term: str) -> float:
        """Return the information content of a term in nats; that of one which no disease has is 0."""
        count = self.n_diseases_with(term)
        return float(np.log(len(self.diseases) / count)) if count else 0.0

    def fit(self, terms: list[str]) -> np.ndarray:
        """Return how well each disease fits what is seen, shape (number of diseases,), float64, nats.

        Of each term that is seen the most telling common ancestor counts, times the weight of how often the
        disease shows it; what several terms have in common counts once for each.
        """
        total = np.zeros(len(self.diseases))
        for term in sorted(set(terms)):
            best = np.zeros(len(self.diseases))
            for above in sorted(self.ancestors(term)):
                if above in self._reached:
                    rows, weights = self._reached[above]
                    best[rows] = np.maximum(best[rows], self.information(above) * weights)
            total += best
        return total

    def ranked(self, terms: list[str], n: int) -> list[tuple[Disease, float]]:
        """Return the diseases that fit best, with their fit; of equal ones first that with less known of it.

        Edges:
            Without terms there is nothing to rank: an empty list.
        """
        if not terms:
            return []
        fit = self.fit(terms).round(9)
        diseases = list(self.diseases.values())
        order = sorted(
            range(len(diseases)), key=lambda row: (-fit[row], len(diseases[row].frequency_of()), row)
        )
        return [(diseases[row], float(fit[row])) for row in order[:n] if fit[row] > 0]

    def shares(self, disease: Disease, term: str) -> bool:
        """Return whether a disease has a phenotype, a special kind of it, or one that it is a kind of.

        That it is a kind of counts where it is telling: known in less than one disease of ten.
        """
        above = self.ancestors(term)
        for known in disease.frequency_of():
            if term in self.ancestors(known):
                return True
            if known in above and self.n_diseases_with(known) * 10 < len(self.diseases):
                return True
        return False
