"""What turns a photograph into a set of local descriptors, the strongest first; a module for every kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.describing import Describer
from remeasure.instances.sizes import Size
from remeasure.instances.vectors_file import Column

DESCRIPTOR, N_VALID = "descriptor", "n_valid"


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the steps are told of local descriptors (``settings.LocalFeatures``)."""

    name: str
    backend: Literal["dinov2-detector", "efficientnet-lite0"]
    dim: int
    n: int
    size_px: int | None
    precision: Literal["float32", "float16", "bfloat16"]
    batch: int


NEEDED: dict[str, tuple[str, ...]] = {
    "dinov2-detector": ("model", "detector"),
    "efficientnet-lite0": ("model",),
}
"""The files of every backend, by option of the script."""


def columns(told: Told) -> dict[str, Column]:
    """Return the datasets: descriptors with zeros behind the last one, and how many there are."""
    return {DESCRIPTOR: Column(np.float16, (told.n, told.dim)), N_VALID: Column(np.uint16)}


def strongest(descriptors: np.ndarray, attention: np.ndarray, n: int) -> dict[str, Any]:
    """Return the ``n`` strongest descriptors in order; equal ones by their place.

    Args:
        descriptors: shape (places, dim), of length 1.
        attention: shape (places,), larger is stronger.
        n: rows; fewer places leave rows of zeros at the end.

    Returns:
        ``descriptor``: shape (n, dim), float16; ``n_valid``.

    Raises:
        ValueError: a number is not finite.

    Source:
        Landmark card, section 3.3: one scale, top min(700, patches) by attention, descending.
    """
    if not np.isfinite(attention).all() or not np.isfinite(descriptors).all():
        raise ValueError("a local descriptor or its attention is not finite")
    best = np.argsort(-attention, kind="stable")[:n]
    found = np.zeros((n, descriptors.shape[1]), np.float16)
    found[: len(best)] = descriptors[best]
    return {DESCRIPTOR: found, N_VALID: len(best)}


def resized(pixels: np.ndarray, size: Size) -> np.ndarray:
    """Scale a picture as the published extractor does: by areas where a side shrinks, else bilinearly.

    Args:
        pixels: shape (height, width, 3), uint8.
        size: width and height.
    """
    import cv2

    shrinks = size.width < pixels.shape[1] or size.height < pixels.shape[0]
    way = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return cv2.resize(np.ascontiguousarray(pixels), tuple(size), interpolation=way)


def open_local_model(told: Told, files: Mapping[str, Path], threads: int) -> Describer:
    """Load a model of local descriptors.

    Args:
        told: its settings.
        files: its weights by name (``NEEDED``).
        threads: of the model, where it has threads of its own.

    Raises:
        RemeasureError: a file is missing or does not fit, or torch is missing.
    """
    needed = NEEDED[told.backend]
    missing = [name for name in needed if files.get(name) is None]
    if missing:
        raise RemeasureError(
            f"local features {told.name}: --{missing[0]} is missing, {told.backend} needs "
            f"{', '.join(needed)}; add it to local_features.{told.name}.files"
        )
    if told.backend == "efficientnet-lite0":
        from remeasure.instances.local_models.efficientnet import EfficientnetMap

        return EfficientnetMap(told, files["model"])
    from remeasure.instances.local_models.detector import Dinov2Detector

    return Dinov2Detector(told, files["model"], files["detector"], threads)
