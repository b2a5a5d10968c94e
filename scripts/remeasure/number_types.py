"""The number types of weight files, by the names that safetensors gives them."""

from typing import NamedTuple

import ml_dtypes
import numpy as np

NUMBERS: dict[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
FLOATS = ("F64", "F32", "F16", "BF16")


class Spec(NamedTuple):
    """Type and shape of a tensor."""

    kind: str
    """One of ``NUMBERS``."""
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        """Numbers in one row of the first axis."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def n_bytes(self) -> int:
        """Bytes of all its numbers."""
        return int(np.prod(self.shape, dtype=np.int64)) * NUMBERS[self.kind].itemsize


def n_not_finite(values: np.ndarray) -> int:
    """Return how many numbers are infinite or none at all; whole numbers never are.

    Types of 16 bits are told by their exponent: that is several times faster than asking each number.
    """
    if values.dtype == NUMBERS["F16"]:
        return int(np.count_nonzero((values.view(np.uint16) & 0x7C00) == 0x7C00))
    if values.dtype == NUMBERS["BF16"]:
        return int(np.count_nonzero((values.view(np.uint16) & 0x7F80) == 0x7F80))
    if values.dtype.kind != "f":
        return 0
    return int(values.size - np.count_nonzero(np.isfinite(values)))
