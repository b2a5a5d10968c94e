"""A small trained map behind a frozen encoder, applied to queries and documents alike."""

from pathlib import Path

import msgspec
import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path, sha256_file


class Adapter:
    """Low-rank residual map: y = x + (x down) up, then unit length.

    With ``up`` zero it is the identity (on unit vectors).
    """

    def __init__(self, down: np.ndarray, up: np.ndarray, base_sha256: str, sha256: str | None = None) -> None:
        """Keep the map.

        Args:
            down: shape (dim, rank), float32.
            up: shape (rank, dim), float32.
            base_sha256: file hash of the encoder model that it was trained on.
            sha256: file hash of the adapter, when it comes from a file.
        """
        self.down, self.up, self.base_sha256, self.sha256 = down, up, base_sha256, sha256

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        """Map vectors of shape (n, dim), float32, to the same shape with rows of length 1."""
        if not self.up.any():
            return vectors
        wide = vectors.astype(np.float64)
        mapped = wide + (wide @ self.down.astype(np.float64)) @ self.up.astype(np.float64)
        norms = np.sqrt((mapped * mapped).sum(axis=1, keepdims=True))
        return (mapped / norms).astype(np.float32)

    def check_base(self, model_sha256: str, dim: int) -> None:
        """Check that the adapter belongs to an encoder model.

        Raises:
            RemeasureError: trained on another model or of other dimensions.
        """
        if self.base_sha256 != model_sha256 or self.down.shape[0] != dim:
            raise RemeasureError(
                f"adapter: trained on model {self.base_sha256[:12]}… with {self.down.shape[0]} dimensions, "
                f"but the encoder is {model_sha256[:12]}… with {dim}; delete the adapter and train it again"
            )


def write(path: Path, adapter: Adapter) -> None:
    """Write an adapter as HDF5; equal content is equal bytes."""
    import h5py

    with atomic_path(path) as temporary, h5py.File(temporary, "w") as store:
        store.create_dataset("down", data=adapter.down.astype("<f4"), track_times=False)
        store.create_dataset("up", data=adapter.up.astype("<f4"), track_times=False)
        store.attrs["base"] = msgspec.json.encode({"model_sha256": adapter.base_sha256}).decode()


def read(path: Path) -> Adapter:
    """Read an adapter and check shapes and values.

    Raises:
        RemeasureError: missing, damaged, shapes that do not fit, or values that are not finite.
    """
    import h5py

    try:
        with h5py.File(path, "r") as store:
            down, up = store["down"][...], store["up"][...]
            base = msgspec.json.decode(store.attrs["base"], type=dict[str, str])["model_sha256"]
    except (OSError, KeyError, msgspec.MsgspecError) as error:
        raise RemeasureError(f"{path}: not an adapter ({error}); delete it and rerun train_adapter") from None
    fits = down.ndim == 2 and up.shape == down.shape[::-1] and down.dtype == up.dtype == np.float32
    if not fits or not np.isfinite(down).all() or not np.isfinite(up).all():
        raise RemeasureError(
            f"{path}: arrays of shape {down.shape} and {up.shape} do not make a map of finite float32 "
            "numbers; delete it and rerun train_adapter"
        )
    return Adapter(down, up, base, sha256_file(path))
