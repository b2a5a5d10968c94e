"""Whether local descriptors of ours are those of a published file, before any long run."""

from typing import Any, NamedTuple

import numpy as np

N_PHOTOS = 50
COSINE, SHARE, OVERLAP = 0.999, 0.95, 0.98
"""Limits: the cosine of two descriptors, the share that reaches it, and the share that matches.

Source: landmark card, section 1.7.
"""
_PARTNER = 0.9
"""Descriptors less alike than that are not the same place, whatever else is near."""


class Compared(NamedTuple):
    """How the descriptors of one photograph agree."""

    n: int
    """Descriptors of the published file."""
    mean_cosine: float
    """Of every published descriptor with the nearest of ours."""
    n_close: int
    """Of those with a cosine of at least ``COSINE``."""
    n_matched: int
    """Published descriptors and ours that are each other's nearest."""


def compare(ours: np.ndarray, published: np.ndarray) -> Compared:
    """Compare two sets of descriptors, whose order does not matter.

    Args:
        ours: shape (n, dim), any length but zero.
        published: shape (m, dim), likewise.

    Edges:
        One of them is empty: nothing agrees, and the mean is 0.
    """
    if not len(ours) or not len(published):
        return Compared(len(published), 0.0, 0, 0)
    cosines = _unit(published) @ _unit(ours).T
    nearest = cosines.argmax(axis=1)
    best = cosines[np.arange(len(published)), nearest]
    mutual = (cosines.argmax(axis=0)[nearest] == np.arange(len(published))) & (best >= _PARTNER)
    return Compared(len(published), float(best.mean()), int((best >= COSINE).sum()), int(mutual.sum()))


def _unit(vectors: np.ndarray) -> np.ndarray:
    wide = vectors.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def verdict(photos: dict[str, Compared]) -> dict[str, Any]:
    """Return what is written of a comparison.

    Args:
        photos: by name.

    Returns:
        ``photos``, ``checks`` (name, ok, value, limit) and ``ok``: all are.
    """
    n = sum(found.n for found in photos.values())
    checks = [
        _check("share of descriptors that agree", sum(found.n_close for found in photos.values()), n, SHARE),
        _check("share of descriptors in both", sum(found.n_matched for found in photos.values()), n, OVERLAP),
    ]
    return {
        "cosine": COSINE,
        "photos": {name: found._asdict() for name, found in photos.items()},
        "checks": checks,
        "ok": all(check["ok"] for check in checks),
    }


def _check(name: str, count: int, n: int, limit: float) -> dict[str, Any]:
    value = count / n if n else 0.0
    return {"name": name, "ok": value >= limit, "value": value, "limit": limit}
