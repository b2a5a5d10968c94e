"""Measures of ranked documents: average precision, recall and normalised gain, on rank lists.

The order of a ranking is all there is: scores and their ties have been settled by whoever ranked. A document
counts once, where it stands first, so that no measure can exceed 1.

Source:
    RAG card, section 3.1; the same as trec_eval's ``map``, ``recall`` and ``ndcg_cut`` for labels of 0 and 1.
"""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

_FIRST = 1024
_FEW = 16
_GAINS = tuple(1.0 / math.log2(rank + 1) for rank in range(1, _FIRST + 1))
"""What a hit at each rank is worth, the first rank first."""


class Measured(NamedTuple):
    """The measures of one query, each 0 to 1, under the names of tables."""

    map: float
    recall_5: float
    recall_10: float
    ndcg_5: float
    ndcg_10: float


def collapsed(uris: Iterable[str]) -> list[str]:
    """Return documents each once, where they stand first; chunks without a document are dropped."""
    return [uri for uri in dict.fromkeys(uris) if uri]


def hit_ranks(ranking: Iterable[str], gold: Collection[str]) -> list[int]:
    """Return the ranks of the gold documents, from 1, ascending; a document counts where it stands first."""
    order = dict.fromkeys(ranking)
    found = [uri for uri in frozenset(gold) if uri in order]
    if len(found) > _FEW:
        wanted = frozenset(found)
        return [rank for rank, uri in enumerate(order, start=1) if uri in wanted]
    # A few are looked for one by one: the search of a list is several times faster than a loop over it.
    listed = list(order) if found else []
    return sorted(listed.index(uri) + 1 for uri in found)


def average_precision(ranking: Iterable[str], gold: Collection[str]) -> float:
    """Return the mean over the gold documents of the precision at their ranks; 0 for those not found.

    Args:
        ranking: documents, best first; there is no cut-off but its end.
        gold: documents that hold the answer.

    Edges:
        0 without gold documents.
    """
    wanted = frozenset(gold)
    return _average_precision(hit_ranks(ranking, wanted), len(wanted))


def recall(ranking: Iterable[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold documents among the first k; also where there are more than k of them.

    Edges:
        0 without gold documents.
    """
    wanted = frozenset(gold)
    return _recall(hit_ranks(ranking, wanted), len(wanted), k)


def ndcg(ranking: Iterable[str], gold: Collection[str], k: int) -> float:
    """Return the discounted gain of the first k over that of the best order; gain 1, discount log2(rank + 1).

    Edges:
        0 without gold documents.
    """
    wanted = frozenset(gold)
    return _ndcg(hit_ranks(ranking, wanted), len(wanted), k)


def measured(ranking: Iterable[str], gold: Collection[str]) -> Measured:
    """Return all measures that tables have of one query."""
    wanted = frozenset(gold)
    n, ranks = len(wanted), hit_ranks(ranking, wanted)
    if not ranks:
        return NOTHING
    return Measured(
        _average_precision(ranks, n),
        _recall(ranks, n, 5),
        _recall(ranks, n, 10),
        _ndcg(ranks, n, 5),
        _ndcg(ranks, n, 10),
    )


NOTHING = Measured(0.0, 0.0, 0.0, 0.0, 0.0)
"""Of a ranking without a hit."""


def _average_precision(ranks: list[int], n: int) -> float:
    total = 0.0
    for hits, rank in enumerate(ranks, start=1):
        total += hits / rank
    return total / n if n else 0.0


def _recall(ranks: list[int], n: int, k: int) -> float:
    return bisect_right(ranks, k) / n if n else 0.0


def _ndcg(ranks: list[int], n: int, k: int) -> float:
    # Ranks and the ideal are added in the same order, so that a perfect ranking is 1 to the last bit.
    gain = 0.0
    for rank in ranks:
        if rank > k:
            break
        gain += _gain(rank)
    return gain / _ideal(min(n, k)) if gain else 0.0


def _gain(rank: int) -> float:
    return _GAINS[rank - 1] if rank <= _FIRST else 1.0 / math.log2(rank + 1)


@lru_cache(maxsize=4096)
def _ideal(n: int) -> float:
    total = 0.0
    for rank in range(1, n + 1):
        total += _gain(rank)
    return total
