"""What must hold of stored backbone vectors before anything is made of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.instances.vectors_file import Rows

NORM_TOLERANCE = 2e-3
"""Vectors are of length 1 as far as float16 stores them (landmarks card, section 1.4)."""


def check_rows(rows: Rows, width: int) -> None:
    """Check that a file holds vectors of a backbone: finite, of length 1, zero where nothing was decoded.

    Raises:
        RemeasureError: names the file and the first row.
    """
    rows.check("cls", None, width, kinds="f")
    rows.check("status", kinds="u")
    status = rows.read("status")
    for start, block in rows.blocks("cls"):
        length = np.linalg.norm(block.astype(np.float32), axis=2)
        wanted = np.where(status[start : start + len(block)] == 2, 0.0, 1.0)[:, None]
        wrong = (np.abs(length - wanted) > NORM_TOLERANCE).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise RemeasureError(
                f"{rows.path}: cls of row {start + row} has the lengths {np.round(length[row], 4).tolist()} "
                f"with status {status[start + row]}, expected {wanted[row, 0]:.0f}; delete it and run its "
                "target again"
            )


def check_alike(files: Sequence[Rows]) -> None:
    """Check that vectors may be compared: the same backbone, weights and settings made them.

    Raises:
        RemeasureError: names the first two files that differ.
    """
    for other in files[1:]:
        first, here = (made_by(found) for found in (files[0], other))
        if first != here:
            raise RemeasureError(
                f"{other.path}: made by extractor {here[:60]}, but {files[0].path} by {first[:60]}; vectors "
                "of different extractors are never mixed: give or make all of them in one way"
            )


def made_by(rows: Rows) -> str:
    """Return what a file says about what made its vectors: equal where they may be compared."""
    return str(rows.about.get("extractor", "somebody who does not say"))


def check_names(rows: Rows, names: tuple[str, ...], labels: Path) -> None:
    """Check that rows are in the order of the labels.

    Raises:
        RemeasureError: names the first row that differs.
    """
    here = rows.names()
    if len(here) != len(names):
        raise RemeasureError(
            f"{rows.path}: {len(here)} rows, but {labels} names {len(names)} photographs; delete it and rerun"
        )
    for row, (found, wanted) in enumerate(zip(here, names, strict=True)):
        if found != wanted:
            raise RemeasureError(
                f"{rows.path}: row {row} is {found!r}, but {labels} has {wanted!r} there; delete it and rerun"
            )


def check_audit(path: Path) -> None:
    """Check that the audit of a benchmark passed.

    Raises:
        RemeasureError: it did not, or the file is none.
    """
    if not jsonl.read_json(path).get("ok"):
        raise RemeasureError(f"{path}: the audit did not pass; look at its checks, correct and rerun")
