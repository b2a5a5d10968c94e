"""The few lines that the language model is shown: nearest to the question, best first."""

from dataclasses import dataclass

import numpy as np

N_LINES = 4
# Taken from the score per rank of evidence: a tie between pages falls to the better one, while a line that
# names what was asked still wins from the last page. Chosen on tuning pages.
RANK_PENALTY = 0.02


@dataclass(frozen=True)
class Candidate:
    """A line and the rank of the evidence that it stands in, 0 for the best."""

    text: str
    rank: float


def best_lines(
    candidates: list[Candidate], vectors: np.ndarray, question: np.ndarray, n_lines: int = N_LINES
) -> list[Candidate]:
    """Return the candidates nearest to the question, best first; a text never twice.

    Args:
        candidates: all lines of all evidence, in evidence order.
        vectors: shape (len(candidates), dim), float32, unit rows.
        question: shape (dim,), float32, unit length.
        n_lines: how many to return at most.

    Edges:
        No candidates: an empty list. Equal scores: the earlier candidate first.
    """
    if not candidates:
        return []
    ranks = np.array([candidate.rank for candidate in candidates])
    scores = vectors.astype(np.float64) @ question.astype(np.float64) - RANK_PENALTY * ranks
    chosen: dict[str, Candidate] = {}
    # Rounded, so that the last bits of a sum never decide.
    for i in np.argsort(-scores.round(9), kind="stable"):
        chosen.setdefault(candidates[i].text, candidates[i])
        if len(chosen) == n_lines:
            break
    return list(chosen.values())
