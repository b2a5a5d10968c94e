"""Where the labelled photographs of a query stand in its final ranking, by difficulty.

Source:
    Landmarks card, sections 2.5 to 2.7.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remeasure.instances import evaluation, fusion
from remeasure.instances.evaluation import Labelled, Settings
from remeasure.instances.first_file import First
from remeasure.instances.pairs_file import Pairs
from remeasure.instances.score_row import Ranks
from remeasure.instances.shortlist import RERANKED, shortlist


class Shortlisted(NamedTuple):
    """What is reranked for a query at one difficulty, in the order of the first stage."""

    ids: np.ndarray
    """int64 [k]."""
    cosine: np.ndarray
    """float32 [k]."""
    logit: np.ndarray
    """float32 [k]."""


class Reranked(NamedTuple):
    """A query's final ranking at one difficulty, as far as it was reranked."""

    ids: np.ndarray
    """int64 [k], best first."""
    scores: np.ndarray
    """float64 [k]."""


def shortlisted(first: First, pairs: Pairs, query: int, ignored: Sequence[int], size: int) -> Shortlisted:
    """Return what is reranked for a query; errors as of ``shortlist.shortlist`` and ``Pairs.logits``."""
    top, score = first.top_id[query], first.top_score[query]
    ids = shortlist(top, ignored, size, first.n_listed)
    by_id = np.argsort(top)
    cosine = score[by_id[np.searchsorted(top, ids, sorter=by_id)]]
    return Shortlisted(ids, cosine, pairs.logits(query, ids))


def reranked(found: Shortlisted, weight: float, temperature: float) -> Reranked:
    """Return a shortlist by fused scores (``fusion.fused``)."""
    scores = fusion.fused(found.cosine, found.logit, weight, temperature)
    order = fusion.order(scores)
    return Reranked(found.ids[order], scores[order])


def positions(ids: np.ndarray, ranks: Ranks, right: Sequence[int], ignored: Sequence[int]) -> np.ndarray:
    """Return where positives stand in a reranked list and behind it, ignored ones left out.

    Args:
        ids: int64 [k], the reranked ones, best first.
        ranks: where the labelled photographs stand in the first stage, which goes on behind the list.
        right: the positives.
        ignored: those that are left out; on a small gallery some may be in the list.

    Returns:
        int64, ascending.
    """
    right, ignored = np.asarray(right, dtype=np.int64), np.asarray(ignored, dtype=np.int64)
    counted = ids[~np.isin(ids, ignored)]
    inside = np.flatnonzero(np.isin(counted, right))
    behind = evaluation.positions(ranks.of(right[~np.isin(right, ids)]), ranks.of(ignored))
    return np.concatenate([inside, behind])


def of_first(ranks: Ranks, settings: Settings) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return positions in the first stage by difficulty: ties by id, and those that numpy's sort changes."""
    by_id = evaluation.positions_of(ranks, settings)
    by_default = evaluation.positions_of(ranks, settings, default=True)
    differ = {name: at for name, at in by_default.items() if not np.array_equal(at, by_id[name])}
    return by_id, differ


class Rankings(NamedTuple):
    """The shortlists of all queries at a difficulty, to be reranked with several settings."""

    first: First
    labels: Labelled
    lists: dict[str, list[Shortlisted]]
    """By difficulty, of every query."""

    def positions(self, name: str, query: int, ids: np.ndarray) -> np.ndarray:
        """Return the positions of a query whose shortlist was reordered."""
        right, ignored = self.labels.settings(query)[name]
        return positions(ids, self.first.labelled[query], right, ignored)

    def mean_ap(self, name: str, weight: float, temperature: float) -> float:
        """Return mAP at a difficulty with a setting of the fusion, 0 to 1."""
        values = []
        for query, found in enumerate(self.lists[name]):
            at = self.positions(name, query, reranked(found, weight, temperature).ids)
            n_positives = len(self.labels.settings(query)[name][0])
            values.append(evaluation.average_precision(at, n_positives))
        return evaluation.mean(values)


def open_rankings(first: First, labels: Labelled, pairs: Pairs, size: int) -> Rankings:
    """Return the shortlists of all queries; errors as of ``shortlisted``."""
    lists = {
        name: [
            shortlisted(first, pairs, query, labels.settings(query)[name][1], size)
            for query in range(len(labels.gnd))
        ]
        for name in RERANKED
    }
    return Rankings(first, labels, lists)


def grid(
    rankings: Rankings, weights: Sequence[float], temperatures: Sequence[float], reported: tuple[float, float]
) -> dict:
    """Return mAP of every setting of the fusion: a diagnostic, since its best cell is chosen on the test set.

    Args:
        rankings: of a gallery.
        weights: values of λ.
        temperatures: values of γ.
        reported: λ and γ of the table.

    Returns:
        ``reported`` and ``cells``, each with weight, temperature and map by difficulty, and per difficulty
        the best cell with what it would gain, in percent points.
    """

    def cell(weight: float, temperature: float) -> dict:
        found = {name: rankings.mean_ap(name, weight, temperature) for name in RERANKED}
        values = {name: None if value != value else value for name, value in found.items()}
        return {"weight": weight, "temperature": temperature, "map": values}

    fixed = cell(*reported)
    cells = [cell(weight, temperature) for weight in weights for temperature in temperatures]
    best = {}
    for name in RERANKED:
        known = [one for one in cells if one["map"][name] is not None]
        if known:
            top = max(known, key=lambda one: one["map"][name])
            gain = 100 * (top["map"][name] - fixed["map"][name])
            best[name] = {"weight": top["weight"], "temperature": top["temperature"], "gain": gain}
    return {"reported": fixed, "cells": cells, "best": best}
