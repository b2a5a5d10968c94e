"""Which photographs a head is trained on, which classes are held out, and what is drawn in an epoch.

Source:
    Landmarks card, section 1.5: classes that leak are masked first, then classes with too few photographs are
    dropped; a photograph is drawn, with replacement, with the weight 1/sqrt(size of its class).
"""

import hashlib
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError


class Photos(NamedTuple):
    """Photographs that have a vector, in the order of the pieces."""

    landmark_id: np.ndarray
    """int64 [n]."""
    leak: np.ndarray
    """bool [n]: the class shows what a benchmark asks for."""
    status: np.ndarray
    """uint8 [n]: 0 whole, 1 cut off but decoded, 2 not decoded, whose vector is zero."""


class Chosen(NamedTuple):
    """Photographs that are trained on or held out."""

    row: np.ndarray
    """int64 [m], ascending: their places among all."""
    label: np.ndarray
    """int64 [m]: classes counted from 0 without gaps, in order of their ids."""
    landmark_ids: np.ndarray
    """int64 [c]: the class of each label."""

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.landmark_ids)


def choose(photos: Photos, min_class: int, *, decontaminated: bool) -> tuple[Chosen, dict[str, int]]:
    """Return what a head is trained on, and counts of what is left out and why.

    Args:
        photos: all that have a vector.
        min_class: classes with fewer photographs are dropped; photographs that could not be decoded count for
            none.
        decontaminated: whether classes that leak are masked, before classes are counted.
    """
    undecoded = photos.status == 2
    masked = photos.leak & ~undecoded if decontaminated else np.zeros(len(photos.leak), dtype=bool)
    kept = ~undecoded & ~masked
    ids, place, size = np.unique(photos.landmark_id[kept], return_inverse=True, return_counts=True)
    small = size < min_class
    row = np.flatnonzero(kept)[~small[place]]
    counts = {
        "photos_not_decoded": int(undecoded.sum()),
        "photos_that_leak": int(masked.sum()),
        "classes_that_leak": len(np.unique(photos.landmark_id[masked])),
        "photos_of_small_classes": int(size[small].sum()),
        "small_classes": int(small.sum()),
    }
    return _dense(row, photos.landmark_id), counts


def _dense(row: np.ndarray, landmark_id: np.ndarray) -> Chosen:
    ids, label = np.unique(landmark_id[row], return_inverse=True)
    return Chosen(row.astype(np.int64), label.astype(np.int64), ids.astype(np.int64))


def hold_out(chosen: Chosen, share: float) -> tuple[Chosen, Chosen]:
    """Return photographs of the classes that stay and of those that are held out.

    Which classes are held out follows from their ids alone, by SHA-256: every seed has the same ones, and
    both protocols nearly the same.

    Args:
        chosen: what there is.
        share: of the classes, 0 to 1; rounded up, at least 2.

    Raises:
        RemeasureError: fewer than two classes would stay.
    """
    n = max(2, int(np.ceil(share * chosen.n_classes)))
    if chosen.n_classes - n < 2:
        raise RemeasureError(
            f"heads: {chosen.n_classes} classes, of which {n} are to be held out: fewer than 2 stay to train "
            "on; take a smaller holdout_share, a smaller min_class or more photographs"
        )
    order = sorted(chosen.landmark_ids.tolist(), key=lambda one: hashlib.sha256(str(one).encode()).digest())
    is_out = np.isin(chosen.landmark_ids, order[:n])[chosen.label]
    by_row = np.zeros(int(chosen.row.max()) + 1, dtype=np.int64)
    by_row[chosen.row] = chosen.landmark_ids[chosen.label]
    return _dense(chosen.row[~is_out], by_row), _dense(chosen.row[is_out], by_row)


def cumulative_weights(label: np.ndarray) -> np.ndarray:
    """Return the running sum of the weights of photographs, float64 [m]: a class of n has sqrt(n) in all."""
    size = np.bincount(label)
    return np.cumsum(1.0 / np.sqrt(size[label]))


def draw(cumulative: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """Return the photographs of an epoch: as many as there are, drawn with replacement.

    Args:
        cumulative: as ``cumulative_weights`` gives it, [m].
        seed: of the training.
        epoch: from 0; draws of an epoch follow from seed and epoch alone, so that a killed training goes
            on with the same ones.

    Returns:
        int64 [m], places in ``Chosen``.
    """
    drawn = np.random.default_rng([seed, epoch]).random(len(cumulative)) * cumulative[-1]
    return np.minimum(np.searchsorted(cumulative, drawn, side="right"), len(cumulative) - 1)


def batches(drawn: np.ndarray, size: int) -> list[np.ndarray]:
    """Return draws in batches; a single one at the end, which has no variance, joins the batch before."""
    starts = list(range(0, len(drawn), size))
    if len(starts) > 1 and len(drawn) - starts[-1] == 1:
        starts.pop()
    return np.split(drawn, starts[1:])


def draw_scales(n: int, n_scales: int, seed: int, epoch: int) -> np.ndarray:
    """Return a scale for each draw of an epoch, int64 [n], where one is drawn instead of their mean."""
    return np.random.default_rng([seed, epoch, 1]).integers(n_scales, size=n)
