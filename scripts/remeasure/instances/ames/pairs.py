"""Which pairs of a query and a photograph are scored, and the files that keep their logits.

Shortlists of the two settings that are reranked overlap almost wholly, and logits depend on neither setting
nor head: each pair of their union is scored once. Finished blocks are files of their own in a folder, so that
a killed job goes on, and a further head scores only pairs that are new.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path
from remeasure.instances.first_file import First
from remeasure.instances.labels import Labels
from remeasure.instances.shortlist import union

KEY = b"scored_by"


def wanted(first: First, labels: Labels, n: int) -> np.ndarray:
    """Return all pairs that reranking of one first stage needs.

    Args:
        first: the ranking.
        labels: of the benchmark.
        n: size of a shortlist.

    Returns:
        [p, 2] int64: query, gallery; sorted, each once.

    Raises:
        RemeasureError: too little of the ranking was kept.
    """
    found = []
    for query, top in enumerate(first.top_id):
        ids = union(top, labels.settings(query), n, first.n_listed)
        found.append(np.stack([np.full(len(ids), query), ids], 1))
    return np.concatenate(found)


def unique(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the pairs of several lists, each once, sorted by gallery, then query."""
    pairs = np.unique(np.concatenate([part[:, ::-1] for part in parts]), axis=0)
    return pairs[:, ::-1]


def digests(tokens: np.ndarray, n_valid: np.ndarray) -> np.ndarray:
    """Return a number that tells the tokens of every photograph from others, [m] int64."""
    found = []
    for row, count in zip(tokens, n_valid.tolist(), strict=True):
        found.append(hashlib.sha256(np.ascontiguousarray(row[:count])).digest()[:8])
    return np.frombuffer(b"".join(found), dtype="<i8")


def write(path: Path, columns: Mapping[str, np.ndarray], key: Mapping[str, Any]) -> None:
    """Write pairs as Parquet: equal content is equal bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(dict(columns)).replace_schema_metadata({KEY: _text(key)})
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def _text(key: Mapping[str, Any]) -> bytes:
    return json.dumps(key, sort_keys=True).encode()


def read(
    path: Path, names: Sequence[str] = ("query", "gallery", "logit")
) -> tuple[dict[str, np.ndarray], dict]:
    """Read a file of pairs.

    Returns:
        Its columns, and what they were scored by.

    Raises:
        RemeasureError: no such file, damaged, or of another form.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=list(names))
        key = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
        columns = {name: table.column(name).to_numpy() for name in names}
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise RemeasureError(
            f"{path}: refused as a file of scored pairs: {' '.join(str(error).split())[:300]}; delete it and "
            "rerun"
        ) from None
    wanted = {"query": np.int16, "gallery": np.int32, "logit": np.float32, "digest": np.int64}
    wrong = [name for name in names if columns[name].dtype != wanted[name]]
    if wrong or not np.isfinite(columns["logit"]).all():
        raise RemeasureError(
            f"{path}: refused as a file of scored pairs: {', '.join(wrong) or 'logit'} is of another type or "
            "not finite; "
            "delete it and rerun"
        )
    return columns, key


class Blocks:
    """Finished blocks of a job in a folder; those of other weights, queries or numbers are removed.

    Args:
        folder: where they lie; made when the first is kept.
        key: what logits depend on beside the tokens of the gallery.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self._folder, self._key = Path(folder), dict(key)
        self._known: dict[tuple[int, int], dict[int, float]] = {}
        self._next = 0
        for path in sorted(self._folder.glob("*.parquet")):
            try:
                columns, found = read(path, ("query", "gallery", "logit", "digest"))
            except RemeasureError:
                columns, found = {}, {}
            if found != self._key:
                path.unlink()
                continue
            self._next = max(self._next, int(path.stem) + 1)
            self.remember(**columns)

    def remember(self, query, gallery, logit, digest) -> None:
        """Take logits as known."""
        for q, g, score, seen in zip(
            query.tolist(), gallery.tolist(), logit.tolist(), digest.tolist(), strict=True
        ):
            self._known.setdefault((g, seen), {})[q] = score

    def known(self, gallery: int, digest: int) -> dict[int, float]:
        """Return the logits of a photograph by query, if its tokens are still those."""
        return self._known.get((gallery, digest), {})

    def keep(self, query: np.ndarray, gallery: np.ndarray, logit: np.ndarray, digest: np.ndarray) -> None:
        """Write a finished block."""
        columns = {"query": query, "gallery": gallery, "logit": logit, "digest": digest}
        write(self._folder / f"{self._next:06d}.parquet", columns, self._key)
        self._next += 1
