"""Training of a small reranker: pairs of photographs of one class, and of classes that look alike."""

from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.ames import starting
from remeasure.instances.ames.model import Ames
from remeasure.instances.ames.settings import Training

HELD_OUT_SHARE = 0.2
"""Share of classes that are never trained on; the report is about them."""
N_HELD_OUT_PAIRS = 400
N_CHECKS = 8
"""How often training stops to look at pairs of classes that were held out."""
N_ALIKE = 8
"""The other photograph of a pair of two classes is one of so many that look most alike, not any."""
N_SEEN = 500
"""From so many photographs the main axes of descriptors are taken."""
N_CALIBRATING = 256
WEIGHT_DECAY, CLIP = 0.01, 1.0


class Photos(NamedTuple):
    """Photographs with classes."""

    descriptors: np.ndarray
    """[n, T, dim] float16, zero in padding."""
    n_valid: np.ndarray
    """[n], at least 1."""
    classes: np.ndarray
    """[n] int64."""


class Check(NamedTuple):
    """How well pairs of classes that were held out are told apart."""

    step: int
    accuracy: float
    """Share of pairs whose logit has the right sign; half of the pairs are of one class."""
    auc: float
    """Probability that a pair of one class has a higher logit than one of two; the choice is by this."""
    loss: float


