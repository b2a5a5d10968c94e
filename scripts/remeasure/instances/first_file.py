"""Rankings of a gallery on disk: the best of every query, and where its labelled photographs stand.

One HDF5 file may hold several rankings, whose datasets have a prefix each. Ids are gallery rows first, then
distractors in their order.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remeasure import hdf5_file
from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.instances.score_row import Ranks

TOP = {"top_id": np.int64, "top_score": np.float32}
"""Shape (nq, as many as are kept)."""
LABELLED = {
    "labelled_query": np.int32,
    "labelled_id": np.int64,
    "labelled_rank": np.int64,
    "labelled_rank_default": np.int64,
    "labelled_score": np.float32,
}
"""One row for every query and labelled photograph, sorted by these."""
N_TIED = {"n_tied": np.int32}
# The largest that is written: 12 rankings of 70 queries with 2,000 kept and 300 labelled photographs each.
_MAX_BYTES = 1 << 30


class First(NamedTuple):
    """A ranking of a gallery for every query of a benchmark."""

    n_gallery: int
    """Photographs that were ranked, distractors included."""
    top_id: np.ndarray
    """int64 [nq, kept], best first."""
    top_score: np.ndarray
    """float32 [nq, kept], descending."""
    labelled: tuple[Ranks, ...]
    """Of every query; of a list that was cut off those that it has."""
    cut_at: int | None = None
    """Length of a ranking of somebody else's that does not name the whole gallery."""
    undecoded: tuple[int, ...] = ()
    """Labelled photographs that could not be decoded, ascending: ids, whichever query labels them."""

    @property
    def n_listed(self) -> int:
        """How many photographs the ranking names, kept or not."""
        return self.n_gallery if self.cut_at is None else self.cut_at


def write(
    path: Path, rankings: Mapping[str, First], about: Mapping[str, Any], **attributes: Sequence[Any]
) -> None:
    """Write rankings, whole or not at all; equal content is equal bytes.

    Args:
        path: the file.
        rankings: by prefix ("" where there is only one); all of one gallery.
        about: what made them, without times and paths.
        attributes: further facts, stored as JSON.
    """
    sizes = {(found.n_gallery, found.cut_at, found.undecoded) for found in rankings.values()}
    assert len(sizes) == 1, sizes
    n_gallery, cut_at, undecoded = sizes.pop()
    told = {"about": about, "cut_at": cut_at, "undecoded": undecoded}
    with hdf5_file.writing(path) as (store, _):
        store.attrs["n_gallery"] = n_gallery
        for name, value in {**told, **attributes}.items():
            store.attrs[name] = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        for prefix, found in rankings.items():
            for name, array in _arrays(found).items():
                store.create_dataset(prefix + name, data=array, track_times=False)


def _arrays(found: First) -> dict[str, np.ndarray]:
    counts = [len(row.ids) for row in found.labelled]
    columns = zip(*((row.ids, row.rank, row.rank_default, row.score) for row in found.labelled), strict=True)
    flat = [np.repeat(np.arange(len(counts)), counts), *map(np.concatenate, columns)]
    arrays = {
        "top_id": found.top_id,
        "top_score": found.top_score,
        **dict(zip(LABELLED, flat, strict=True)),
        "n_tied": np.array([row.n_tied for row in found.labelled]),
    }
    kinds = TOP | LABELLED | N_TIED
    return {name: array.astype(kinds[name], copy=False) for name, array in arrays.items()}


