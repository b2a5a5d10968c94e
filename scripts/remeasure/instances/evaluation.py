"""Mean average precision of rankings of photographs, by counting ranks; no rank matrix is made.

A ranking is scores descending, then gallery ids ascending. Only the ranks of the labelled photographs of a
query are found, some hundreds; average precision follows from these for every difficulty.

Source:
    Landmarks card, sections 2.2, 2.4 and 2.5; the published evaluator is ``compute_map`` of the revisitop
    benchmarks.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.score_row import Ranks, ScoreRow

DIFFICULTIES = ("easy", "medium", "hard")
Settings = Mapping[str, tuple[Sequence[int], Sequence[int]]]
"""By difficulty the ids that are right, and those that are ignored."""


class Labelled(Protocol):
    """Ground truth of a benchmark, as far as it is needed here (``labels.Labels`` is one)."""

    gnd: Sequence[object]

    def settings(self, i: int) -> Settings:
        """Return what is right and what is ignored for a query, by difficulty."""
        ...


def positions(ranks_of_positives: np.ndarray, ranks_of_junk: np.ndarray) -> np.ndarray:
    """Return where positives stand once ignored photographs are taken out of a ranking.

    Args:
        ranks_of_positives: int [p], from 0, in any order; those that the ranking lacks are left out.
        ranks_of_junk: int [j], likewise.

    Returns:
        int64 [p], ascending: every rank less the number of ignored photographs before it.
    """
    found = np.sort(np.asarray(ranks_of_positives, dtype=np.int64))
    ignored = np.sort(np.asarray(ranks_of_junk, dtype=np.int64))
    return found - np.searchsorted(ignored, found, side="left")


def average_precision(positions: np.ndarray, n_positives: int) -> float:
    """Return the area under a precision-recall curve by trapezoids, 0 to 1.

    Args:
        positions: int [p], ascending, from 0, ignored photographs left out.
        n_positives: how many were annotated; those that the ranking lacks cost recall.

    Returns:
        NaN without positives: such a query leaves the mean.

    Source:
        Landmarks card, section 2.4, step 4. Rectangles instead (as scikit-learn) give higher numbers.
    """
    if n_positives == 0:
        return float("nan")
    rank = np.asarray(positions, dtype=np.float64)
    if not len(rank):
        return 0.0
    hits = np.arange(len(rank), dtype=np.float64)
    # Before the first place there is no precision; the curve starts at 1.
    before = np.divide(hits, rank, out=np.ones(len(rank)), where=rank > 0)
    steps = (before + (hits + 1) / (rank + 1)) * (1.0 / n_positives) / 2.0
    # The published evaluator adds up one by one; numpy's sum would add in pairs.
    return float(np.add.accumulate(steps)[-1])


def precision_at(positions: np.ndarray, k: int, *, published: bool) -> float:
    """Return the share of positives among the first ``k``.

    Args:
        positions: int [p], ascending, from 0, of a query that has positives; none were found: 0.
        k: at least 1.
        published: divide as the published evaluator does, by the place of the last positive where that is
            before ``k``; else always by ``k``.
    """
    place = np.asarray(positions, dtype=np.int64) + 1
    if not len(place):
        return 0.0
    reach = min(int(place[-1]), k) if published else k
    return float(np.count_nonzero(place <= reach)) / reach


def labelled_ids(settings: Settings) -> np.ndarray:
    """Return all ids that are right or ignored at some difficulty, int64, ascending, each once."""
    found = {int(i) for right, ignored in settings.values() for ids in (right, ignored) for i in ids}
    return np.fromiter(sorted(found), np.int64, len(found))


def rank_rows(scores: np.ndarray, ids: Sequence[np.ndarray], n_threads: int = 1) -> list[Ranks]:
    """Find where labelled photographs stand for several queries.

    Args:
        scores: float32 [nq, n].
        ids: of every query the labelled ids, int64, ascending.
        n_threads: queries at the same time.

    Raises:
        RemeasureError: a score is NaN or infinite, or an id is not in the gallery.
    """
    pairs = list(zip(scores, ids, strict=True))
    if n_threads == 1:
        return [ScoreRow(row).ranks(found) for row, found in pairs]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda pair: ScoreRow(pair[0]).ranks(pair[1]), pairs))


def positions_of(ranks: Ranks, settings: Settings, *, default: bool = False) -> dict[str, np.ndarray]:
    """Return where the positives of a query stand, ignored photographs left out, by difficulty."""
    return {
        name: positions(ranks.of(right, default=default), ranks.of(ignored, default=default))
        for name, (right, ignored) in settings.items()
    }


def mean(values: Iterable[float]) -> float:
    """Return the mean without NaN, added up one by one; NaN where nothing is left."""
    kept = [value for value in values if value == value]
    return sum(kept) / len(kept) if kept else float("nan")


def mean_ap(ranks: Sequence[Ranks], labels: Labelled) -> dict[str, float]:
    """Return mAP by difficulty, 0 to 1; NaN where no query has a positive.

    Args:
        ranks: of every query, in the order of the labels.
        labels: the ground truth.
    """
    found: dict[str, list[float]] = {name: [] for name in DIFFICULTIES}
    for i, row in enumerate(ranks):
        settings = labels.settings(i)
        for name, where in positions_of(row, settings).items():
            found[name].append(average_precision(where, len(settings[name][0])))
    return {name: mean(values) for name, values in found.items()}


def evaluate(queries: np.ndarray, gallery: np.ndarray, labels: Labelled) -> dict[str, float]:
    """Return mAP by difficulty of a gallery that is ranked by inner products.

    Args:
        queries: float32 [nq, d], in the order of the labels, one row per query.
        gallery: float32 [n, d].
        labels: the ground truth.

    Raises:
        RemeasureError: shapes that do not fit, or scores that are not finite.
    """
    n = len(labels.gnd)
    if queries.ndim != 2 or gallery.ndim != 2 or queries.shape[1] != gallery.shape[1] or len(queries) != n:
        raise RemeasureError(
            f"descriptors of queries have the shape {queries.shape} and of the gallery {gallery.shape}, "
            f"expected {n} queries, as the labels have, and the same length; make both with one projection"
        )
    scores = queries @ gallery.T
    return mean_ap(rank_rows(scores, [labelled_ids(labels.settings(i)) for i in range(n)]), labels)
