"""The file of a head, two linear layers with GELU between them and batch normalisation; what goes into it.

Tensors have the names that torch gives the layers of a ``Sequential``: ``0`` and ``2`` are linear (the second
without bias), ``1`` is GELU, which has none, ``3`` is batch normalisation.

Source:
    Landmarks card, section 1.5.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from remeasure import safetensors_file, torch_file
from remeasure.errors import RemeasureError
from remeasure.number_types import FLOATS, Spec

TORCH_SUFFIXES = (".pt", ".pth", ".bin")
COUNTER = "num_batches_tracked"
"""Torch stores beside a batch normalisation how many batches it has seen; nothing is made of it."""


class Opened(Protocol):
    """A weight file of either form."""

    path: Path
    specs: dict[str, Spec]

    def read(self, name: str) -> np.ndarray:
        """Return a tensor."""
        ...


def shapes(width: int, hidden: int, dim: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of a head, in the order of its file.

    Args:
        width: numbers of a backbone vector.
        hidden: numbers between the two layers.
        dim: numbers of a descriptor.
    """
    return {
        "0.weight": (hidden, width),
        "0.bias": (hidden,),
        "2.weight": (dim, hidden),
        "3.weight": (dim,),
        "3.bias": (dim,),
        "3.running_mean": (dim,),
        "3.running_var": (dim,),
    }


def n_parameters(width: int, hidden: int, dim: int) -> int:
    """Return how many numbers of a head are trained; running means and variances are only counted along."""
    trained = [shape for name, shape in shapes(width, hidden, dim).items() if "running" not in name]
    return sum(int(np.prod(shape)) for shape in trained)


def write(path: Path, found: Mapping[str, np.ndarray]) -> None:
    """Write the tensors of a head as a safetensors file, whole or not at all."""
    specs = {name: Spec("F32", value.shape) for name, value in found.items()}
    safetensors_file.write(path, specs, lambda name: [found[name]])


def read(path: Path, width: int, hidden: int, dim: int) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read a head from a safetensors file or a torch file, without running what a torch file says.

    Names may have one prefix in common (``module.0.weight``).

    Args:
        path: the file.
        width: numbers of a backbone vector.
        hidden: numbers between the two layers.
        dim: numbers of a descriptor.

    Returns:
        Tensors by name, float32, and the names of further tensors, which are left out (a class matrix).

    Raises:
        RemeasureError: not a weight file, a tensor is missing, of another shape, no float, not finite, or a
            variance is negative.
    """
    opened = _open(path)
    wanted = shapes(width, hidden, dim)
    prefix = _prefix(opened)
    found = {name: _tensor(opened, prefix + name, shape) for name, shape in wanted.items()}
    if (found["3.running_var"] < 0).any():
        raise RemeasureError(
            f"{path}: {prefix}3.running_var has a negative variance, expected none; fetch the file again"
        )
    ours = {prefix + name for name in wanted}
    others = [name for name in opened.specs if name not in ours and not name.endswith(COUNTER)]
    return found, sorted(others)


def _open(path: Path) -> Opened:
    if path.suffix == ".safetensors":
        return safetensors_file.SafetensorsFile(path)
    if path.suffix in TORCH_SUFFIXES:
        return torch_file.TorchFile(path)
    raise RemeasureError(
        f"{path}: a head ends in .safetensors or {', '.join(TORCH_SUFFIXES)}; rename it, or give another file"
    )


def _prefix(opened: Opened) -> str:
    """Return what stands before ``0.weight`` in the names of a file."""
    found = [name.removesuffix("0.weight") for name in opened.specs if name.endswith("0.weight")]
    for prefix in sorted(found, key=len):
        if (not prefix or prefix.endswith(".")) and f"{prefix}3.running_var" in opened.specs:
            return prefix
    raise RemeasureError(
        f"{opened.path}: no head: it has the tensors {', '.join(list(opened.specs)[:8]) or 'none'}; expected "
        "0.weight, 0.bias, 2.weight, 3.weight, 3.bias, 3.running_mean, 3.running_var; give such a file"
    )


def _tensor(opened: Opened, name: str, shape: tuple[int, ...]) -> np.ndarray:
    spec = opened.specs.get(name)
    if spec is None or spec.shape != shape or spec.kind not in FLOATS:
        said = "is missing" if spec is None else f"is {spec.kind} of shape {list(spec.shape)}"
        raise RemeasureError(
            f"{opened.path}: tensor {name} {said}, expected floats of shape {list(shape)}; give a head of "
            "these sizes, or set hidden, dim and backbone of the head as its file has them"
        )
    found = opened.read(name).astype(np.float32)
    if not np.isfinite(found).all():
        n = found.size - int(np.isfinite(found).sum())
        raise RemeasureError(
            f"{opened.path}: tensor {name} has {n} numbers that are infinite or none; fetch the file again"
        )
    return np.ascontiguousarray(found)


def mean_of_scales(vectors: np.ndarray) -> np.ndarray:
    """Return the mean of a photograph's vectors over scales, of length 1.

    Args:
        vectors: float16 or float32 [n, scales, width], each of length 1, or 0 where there is no picture.

    Returns:
        float32 [n, width]; rows of zeros stay. The length is taken in float32: in float16 it underflows.
    """
    mean = vectors.astype(np.float32).mean(axis=1)
    length = np.linalg.norm(mean, axis=1, keepdims=True)
    return np.divide(mean, length, out=np.zeros_like(mean), where=length > 0)
