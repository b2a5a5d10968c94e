"""Photographs one by one: of a benchmark by stem (folder or zip store), of a large set by row of a shard."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np

from remeasure import image_tree
from remeasure.errors import RemeasureError
from remeasure.files import open_regular

_N_TOLD = 3


class Photos:
    """Photographs of a benchmark, ``<stem>.jpg`` each; reading is safe from several threads.

    Use it in a ``with`` block, or close it. Nothing is unpacked to the disk, and links out of the folder
    are not followed.

    Args:
        source: the folder or zip store.

    Raises:
        RemeasureError: it cannot be read.
    """

    def __init__(self, source: Path) -> None:
        self.source = Path(source)
        self._opened = ExitStack()
        self._tree = self._opened.enter_context(image_tree.open_tree(self.source))
        with ExitStack() as undo:
            undo.callback(self._opened.close)
            listing = self._tree.listing()
            undo.pop_all()
        self._paths = frozenset(listing.paths)
        self._refused = {one.path: one.problem for one in listing.refused}

    def __enter__(self) -> "Photos":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; nothing can be read any more."""
        self._opened.close()

    def read(self, stem: str) -> bytes:
        """Return the bytes of a photograph.

        Raises:
            RemeasureError: there is none of that name, or it cannot be read.
        """
        path = f"{stem}.jpg"
        if path not in self._paths:
            why = self._refused.get(path, "is missing")
            raise RemeasureError(
                f"{self.source}: {image_tree.printable(path)} {why}; put the photographs of the benchmark "
                "there, all in one folder"
            )
        try:
            return self._tree.read(path)
        except RemeasureError as error:
            raise RemeasureError(
                f"{self.source}: {image_tree.printable(path)} {error}; copy it again"
            ) from None

    def count_missing(self, stems: Iterable[str]) -> int:
        """Return how many of some stems have no photograph."""
        return sum(f"{stem}.jpg" not in self._paths for stem in stems)

    def check(self, stems: Iterable[str]) -> None:
        """Check that there is a photograph for every stem, without reading any.

        Raises:
            RemeasureError: says how many are missing and names the first.
        """
        missing = [stem for stem in stems if f"{stem}.jpg" not in self._paths]
        if missing:
            told = ", ".join(image_tree.printable(f"{stem}.jpg") for stem in missing[:_N_TOLD])
            more = ", …" if len(missing) > _N_TOLD else ""
            raise RemeasureError(
                f"{self.source}: {len(missing)} photographs are missing ({told}{more}), {len(self._paths)} "
                "are there; put the photographs of the benchmark there, all in one folder"
            )


def open_photos(source: Path) -> Photos:
    """Open the photographs of a benchmark; see ``Photos``."""
    return Photos(source)


COLUMNS = ("name", "archive", "member", "offset", "size", "sha1", "landmark_id")
"""Columns of the index of a shard; its rows stand in the canonical order of the piece."""
_TEXTS, _MAY_BE_NULL = ("name", "member", "sha1"), "landmark_id"


class ShardReader:
    """Photographs of a shard by row; safe from several threads and after a fork.

    Args:
        shard: the tar file.
        index: the Parquet file beside it.

    Raises:
        RemeasureError: one of them is missing or damaged, or they do not belong together.
    """

    def __init__(self, shard: Path, index: Path) -> None:
        self.shard, self.index = Path(shard), Path(index)
        table = read_index(self.index)
        self.names: tuple[str, ...] = tuple(table["name"])
        self.members: tuple[str, ...] = tuple(table["member"])
        self.archives: tuple[int, ...] = tuple(table["archive"])
        self.sha1: tuple[str, ...] = tuple(table["sha1"])
        self._offsets = np.array(table["offset"], dtype=np.int64)
        self._sizes = np.array(table["size"], dtype=np.int64)
        known = [id is not None for id in table["landmark_id"]]
        if any(known) and not all(known):
            raise self._broken(self.index, "has classes for some rows only")
        self.landmark_id: np.ndarray | None = (
            np.array(table["landmark_id"], dtype=np.int32) if known and all(known) else None
        )
        """Class of every row, int32; null for photographs without classes."""
        self._file: tuple[int, int] | None = None
        self._check_places()

    def _check_places(self) -> None:
        try:
            with open_regular(self.shard) as stream:
                size = os.fstat(stream.fileno()).st_size
        except OSError as error:
            raise RemeasureError(
                f"{self.shard}: cannot be read ({error.strerror}); delete its index and rerun"
            ) from None
        if len(self) and (self._offsets.min() < 0 or self._sizes.min() < 0):
            raise self._broken(self.index, "has a place below 0")
        if (self._sizes > size - self._offsets).any():
            raise self._broken(self.shard, f"has {size} bytes, its index goes further")

    def __len__(self) -> int:
        return len(self.names)

    def read(self, row: int) -> bytes:
        """Return the bytes of a photograph, compared with the hash in the index.

        Raises:
            RemeasureError: they are not those that were streamed.
        """
        data = os.pread(self._descriptor(), int(self._sizes[row]), int(self._offsets[row]))
        if hashlib.sha1(data, usedforsecurity=False).hexdigest() != self.sha1[row]:
            raise self._broken(self.shard, f"row {row} ({self.names[row]}) is not what its index says")
        return data

    def _descriptor(self) -> int:
        """Return an open file of this process: one that was opened before a fork is not used after it."""
        if self._file is None or self._file[0] != os.getpid():
            self._file = (os.getpid(), os.open(self.shard, os.O_RDONLY))
        return self._file[1]

    def close(self) -> None:
        """Close the shard; a later read opens it again."""
        if self._file is not None and self._file[0] == os.getpid():
            os.close(self._file[1])
        self._file = None

    def __enter__(self) -> "ShardReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @staticmethod
    def _broken(path: Path, what: str) -> RemeasureError:
        return RemeasureError(f"{path}: {what}; delete the shard and its index, then rerun")


def read_index(index: Path, columns: Sequence[str] = COLUMNS) -> dict[str, list]:
    """Read columns of the index of a shard.

    Raises:
        RemeasureError: it is missing, damaged or no index.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open_regular(index) as stream:
            table = parquet.read_table(stream, columns=list(columns), use_threads=False)
    except OSError as error:
        raise RemeasureError(
            f"{index}: cannot be read ({error.strerror or error}); delete it with its shard, then rerun"
        ) from None
    except pa.ArrowException as error:
        raise RemeasureError(
            f"{index}: no index of a shard ({str(error).splitlines()[0]}); delete it with its shard, then "
            "rerun"
        ) from None
    lacking = [name for name in columns if name not in table.column_names]
    if lacking:
        raise RemeasureError(
            f"{index}: lacks column {lacking[0]}; delete it with its shard, then rerun what makes it"
        )
    for name in columns:
        kind = str(table.schema.field(name).type)
        wanted = ("string",) if name in _TEXTS else ("int32",) if name == _MAY_BE_NULL else ("int32", "int64")
        if kind not in wanted or (table[name].null_count and name != _MAY_BE_NULL):
            raise RemeasureError(
                f"{index}: column {name} is {kind} with {table[name].null_count} nulls, expected "
                f"{' or '.join(wanted)}; delete it with its shard, then rerun"
            )
    return table.to_pydict()
