"""Training of a small reranker on pairs of photographs."""

from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.ames import drawing, starting
from remeasure.instances.ames.drawing import Drawn, Pairs, Photos
from remeasure.instances.ames.model import Ames
from remeasure.instances.ames.settings import Training

N_HELD_OUT_PAIRS = 300
N_CHECKS = 4
"""How often training stops to look at pairs of classes that were held out."""
N_SEEN = 500
"""From so many photographs the main axes of descriptors are taken."""
N_CALIBRATING = 256
WEIGHT_DECAY, CLIP = 0.01, 1.0
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; then it falls along a cosine."""
_AT_ONCE = 32


class Check(NamedTuple):
    """How well pairs of classes that were held out are told apart."""

    step: int
    accuracy: float
    """Share of pairs whose logit has the right sign; half of the pairs are of one class."""
    auc: float
    """Probability that a pair of one class has a higher logit than one of two."""
    loss: float
    """Mean cross-entropy; the choice is by this, since fused scores use the size of logits too."""


class Trained(NamedTuple):
    """A reranker and how it came about."""

    tensors: dict[str, np.ndarray]
    checks: list[Check]
    chosen: int
    """Which of the checks; 0 is the start."""
    auc_of_means: float
    """What the cosine of mean descriptors reaches on the same pairs."""


class _Trainer:
    def __init__(self, settings: Training, photos: Photos) -> None:
        torch = torch_module.load()
        torch.set_num_threads(1)
        torch.manual_seed(settings.seed)
        self._torch, self._settings = torch, settings
        begin = starting.matcher(
            settings, drawing.some_descriptors(photos, N_SEEN, settings.seed), settings.seed
        )
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
        factor, offset = starting.calibrated(self.scores(photos, drawn.one, drawn.other), drawn.same)
        with self._torch.no_grad():
            self.model.tensors["classifier.weight"] *= factor
            self.model.tensors["classifier.bias"] += offset

    def step(self, number: int, photos: Photos, pairs: Pairs) -> float:
        """Learn from one batch; return its loss."""
        torch, settings = self._torch, self._settings
        share = (number + 1) / settings.steps
        warm = min(1.0, share / WARM_UP)
        for group in self._optimiser.param_groups:
            group["lr"] = settings.learning_rate * warm * 0.5 * (1 + np.cos(np.pi * share))
        drawn = pairs.draw(settings.batch)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            self.logits(photos, drawn.one, drawn.other), torch.from_numpy(drawn.same)
        )
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.tensors.values(), CLIP)
        self._optimiser.step()
        return float(loss.detach())

    def check(self, step: int, photos: Photos, drawn: Drawn) -> Check:
        """Return how well pairs are told apart now."""
        scores, same = self.scores(photos, drawn.one, drawn.other), drawn.same
        loss = np.mean(np.logaddexp(0, scores) - same * scores)
        right = float(np.mean((scores > 0) == (same > 0)))
        return Check(step, right, drawing.auc(scores, same), float(loss))

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
    trained_on, held = drawing.split(photos, settings.seed)
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
            if checks[-1].loss < min(check.loss for check in checks[:-1]):
                best = trainer.weights()
    chosen = min(range(len(checks)), key=lambda i: (checks[i].loss, i))
    mean = drawing.means(held)
    plain = drawing.auc((mean[drawn.one] * mean[drawn.other]).sum(axis=1), drawn.same)
    return Trained(best, checks, chosen, plain)
