"""Which photographs of a first stage are reranked: the first K once those that are ignored stand behind all
others.

Source:
    Landmarks card, section 2.6. Medium ignores junk, Hard junk and easy ones, so that their shortlists
    differ; a logit depends on neither, and their union is scored once. Easy is not reranked.
"""

from collections.abc import Sequence

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.evaluation import Labelled

RERANKED = ("medium", "hard")
"""Difficulties that have a shortlist."""


def kept(labels: Labelled, size: int, n_gallery: int) -> int:
    """Return how many of a ranking hold every shortlist: the ignored ones may all stand first."""
    most = max(len(labels.settings(q)[name][1]) for q in range(len(labels.gnd)) for name in RERANKED)
    return min(size + most, n_gallery)


def shortlist(top: np.ndarray, ignored: Sequence[int], size: int, n_gallery: int) -> np.ndarray:
    """Return the ids that are reranked, in the order of the first stage, ignored ones last.

    Args:
        top: int64 [kept], the first of the ranking.
        ignored: ids that the difficulty ignores.
        size: K.
        n_gallery: photographs that were ranked.

    Returns:
        int64 [min(K, n)]. Where K is more than what is not ignored, ignored ones are among them.

    Raises:
        RemeasureError: too little of the ranking was kept.
    """
    behind = np.isin(top, np.asarray(ignored, dtype=np.int64))
    found = np.concatenate([top[~behind], top[behind]])
    n_before = int(np.count_nonzero(~behind))
    if len(top) < n_gallery and n_before < size:
        raise RemeasureError(
            f"a ranking keeps {len(top)} of {n_gallery} photographs, {n_before} of which are not ignored, "
            f"and the shortlist has {size}; rank the gallery again with this shortlist"
        )
    return found[:size]


def union(
    top: np.ndarray, settings: dict[str, tuple[np.ndarray, np.ndarray]], size: int, n_gallery: int
) -> np.ndarray:
    """Return what is reranked for a query at any difficulty, int64, ascending; see ``shortlist``."""
    lists = [shortlist(top, settings[name][1], size, n_gallery) for name in RERANKED]
    return np.unique(np.concatenate(lists))
