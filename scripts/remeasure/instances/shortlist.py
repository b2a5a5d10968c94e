"""Which photographs of a first stage are reranked: the first K that are not ignored.

Source:
    Landmarks card, section 2.6. Medium ignores junk, Hard junk and easy ones, so that their shortlists
    differ; a logit depends on neither, and their union is scored once. Easy is not reranked.
"""

from collections.abc import Sequence

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.evaluation import Labelled, Settings

RERANKED = ("medium", "hard")
"""Difficulties that have a shortlist."""


def kept(labels: Labelled, size: int, n_gallery: int) -> int:
    """Return how many of a ranking hold every shortlist: the ignored ones may all stand first."""
    most = max(len(labels.settings(q)[name][1]) for q in range(len(labels.gnd)) for name in RERANKED)
    return min(size + most, n_gallery)


def shortlist(top: np.ndarray, ignored: Sequence[int], size: int, n_ranked: int) -> np.ndarray:
    """Return the ids that are reranked, in the order of the first stage.

    Ignored ones would stand behind all others. Where the gallery has fewer others than the shortlist is long
    they would be among the reranked and have to be counted out again; they are left out at once.

    Args:
        top: int64 [kept], the first of the ranking.
        ignored: ids that the difficulty ignores.
        size: K.
        n_ranked: photographs that the ranking names, kept or not.

    Returns:
        int64 [K], or as many as are not ignored.

    Raises:
        RemeasureError: too little of the ranking was kept.
    """
    found = top[~np.isin(top, np.asarray(ignored, dtype=np.int64))]
    if len(found) < size and len(top) < n_ranked:
        raise RemeasureError(
            f"a ranking keeps {len(top)} of {n_ranked} photographs, {len(found)} of which are not ignored, "
            f"and the shortlist has {size}; rank the gallery again with this shortlist"
        )
    return found[:size]


def reach(top: np.ndarray, settings: Settings, size: int) -> int:
    """Return how many of a ranking, from the first, hold its shortlists; further ones are not reranked."""
    longest = [np.flatnonzero(~np.isin(top, settings[name][1]))[:size] for name in RERANKED]
    return max((int(found[-1]) + 1 for found in longest if len(found)), default=0)


def union(top: np.ndarray, settings: Settings, size: int, n_ranked: int) -> np.ndarray:
    """Return what is reranked for a query at any difficulty, int64, ascending; see ``shortlist``."""
    lists = [shortlist(top, settings[name][1], size, n_ranked) for name in RERANKED]
    return np.unique(np.concatenate(lists))
