"""A published ranking of a gallery: the first stage of a reranker's authors in the place of ours.

Source:
    Landmarks card, section 2.1: one tensor [2, nq, m], slice 0 similarities, slice 1 gallery ids, best first.
    Ids are float32 there, which is exact below 2^24.
"""

from pathlib import Path

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.first_file import First
from remeasure.instances.labels import Labels
from remeasure.instances.score_row import Ranks
from remeasure.torch_file import TorchFile

_EXACT = 1 << 24


def read(path: Path, labels: Labels, kept: int, *, may_be_cut: bool = False) -> First:
    """Read a published ranking.

    Args:
        path: the file, a pickled tensor or torch's own format.
        labels: of the benchmark that it ranks.
        kept: how many per query are kept.
        may_be_cut: whether it may name a part of the gallery only; positives that it lacks cost recall then.

    Raises:
        RemeasureError: refused as a torch file, of another benchmark, cut, or with wrong ids or numbers.
    """
    opened = TorchFile(path)
    names = list(opened.specs)
    if len(names) != 1:
        raise _wrong(path, f"holds {len(names)} tensors, expected one")
    tensor = opened.read(names[0])
    n_queries, n_gallery = len(labels.qimlist), len(labels.imlist)
    if tensor.ndim != 3 or tensor.shape[:2] != (2, n_queries) or not tensor.shape[2]:
        raise _wrong(path, f"has the shape {tensor.shape}, expected (2, {n_queries}, as many as are ranked)")
    n_listed = tensor.shape[2]
    if n_listed > n_gallery or (n_listed < n_gallery and not may_be_cut):
        raise RemeasureError(
            f"{path}: ranks {n_listed} photographs, the gallery has {n_gallery}; tables score whole "
            "rankings: give the complete file, or --truncate to score what is there"
        )
    scores, ids = tensor[0].astype(np.float32), ids_of(tensor[1], n_gallery, path)
    if not np.isfinite(scores).all():
        raise _wrong(path, "has a similarity that is not finite")
    labelled = tuple(_ranks(ids[q], scores[q], labels.labelled(q)) for q in range(n_queries))
    cut_at = n_listed if n_listed < n_gallery else None
    kept = min(kept, n_listed)
    return First(n_gallery, ids[:, :kept], scores[:, :kept], labelled, cut_at)


def _wrong(path: Path, reason: str) -> RemeasureError:
    return RemeasureError(f"{path}: {reason}; give the published ranking of this benchmark")


def ids_of(found: np.ndarray, n_gallery: int, path: Path) -> np.ndarray:
    """Return ids as int64 [nq, m].

    Args:
        found: [nq, m], of any type.
        n_gallery: photographs that there are.
        path: for messages.

    Raises:
        RemeasureError: one is no whole number below ``n_gallery``, or stands twice for a query.
    """
    if n_gallery >= _EXACT and found.dtype.kind == "f":
        raise _wrong(path, f"has ids as {found.dtype}, which cannot tell {n_gallery} photographs apart")
    numbers = found.astype(np.float64)
    if not ((numbers >= 0) & (numbers < n_gallery) & (numbers == np.floor(numbers))).all():
        raise _wrong(path, f"has an id that is no whole number from 0 to {n_gallery - 1}")
    ids = numbers.astype(np.int64)
    ordered = np.sort(ids, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        query = int(np.argmax((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)))
        raise _wrong(path, f"names a photograph twice for query {query}")
    return ids


def _ranks(ids: np.ndarray, scores: np.ndarray, labelled: np.ndarray) -> Ranks:
    """Return where labelled photographs stand in a list; those that it lacks are left out."""
    places = np.flatnonzero(np.isin(ids, labelled))
    places = places[np.argsort(ids[places])]
    values, counts = np.unique(scores, return_counts=True)
    shared = counts[np.searchsorted(values, scores[places])] > 1
    return Ranks(ids[places], places, places, scores[places], int(np.count_nonzero(shared)))
