"""Descriptors of photographs by a trained head, with NumPy alone: nodes without torch apply it."""

from collections.abc import Mapping

import numpy as np

BATCH_NORM_EPSILON = 1e-5
"""Of torch's BatchNorm1d."""


def project(head: Mapping[str, np.ndarray], vectors: np.ndarray) -> np.ndarray:
    """Return the descriptors of photographs.

    Args:
        head: its tensors by name, float32, as ``heads.model.read`` gives them.
        vectors: shape (n, width), float32: what a backbone says of each.

    Returns:
        Shape (n, dim), float32, of length 1.

    Source:
        Landmark card, section 1.5: batch normalisation as in use, by the running mean and variance. GELU is
        the exact one, x (1 + erf(x / sqrt 2)) / 2.
    """
    from scipy.special import erf

    wide = vectors @ head["0.weight"].T + head["0.bias"]
    wide *= 0.5 * (1 + erf(wide * np.float32(np.sqrt(0.5))))
    found = wide @ head["2.weight"].T
    scale = head["3.weight"] / np.sqrt(head["3.running_var"].astype(np.float64) + BATCH_NORM_EPSILON)
    normed = (found - head["3.running_mean"]) * scale + head["3.bias"]
    lengths = np.sqrt((normed * normed).sum(axis=1, keepdims=True))
    return np.divide(normed, lengths, out=np.zeros_like(normed), where=lengths > 0).astype(np.float32)
