"""Ways to read descriptors out of an encoder's stored vectors, and which of them the table shows.

Three forms of the query (cropped; cropped, with the encoder's instruction for queries; whole), two lengths
(the first half of the numbers, all), with and without the mean subtracted: twelve. Nothing is extracted
again.

Source:
    Landmarks card, section 1.8. Only "mean-centering" is published: here the mean of the gallery is taken
    from the gallery and that of the queries from the queries, after cutting and before the length becomes 1.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from remeasure.errors import RemeasureError

QueryForm = Literal["cropped", "instructed", "whole"]
FORMS: dict[QueryForm, str] = {"cropped": "queries", "instructed": "instructed", "whole": "whole"}
"""Form of a query to the piece that has its vectors."""
KEPT = 100
"""So many of each ranking are kept for people to see."""
_NOTHING = 1e-6
"""A vector that is shorter once the mean is subtracted has no direction but that of rounding."""


class ReadOut(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to read descriptors out."""

    query: QueryForm
    dim: int
    """The first so many numbers of a vector."""
    centred: bool


def all_of(dim: int) -> list[ReadOut]:
    """Return the twelve read-outs of vectors of ``dim`` numbers, in the order of files."""
    return [
        ReadOut(query=query, dim=length, centred=centred)
        for query in FORMS
        for length in (dim // 2, dim)
        for centred in (False, True)
    ]


def prefix(place: int) -> str:
    """Return what the datasets of a read-out begin with, by its place in ``all_of``."""
    return f"r{place}_"


class Side(NamedTuple):
    """Stored vectors of queries or of a gallery."""

    place: str
    """Their file, for errors."""
    vectors: np.ndarray
    """float32 [n, dim]; rows of photographs that could not be decoded are zero."""

    @property
    def unreadable(self) -> np.ndarray:
        """Rows of zeros, int64, ascending."""
        return np.flatnonzero(~self.vectors.any(axis=1))


def descriptors(side: Side, dim: int, *, centred: bool) -> np.ndarray:
    """Return the descriptors of one side: cut, centred where it is asked for, of length 1.

    Args:
        side: the vectors.
        dim: numbers that are kept.
        centred: whether the mean of the side is subtracted; photographs without a vector are no part of it.

    Returns:
        float32 [n, dim]; rows of zeros stay zeros.

    Raises:
        RemeasureError: a vector has no direction left.
    """
    found = side.vectors[:, :dim].astype(np.float64)
    known = side.vectors.any(axis=1)
    if centred and known.any():
        found[known] -= found[known].mean(axis=0)
    length = np.linalg.norm(found, axis=1)
    lost = known & (length < _NOTHING)
    if lost.any():
        why = "the mean of its side" if centred else "nothing in its first half"
        raise RemeasureError(
            f"{side.place}: row {int(np.argmax(lost))} is {why}, and has no direction (read-out of {dim} "
            "numbers); give more than one photograph, and an encoder that tells them apart"
        )
    return np.divide(found, length[:, None], out=np.zeros_like(found), where=known[:, None]).astype(
        np.float32
    )


class Grid(NamedTuple):
    """What is known of all read-outs in one gallery."""

    gallery: str
    place: str
    names: tuple[ReadOut, ...]
    map: tuple[dict[str, float | None], ...]
    """Of each read-out, by difficulty, 0 to 1."""


def choose(grids: Sequence[Grid]) -> dict[str, Any]:
    """Return the read-out that the table shows, and the whole grid.

    The published rule: of the read-outs whose queries are cropped the one with the highest sum of Medium mAP
    over the galleries, which are the table's own test sets; the first of equals.

    Raises:
        RemeasureError: galleries with other read-outs, or one without a Medium mAP.
    """
    names = grids[0].names
    for grid in grids:
        if grid.names != names or len(grid.map) != len(names) or not names:
            raise RemeasureError(
                f"{grid.place}: has other read-outs than {grids[0].place}; delete both and rerun"
            )
        if any(values.get("medium") is None for values in grid.map):
            raise RemeasureError(
                f"{grid.place}: no query of gallery {grid.gallery} has a positive at Medium, so that no "
                "read-out can be chosen by it; take the gallery out of gallery_of_bench"
            )
    sums = [_sum(grids, place) for place in range(len(names))]
    cropped = [place for place, name in enumerate(names) if name.query != "whole"]
    rows = [_row(grids, place, name) | {"sum_medium": sums[place]} for place, name in enumerate(names)]
    return {
        "chosen": max(cropped, key=lambda place: (sums[place], -place)),
        "rule": "highest sum of Medium mAP over the galleries, among read-outs of cropped queries",
        "galleries": [grid.gallery for grid in grids],
        "grid": rows,
    }


def _sum(grids: Sequence[Grid], place: int) -> float:
    return sum(grid.map[place]["medium"] or 0.0 for grid in grids)


def _row(grids: Sequence[Grid], place: int, name: ReadOut) -> dict[str, Any]:
    found: Mapping[str, Any] = {grid.gallery: grid.map[place] for grid in grids}
    return {"query": name.query, "dim": name.dim, "centred": name.centred, "map": found}
