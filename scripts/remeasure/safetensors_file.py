"""Files in the safetensors format, read and written a few rows at a time: shards need not fit in memory.

The format: 8 bytes length of the header, the header (JSON: name to type, shape, place), the numbers without
gaps.
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path
from remeasure.number_types import NUMBERS, Spec

# What the format's own library allows.
_MAX_HEADER_BYTES = 100_000_000


class SafetensorsFile:
    """The tensors of a safetensors file; their numbers are read when they are asked for.

    Raises:
        RemeasureError: missing, cut off, or a header that does not describe the rest of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.specs: dict[str, Spec] = {}
        self._starts: dict[str, int] = {}
        try:
            with open(self.path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                (length,) = struct.unpack("<Q", stream.read(8))
                if length > min(_MAX_HEADER_BYTES, size - 8):
                    raise ValueError(f"a header of {length} bytes in a file of {size}")
                self._take(json.loads(stream.read(length)), 8 + length, size)
        except OSError as error:
            raise RemeasureError(f"{path}: cannot be read ({error.strerror}); fetch it again") from None
        except (struct.error, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RemeasureError(
                f"{path}: refused as a safetensors file: {reason[:300]}; delete it and fetch it again"
            ) from None

    def _take(self, header: dict[str, Any], begin: int, size: int) -> None:
        """Check what a header says against the size of the file."""
        found = {name: _entry(name, value) for name, value in header.items() if name != "__metadata__"}
        place = 0
        for name, (spec, start, stop) in sorted(found.items(), key=lambda item: item[1][1:]):
            if start != place or stop - start != spec.n_bytes:
                raise ValueError(f"tensor {name[:80]!r} does not lie where its header says")
            place = stop
            self._starts[name] = begin + start
        if begin + place != size:
            raise ValueError(f"{size} bytes, its header describes {begin + place}")
        self.specs = {name: spec for name, (spec, _, _) in found.items()}

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return a tensor, or the rows ``start`` to ``stop`` of its first axis.

        Raises:
            RemeasureError: the file was cut off since it was opened.
        """
        spec = self.specs[name]
        dtype, shape, place = NUMBERS[spec.kind], spec.shape, self._starts[name]
        if shape:
            stop = shape[0] if stop is None else min(stop, shape[0])
            shape = (max(0, stop - start), *shape[1:])
            place += start * spec.width * dtype.itemsize
        n_bytes = Spec(spec.kind, shape).n_bytes
        with open(self.path, "rb") as stream:
            stream.seek(place)
            data = stream.read(n_bytes)
        if len(data) != n_bytes:
            raise RemeasureError(f"{self.path}: tensor {name} is cut off; delete it and fetch it again")
        return np.frombuffer(data, dtype=dtype).reshape(shape)


def _entry(name: str, value: dict[str, Any]) -> tuple[Spec, int, int]:
    kind, shape, (start, stop) = value["dtype"], value["shape"], value["data_offsets"]
    if kind not in NUMBERS:
        raise ValueError(f"tensor {name[:80]!r} has the type {str(kind)[:20]!r}, which is not known")
    numbers = (*shape, start, stop)
    if len(shape) > 8 or not all(isinstance(n, int) and 0 <= n < 1 << 48 for n in numbers):
        raise ValueError(f"tensor {name[:80]!r} has a shape or a place that is none")
    return Spec(kind, tuple(shape)), start, stop


def write(
    path: Path, specs: dict[str, Spec], blocks: Callable[[str], Iterable[np.ndarray]]
) -> tuple[str, int]:
    """Write a file whole or not at all, tensor after tensor.

    Args:
        path: the file.
        specs: its tensors, in the order of the file.
        blocks: the numbers of a tensor by name, in pieces of its rows, in order.

    Returns:
        SHA-256 and size of the file.

    Raises:
        RemeasureError: the pieces of a tensor are not of the type or the size that was said.
    """
    digest, place, header = hashlib.sha256(), 0, {"__metadata__": {"format": "pt"}}
    for name, spec in specs.items():
        header[name] = {
            "dtype": spec.kind,
            "shape": list(spec.shape),
            "data_offsets": [place, place + spec.n_bytes],
        }
        place += spec.n_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic_path(path) as temporary:
        with open(temporary, "wb") as stream:
            for data in (struct.pack("<Q", len(text)), text, *()):
                digest.update(data)
                stream.write(data)
            for name, spec in specs.items():
                for data in _checked(name, spec, blocks(name)):
                    digest.update(data)
                    stream.write(data)
        return digest.hexdigest(), 8 + len(text) + place


def _checked(name: str, spec: Spec, blocks: Iterable[np.ndarray]) -> Iterator[memoryview]:
    n_bytes = 0
    for block in blocks:
        if block.dtype != NUMBERS[spec.kind]:
            raise RemeasureError(f"{name}: numbers of type {block.dtype} where {spec.kind} was said")
        data = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
        n_bytes += data.size
        yield memoryview(data)
    if n_bytes != spec.n_bytes:
        raise RemeasureError(f"{name}: {n_bytes} bytes where {spec.n_bytes} were said")
