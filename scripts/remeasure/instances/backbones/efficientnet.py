"""EfficientNet-Lite0 as a backbone: its last map at every scale, pooled by generalised mean."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.encoders import photo
from remeasure.encoders.onnx_session import open_session
from remeasure.errors import RemeasureError
from remeasure.instances import backbones, sizes
from remeasure.instances.backbones.scaling import resized
from remeasure.instances.decode import Decoded, decode
from remeasure.instances.sizes import Size


def fed(pixels: np.ndarray) -> np.ndarray:
    """Return pixels as the network was trained: shape (1, 3, height, width), float32, (value - 127) / 128."""
    scaled = (pixels.astype(np.float32) - 127) / 128
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


class Network:
    """One output of the network; safe from several threads, each picture alone."""

    def __init__(self, model: Path, output: str, place: str) -> None:
        import onnxruntime

        self._session = open_session(model)
        self._output = output
        known = {found.name: found.shape[1] for found in self._session.get_outputs()}
        if output not in known:
            raise RemeasureError(
                f"{model}: has no output {output!r}, which {place} needs; delete it and run "
                f"snakemake -c1 {model}"
            )
        self.dim: int = known[output]
        # The layers behind a map that is not the last are not computed.
        self._options = onnxruntime.RunOptions()
        self._options.only_execute_path_to_fetches = True

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """Return a map of a picture: shape (channels, height, width), float32."""
        return self._session.run([self._output], {"image": fed(pixels)}, self._options)[0][0]


class Efficientnet:
    """See ``describing.Describer``. The network runs in the threads that decode: a picture at a time each."""

    batch, block_rows = 1, 256

    def __init__(self, told: backbones.Told, model: Path) -> None:
        self._told, self._network = told, Network(model, "features", f"backbone {told.name}")
        if self._network.dim != told.dim:
            raise RemeasureError(
                f"backbone {told.name}: dim is {told.dim}, {model} gives {self._network.dim}; correct it"
            )
        self.columns = {backbones.CLS: backbones.column(told)}

    def decode(self, data: bytes) -> Decoded:
        """Return the pixels of a photograph."""
        return decode(data)

    def prepare(self, pixels: np.ndarray) -> list[tuple[Hashable, Any]]:
        """Return the vector of every scale; nothing is left to batch."""
        told, size = self._told, Size(pixels.shape[1], pixels.shape[0])
        wanted = [sizes.scaled(size, s, told.size_px, told.patch_px, told.max_px) for s in told.scales]
        return [(None, photo.pool(self._network(resized(pixels, size)))) for size in wanted]

    def run(self, kind: Hashable, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return what there is already."""
        return inputs

    def finish(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Return the vectors of all scales, each of length 1."""
        return {backbones.CLS: np.stack(outputs)}
