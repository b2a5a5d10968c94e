"""``POST /v1/embeddings`` for one text encoder: batches, numbers as a list or as base64, unit length."""

import base64
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import msgspec
import numpy as np

from remeasure.embedded.chat import BadRequest, Words
from remeasure.embedded.chat_server import ChatServer

# As many as OpenAI's takes; a caller with more sends several requests.
MAX_TEXTS = 2048


class EmbeddingRequest(Words, kw_only=True):
    """Body of a request."""

    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None

    def texts(self) -> list[str]:
        """Return what is to be embedded."""
        return [self.input] if isinstance(self.input, str) else self.input


class Embedder:
    """An encoder that several requests share; a text's vector depends on nothing but the text.

    Args:
        encoder: embeds one text per call (``encoders.text.TextEncoder``), safe in threads.
        threads: texts in work at once, over all requests.
    """

    more_words: frozenset[str] = frozenset()

    def __init__(self, encoder, threads: int) -> None:
        self._encoder = encoder
        self._pool = ThreadPoolExecutor(threads)
        self.dim: int = encoder.dim

    def embed(self, texts: Sequence[str]) -> tuple[np.ndarray, int]:
        """Return vectors, shape (len(texts), dim), float32, length 1, and the tokens that the model saw."""
        rows = list(self._pool.map(self._one, texts))
        return np.stack([row for row, _ in rows]), sum(n for _, n in rows)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, text: str) -> tuple[np.ndarray, int]:
        return self._encoder.documents([text])[0], self._encoder.n_tokens(text)


def parse(body: bytes, dim: int) -> EmbeddingRequest:
    """Read a request body.

    Args:
        body: as it came.
        dim: length of the vectors that there are.

    Raises:
        BadRequest: no JSON, a missing, unknown or mistyped key (named), no or too many texts, an empty one.
    """
    try:
        request = msgspec.json.decode(body, type=EmbeddingRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRequest(f"request body: {error}") from None
    texts = request.texts()
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise BadRequest(f"input: {len(texts)} texts; expected 1 to {MAX_TEXTS}")
    for number, text in enumerate(texts):
        if not text:
            raise BadRequest(f"input: text {number} is empty; nothing has no vector")
    if request.dimensions not in (None, dim):
        raise BadRequest(f"dimensions: {request.dimensions}, but this model's vectors have {dim}")
    return request


def reply_of(request: EmbeddingRequest, vectors: np.ndarray, n_tokens: int) -> dict[str, Any]:
    """Return vectors in the protocol's form; base64 is of little-endian float32."""

    def told(vector: np.ndarray) -> str | list[float]:
        if request.encoding_format == "float":
            return vector.tolist()
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()

    data = [
        {"object": "embedding", "index": index, "embedding": told(vector)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "data": data, "model": request.model, "usage": usage}


class EmbeddingServer(ChatServer):
    """An encoder on a port; requests share its threads."""

    path = "/v1/embeddings"

    def __init__(self, port: int, served_name: str, engine: Embedder) -> None:
        super().__init__(port, served_name, engine)
        self._embedder = engine
        self._counting = threading.Lock()

    def complete(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Answer the body of a request: HTTP status and reply."""
        try:
            request = parse(body, self._embedder.dim)
        except BadRequest as error:
            return self._refused(400, str(error), "invalid_request")
        if request.model != self.served_name:
            text = f"model {request.model!r} is not served here, {self.served_name!r} is"
            return self._refused(404, text, "model_not_found")
        began = time.monotonic()
        vectors, n_tokens = self._embedder.embed(request.texts())
        with self._counting:
            self.busy_s += time.monotonic() - began
            self.n_answered += 1
        return 200, reply_of(request, vectors, n_tokens)
