"""What the first stage says and what a reranker says of a pair, as one score.

Source:
    Landmarks card, section 2.7: s = λ cos + (1 - λ) σ(γ logit), in float64 from float32; ties by first-stage
    rank. The published code computes in float32 and sorts without keeping ties: orders differ in some places,
    mAP did not.
"""

import numpy as np


def fused(cosine: np.ndarray, logit: np.ndarray, weight: float, temperature: float) -> np.ndarray:
    """Return the scores of pairs.

    Args:
        cosine: float32 [n], of the first stage.
        logit: float32 [n], of the reranker.
        weight: λ, the share of the cosine, 0 to 1.
        temperature: γ, what a logit is multiplied by before the sigmoid.

    Returns:
        float64 [n].
    """
    with np.errstate(over="ignore"):
        probability = 1.0 / (1.0 + np.exp(-temperature * logit.astype(np.float64)))
    return weight * cosine.astype(np.float64) + (1.0 - weight) * probability


def order(scores: np.ndarray) -> np.ndarray:
    """Return the places of scores, best first; those that are equal stay in the order that they have."""
    return np.argsort(-scores, kind="stable")