class FirstFile:
    """Rankings that were written, checked as they are read.

    Args:
        path: the file.

    Raises:
        RemeasureError: missing, damaged, or no file of rankings.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = Path(path)
        try:
            with open_regular(path) as stream:
                if os.fstat(stream.fileno()).st_size > _MAX_BYTES:
                    raise ValueError(f"it has more than {_MAX_BYTES} bytes")
            with h5py.File(path, "r") as store:
                self.n_gallery = int(store.attrs["n_gallery"])
                texts = {name: value for name, value in store.attrs.items() if name != "n_gallery"}
                self.facts: dict[str, Any] = {name: json.loads(text) for name, text in texts.items()}
                self._arrays = {name: _array(store, name) for name in store}
        except (OSError, KeyError, ValueError, TypeError, RuntimeError, RecursionError) as error:
            raise self._refused(" ".join(str(error).split())[:300] or type(error).__name__) from None
        cut_at = self.facts.setdefault("cut_at", None)
        is_length = cut_at is None or (type(cut_at) is int and 1 <= cut_at <= self.n_gallery)
        if not isinstance(self.about, dict):
            raise self._refused("about is no JSON object")
        if self.n_gallery < 1 or not is_length:
            raise self._refused(f"its gallery has {self.n_gallery} photographs, cut at {cut_at!r}")
        lost = self.facts.setdefault("undecoded", [])
        if not isinstance(lost, list) or not all(type(i) is int and 0 <= i < self.n_gallery for i in lost):
            raise self._refused("its photographs that could not be decoded are no ids of its gallery")

    def _refused(self, reason: str) -> RemeasureError:
        return RemeasureError(
            f"{self.path}: refused as a file of rankings: {reason}; delete it and run its target again"
        )

    @property
    def about(self) -> dict[str, Any]:
        """What made the rankings."""
        return self.facts.get("about", {})

    def ranking(self, prefix: str = "") -> First:
        """Return one ranking.

        Raises:
            RemeasureError: there is none of that prefix, or its numbers do not fit together.
        """
        kinds = TOP | LABELLED | N_TIED
        missing = [prefix + name for name in kinds if prefix + name not in self._arrays]
        if missing:
            raise self._refused(f"it has no {missing[0]}")
        found = {name: self._arrays[prefix + name] for name in kinds}
        wrong = [name for name, kind in kinds.items() if found[name].dtype != kind]
        if wrong:
            raise self._refused(f"{prefix}{wrong[0]} is {found[wrong[0]].dtype}, expected {kinds[wrong[0]]}")
        self._check(found)
        query, counts = found["labelled_query"], found["n_tied"]
        ends = np.searchsorted(query, np.arange(len(counts) + 1))
        columns = [found[name] for name in LABELLED if name != "labelled_query"]
        labelled = tuple(
            Ranks(*(column[ends[q] : ends[q + 1]] for column in columns), int(counts[q]))
            for q in range(len(counts))
        )
        cut_at, undecoded = self.facts["cut_at"], tuple(self.facts["undecoded"])
        return First(self.n_gallery, found["top_id"], found["top_score"], labelled, cut_at, undecoded)

    def _check(self, found: Mapping[str, np.ndarray]) -> None:
        """Check shapes, orders and ranges."""
        top, score, n_tied = found["top_id"], found["top_score"], found["n_tied"]
        query, ids, rank = (found[f"labelled_{name}"] for name in ("query", "id", "rank"))
        if n_tied.ndim != 1 or top.ndim != 2 or top.shape != score.shape or len(top) != len(n_tied):
            raise self._refused(f"shapes {top.shape}, {score.shape}, {n_tied.shape} do not fit together")
        if any(found[name].shape != query.shape or query.ndim != 1 for name in LABELLED):
            raise self._refused("its labelled photographs do not fit together")
        ascending = (np.diff(query) > 0) | ((np.diff(query) == 0) & (np.diff(ids) > 0))
        if not ascending.all() or (len(query) and not 0 <= query[0] <= query[-1] < len(n_tied)):
            raise self._refused("its labelled photographs are not sorted by query and id")
        for name, array in (("top_id", top), ("labelled_id", ids), ("labelled_rank", rank)):
            if array.size and not (0 <= array.min() and array.max() < self.n_gallery):
                raise self._refused(f"{name} reaches beyond a gallery of {self.n_gallery}")
        # Somebody else's ranking may have its best reordered by other scores.
        is_given = bool(self.about.get("given"))
        if not np.isfinite(score).all() or (not is_given and (np.diff(score, axis=1) > 0).any()):
            raise self._refused("scores of its best are not finite, or do not descend")
        if any(len(np.unique(row)) != len(row) for row in top):
            raise self._refused("a photograph stands twice among the best of a query")


def _array(store: Any, name: str) -> np.ndarray:
    """Read a dataset that lies in the file itself."""
    import h5py

    if not isinstance(store.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link to somewhere else")
    found = store[name]
    if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external or found.dtype.hasobject:
        raise ValueError(f"{name} is no dataset of numbers in this file")
    if found.size * found.dtype.itemsize > _MAX_BYTES:
        raise ValueError(f"{name} is too large")
    return np.asarray(found[()])


def read(path: Path, prefix: str = "") -> First:
    """Read one ranking of a file; errors as of ``FirstFile``."""
    return FirstFile(path).ranking(prefix)
