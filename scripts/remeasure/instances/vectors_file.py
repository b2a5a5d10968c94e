"""Vectors of photographs in HDF5: one row per photograph, contiguous, so that rows are read where they lie.

A file has datasets of n rows each (``name`` among them: fixed-length bytes) and the attribute ``about``: JSON
that says what made it. Chunked datasets make reading rows slow; virtual ones give zeros for a missing source
without a word: both are refused, as are links to other files.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remeasure import hdf5_file
from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.instances.open_maps import OpenMaps

NAME, ABOUT = "name", "about"
BLOCK_ROWS = 4096
_MAX_ABOUT_BYTES = 1 << 16


class Column(NamedTuple):
    """A dataset: the type of its numbers and the shape of one row."""

    dtype: Any
    row: tuple[int, ...] = ()


Put = Callable[..., None]


@contextmanager
def writing(path: Path, n: int, columns: Mapping[str, Column], about: Mapping[str, Any]) -> Iterator[Put]:
    """Write a file block by block, whole or not at all; equal content is equal bytes.

    Args:
        path: the file.
        n: its rows.
        columns: its datasets by name, in order.
        about: what made it, without times and paths.

    Yields:
        A function of the first row of a block and its arrays by dataset. All rows must be put, in order.

    Raises:
        RemeasureError: a block that is not finite or of another shape; rows are missing at the end.
    """
    done = 0
    with hdf5_file.writing(path) as (store, sink):
        store.attrs[ABOUT] = json.dumps(about, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        made = {
            key: store.create_dataset(key, (n, *column.row), np.dtype(column.dtype), track_times=False)
            for key, column in columns.items()
        }

        def put(start: int, **arrays: np.ndarray) -> None:
            nonlocal done
            lengths = {len(array) for array in arrays.values()}
            if start != done or set(arrays) != set(made) or len(lengths) != 1:
                raise ValueError(
                    f"{path}: rows {start} of {sorted(arrays)}, expected {done} of {sorted(made)}"
                )
            for key, array in arrays.items():
                _check_block(np.asarray(array), made[key], path, key, start)
                made[key][start : start + len(array)] = array
            sink.check()
            done += lengths.pop()

        yield put
        if done != n:
            raise RemeasureError(
                f"{path}: {done} rows were made, {n} expected; rerun the target that writes it"
            )


def _check_block(array: np.ndarray, dataset: Any, path: Path, key: str, start: int) -> None:
    if array.shape[1:] != dataset.shape[1:] or start + len(array) > dataset.shape[0]:
        raise RemeasureError(
            f"{path}: {key} from row {start} has the shape {array.shape}, expected rows of "
            f"{dataset.shape[1:]} and {dataset.shape[0]} in all; give vectors of one model"
        )
    if dataset.dtype.kind == "f":
        # Numbers that are finite and too large for the type become infinite when they are stored.
        with np.errstate(over="ignore"):
            check_finite(array.astype(dataset.dtype), key, path, start)


def check_finite(block: np.ndarray, key: str, path: Path, start: int = 0) -> None:
    """Refuse rows that hold NaN or an infinite number.

    Raises:
        RemeasureError: names the first such row.
    """
    if block.dtype.kind != "f" or np.isfinite(block).all():
        return
    bad = ~np.isfinite(block.reshape(len(block), -1)).all(axis=1)
    raise RemeasureError(
        f"{path}: {key} of row {start + int(np.argmax(bad))} is not finite in {block.dtype} (NaN, or too "
        f"large), and {int(bad.sum()) - 1} rows more; look at that photograph, or store it with more bits"
    )


def as_names(names: Sequence[str], place: object) -> np.ndarray:
    """Return names as fixed-length bytes; shape (n,).

    Raises:
        RemeasureError: one is empty, has a zero byte, or no UTF-8.
    """
    try:
        found = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise RemeasureError(f"{place}: name {error.object!r} is no UTF-8; rename the photograph") from None
    for name in found:
        if not name or b"\0" in name:
            raise RemeasureError(f"{place}: name {name!r} is empty or has a zero byte; rename the photograph")
    return np.array(found, dtype=f"S{max(map(len, found), default=1)}")


def write(path: Path, names: Sequence[str], *, about: Mapping[str, Any], **arrays: np.ndarray) -> None:
    """Write a file at once; ``arrays`` are its datasets beside ``name``, errors as of ``writing``."""
    named = {NAME: as_names(names, path)} | {
        key: np.ascontiguousarray(array) for key, array in arrays.items()
    }
    columns = {key: Column(array.dtype, array.shape[1:]) for key, array in named.items()}
    with writing(path, len(names), columns, about) as put:
        put(0, **named)


_OPEN = OpenMaps()


class Rows:
    """The rows of a file, read where they lie; it is opened anew in every process that reads.

    Args:
        path: the file.

    Raises:
        RemeasureError: no such file, damaged, a dataset that is chunked, virtual, compressed or elsewhere, or
            datasets of different lengths.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = Path(path)
        self._places: dict[str, int | None] = {}
        self.columns: dict[str, Column] = {}
        self.maps: dict[str, np.ndarray] = {}
        self._pid = os.getpid()
        self.n = 0
        try:
            open_regular(self.path).close()  # HDF5 would wait for the other end of a pipe
            with h5py.File(self.path, "r") as store:
                self.about: dict[str, Any] = _about(store)
                lengths = {key: self._take(store, key) for key in store}
        except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
            raise self._refused(" ".join(str(error).split())[:300] or type(error).__name__) from None
        if len(set(lengths.values())) != 1:
            raise self._refused(f"its datasets have {lengths or 'no'} rows, expected one number")
        self.n = next(iter(lengths.values()))

    def __len__(self) -> int:
        return self.n

    def _refused(self, reason: str) -> RemeasureError:
        return RemeasureError(
            f"{self.path}: refused as a file of vectors: {reason}; delete it and run its target again"
        )

    def _take(self, store: Any, key: str) -> int:
        """Note where a dataset lies; return its rows."""
        import h5py

        if not isinstance(store.get(key, getlink=True), h5py.HardLink):
            raise ValueError(f"{key} is a link to somewhere else")
        found = store[key]
        if not isinstance(found, h5py.Dataset) or not found.shape:
            raise ValueError(f"{key} is no dataset with rows")
        made = found.id.get_create_plist()
        if made.get_layout() != h5py.h5d.CONTIGUOUS or made.get_external_count():
            raise ValueError(f"{key} is chunked, virtual or in another file, expected contiguous")
        if found.dtype.kind not in "fiubS" or found.dtype.hasobject or not found.dtype.isnative:
            raise ValueError(f"{key} has the type {found.dtype}")
        place, n_bytes = found.id.get_offset(), found.size * found.dtype.itemsize
        if n_bytes and (place is None or place + n_bytes > os.path.getsize(self.path)):
            raise ValueError(f"{key} was never written to its end")
        self._places[key] = place
        self.columns[key] = Column(found.dtype, found.shape[1:])
        return found.shape[0]

    def check(self, key: str, *row: int | None, kinds: str = "fiubS", n: int | None = None) -> None:
        """Check that a dataset is there and of a shape.

        Args:
            key: its name.
            row: shape of one row; null lets any length be.
            kinds: numpy's letters of the types that it may have.
            n: rows that there must be; null lets any number be.

        Raises:
            RemeasureError: what was found and what was expected.
        """
        column = self.columns.get(key)
        if column is None:
            raise self._refused(f"it has no {key}, only {', '.join(self.columns)}")
        found, wanted = (self.n, *column.row), (n, *row)
        fits = len(found) == len(wanted) and all(w in (None, f) for w, f in zip(wanted, found, strict=True))
        if not fits or column.dtype.kind not in kinds:
            shape = ", ".join("any" if length is None else str(length) for length in wanted)
            raise self._refused(
                f"{key} is {column.dtype} of shape {found}, expected a type of {kinds} and shape ({shape})"
            )

    def array(self, key: str) -> np.ndarray:
        """Return a dataset as it lies in the file, mapped and not checked; shape (n, …)."""
        if os.getpid() != self._pid:
            self.maps, self._pid = {}, os.getpid()
        found = self.maps.get(key)
        if found is None:
            if key not in self.columns:
                self.check(key)
            column, place = self.columns[key], self._places[key]
            shape = (self.n, *column.row)
            if 0 in shape or place is None:
                return np.empty(shape, column.dtype)
            self.maps[key] = found = np.memmap(self.path, column.dtype, "r", place, shape)
        _OPEN.use(self, key)
        return found

    def blocks(self, key: str, rows: int = BLOCK_ROWS) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, rows) of a dataset in order, each finite; errors as of ``check_finite``."""
        whole = self.array(key)
        for start in range(0, self.n, rows):
            block = np.array(whole[start : start + rows])
            check_finite(block, key, self.path, start)
            yield start, block

    def read(self, key: str) -> np.ndarray:
        """Return a whole dataset in memory, all of it finite; errors as of ``check_finite``."""
        whole = np.array(self.array(key))
        check_finite(whole, key, self.path)
        return whole

    def take(self, key: str, rows: np.ndarray) -> np.ndarray:
        """Return some rows of a dataset in the order that is asked for, all finite.

        Raises:
            RemeasureError: there is no such row, or one is not finite.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and not (0 <= rows.min() and rows.max() < self.n):
            raise self._refused(f"row {int(rows.max())} was asked for, it has {self.n}")
        found = np.array(self.array(key)[rows])
        check_finite(found, key, self.path)
        return found

    def names(self) -> list[str]:
        """Return the names of the rows in order.

        Raises:
            RemeasureError: it has none, or they are no UTF-8.
        """
        self.check(NAME, kinds="S")
        try:
            return [name.decode() for name in self.array(NAME).tolist()]
        except UnicodeDecodeError:
            raise self._refused("a name in it is no UTF-8") from None


def _about(store: Any) -> dict[str, Any]:
    """Return what a file says about itself; nothing where it says nothing."""
    text = store.attrs.get(ABOUT, "{}")
    if not isinstance(text, str) or len(text) > _MAX_ABOUT_BYTES:
        raise ValueError("its attribute about is no text, or too long")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("its attribute about is no JSON object")
    return found
