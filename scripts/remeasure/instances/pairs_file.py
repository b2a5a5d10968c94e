"""Logits of pairs of a query and a photograph, as ``score_pairs`` writes them."""

from pathlib import Path

import numpy as np

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import open_regular

COLUMNS = ("query", "gallery", "logit")


class Pairs:
    """Logits by query and photograph.

    Args:
        path: Parquet with the columns query, gallery (row of the whole gallery) and logit, sorted by the
        first
            two.

    Raises:
        RemeasureError: missing or damaged, not sorted, a pair twice, or a logit that is not finite.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = Path(path)
        try:
            with open_regular(path) as stream:
                table = parquet.read_table(stream, columns=list(COLUMNS), use_threads=False)
            query, gallery, logit = (table.column(name).to_numpy() for name in COLUMNS)
        except OSError as error:
            raise jsonl.unreadable(path, error) from None
        except (pa.ArrowException, KeyError) as error:
            raise self._refused(f"no table of pairs ({str(error).splitlines()[0]})") from None
        if {query.dtype.kind, gallery.dtype.kind} != {"i"} or logit.dtype != np.float32:
            raise self._refused(f"its columns are {query.dtype}, {gallery.dtype} and {logit.dtype}")
        query, gallery = query.astype(np.int64), gallery.astype(np.int64)
        if not (((np.diff(query) > 0) | ((np.diff(query) == 0) & (np.diff(gallery) > 0))).all()):
            raise self._refused("its pairs are not sorted by query and photograph, or one stands twice")
        if not np.isfinite(logit).all():
            raise self._refused("a logit is not finite")
        self._query, self._gallery, self._logit = query, gallery, logit

    def _refused(self, reason: str) -> RemeasureError:
        return RemeasureError(f"{self.path}: {reason}; delete it and run its target again")

    def __len__(self) -> int:
        return len(self._logit)

    def logits(self, query: int, ids: np.ndarray) -> np.ndarray:
        """Return the logits of a query with some photographs, float32, in their order.

        Raises:
            RemeasureError: one was not scored.
        """
        begin, end = np.searchsorted(self._query, [query, query + 1])
        known = self._gallery[begin:end]
        places = np.searchsorted(known, ids)
        found = places < len(known)
        found[found] = known[places[found]] == ids[found]
        if not found.all():
            raise self._refused(
                f"query {query} has no logit with photograph {int(ids[np.argmin(found)])}, which it "
                "shortlists"
            )
        return self._logit[begin + places]
