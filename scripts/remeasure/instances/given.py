"""Vectors that somebody has, taken over as ours are kept: HDF5, NumPy's archive, or a torch file."""

import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from remeasure import torch_file
from remeasure.errors import RemeasureError
from remeasure.files import open_regular, sha256_file
from remeasure.images import MAX_RATIO, MAX_UNPACKED_BYTES
from remeasure.instances import backbones, labels, vectors_file
from remeasure.instances.backbones import Told
from remeasure.instances.decode import OK, STATUSES, UNDECODABLE
from remeasure.instances.describing import LANDMARK, SIZE, STATUS, unit
from remeasure.instances.pieces import WHOLE

VECTORS = ("cls", "features", "feats", "vectors", "descriptors")
"""What the vectors may be called; the only array of floating-point numbers needs no name."""
NAMES = ("name", "image_id", "names")
# What a damaged or hostile archive raises inside the reader of zips, and an array in the one of headers.
_DAMAGE = (
    OSError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    TypeError,
    RuntimeError,
    OverflowError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
)


def take_over(
    told: Told, path: Path, ground_truth: Path | None, piece: str, out: Path
) -> tuple[dict[str, int], dict[str, Any]]:
    """Write given vectors as ``extract_cls`` writes its own.

    Args:
        told: the backbone that they are said to come from.
        path: the file: vectors of shape (n, scales, dim), or (n, dim) of one scale or of the mean of all;
            names beside them, or in the order of the labels.
        ground_truth: of a benchmark: its labels, whose order the rows have.
        piece: which piece they are of.
        out: the file to write.

    Returns:
        Photographs by status, and what the file says of what made it. A row of zeros is a photograph that
        could not be decoded.

    Raises:
        RemeasureError: another shape, not finite, no names, or names in another order than the labels'.
    """
    arrays = read_arrays(path)
    vectors = _vectors(arrays, told, path)
    names = _names(arrays, ground_truth, piece, len(vectors), path)
    vectors_file.check_finite(vectors, backbones.CLS, path)
    empty = ~vectors.any(axis=(1, 2))
    made = np.zeros(vectors.shape, np.float16 if told.precision == "float16" else np.float32)
    try:
        made[~empty] = unit(vectors[~empty])
    except ValueError as error:
        raise RemeasureError(f"{path}: {error} at one scale and not at all; fetch it again") from None
    status = np.where(empty, UNDECODABLE, OK).astype(np.uint8)
    others = {SIZE: np.zeros((len(made), 2), np.int32), STATUS: status}
    if LANDMARK in arrays:
        others[LANDMARK] = _landmarks(arrays[LANDMARK], len(made), path)
    about = {
        "settings": {"name": told.name, "backend": told.backend, "given": True},
        "given": sha256_file(path),
        "extractor": f"given as {told.name}",
        "piece": piece,
    }
    vectors_file.write(out, names, about=about, **{backbones.CLS: made}, **others)
    counts = np.bincount(status, minlength=len(STATUSES))
    return {word: int(n) for word, n in zip(STATUSES, counts, strict=True)}, about


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of a file; nothing in it is run.

    Raises:
        RemeasureError: another kind of file, or a damaged one.
    """
    kind = path.suffix.lower()
    if kind in (".h5", ".hdf5"):
        rows = vectors_file.Rows(path)
        return {key: np.array(rows.array(key)) for key in rows.columns}
    if kind in (".pt", ".pth", ".bin"):
        return torch_file.read(path)
    if kind != ".npz":
        raise RemeasureError(f"{path}: vectors are read from .h5, .npz and .pt; convert it")
    try:
        return _of_npz(path)
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RemeasureError(
            f"{path}: refused as an archive of arrays: {reason[:200]}; fetch it again"
        ) from None


def _of_npz(path: Path) -> dict[str, np.ndarray]:
    """Read NumPy's archive: a zip of arrays without objects; errors are of ``_DAMAGE``."""
    found = {}
    with open_regular(path) as stream, zipfile.ZipFile(stream) as store:
        for member in store.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise ValueError(f"{name[:80]!r} is no array")
            if member.file_size > MAX_RATIO * member.compress_size + MAX_UNPACKED_BYTES:
                raise ValueError(f"{name[:80]!r} unpacks to {member.file_size} bytes: a bomb")
            with store.open(member) as packed:
                found[name] = np.lib.format.read_array(packed, allow_pickle=False)
    return found


def _vectors(arrays: Mapping[str, np.ndarray], told: Told, path: Path) -> np.ndarray:
    """Return the vectors; shape (n, scales, dim)."""
    floats = [key for key, array in arrays.items() if array.dtype.kind == "f" and array.ndim in (2, 3)]
    named = [key for key in VECTORS if key in floats] or floats
    if len(named) != 1:
        raise RemeasureError(
            f"{path}: holds {', '.join(arrays) or 'no arrays'}; expected vectors called {', '.join(VECTORS)}"
        )
    found = np.asarray(arrays[named[0]])
    found = found[:, None] if found.ndim == 2 else found
    if found.shape[1] not in (1, len(told.scales)) or found.shape[2] != told.dim:
        raise RemeasureError(
            f"{path}: {named[0]} has the shape {found.shape}, expected (n, 1 or {len(told.scales)}, "
            f"{told.dim}) for backbone {told.name}; correct its `dim` and `scales`, or give another file"
        )
    return found


def _names(
    arrays: Mapping[str, np.ndarray], ground_truth: Path | None, piece: str, n: int, path: Path
) -> list[str]:
    """Return the names of the rows, those of the labels where there are any."""
    key = next((key for key in NAMES if key in arrays), None)
    found = None if key is None else [_text(name) for name in np.asarray(arrays[key]).reshape(-1).tolist()]
    wanted = found
    if ground_truth is not None:
        known = labels.read(ground_truth)
        wanted = list(known.imlist if piece == WHOLE else known.qimlist)
    if wanted is None:
        raise RemeasureError(
            f"{path}: holds no names ({', '.join(NAMES)}); add them in the order of its rows"
        )
    if len(wanted) != n:
        raise RemeasureError(f"{path}: {n} vectors, {len(wanted)} names; give the vectors of this piece")
    for row, (there, here) in enumerate(zip(found or wanted, wanted, strict=True)):
        if there != here:
            raise RemeasureError(
                f"{path}: row {row} is of {there!r}, the labels have {here!r}; order its rows like them"
            )
    return wanted


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _landmarks(found: np.ndarray, n: int, path: Path) -> np.ndarray:
    if found.shape != (n,) or found.dtype.kind not in "iu" or (n and found.max() >= 1 << 31):
        raise RemeasureError(f"{path}: {LANDMARK} is {found.dtype} of shape {found.shape}, expected {n} ids")
    return found.astype(np.int32)
