"""Pairs of photographs that a reranker is trained and measured on: of one class, or of two."""

from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError

HELD_OUT_SHARE = 0.2
"""Share of classes that are never trained on; the report is about them."""
N_ALIKE = 8
"""The other photograph of every second pair of two classes is one of so many that look most alike."""
MAX_PHOTOS = 20_000
"""What looks alike is looked up in a square table."""


class Photos(NamedTuple):
    """Photographs with classes."""

    descriptors: np.ndarray
    """[n, T, dim] float16, zero in padding."""
    n_valid: np.ndarray
    """[n], at least 1."""
    classes: np.ndarray
    """[n] int64."""


class Drawn(NamedTuple):
    """Pairs, m of them."""

    one: np.ndarray
    """Rows of photographs, [m]."""
    other: np.ndarray
    """Rows, [m]."""
    same: np.ndarray
    """Whether they are of one class, [m] float32; every second pair is."""


def means(photos: Photos) -> np.ndarray:
    """Return the mean descriptor of every photograph, [n, dim] float32, length 1."""
    found = np.zeros((len(photos.n_valid), photos.descriptors.shape[2]), np.float32)
    for row, (descriptors, n) in enumerate(zip(photos.descriptors, photos.n_valid, strict=True)):
        x = descriptors[:n].astype(np.float32)
        found[row] = (x / np.linalg.norm(x, axis=1, keepdims=True)).sum(axis=0)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def alike(photos: Photos) -> np.ndarray:
    """Return for each photograph the k of other classes whose mean descriptors are closest, [n, k]."""
    mean = means(photos)
    close = mean @ mean.T
    close[photos.classes[:, None] == photos.classes] = -np.inf
    k = min(N_ALIKE, int((close > -np.inf).sum(axis=1).min()))
    return np.argsort(-close, axis=1, kind="stable")[:, :k]


def some_descriptors(photos: Photos, n_photos: int, seed: int) -> np.ndarray:
    """Return descriptors of length 1 of some photographs, [m, dim] float32."""
    rows = np.random.default_rng([seed, 2]).permutation(len(photos.n_valid))[:n_photos]
    valid = np.arange(photos.descriptors.shape[1]) < photos.n_valid[rows][:, None]
    x = photos.descriptors[rows][valid].astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


class Pairs:
    """Draws pairs of photographs, half of them of one class.

    Args:
        photos: to draw from.
        seed: what is drawn.
        place: of the classes, for messages.

    Raises:
        RemeasureError: too few classes with two photographs, or too many photographs.
    """

    def __init__(self, photos: Photos, seed: int, place: object) -> None:
        self._photos, self._draw = photos, np.random.default_rng(seed)
        classes, sizes = np.unique(photos.classes, return_counts=True)
        self._classes = classes[sizes > 1]
        if len(self._classes) < 2 or len(photos.classes) > MAX_PHOTOS:
            raise RemeasureError(
                f"{place}: {len(photos.classes)} photographs with local descriptors, {len(self._classes)} "
                "classes "
                f"with two of them; training and its hold-out each need 2 classes and take {MAX_PHOTOS} "
                "photographs "
                "at most: give other classes, or a published checkpoint"
            )
        self._of = {name: np.flatnonzero(photos.classes == name) for name in self._classes.tolist()}
        self._alike = alike(photos)

    def draw(self, n: int) -> Drawn:
        """Draw pairs: of one class, of two that look alike, of one class, of any two, and so on."""
        one, other, same = [], [], []
        for number in range(n):
            name = int(self._draw.choice(self._classes))
            first, second = self._draw.choice(self._of[name], 2, replace=False)
            if number % 4 == 1:
                second = self._draw.choice(self._alike[first])
            elif number % 4 == 3:
                second = self._draw.choice(np.flatnonzero(self._photos.classes != name))
            one.append(first)
            other.append(second)
            same.append(1 - number % 2)
        return Drawn(np.array(one), np.array(other), np.array(same, np.float32))


def split(photos: Photos, seed: int) -> tuple[Photos, Photos]:
    """Return photographs of the classes to train on, and of those that are held out."""
    classes, sizes = np.unique(photos.classes, return_counts=True)
    classes = classes[sizes > 1]
    n_held = max(2, round(HELD_OUT_SHARE * len(classes)))
    held = np.random.default_rng([seed, 1]).permutation(classes)[:n_held]
    chosen = np.isin(photos.classes, held)
    return Photos(*(part[~chosen] for part in photos)), Photos(*(part[chosen] for part in photos))


def auc(scores: np.ndarray, same: np.ndarray) -> float:
    """Return the probability that a pair of one class scores higher than one of two; ties count half."""
    high, low = scores[same > 0], scores[same == 0]
    ordered = np.sort(low)
    below = np.searchsorted(ordered, high, "left") + np.searchsorted(ordered, high, "right")
    return float(below.mean() / (2 * len(low)))
