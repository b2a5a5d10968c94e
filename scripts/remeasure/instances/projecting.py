"""Descriptors of photographs by a trained head, with NumPy alone."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.number_types import NUMBERS
from remeasure.safetensors_file import SafetensorsFile

BATCH_NORM_EPSILON = 1e-5
"""Of torch's BatchNorm1d."""


class Head(NamedTuple):
    """Linear, GELU, linear without bias, batch normalisation; all float32."""

    first: np.ndarray
    """Shape (hidden, dim of the backbone)."""
    first_bias: np.ndarray
    second: np.ndarray
    """Shape (dim, hidden)."""
    scale: np.ndarray
    """Of the batch normalisation in use: weight / sqrt(variance + epsilon); shape (dim,)."""
    shift: np.ndarray
    """bias - mean * scale."""


def read_head(path: Path, hidden: int, dim: int) -> Head:
    """Read a head.

    Args:
        path: safetensors with 0.weight, 0.bias, 2.weight, 3.weight, 3.bias, 3.running_mean, 3.running_var.
        hidden: its middle layer.
        dim: of the descriptors.

    Raises:
        RemeasureError: a tensor is missing, has another shape, or is not finite; a variance is not positive.
    """
    store = SafetensorsFile(path)

    def take(name: str, *shape: int | None) -> np.ndarray:
        spec = store.specs.get(name)
        found = None if spec is None else spec.shape
        if found is None or len(found) != len(shape) or any(w not in (None, f) for w, f in zip(shape, found)):  # noqa: B905
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise RemeasureError(
                f"{path}: {name} has the shape {found}, expected ({wanted}); delete it and train again"
            )
        values = store.read(name)
        values = values.astype(np.float32) if values.dtype == NUMBERS["BF16"] else np.asarray(values)
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise RemeasureError(f"{path}: {name} is not finite; delete it and train the head again")
        return values

    variance = take("3.running_var", dim).astype(np.float64)
    if (variance < 0).any():
        raise RemeasureError(f"{path}: 3.running_var is negative; delete it and train the head again")
    scale = take("3.weight", dim) / np.sqrt(variance + BATCH_NORM_EPSILON)
    shift = take("3.bias", dim) - take("3.running_mean", dim) * scale
    weights = (take("0.weight", hidden, None), take("0.bias", hidden), take("2.weight", dim, hidden))
    return Head(*(w.astype(np.float32) for w in weights), scale.astype(np.float32), shift.astype(np.float32))


def mean_of_scales(cls: np.ndarray) -> np.ndarray:
    """Average the vectors of all scales and scale to length 1.

    Args:
        cls: shape (n, scales, dim), each of length 1 or, where a photograph could not be decoded, zero.

    Returns:
        Shape (n, dim), float32; zero rows stay zero.
    """
    return _unit(cls.astype(np.float32).mean(axis=1))


def project(head: Head, vectors: np.ndarray) -> np.ndarray:
    """Return the descriptors of photographs.

    Args:
        head: as ``read_head`` gives it.
        vectors: shape (n, dim of the backbone), float32.

    Returns:
        Shape (n, dim), float32, of length 1.

    Source:
        Landmark card, section 1.5; GELU is the exact one, x (1 + erf(x / sqrt 2)) / 2.
    """
    from scipy.special import erf

    wide = vectors @ head.first.T + head.first_bias
    wide *= (0.5 * (1 + erf(wide * np.float32(np.sqrt(0.5))))).astype(np.float32)
    return _unit((wide @ head.second.T) * head.scale + head.shift)


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    norms[norms == 0] = 1
    return (vectors / norms[:, None]).astype(np.float32)
