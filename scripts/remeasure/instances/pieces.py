"""The photographs of a piece in order: of a benchmark by their stems, of a large set by rows of its shard."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.instances import crops, labels
from remeasure.instances.photo_store import ShardReader, open_photos
from remeasure.instances.settings import PIECES

WHOLE = "1of1"
"""The piece that is the gallery of a benchmark."""
CROPPED = tuple(name for name in PIECES if name != "whole")
CROPS: dict[str, Callable[..., crops.Box]] = {"rounded": crops.pillow_box, "truncated": crops.array_box}
"""The two rules of boxes, by what they do to fractions: of the global branch, and of the local one."""


class Piece:
    """Photographs one after the other; reading is safe from several threads. Use it in a ``with`` block."""

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        read: Callable[[int], bytes],
        *,
        rows: np.ndarray | None = None,
        boxes: Sequence[Sequence[float]] | None = None,
        landmark_id: np.ndarray | None = None,
    ) -> None:
        self.name = name
        self.names = tuple(names)
        """What the rows of its files are called."""
        self.rows = np.arange(len(self.names), dtype=np.int64) if rows is None else rows
        """Row of the whole piece that each is; int64."""
        self.boxes = boxes
        """Box of every photograph, as the ground truth gives it; null where photographs are whole."""
        self.landmark_id = landmark_id
        """Class of every photograph, int32; null where there are no classes."""
        self._read = read
        self.opened = ExitStack()

    def __len__(self) -> int:
        return len(self.names)

    def __enter__(self) -> "Piece":
        return self

    def __exit__(self, *_) -> None:
        self.opened.close()

    def read(self, i: int) -> bytes:
        """Return the bytes of a photograph; errors as of the store that it is in."""
        return self._read(i)

    def box(self, i: int, size: tuple[int, int], rule: str) -> crops.Box:
        """Return what of a photograph is described: its box by a rule of ``CROPS``, or all of it."""
        if self.boxes is None:
            return (0, 0, *size)
        return CROPS[rule](self.boxes[i], size, self.names[i])


def open_benchmark(name: str, pictures: Path, ground_truth: Path) -> Piece:
    """Open a piece of a benchmark: its gallery (``1of1``), or its queries in one of the forms of ``PIECES``.

    Raises:
        RemeasureError: there is no such piece, or a photograph is missing.
    """
    known = labels.read(ground_truth)
    if name not in (WHOLE, *PIECES):
        raise RemeasureError(
            f"--piece {name!r}: a benchmark has the pieces {', '.join((WHOLE, *PIECES))}; name one of them"
        )
    stems = known.imlist if name == WHOLE else known.qimlist
    photos = open_photos(pictures)
    with ExitStack() as undo:
        undo.callback(photos.close)
        photos.check(stems)
        undo.pop_all()
    boxes = [truth.bbx for truth in known.gnd] if name in CROPPED else None
    piece = Piece(name, stems, lambda i: photos.read(stems[i]), boxes=boxes)
    piece.opened.callback(photos.close)
    return piece


def open_shard(name: str, shard: Path, index: Path, wanted: Path | None = None) -> Piece:
    """Open a piece of a large set.

    Args:
        name: of the piece.
        shard: its tar file.
        index: where its photographs lie in it.
        wanted: a table of the rows that are wanted of every piece; null takes all.

    Raises:
        RemeasureError: files that do not belong together, or a row is wanted that the piece has not.
    """
    reader = ShardReader(shard, index)
    rows = np.arange(len(reader), dtype=np.int64)
    if wanted is not None:
        rows = read_wanted(wanted, name)
        if len(rows) and not 0 <= rows[0] <= rows[-1] < len(reader):
            raise RemeasureError(
                f"{wanted}: wants row {rows[-1]} of piece {name}, which has {len(reader)}; delete it and run "
                "again"
            )
    piece = Piece(
        name,
        [reader.names[row] for row in rows],
        lambda i: reader.read(int(rows[i])),
        rows=rows,
        landmark_id=None if reader.landmark_id is None else reader.landmark_id[rows],
    )
    piece.opened.callback(reader.close)
    return piece


def read_wanted(path: Path, piece: str) -> np.ndarray:
    """Return the rows of a piece that are wanted, int64, ascending, each once.

    Raises:
        RemeasureError: no such table.
    """
    import pyarrow as pa
    from pyarrow import compute, parquet

    try:
        with open_regular(path) as stream:
            table = parquet.read_table(stream, columns=["piece", "row"], use_threads=False)
        if table["row"].type != pa.int64() or table["row"].null_count:
            raise ValueError(f"row is {table['row'].type} with {table['row'].null_count} nulls")
        found = table.filter(compute.equal(table["piece"], piece))["row"].to_numpy()
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RemeasureError(
            f"{path}: no table of wanted photographs ({reason}); delete it and rerun"
        ) from None
    return np.unique(np.asarray(found, dtype=np.int64))
