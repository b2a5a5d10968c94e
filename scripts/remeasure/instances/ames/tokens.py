"""Tokens of photographs: what a reranker keeps of local descriptors, made once and stored for all its pairs.

A file has a row for every photograph: ``tok`` [n, T, width], float16 (the reranker rounds tokens of the
gallery to that anyway; those of queries stay float32), ``n_valid``, ``row`` in the piece and ``name``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.ames.layouts import GIVEN, Block, Locals
from remeasure.instances.ames.model import Ames
from remeasure.instances.vectors_file import NAME, Column, Rows, as_names, writing

PHOTOS_AT_ONCE = 64


def remapped(model: Ames, block: Block, gallery: bool) -> np.ndarray:
    """Map the descriptors of some photographs to tokens, [n, T, width] float32; padding is zero."""
    torch = torch_module.load()
    with torch.inference_mode():
        made = model.remap(torch.from_numpy(block.descriptors).to(model.device), gallery).cpu().numpy()
    made[np.arange(made.shape[1]) >= block.n_valid[:, None]] = 0
    return made


def write(path: Path, opened: Locals, model: Ames, gallery: bool, about: dict[str, Any]) -> int:
    """Map the descriptors of a piece and write its tokens.

    Args:
        path: the file.
        opened: the descriptors.
        model: the reranker, on one device.
        gallery: false for queries.
        about: what the file says about itself, beside the number of tokens.

    Returns:
        How many of its photographs have no descriptor.

    Raises:
        RemeasureError: as of ``Locals.blocks``; a token that float16 cannot hold.
    """
    dtype = np.float16 if gallery and not model.binarises else np.float32
    names, rows = as_names(opened.names(), path), opened.rows()
    columns = {
        NAME: Column(names.dtype),
        "tok": Column(dtype, (opened.n, model.shape.width)),
        "n_valid": Column(np.uint16),
        "row": Column(np.int64),
    }
    n_empty = 0
    with writing(path, opened.n_photos, columns, about | {"n": opened.n}) as put:
        for start, block in opened.blocks(PHOTOS_AT_ONCE):
            stop = start + len(block.n_valid)
            put(
                start,
                name=names[start:stop],
                tok=remapped(model, block, gallery),
                n_valid=block.n_valid.astype(np.uint16),
                row=rows[start:stop],
            )
            n_empty += int((block.n_valid == 0).sum())
    return n_empty


class Tokens:
    """The tokens of a piece, read where they lie.

    Raises:
        RemeasureError: no such file, or another form.
    """

    def __init__(self, path: Path, width: int) -> None:
        self.path = Path(path)
        self.rows = Rows(self.path)
        self.rows.check("tok", None, width, kinds="f")
        self.rows.check("n_valid", kinds="u")
        self.rows.check("row", kinds="i")
        self.about = self.rows.about
        self.n_valid = self.rows.read("n_valid").astype(np.int64)
        self.row = self.rows.read("row").astype(np.int64)
        self.n = self.rows.columns["tok"].row[0]
        if len(self.row) and (self.row[0] < 0 or (np.diff(self.row) <= 0).any()):
            raise self.refused("row: does not ascend")
        if len(self.n_valid) and self.n_valid.max() > self.n:
            raise self.refused(
                f"n_valid: {self.n_valid.max()}, and there are {self.n} tokens of a photograph"
            )

    def refused(self, reason: str) -> RemeasureError:
        """Return the error that says what is wrong with the file."""
        return RemeasureError(f"{self.path}: {reason}; delete it and rerun the target that writes it")

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse rows that are other photographs than the benchmark's; rows of published files have no names.

        Raises:
            RemeasureError: a row beyond the last name, or another name.
        """
        if len(self.row) and self.row[-1] >= len(names):
            raise self.refused(f"row {self.row[-1]}, and there are {len(names)} photographs in labels.json")
        if self.about.get("extractor") == GIVEN:
            return
        for row, name in zip(self.row.tolist(), self.rows.names(), strict=True):
            if name != names[row]:
                raise self.refused(f"row {row} is {name!r}, labels.json has {names[row]!r} there")

    def take(self, places: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first n tokens of photographs by their place in the file, and how many are no padding.

        Returns:
            [m, n, width] float32, zero in padding; [m] int64.

        Raises:
            RemeasureError: a photograph without tokens, or a token that is zero or not finite: nothing was
                stored there.
        """
        n = min(n, self.n)
        found = np.array(self.rows.array("tok")[places][:, :n], dtype=np.float32)
        n_valid = np.minimum(self.n_valid[places], n)
        valid = np.arange(n) < n_valid[:, None]
        found[~valid] = 0
        sizes = np.abs(found).sum(axis=-1)
        wrong = (valid & ~((sizes > 0) & np.isfinite(sizes))).any(axis=1) | (n_valid == 0)
        if wrong.any():
            place = int(places[int(np.argmax(wrong))])
            what = "a token that is zero or not finite" if self.n_valid[place] else "no local descriptor"
            raise self.refused(
                f"photograph {self.rows.names()[place]!r} (row {self.row[place]}) has {what}, and is to be "
                "reranked"
            )
        return found, n_valid
