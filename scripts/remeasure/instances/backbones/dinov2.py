"""DINOv2 as a backbone: the class token behind the last norm, at every scale."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import backbones, sizes, torches
from remeasure.instances.backbones.scaling import resized
from remeasure.instances.decode import Decoded, decode
from remeasure.instances.describing import unit
from remeasure.instances.sizes import Size

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of red, green and blue on ImageNet, of values from 0 to 1."""


def normalised(torch: Any, pictures: Sequence[np.ndarray], device: str, dtype: Any) -> Any:
    """Return pictures of one size as a model takes them.

    Args:
        torch: the module.
        pictures: each of shape (height, width, 3), uint8, red, green, blue.
        device: where they go; bytes travel, not floating-point numbers.
        dtype: of the result; sums are of 32 bits.

    Returns:
        Tensor of shape (n, 3, height, width).
    """
    stacked = torch.from_numpy(np.stack(pictures)).to(device).permute(0, 3, 1, 2).float() / 255
    mean, deviation = (torch.tensor(v, device=device).view(1, 3, 1, 1) for v in (MEAN, DEVIATION))
    return ((stacked - mean) / deviation).to(dtype)


class Dinov2:
    """See ``describing.Describer``. Pictures of one size go through the model together."""

    block_rows = 256

    def __init__(self, told: backbones.Told, model: Path, threads: int) -> None:
        self._torch = torches.begin(threads)
        self._told, self._device, self.batch = told, torches.device_of(), told.batch
        self._dtype = torches.type_on(self._device, told.precision)
        self._model = torches.load_model("Dinov2Model", model, self._dtype, self._device)
        config = self._model.config
        if (config.hidden_size, config.patch_size) != (told.dim, told.patch_px):
            raise RemeasureError(
                f"backbone {told.name}: dim {told.dim} and patch_px {told.patch_px}, {model} has "
                f"{config.hidden_size} and {config.patch_size}; correct them"
            )
        self.columns = {backbones.CLS: backbones.column(told)}

    def decode(self, data: bytes) -> Decoded:
        """Return the pixels of a photograph."""
        return decode(data)

    def prepare(self, pixels: np.ndarray) -> list[tuple[Hashable, Any]]:
        """Return the picture at every scale, each scaled from the original."""
        told, size = self._told, Size(pixels.shape[1], pixels.shape[0])
        wanted = [sizes.scaled(size, s, told.size_px, told.patch_px, told.max_px) for s in told.scales]
        return [(size, resized(pixels, size)) for size in wanted]

    def run(self, kind: Hashable, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the class token of every picture, float32."""
        with self._torch.inference_mode():
            pictures = normalised(self._torch, inputs, self._device, self._dtype)
            tokens = self._model(pixel_values=pictures).last_hidden_state[:, 0]
            return list(tokens.float().cpu().numpy())

    def finish(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Return the vectors of all scales, each of length 1."""
        return {backbones.CLS: unit(np.stack(outputs))}
