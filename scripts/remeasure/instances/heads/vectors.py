"""Backbone vectors of training photographs: several files as one, with what the plan says of each."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.heads.sampling import Photos
from remeasure.instances.vector_checks import check_alike, check_rows
from remeasure.instances.vectors_file import Rows

if TYPE_CHECKING:
    from torch import Tensor

_ON_DEVICE = 0.5
"""Share of a GPU's free memory that vectors may take; the logits of a batch need the rest."""
_PLAN = ("image_id", "landmark_id", "leak")


class TrainingVectors:
    """The vectors of all pieces of a training set, one after the other.

    Args:
        pieces: their files, in order.
        width: numbers of a vector.

    Raises:
        RemeasureError: a file that is none, or pieces of different backbones.
    """

    def __init__(self, pieces: Sequence[Path], width: int) -> None:
        self._files = [Rows(path) for path in pieces]
        for rows in self._files:
            check_rows(rows, width)
            rows.check("landmark_id", kinds="i")
        check_alike(self._files)
        self.files = tuple(self._files)
        self._starts = np.cumsum([0, *map(len, self._files)])
        n_scales = {rows.columns["cls"].row[0] for rows in self._files}
        if len(n_scales) != 1:
            raise RemeasureError(
                f"{pieces[0]} and others: {sorted(n_scales)} scales, expected one number; make them anew"
            )
        self.n_scales = n_scales.pop()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def photos(self, plan: Path) -> tuple[Photos, int]:
        """Return what the plan says of every photograph, and how many of the plan have no vector.

        Raises:
            RemeasureError: a photograph that the plan does not know or knows under another class, or one that
                is there twice.
        """
        leaks, n_planned = _read_plan(plan), 0
        n_planned = len(leaks)
        landmark, leak, seen = np.empty(len(self), np.int64), np.empty(len(self), bool), set[str]()
        for rows, start in zip(self._files, self._starts, strict=False):
            ids = rows.read("landmark_id")
            for place, name in enumerate(rows.names()):
                image_id = Path(name).stem
                known = leaks.get(image_id)
                if known is None or known[0] != ids[place] or image_id in seen:
                    raise RemeasureError(_wrong(rows.path, place, image_id, int(ids[place]), known, plan))
                seen.add(image_id)
                landmark[start + place], leak[start + place] = known
        status = np.concatenate([rows.read("status") for rows in self._files])
        return Photos(landmark, leak, status), n_planned - len(seen)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return vectors, shape (n, scales, width), in the type of the files; rows in any order."""
        piece = np.searchsorted(self._starts, rows, side="right") - 1
        first = self._files[0].columns["cls"]
        found = np.empty((len(rows), *first.row), first.dtype)
        for number in np.unique(piece):
            here = piece == number
            found[here] = self._files[number].array("cls")[rows[here] - self._starts[number]]
        return found


def _read_plan(path: Path) -> dict[str, tuple[int, bool]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=list(_PLAN))
    except (OSError, pa.ArrowException) as error:
        raise RemeasureError(f"{path}: no plan of photographs ({error}); delete it and rerun") from None
    missing = [name for name in _PLAN if name not in table.column_names]
    if missing:
        raise RemeasureError(f"{path}: has no column {missing[0]}; delete it and rerun plan_photos")
    ids, landmarks, leaks = (table.column(name).to_pylist() for name in _PLAN)
    return dict(zip(ids, zip(landmarks, leaks, strict=True), strict=True))


def _wrong(path: Path, row: int, image_id: str, landmark: int, known: tuple | None, plan: Path) -> str:
    if known is None:
        said = "is not in the plan"
    elif known[0] != landmark:
        said = f"is of class {landmark}, in the plan of {known[0]}"
    else:
        said = "is there twice"
    return f"{path}: photograph {image_id} of row {row} {said} ({plan}); delete both and rerun"


class OnDevice:
    """Vectors as a training takes them: batches on the device, all of them kept there where they fit.

    Args:
        vectors: what there is.
        device: torch's name of it.
    """

    def __init__(self, vectors: TrainingVectors, device: str) -> None:
        self._torch = torch_module.load()
        self._vectors, self._device = vectors, device
        self.n_scales = vectors.n_scales
        self._all: Tensor | None = None
        if device != "cpu" and self._fits():
            self._all = self._moved()

    def _fits(self) -> bool:
        n_bytes = sum(rows.array("cls").nbytes for rows in self._vectors.files)
        return n_bytes <= _ON_DEVICE * self._torch.cuda.mem_get_info()[0]

    def _moved(self) -> "Tensor":
        """Return all vectors on the device, in the type of their files, moved block by block."""
        files, torch = self._vectors.files, self._torch
        kind = torch.from_numpy(files[0].array("cls")[:0].copy()).dtype
        shape = (len(self._vectors), *files[0].columns["cls"].row)
        found, begin = torch.empty(shape, dtype=kind, device=self._device), 0
        for rows in files:
            for _, block in rows.blocks("cls"):
                found[begin : begin + len(block)] = torch.from_numpy(block)
                begin += len(block)
        return found

    def batch(self, rows: np.ndarray, scales: np.ndarray | None) -> "Tensor":
        """Return float32 [n, width] of length 1: the mean over scales, or of each row the scale drawn."""
        torch = self._torch
        if self._all is None:
            found = torch.from_numpy(self._vectors.take(rows)).to(self._device).float()
        else:
            found = self._all[torch.from_numpy(rows).to(self._device)].float()
        if scales is None:
            found = found.mean(dim=1)
        else:
            place = torch.from_numpy(scales).to(self._device)
            found = found[torch.arange(len(rows), device=self._device), place]
        return torch.nn.functional.normalize(found, dim=1)
