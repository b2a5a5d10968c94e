"""The weights of a reranker: which tensors there are, their open form, and the published file.

Source:
    The names and shapes of the published module (github.com/pavelsuma/ames, October 2024); nothing else is
    loaded.
"""

from pathlib import Path

import msgspec
import numpy as np

from remeasure import safetensors_file
from remeasure.errors import RemeasureError
from remeasure.number_types import NUMBERS, Spec, n_not_finite
from remeasure.safetensors_file import SafetensorsFile
from remeasure.torch_file import TorchFile

_N_TOLD = 3
BINARISER = "remap_local.0.W"
"""Only rerankers of binary descriptors have it: the directions whose signs are the bits, [dim, width]."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of a reranker."""

    dim: int
    """Numbers of a local descriptor."""
    width: int
    """Numbers of a token."""
    heads: int
    layers: int
    ffn: int

    def tensors(self, binarises: bool = False) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors by name.

        Args:
            binarises: whether descriptors become signs before they are mapped; what maps them stands one
                further then.
        """
        width, first = self.width, int(binarises)
        found: dict[str, tuple[int, ...]] = {"mtc_token": (width,)}
        if binarises:
            found[BINARISER] = (self.dim, width)
        found |= {
            f"remap_local.{first}.weight": (width, width if binarises else self.dim),
            f"remap_local.{first}.bias": (width,),
            f"remap_local.{first + 1}.weight": (width,),
            f"remap_local.{first + 1}.bias": (width,),
        }
        for number in range(self.layers):
            layer = f"decoder.layers.{number}."
            for block in ("self_attn", "cross_attn"):
                found |= {
                    f"{layer}{block}.in_proj_weight": (3 * width, width),
                    f"{layer}{block}.in_proj_bias": (3 * width,),
                    f"{layer}{block}.out_proj.weight": (width, width),
                    f"{layer}{block}.out_proj.bias": (width,),
                }
            found |= {
                f"{layer}linear1.weight": (self.ffn, width),
                f"{layer}linear1.bias": (self.ffn,),
                f"{layer}linear2.weight": (width, self.ffn),
                f"{layer}linear2.bias": (width,),
            }
            for norm in ("norm1", "norm2", "norm3"):
                found |= {f"{layer}{norm}.weight": (width,), f"{layer}{norm}.bias": (width,)}
        return found | {"classifier.weight": (1, width), "classifier.bias": (1,)}

    def n_parameters(self) -> int:
        """Return how many numbers all tensors have together."""
        return sum(int(np.prod(shape)) for shape in self.tensors().values())


def check_shape(shape: Shape) -> None:
    """Refuse sizes that no reranker can have.

    Raises:
        RemeasureError: the width is no multiple of the heads.
    """
    if shape.width % shape.heads:
        raise RemeasureError(
            f"reranker: width {shape.width} cannot be shared by {shape.heads} heads; make it a multiple"
        )


def binarises(tensors: dict[str, np.ndarray]) -> bool:
    """Return whether a reranker turns descriptors into signs."""
    return BINARISER in tensors


def check(tensors: dict[str, np.ndarray], shape: Shape, place: object) -> dict[str, np.ndarray]:
    """Return tensors as float32 in the order of ``Shape.tensors``: all of them and no others.

    A reranker of packed bits is told ``dim = width``: the directions of its bits, which made them, are not
    needed, and may come from descriptors of any length.

    Raises:
        RemeasureError: a tensor is missing, unknown, of another shape, no float, or not finite; all that is
            wrong.
    """
    check_shape(shape)
    wanted = shape.tensors(binarises(tensors))
    if binarises(tensors) and shape.dim == shape.width and tensors[BINARISER].ndim == 2:
        wanted[BINARISER] = (len(tensors[BINARISER]), shape.width)
    wrong = [f"{name} is missing" for name in wanted if name not in tensors]
    wrong += [f"{name[:80]} is not known" for name in tensors if name not in wanted]
    for name in wanted.keys() & tensors.keys():
        found = tensors[name]
        if found.shape != wanted[name] or found.dtype.name not in (
            "float16",
            "float32",
            "float64",
            "bfloat16",
        ):
            wrong.append(f"{name} is {found.dtype} {list(found.shape)}, expected float {list(wanted[name])}")
        elif n_not_finite(found.astype(np.float32)):
            wrong.append(f"{name} has numbers that are not finite")
    if wrong:
        more = f" (and {len(wrong) - _N_TOLD} more)" if len(wrong) > _N_TOLD else ""
        raise RemeasureError(
            f"{place}: not the weights of a reranker of the configured sizes: "
            f"{'; '.join(sorted(wrong)[:_N_TOLD])}{more}; "
            "name the right file, or correct dim, width, layers and ffn"
        )
    return {name: np.ascontiguousarray(tensors[name], dtype=np.float32) for name in wanted}


def read(path: Path, shape: Shape) -> dict[str, np.ndarray]:
    """Read weights in their open form; errors as of ``check``."""
    opened = SafetensorsFile(path)
    return check({name: opened.read(name) for name in opened.specs}, shape, path)


def read_published(path: Path, shape: Shape) -> dict[str, np.ndarray]:
    """Read a published checkpoint, whose weights stand under ``state``, or an open file of the same names.

    Raises:
        RemeasureError: as of ``torch_file.TorchFile`` and ``check``; no code of the file is run.
    """
    if Path(path).suffix == ".safetensors":
        return read(path, shape)
    opened = TorchFile(path, under="state")
    return check({name: opened.read(name) for name in opened.specs}, shape, path)


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write weights as float32 in the safetensors format: equal weights are equal bytes."""
    specs = {name: Spec("F32", tensor.shape) for name, tensor in tensors.items()}
    safetensors_file.write(path, specs, lambda name: [np.asarray(tensors[name], NUMBERS["F32"])])
