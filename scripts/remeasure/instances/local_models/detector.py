"""Local descriptors of DINOv2 with registers: its patches, projected and weighed by a trained detector."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import local_models, sizes, torches
from remeasure.instances.backbones.dinov2 import normalised
from remeasure.instances.decode import Decoded, decode_cv
from remeasure.instances.describing import unit
from remeasure.instances.local_models import dino_weights
from remeasure.instances.sizes import Size

UNDER = "state"
"""Key of the published detector's file that holds its weights."""


def build_detector(torch: Any, dim: int) -> Any:
    """Return an untrained detector: projection, batch normalisation, and a layer that weighs.

    Source:
        Landmark card, section 3.3: convolutions of 1 x 1, which see one place each: linear layers here.
    """
    nn = torch.nn
    return nn.ModuleDict(
        {"conv1": nn.Linear(dim, dim), "bn": nn.BatchNorm1d(dim), "conv2": nn.Linear(dim, 1)}
    )


def as_linear(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors of convolutions of 1 x 1 as those of linear layers; others stay."""
    return {
        name: v[:, :, 0, 0] if v.ndim == 4 and v.shape[2:] == (1, 1) else v for name, v in tensors.items()
    }


def detect(torch: Any, detector: Any, patches: Any) -> tuple[Any, Any]:
    """Return projected patches and how strong each is.

    Args:
        torch: the module.
        detector: as ``build_detector`` makes it, in use (not in training).
        patches: tensor of shape (n, places, dim): patch tokens behind the last norm.

    Returns:
        Tensors of shape (n, places, dim), whose length is not 1 yet, and (n, places).

    Source:
        Landmark card, section 3.3: y = norm(conv(x)) is the descriptor, softplus(conv(relu(y)))
        the attention.
    """
    flat = detector["bn"](detector["conv1"](patches.flatten(0, 1)))
    attention = torch.nn.functional.softplus(detector["conv2"](torch.relu(flat)))
    return flat.view(patches.shape), attention.view(patches.shape[:2])


class Dinov2Detector:
    """See ``describing.Describer``. Pictures of one size go through the model together."""

    block_rows = 64

    def __init__(self, told: local_models.Told, model: Path, detector: Path, threads: int) -> None:
        self._torch = torches.begin(threads)
        self._told, self._device, self.batch = told, torches.device_of(), told.batch
        self._dtype = torches.type_on(self._device, told.precision)
        self._model = dino_weights.load(model, self._device).to(self._dtype)
        config = self._model.config
        if config.hidden_size != told.dim:
            raise RemeasureError(
                f"local features {told.name}: dim is {told.dim}, {model} has {config.hidden_size}; correct it"
            )
        self._patch_px, self._n_before = config.patch_size, 1 + config.num_register_tokens
        self._detector = build_detector(self._torch, told.dim).eval()
        torches.fill(self._detector, as_linear(torches.read_tensors(detector, UNDER)), detector)
        self._detector = self._detector.to(self._device)
        self.columns = local_models.columns(told)

    def decode(self, data: bytes) -> Decoded:
        """Return the pixels of a photograph."""
        return decode_cv(data)

    def prepare(self, pixels: np.ndarray) -> list[tuple[Hashable, Any]]:
        """Return the picture at its own size, both sides at whole patches."""
        size = sizes.native(Size(pixels.shape[1], pixels.shape[0]), self._patch_px, self._told.size_px)
        return [(size, local_models.resized(pixels, size))]

    def run(self, kind: Hashable, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return of every picture the strongest projected patches and their attention, float32."""
        torch = self._torch
        with torch.inference_mode():
            pictures = normalised(torch, inputs, self._device, self._dtype)
            patches = self._model(pixel_values=pictures).last_hidden_state[:, self._n_before :]
            found, attention = detect(torch, self._detector, patches.float())
            # Only those travel that can be kept; a stable order makes equal ones come by their place.
            n = min(self._told.n, attention.shape[1])
            best = torch.argsort(attention, dim=1, descending=True, stable=True)[:, :n]
            kept = torch.gather(found, 1, best[:, :, None].expand(-1, -1, found.shape[2]))
            weights = torch.gather(attention, 1, best)
            return list(zip(kept.cpu().numpy(), weights.cpu().numpy(), strict=True))

    def finish(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Return the strongest in order, each of length 1."""
        projected, attention = outputs[0]
        return local_models.strongest(unit(projected), attention, self._told.n)
