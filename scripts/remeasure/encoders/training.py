"""Training of an adapter: InfoNCE over all train tiles, AdamW, stopped by how dev questions rank."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remeasure import ranking
from remeasure.encoders import TrainingSettings

BETA_1, BETA_2, EPSILON, WEIGHT_DECAY = 0.9, 0.999, 1e-8, 0.01
"""AdamW's own usual constants; written into every report."""


class Pairs(NamedTuple):
    """Questions and the documents they are ranked against."""

    queries: np.ndarray
    """Shape (m, dim), float32, unit rows."""
    documents: np.ndarray
    """Shape (n, dim), float32, unit rows."""
    gold: np.ndarray
    """Shape (m, n), bool: which documents answer which question; at least one per row."""


class Step(NamedTuple):
    """State after ``step`` updates; step 0 is the untrained encoder."""

    step: int
    loss: float
    dev_mrr: float
    dev_loss: float

    def rank(self) -> tuple[float, float]:
        """Return what is compared: the mean reciprocal rank on dev, then (it is coarse) the loss on dev."""
        return self.dev_mrr, -self.dev_loss


class Trained(NamedTuple):
    """The chosen map with the history that led to it."""

    down: np.ndarray
    up: np.ndarray
    chosen: int
    """Step of the chosen map; 0: nothing was better than the base encoder, ``up`` is zero."""
    steps: list[Step]


def _mapped(numpy, parameters, vectors):
    down, up = parameters
    moved = vectors + (vectors @ down) @ up
    return moved / numpy.sqrt(numpy.sum(moved * moved, axis=1, keepdims=True))


def loss_function(pairs: Pairs, temperature: float) -> Callable:
    """Return the loss as a function of (down, up), written in autograd's numpy.

    Loss of a question: minus the log of the share that its gold documents have in the sum over all documents
    of exp(cosine / temperature); averaged over questions.
    """
    import autograd.numpy as numpy

    queries, documents = pairs.queries.astype(np.float64), pairs.documents.astype(np.float64)
    gold = pairs.gold.astype(np.float64)

    def loss(parameters):
        cosines = _mapped(numpy, parameters, queries) @ _mapped(numpy, parameters, documents).T
        # A cosine is at most 1: with 1 subtracted no exponential overflows.
        weights = numpy.exp((cosines - 1) / temperature)
        return numpy.mean(
            numpy.log(numpy.sum(weights, axis=1)) - numpy.log(numpy.sum(weights * gold, axis=1))
        )

    return loss


def dev_mrr(pairs: Pairs, parameters: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the mean reciprocal rank of the first gold document, 0 to 1."""
    queries = _mapped(np, parameters, pairs.queries.astype(np.float64))
    documents = _mapped(np, parameters, pairs.documents.astype(np.float64))
    return ranking.mean_reciprocal_rank(queries @ documents.T, pairs.gold)


def train(train_pairs: Pairs, dev_pairs: Pairs, settings: TrainingSettings) -> Trained:
    """Train the map and choose the best step on dev (``Step.rank``); of equal ones the earliest.

    ``down`` starts as normal numbers over the square root of ``dim``, ``up`` as zero: step 0 is exactly the
    base encoder. Every step sees all questions. Stops after ``patience`` steps without a better one.

    Returns:
        The chosen map (float32) and one entry per step; ``up`` is zero when no step beat step 0.

    Source:
        InfoNCE: van den Oord et al. 2018. AdamW: Loshchilov and Hutter 2019.
    """
    import autograd

    dim = train_pairs.documents.shape[1]
    rng = np.random.default_rng(settings.seed)
    parameters = (rng.standard_normal((dim, settings.rank)) / np.sqrt(dim), np.zeros((settings.rank, dim)))
    gradient = autograd.grad(loss_function(train_pairs, settings.temperature))
    measures = [loss_function(pairs, settings.temperature) for pairs in (train_pairs, dev_pairs)]

    def look(step: int) -> Step:
        train_loss, dev_loss = (float(measure(parameters)) for measure in measures)
        return Step(step, train_loss, dev_mrr(dev_pairs, parameters), dev_loss)

    first = [np.zeros_like(array) for array in parameters]
    second = [np.zeros_like(array) for array in parameters]
    best, chosen, steps = parameters, 0, [look(0)]
    for step in range(1, settings.max_steps + 1):
        slopes = gradient(parameters)
        parameters = _adamw(parameters, slopes, first, second, step, settings.learning_rate)
        steps.append(look(step))
        if steps[step].rank() > steps[chosen].rank():
            best, chosen = parameters, step
        if step - chosen >= settings.patience:
            break
    return Trained(best[0].astype(np.float32), best[1].astype(np.float32), chosen, steps)


def _adamw(parameters, slopes, first, second, step: int, learning_rate: float) -> tuple:
    """Return the parameters after one update; the two lists of moments are changed in place."""
    updated = []
    for place, (array, slope) in enumerate(zip(parameters, slopes, strict=True)):
        first[place] = BETA_1 * first[place] + (1 - BETA_1) * slope
        second[place] = BETA_2 * second[place] + (1 - BETA_2) * slope * slope
        mean = first[place] / (1 - BETA_1**step)
        spread = second[place] / (1 - BETA_2**step)
        shrunk = array * (1 - learning_rate * WEIGHT_DECAY)
        updated.append(shrunk - learning_rate * mean / (np.sqrt(spread) + EPSILON))
    return tuple(updated)
