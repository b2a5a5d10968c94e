"""Local descriptors as they lie in files: ours, and the three published forms.

A row of a published file is a photograph, its dataset is called ``features``: flat ([n, T, 5 + dim] float16
or
float32: five numbers about a descriptor, then the descriptor), compound (fields ``metadata`` [T, 5] and
``descriptor`` [T, dim]), or bits packed into bytes (a compound's ``descriptor`` [T, dim / 8], or [n, T, dim /
8] alone). The fourth of the five numbers says whether the descriptor is padding (1) or one (0); the others
are never read. Padding stands behind all descriptors, so that one count for each photograph says it all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.instances.vectors_file import Rows

N_ABOUT = 5
PADDED = 3
"""Which of the numbers about a descriptor says that it is padding."""
GIVEN = "given"
"""Extractor of descriptors that somebody else has made."""
_PUBLISHED = "features"


class Block(NamedTuple):
    """Some photographs in order."""

    descriptors: np.ndarray
    """[n, T, dim] float32; rows behind ``n_valid`` are zero."""
    n_valid: np.ndarray
    """[n] int64."""


class Locals:
    """Local descriptors of a piece, read block by block.

    Args:
        path: a file of ours or a published one; what it holds decides, not its name.
        dim: numbers of a descriptor.
        n: at most so many descriptors of a photograph are read, the strongest, which stand first.

    Raises:
        RemeasureError: no such file, damaged, of none of the forms, or of another length of descriptors.
    """

    def __init__(self, path: Path, dim: int, n: int) -> None:
        self.path, self.dim = Path(path), dim
        self._rows = _ours(self.path)
        if self._rows is not None:
            self._rows.check("descriptor", None, dim, kinds="f")
            self._rows.check("n_valid", kinds="u")
            self._rows.check("row", kinds="i")
            self.layout, self.n_photos, stored = (
                "ours",
                len(self._rows),
                self._rows.columns["descriptor"].row[0],
            )
            self.extractor = self._rows.about.get("extractor", self._rows.about)
        else:
            self.layout, self.n_photos, stored = _published(self.path, dim)
            self.extractor = GIVEN
        self.n = min(n, stored)

    def names(self) -> list[str]:
        """Return the names of the photographs; those of a published file are its rows' numbers."""
        if self._rows is not None:
            return self._rows.names()
        return [str(row) for row in range(self.n_photos)]

    def rows(self) -> np.ndarray:
        """Return which row of its piece every photograph is, [n_photos] int64, ascending.

        Raises:
            RemeasureError: they do not ascend.
        """
        if self._rows is None:
            return np.arange(self.n_photos, dtype=np.int64)
        rows = self._rows.read("row").astype(np.int64)
        if len(rows) and (rows[0] < 0 or (np.diff(rows) <= 0).any()):
            raise RemeasureError(
                f"{self.path}: row: does not ascend; delete it and rerun the target that writes it"
            )
        return rows

    def blocks(self, n_photos: int) -> Iterator[tuple[int, Block]]:
        """Yield (first photograph, block) in order.

        Raises:
            RemeasureError: a descriptor that is not finite or zero, or padding before a descriptor; names the
                photograph.
        """
        read = self._read_ours if self._rows is not None else self._read_published
        for start in range(0, self.n_photos, n_photos):
            block = read(start, min(start + n_photos, self.n_photos))
            yield start, self._checked(block, start)

    def _checked(self, block: Block, start: int) -> Block:
        descriptors, n_valid = block
        valid = np.arange(descriptors.shape[1]) < n_valid[:, None]
        descriptors[~valid] = 0
        sizes = np.linalg.norm(descriptors, axis=-1)
        wrong = valid & ~((sizes > 0) & np.isfinite(sizes))
        if wrong.any():
            photo, place = (int(i) for i in np.argwhere(wrong)[0])
            raise RemeasureError(
                f"{self.path}: photograph {start + photo}: descriptor {place} of {n_valid[photo]} is zero or "
                "not finite "
                f"(and {int(wrong.sum()) - 1} more in these rows); a source was missing or too large numbers "
                "were stored: "
                "make the file again"
            )
        return block

    def _read_ours(self, start: int, stop: int) -> Block:
        assert self._rows is not None
        found = np.array(self._rows.array("descriptor")[start:stop, : self.n], dtype=np.float32)
        n_valid = np.minimum(self._rows.array("n_valid")[start:stop].astype(np.int64), self.n)
        return Block(found, n_valid)

    def _read_published(self, start: int, stop: int) -> Block:
        import h5py

        try:
            with h5py.File(self.path, "r") as store:
                found = store[_PUBLISHED][start:stop]
        except (OSError, RuntimeError) as error:
            raise _refused(self.path, str(error)) from None
        if self.layout.startswith("compound"):
            about, descriptors = found["metadata"], found["descriptor"]
        elif self.layout == "bits":
            about, descriptors = None, found
        else:
            about, descriptors = found[..., :N_ABOUT], found[..., N_ABOUT:]
        descriptors = descriptors[:, : self.n]
        if descriptors.dtype == np.uint8:
            descriptors = np.unpackbits(descriptors, axis=-1).astype(np.float32) * 2 - 1
        n_valid = np.full(len(found), self.n, np.int64)
        if about is not None:
            n_valid = np.minimum(self._n_valid(about[..., PADDED], start), self.n)
        return Block(np.array(descriptors, dtype=np.float32), n_valid)

    def _n_valid(self, padded: np.ndarray, start: int) -> np.ndarray:
        """Return how many descriptors stand before the padding, [n]."""
        n_valid = (padded == 0).sum(axis=1)
        expected = np.arange(padded.shape[1]) >= n_valid[:, None]
        wrong = (padded != expected).any(axis=1)
        if wrong.any():
            raise RemeasureError(
                f"{self.path}: photograph {start + int(np.argmax(wrong))}: column {PADDED} is to be 0 for "
                "descriptors and "
                "then 1 for padding, and is not; give a file in one of the published forms"
            )
        return n_valid


