"""The few lines that the language model is shown: nearest to the question, best first."""

from dataclasses import dataclass

import numpy as np

# All three numbers were chosen on tuning pages.
N_LINES = 4
# Only lines about as near as the best one: a small model is led astray by every line that it does not need.
MARGIN = 0.04
# Taken from the score per rank of evidence: a tie between pages falls to the better one, while a line that
# names what was asked still wins from the last page.
RANK_PENALTY = 0.02
# The same where a picture without text belongs to the question: what it shows is then said by nothing but the
# order of the evidence.
RANK_PENALTY_UNSEEN = 0.1


@dataclass(frozen=True)
class Candidate:
    """A line and the rank of the evidence that it stands in, 0 for the best."""

    text: str
    rank: float


def best_lines(
    candidates: list[Candidate], vectors: np.ndarray, question: np.ndarray, rank_penalty: float
) -> list[Candidate]:
    """Return up to four candidates nearest to the question, best first; a text never twice.

    Args:
        candidates: all lines of all evidence, in evidence order.
        vectors: shape (len(candidates), dim), float32, unit rows.
        question: shape (dim,), float32, unit length.
        rank_penalty: taken from a score per rank of evidence.

    Edges:
        No candidates: an empty list. Equal scores: the earlier candidate first.
    """
    if not candidates:
        return []
    ranks = np.array([candidate.rank for candidate in candidates])
    scores = vectors.astype(np.float64) @ question.astype(np.float64) - rank_penalty * ranks
    chosen: dict[str, Candidate] = {}
    # Rounded, so that the last bits of a sum never decide.
    scores = scores.round(9)
    for i in np.argsort(-scores, kind="stable"):
        if len(chosen) == N_LINES or scores[i] <= scores.max() - MARGIN:
            break
        chosen.setdefault(candidates[i].text, candidates[i])
    return list(chosen.values())
