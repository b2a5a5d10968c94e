"""What turns a photograph into one vector per scale; a module for every kind of network."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec
import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import describing
from remeasure.instances.describing import Describer
from remeasure.instances.vectors_file import Column

CLS = describing.CLS


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the steps are told of a backbone (``settings.Backbone``): all that decides its vectors."""

    name: str
    backend: Literal["dinov2", "efficientnet-lite0", "fusion-embedding"]
    revision: str | None
    dim: int
    scales: tuple[float, ...]
    size_px: int
    patch_px: int
    max_px: int
    precision: Literal["float32", "float16", "bfloat16"]
    batch: int


NEEDED: dict[str, tuple[str, ...]] = {
    "dinov2": ("model",),
    "efficientnet-lite0": ("model",),
    "fusion-embedding": ("model",),
}
"""The files of every backend, by option of the script."""
OPTIONAL: dict[str, tuple[str, ...]] = {"fusion-embedding": ("package",)}
"""Files that some have: the released package's modules, where they are not in the model's folder."""


N_COMPARED = 3
"""Photographs by which a backbone is compared with its released package."""


@runtime_checkable
class Gated(Describer, Protocol):
    """A backbone that a released package must agree with before anything is described."""

    def check_released(self, pictures: Sequence[np.ndarray]) -> float:
        """Return the largest difference of a number; raises ``RemeasureError`` where it is too large."""
        ...


def column(told: Told) -> Column:
    """Return how vectors are stored: in 16 bits where the model computes with 16, else in 32."""
    return Column(np.float16 if told.precision == "float16" else np.float32, (len(told.scales), told.dim))


def open_backbone(
    told: Told, files: Mapping[str, Path], threads: int, instruction: str = "document"
) -> Describer:
    """Load a backbone.

    Args:
        told: its settings.
        files: its weights by name (``NEEDED``).
        threads: of the model, where it has threads of its own.
        instruction: of encoders that have one, for a document or a query.

    Raises:
        RemeasureError: a file is missing or does not fit, or torch is missing.
    """
    needed = NEEDED[told.backend]
    missing = [name for name in needed if files.get(name) is None]
    if missing:
        raise RemeasureError(
            f"backbone {told.name}: --{missing[0]} is missing, {told.backend} needs {', '.join(needed)}; add "
            f"it to backbones.{told.name}.files"
        )
    if told.backend == "efficientnet-lite0":
        from remeasure.instances.backbones.efficientnet import Efficientnet

        return Efficientnet(told, files["model"])
    if told.backend == "dinov2":
        from remeasure.instances.backbones.dinov2 import Dinov2

        return Dinov2(told, files["model"], threads)
    from remeasure.instances.backbones.fusion import FusionEmbedding

    package = files.get("package", files["model"])
    return FusionEmbedding(told, files["model"], package, threads, instruction)
