"""Whether a file of vectors is what its photographs give: some are described again and compared.

Source:
    Landmarks card, section 1.4: 32 rows drawn at random, with a cosine of 0.9999 on the same device.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.decode import UNDECODABLE
from remeasure.instances.describing import STATUS, Describer, vectors_of
from remeasure.instances.pieces import Piece
from remeasure.instances.vectors_file import Rows

log = logging.getLogger("remeasure.repeating")
MOST = 32
ONE_IN = 100
"""Of a small piece one photograph in so many; of fewer none."""
LEAST_COSINE = 0.9999


def check(piece: Piece, describer: Describer, path: Path, rule: str, key: str = "cls") -> float | None:
    """Describe some photographs of a finished file again.

    Args:
        piece: the photographs.
        describer: the model.
        path: the file.
        rule: by which boxes become whole pixels (``pieces.CROPS``).
        key: the column that is compared.

    Returns:
        The least cosine; null where the piece is too small.

    Raises:
        RemeasureError: one is further off than ``LEAST_COSINE``; the file is removed then.
    """
    rows = Rows(path)
    decoded = np.flatnonzero(rows.read(STATUS) != UNDECODABLE)
    n = min(MOST, len(piece) // ONE_IN, len(decoded))
    if not n:
        return None
    chosen = np.sort(np.random.default_rng(0).choice(decoded, n, replace=False))

    def pictures() -> Iterator[np.ndarray]:
        for i in chosen.tolist():
            found = describer.decode(piece.read(i))
            left, top, right, bottom = piece.box(i, found.size, rule)
            yield found.pixels[top:bottom, left:right]

    again = vectors_of(describer, pictures(), key).astype(np.float64)
    stored = rows.take(key, chosen).astype(np.float64)
    lengths = np.linalg.norm(again, axis=-1) * np.linalg.norm(stored, axis=-1)
    cosines = ((again * stored).sum(axis=-1) / lengths).reshape(n, -1).min(axis=1)
    least = float(cosines.min())
    if not least >= LEAST_COSINE:
        name = rows.names()[chosen[int(np.argmin(cosines))]]
        path.unlink()
        raise RemeasureError(
            f"{path}: photograph {name} described again has the cosine {least:.6f} with what was stored, "
            f"expected {LEAST_COSINE}: device, weights or files changed meanwhile; run this target again"
        )
    log.info("%s: %d photographs described again, least cosine %.6f", piece.name, n, least)
    return least
