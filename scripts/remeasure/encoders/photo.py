"""Photo encoder: EfficientNet-Lite0 features, pooled by generalised mean, unit length."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from remeasure.encoders import EncoderSettings, check_settings
from remeasure.encoders.onnx_session import open_session
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.vectors import Identity

GEM_POWER = 3.0
GEM_FLOOR = 1e-6


def decode(data: bytes, place: str) -> np.ndarray:
    """Decode image bytes; transparent parts become white, as on a page.

    Args:
        data: PNG, JPEG or another format that OpenCV knows.
        place: where the bytes come from, for the message.

    Returns:
        Shape (height, width, 3), uint8, channels blue, green, red.

    Raises:
        RemeasureError: the bytes are no image.
    """
    import cv2

    raw = np.frombuffer(data, dtype=np.uint8)
    image = cv2.imdecode(raw, cv2.IMREAD_UNCHANGED) if len(raw) else None
    if image is None:
        raise RemeasureError(
            f"{place}: cannot be decoded as an image ({len(data)} bytes); delete its file and rerun "
            "the target that makes it"
        )
    if image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 4:
        alpha = image[:, :, 3:].astype(np.float32) / 255
        return np.rint(image[:, :, :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return cv2.imdecode(raw, cv2.IMREAD_COLOR)


def prepare(image: np.ndarray, size_px: int) -> np.ndarray:
    """Resize to a square and scale as the network was trained.

    Args:
        image: shape (height, width, 3), uint8, blue, green, red.
        size_px: side of the square.

    Returns:
        Shape (1, 3, size_px, size_px), float32, red, green, blue, (value - 127) / 128.
    """
    import cv2

    shrinks = image.shape[0] * image.shape[1] > size_px * size_px
    way = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    square = cv2.resize(image, (size_px, size_px), interpolation=way)
    scaled = (square[:, :, ::-1].astype(np.float32) - 127) / 128
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


def pool(features: np.ndarray) -> np.ndarray:
    """Pool a feature map by its generalised mean (power 3) and scale to length 1.

    Args:
        features: shape (channels, height, width), float32.

    Returns:
        Shape (channels,), float32.

    Source:
        GeM pooling, Radenović, Tolias and Chum, TPAMI 2019.
    """
    cubes = np.maximum(features.astype(np.float64), GEM_FLOOR) ** GEM_POWER
    means = cubes.mean(axis=(1, 2)) ** (1 / GEM_POWER)
    return (means / np.sqrt((means * means).sum())).astype(np.float32)


class PhotoEncoder:
    """Embeds pictures one at a time: a vector depends on its picture alone."""

    def __init__(self, settings: EncoderSettings, model: Path, threads: int) -> None:
        check_settings(settings)
        self._settings, self._threads = settings, threads
        self._session = open_session(model)
        self.dim = self._session.get_outputs()[0].shape[1]
        self._model_sha256 = sha256_file(model)

    def identity(self) -> Identity:
        """Return what decides the values of this encoder's vectors."""
        return Identity(
            unit=self._settings.unit,
            encoder=self._settings.model,
            model_sha256=self._model_sha256,
            dim=self.dim,
            normalised=True,
            pooling="gem3",
            input_limit=f"{self._settings.size_px} px",
        )

    def pictures(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Embed decoded images; returns shape (len(images), dim), float32, rows of length 1."""
        if not images:
            return np.empty((0, self.dim), dtype=np.float32)
        with ThreadPoolExecutor(self._threads) as threads:
            return np.stack(list(threads.map(self._one, images)))

    def _one(self, image: np.ndarray) -> np.ndarray:
        feed = {"image": prepare(image, self._settings.size_px)}
        return pool(self._session.run(["features"], feed)[0][0])