def _ours(path: Path) -> Rows | None:
    """Open a file of ours; null where it has a dataset of the published name."""
    import h5py

    try:
        open_regular(path).close()  # HDF5 would wait for the other end of a pipe
        with h5py.File(path, "r") as store:
            if _PUBLISHED in store:
                return None
    except (OSError, RuntimeError) as error:
        raise _refused(path, str(error)) from None
    return Rows(path)


def _published(path: Path, dim: int) -> tuple[str, int, int]:
    """Return the layout of a published file, its photographs, and how many descriptors it has of each."""
    import h5py

    try:
        with h5py.File(path, "r") as store:
            if not isinstance(store.get(_PUBLISHED, getlink=True), h5py.HardLink):
                raise _refused(path, f"{_PUBLISHED} is a link to somewhere else")
            found = store[_PUBLISHED]
            if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external:
                raise _refused(
                    path,
                    f"{_PUBLISHED} is virtual or in another file, which gives zeros where one is missing",
                )
            dtype, shape = found.dtype, found.shape
    except (OSError, RuntimeError) as error:
        raise _refused(path, str(error)) from None
    expected = (
        f"[n, T, {N_ABOUT + dim}] of float16 or float32, [n] of metadata [T, {N_ABOUT}] and descriptor [T, "
        f"{dim}], or "
        f"bytes [n, T, {dim // 8}]"
    )
    layout, n = None, 0
    if dtype.names is not None and {"metadata", "descriptor"} <= set(dtype.names) and len(shape) == 1:
        about, one = dtype["metadata"], dtype["descriptor"]
        bits = one.base == np.uint8
        wanted = (about.shape[:1] and (about.shape[0], dim // 8 if bits else dim),)
        fits = about.base.kind == "f" and about.shape[1:] == (N_ABOUT,) and one.shape == wanted[0]
        if fits and (bits and not dim % 8 or one.base in (np.float16, np.float32)):
            layout, n = f"compound-{'bits' if bits else one.base.name}", one.shape[0]
    elif len(shape) == 3 and dtype in (np.float16, np.float32) and shape[2] == N_ABOUT + dim:
        layout, n = f"flat-{dtype.name}", shape[1]
    elif len(shape) == 3 and dtype == np.uint8 and shape[2] * 8 == dim:
        layout, n = "bits", shape[1]
    if layout is None or not n:
        raise _refused(path, f"{_PUBLISHED} is {dtype} of shape {shape}, expected {expected}")
    return layout, shape[0], n


def _refused(path: Path, reason: str) -> RemeasureError:
    return RemeasureError(
        f"{path}: refused as a file of local descriptors: {' '.join(reason.split())[:400]}; fetch or make it "
        "again"
    )