class Trained(NamedTuple):
    """A reranker and how it came about."""

    tensors: dict[str, np.ndarray]
    checks: list[Check]
    chosen: int
    """Which of the checks; 0 is the start."""
    n_pairs: int
    """Held-out pairs."""


Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows of one side of pairs, rows of the other, and whether they are of one class."""
_AT_ONCE = 32


def some_descriptors(photos: Photos, seed: int) -> np.ndarray:
    """Return descriptors of length 1 of some photographs, [m, dim] float32."""
    n = min(len(photos.n_valid), N_SEEN)
    rows = np.random.default_rng([seed, 2]).permutation(len(photos.n_valid))[:n]
    valid = np.arange(photos.descriptors.shape[1]) < photos.n_valid[rows][:, None]
    x = photos.descriptors[rows][valid].astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def alike(photos: Photos) -> np.ndarray:
    """Return for each photograph the k of other classes whose mean descriptors are closest, [n, k]."""
    x = photos.descriptors.astype(np.float32)
    x /= np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)
    mean = x.sum(axis=1)
    mean /= np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)
    close = mean @ mean.T
    close[photos.classes[:, None] == photos.classes] = -np.inf
    k = min(N_ALIKE, int((close > -np.inf).sum(axis=1).min()))
    return np.argsort(-close, axis=1, kind="stable")[:, :k]


class Pairs:
    """Draws pairs of photographs, half of them of one class.

    Raises:
        RemeasureError: too few classes with two photographs.
    """

    def __init__(self, photos: Photos, seed: int, place: object) -> None:
        self._photos, self._draw = photos, np.random.default_rng(seed)
        classes, sizes = np.unique(photos.classes, return_counts=True)
        self._classes = classes[sizes > 1]
        if len(self._classes) < 2:
            raise RemeasureError(
                f"{place}: {len(self._classes)} classes with two photographs that have local descriptors; at "
                "least 2 are "
                "needed on each side of the hold-out: give more classes"
            )
        self._of = {name: np.flatnonzero(photos.classes == name) for name in self._classes.tolist()}
        self._alike = alike(photos)

    def draw(self, n: int) -> Drawn:
        """Return rows of one side, of the other, and whether they are of one class (float32), each [n]."""
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
        return np.array(one), np.array(other), np.array(same, np.float32)


def split(photos: Photos, seed: int) -> tuple[Photos, Photos]:
    """Return photographs of the classes to train on, and of those that are held out."""
    classes = np.unique(photos.classes)
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


class _Trainer:
    def __init__(self, settings: Training, photos: Photos) -> None:
        torch = torch_module.load()
        torch.set_num_threads(1)
        torch.manual_seed(settings.seed)
        self._torch, self._settings = torch, settings
        begin = starting.matcher(settings, some_descriptors(photos, settings.seed), settings.seed)
        self.model = Ames(begin, settings, trainable=True)
        self._optimiser = torch.optim.AdamW(
            list(self.model.tensors.values()), lr=settings.learning_rate, weight_decay=WEIGHT_DECAY
        )

    def _side(self, photos: Photos, rows: np.ndarray, gallery: bool):
        torch = self._torch
        n_valid = photos.n_valid[rows]
        length = int(n_valid.max())
        x = torch.from_numpy(photos.descriptors[rows, :length].astype(np.float32))
        counts = None if (n_valid == length).all() else torch.from_numpy(n_valid)
        return self.model.side(self.model.remap(x, gallery), counts)

    def logits(self, photos: Photos, one: np.ndarray, other: np.ndarray):
        """Return the logits of pairs of rows."""
        return self.model.logits(self._side(photos, one, False), self._side(photos, other, True))

    def scores(self, photos: Photos, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the logits of pairs of rows as numbers, without gradients."""
        with self._torch.no_grad():
            parts = [
                self.logits(photos, one[start : start + _AT_ONCE], other[start : start + _AT_ONCE]).numpy()
                for start in range(0, len(one), _AT_ONCE)
            ]
        return np.concatenate(parts)

    def calibrate(self, photos: Photos, drawn: Drawn) -> None:
        """Scale the last layer so that its numbers are logits of some pairs, before anything is trained."""
        factor, offset = starting.calibrated(self.scores(photos, *drawn[:2]), drawn[2])
        with self._torch.no_grad():
            self.model.tensors["classifier.weight"] *= factor
            self.model.tensors["classifier.bias"] += offset

    def step(self, number: int, photos: Photos, pairs: Pairs) -> float:
        """Learn from one batch; return its loss."""
        torch, settings = self._torch, self._settings
        share = (number + 1) / settings.steps
        warm = min(1.0, share * 10)
        for group in self._optimiser.param_groups:
            group["lr"] = settings.learning_rate * warm * 0.5 * (1 + np.cos(np.pi * share))
        one, other, same = pairs.draw(settings.batch)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            self.logits(photos, one, other), torch.from_numpy(same)
        )
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.tensors.values(), CLIP)
        self._optimiser.step()
        return float(loss.detach())

    def check(self, step: int, photos: Photos, drawn: Drawn) -> Check:
        """Return how well pairs are told apart now."""
        one, other, same = drawn
        scores = self.scores(photos, one, other)
        loss = np.mean(np.logaddexp(0, scores) - same * scores)
        return Check(step, float(np.mean((scores > 0) == (same > 0))), auc(scores, same), float(loss))

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the weights."""
        return {name: value.detach().numpy().copy() for name, value in self.model.tensors.items()}


def train(photos: Photos, settings: Training, place: object) -> Trained:
    """Train a reranker; the step is kept that tells held-out pairs apart best, the start included.

    Deterministic: one thread, and everything that is drawn comes from the seed.

    Args:
        photos: of all classes.
        settings: sizes, steps, seed.
        place: of the classes, for messages.

    Raises:
        RemeasureError: too few classes, or a loss that is not finite.
    """
    trained_on, held = split(photos, settings.seed)
    drawn = Pairs(held, settings.seed + 1, place).draw(N_HELD_OUT_PAIRS)
    pairs = Pairs(trained_on, settings.seed, place)
    trainer = _Trainer(settings, trained_on)
    trainer.calibrate(trained_on, Pairs(trained_on, settings.seed + 2, place).draw(N_CALIBRATING))
    checks, best = [trainer.check(0, held, drawn)], trainer.weights()
    at = {round(settings.steps * (i + 1) / N_CHECKS) for i in range(N_CHECKS)}
    for number in range(settings.steps):
        loss = trainer.step(number, trained_on, pairs)
        if not np.isfinite(loss):
            raise RemeasureError(
                f"step {number}: the loss is {loss}; make rerankers.{settings.name}.training.learning_rate "
                f"smaller than {settings.learning_rate}"
            )
        if number + 1 in at:
            checks.append(trainer.check(number + 1, held, drawn))
            if checks[-1].auc > max(check.auc for check in checks[:-1]):
                best = trainer.weights()
    chosen = max(range(len(checks)), key=lambda i: (checks[i].auc, -i))
    return Trained(best, checks, chosen, len(drawn[0]))
