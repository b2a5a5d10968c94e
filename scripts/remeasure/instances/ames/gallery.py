"""The tokens of a gallery by the ids that rankings use: the benchmark's rows, then distractors in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.ames.layouts import GIVEN
from remeasure.instances.ames.tokens import Tokens
from remeasure.instances.gallery_order import Order


class GalleryTokens:
    """Tokens of a gallery.

    Args:
        pieces: of the benchmark first, then of distractors, in order.
        names: of the benchmark's gallery.
        order: of the distractors; null: there are none.

    Raises:
        RemeasureError: pieces that do not fit the order or the names, or a row beyond what a piece has.
    """

    def __init__(self, pieces: Sequence[Tokens], names: Sequence[str], order: Order | None) -> None:
        shards = order.shards if order else ()
        starts = [0, *(len(names) + shard.start for shard in shards)]
        sizes = [len(names), *(shard.rows for shard in shards)]
        found, expected = [piece.path.stem for piece in pieces[1:]], [shard.name for shard in shards]
        if found != expected:
            raise RemeasureError(
                f"tokens of distractors: {', '.join(found) or 'none'}, expected "
                f"{', '.join(expected) or 'none'}; "
                "descriptors and local descriptors belong together: give both of every piece, or neither"
            )
        pieces[0].check_names(names)
        self._pieces = pieces
        self.n = len(names) + (order.n if order else 0)
        ids, owners, places = [], [], []
        for number, (piece, start, size) in enumerate(zip(pieces, starts, sizes, strict=True)):
            if len(piece.row) and piece.row[-1] >= size:
                raise piece.refused(f"row {piece.row[-1]}, and the piece has {size} photographs")
            ids.append(piece.row + start)
            owners.append(np.full(len(piece.row), number))
            places.append(np.arange(len(piece.row)))
        self._ids, self._owners, self._places = (np.concatenate(part) for part in (ids, owners, places))

    def check(self, wanted: np.ndarray) -> None:
        """Refuse ids without tokens.

        Args:
            wanted: ids, ascending.

        Raises:
            RemeasureError: says how many, and which is the first.
        """
        missing = wanted[~np.isin(wanted, self._ids)]
        if len(missing):
            raise RemeasureError(
                f"{self._pieces[-1].path.parent}: no tokens of photograph {missing[0]} of the gallery of "
                f"{self.n}, "
                f"which is shortlisted, nor of {len(missing) - 1} more; rerun want_locals and what follows"
            )

    def take(self, ids: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return tokens [m, n, width] float32 and how many are no padding [m]; errors of ``Tokens.take``."""
        at = np.searchsorted(self._ids, ids)
        tokens, n_valid = None, np.zeros(len(ids), np.int64)
        for number in np.unique(self._owners[at]):
            here = np.flatnonzero(self._owners[at] == number)
            found, n_valid[here] = self._pieces[number].take(self._places[at[here]], n)
            if tokens is None:
                tokens = np.zeros((len(ids), n, found.shape[2]), np.float32)
            tokens[here, : found.shape[1]] = found
        assert tokens is not None, "no ids"
        return tokens, n_valid


def check_alike(pieces: Sequence[Tokens], checkpoint_sha256: str, checked: Sequence[dict[str, Any]]) -> None:
    """Refuse tokens of other weights, and local descriptors of several extractors.

    Args:
        pieces: of queries and gallery.
        checkpoint_sha256: of the weights that score.
        checked: reports of comparisons of our local descriptors with published ones.

    Raises:
        RemeasureError: tokens of another checkpoint, or descriptors of extractors whose agreement nobody has
            measured.
    """
    for piece in pieces:
        if piece.about.get("checkpoint_sha256") != checkpoint_sha256:
            raise piece.refused("its tokens were made by another checkpoint")
    known = {str(piece.about.get("extractor")) for piece in pieces}
    agree = bool(checked) and all(report.get("ok") is True for report in checked)
    if len(known) > 1 and not (agree and len(known - {GIVEN}) == 1):
        paths = ", ".join(str(piece.path) for piece in pieces[:3])
        raise RemeasureError(
            f"{paths}: local descriptors of {len(known)} extractors ({', '.join(sorted(known))[:300]}); "
            "mixing "
            "them loses more than reranking gains: use one, or compare them first (local_features.checked)"
        )
