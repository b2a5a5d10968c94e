"""Local descriptors of EfficientNet-Lite0: the places of its map of 112 channels, long vectors first."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import local_models, sizes
from remeasure.instances.backbones.efficientnet import Network
from remeasure.instances.decode import Decoded, decode_cv
from remeasure.instances.describing import unit
from remeasure.instances.sizes import Size

STRIDE_PX = 16
"""Of the map: its 112 channels lie a sixteenth of the picture's side apart."""


class EfficientnetMap:
    """See ``describing.Describer``. The network runs in the threads that decode."""

    batch, block_rows = 1, 128

    def __init__(self, told: local_models.Told, model: Path) -> None:
        self._told, self._network = told, Network(model, "local", f"local features {told.name}")
        if self._network.dim != told.dim:
            raise RemeasureError(
                f"local features {told.name}: dim is {told.dim}, {model} gives {self._network.dim}; correct "
                "it"
            )
        self.columns = local_models.columns(told)

    def decode(self, data: bytes) -> Decoded:
        """Return the pixels of a photograph."""
        return decode_cv(data)

    def prepare(self, pixels: np.ndarray) -> list[tuple[Hashable, Any]]:
        """Return the descriptors; nothing is left to batch."""
        size = sizes.native(Size(pixels.shape[1], pixels.shape[0]), STRIDE_PX, self._told.size_px)
        found = self._network(local_models.resized(pixels, size))
        places = found.reshape(len(found), -1).T
        norms = np.sqrt((places.astype(np.float64) ** 2).sum(axis=1))
        used = norms > 0
        return [(None, (unit(places[used]), norms[used]))]

    def run(self, kind: Hashable, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return what there is already."""
        return inputs

    def finish(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Return the strongest in order."""
        return local_models.strongest(*outputs[0], self._told.n)
