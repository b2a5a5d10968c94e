"""Vectors of texts from a server behind ``/v1/embeddings``, several requests in flight."""

import base64
import binascii
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from remeasure.systems.builtin.endpoints import Endpoint
from remeasure.systems.builtin.failing import Failed

BATCH = 32


class Embedding:
    """A model that turns texts into vectors.

    Args:
        endpoint: where it is, and how many requests it takes at once.
        dim: length of its vectors.
    """

    def __init__(self, endpoint: Endpoint, dim: int) -> None:
        self.model, self.dim = endpoint.model, dim
        self._endpoint, self._pool = endpoint, ThreadPoolExecutor(endpoint.in_flight)

    def ask(self, texts: Sequence[str]) -> "list[Future[np.ndarray]]":
        """Send texts in batches and return what will hold their vectors, shape (batch, dim), in order."""
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return [self._pool.submit(self._vectors, batch) for batch in batches]

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors, shape (len(texts), dim), float32, length 1.

        Raises:
            Failed: as ``Endpoint.post``, and for a reply that holds other than so many vectors of the length.
        """
        rows = [future.result() for future in self.ask(texts)]
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        body = {"model": self.model, "input": list(texts), "encoding_format": "base64"}
        reply = self._endpoint.post("/embeddings", body)
        try:
            data = sorted(reply["data"], key=lambda entry: entry["index"])
            found = [_vector(entry["embedding"]) for entry in data]
            places = [entry["index"] for entry in data]
        except (KeyError, TypeError, ValueError, OverflowError, binascii.Error) as error:
            text = f"{self.model} /embeddings: not vectors ({type(error).__name__}: {error})"
            raise Failed("server_error", text[:300]) from None
        lengths = sorted({len(vector) for vector in found})
        if len(found) != len(texts) or lengths != [self.dim]:
            raise Failed(
                "fatal",
                f"{self.model} /embeddings: {len(found)} vectors of {lengths} numbers for {len(texts)} "
                f"texts; expected {self.dim} numbers each; correct `vector_dim` or the model",
            )
        if places != list(range(len(texts))):  # a text would get the vector of another
            said = f"{self.model} /embeddings: their indices are not 0 to {len(texts) - 1}, each once"
            raise Failed("server_error", said)
        return _of_length_one(np.stack(found), self.model)


def _vector(told: Any) -> np.ndarray:
    if isinstance(told, str):
        return np.frombuffer(base64.b64decode(told, validate=True), "<f4")
    vector = np.array(told, np.float32)
    if vector.ndim != 1:
        raise ValueError(f"an embedding of {vector.ndim} dimensions, expected a list of numbers")
    return vector


def _of_length_one(vectors: np.ndarray, model: str) -> np.ndarray:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise Failed("server_error", f"{model} /embeddings: a vector of no length, or with what is no number")
    # What has length 1 already keeps its bits.
    near = np.abs(lengths - 1) < 1e-6
    return np.where(near, vectors, vectors / lengths).astype(np.float32)
