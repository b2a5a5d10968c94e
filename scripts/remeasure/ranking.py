"""Ranked lists: exact top-k with a rule for ties, fusion of lists, hits per rank."""

from collections.abc import Callable, Sequence

import numpy as np

DECIMALS = 6
TIE = 10.0**-DECIMALS
"""Scores are compared and written with six decimals: what differs less is a tie."""


def scores(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return inner products, float64, rounded to six decimals; equal rows get equal scores.

    Args:
        vectors: shape (n, dim).
        query: shape (dim,).

    Returns:
        Shape (n,).
    """
    products = vectors.astype(np.float64) * query.astype(np.float64)
    return np.round(products.sum(axis=1), DECIMALS)


def top_k(values: np.ndarray, k: int) -> np.ndarray:
    """Return positions of the ``k`` highest values, best first; of equal values the lower position wins.

    Args:
        values: shape (n,), finite.
        k: more than n gives all n.

    Edges:
        An empty array gives an empty array.
    """
    return np.argsort(-values, kind="stable")[:k]


def fuse(
    routes: Sequence[tuple[float, Sequence[str]]],
    rank_constant: float,
    k: int,
    position: Callable[[str], int],
) -> tuple[list[str], list[float]]:
    """Fuse ranked lists by weighted reciprocal ranks.

    The score of an id is the sum over lists of weight / (rank_constant + rank), ranks from 1, over the lists
    that hold it. Of equal scores the lower position wins.

    Args:
        routes: (weight, ids best first) per list; ids unique within a list.
        rank_constant: above -1; the larger, the less the first ranks differ.
        k: how many to return.
        position: place of an id in the order file.

    Returns:
        (ids, scores), best first, at most k.

    Source:
        Reciprocal rank fusion, Cormack, Clarke and Büttcher, SIGIR 2009, with a weight per list.
    """
    totals: dict[str, float] = {}
    for weight, ids in routes:
        for rank, item in enumerate(ids, start=1):
            totals[item] = totals.get(item, 0.0) + weight / (rank_constant + rank)
    best = sorted(totals, key=lambda item: (-round(totals[item], DECIMALS), position(item)))[:k]
    return best, [round(totals[item], DECIMALS) for item in best]


def page_of(unit_id: str) -> str:
    """Return the page id of a tile, passage or picture id (``<page_id>/<part>``)."""
    return unit_id.rpartition("/")[0]


def first_hit(ids: Sequence[str], relevant: Sequence[str]) -> int | None:
    """Return the rank (from 1) of the first id whose page is relevant, or None."""
    pages = set(relevant)
    return next((rank for rank, item in enumerate(ids, start=1) if page_of(item) in pages), None)


def mean_reciprocal_rank(score_rows: np.ndarray, gold: np.ndarray) -> float:
    """Return the mean of 1 / rank of the best gold column per row.

    Args:
        score_rows: shape (m, n), higher is better.
        gold: shape (m, n), bool, at least one true per row.

    Returns:
        0 to 1. Ties fall to the lower column, as in ``top_k``.
    """
    total = 0.0
    for row, is_gold in zip(score_rows, gold, strict=True):
        order = top_k(np.round(row, DECIMALS), len(row))
        total += 1 / (1 + int(np.argmax(is_gold[order])))
    return total / len(score_rows)
