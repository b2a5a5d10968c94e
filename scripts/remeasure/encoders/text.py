"""Text encoder: an ONNX BERT model, first token, unit length. One function for documents and queries."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from remeasure.encoders import TEXT_MODELS, EncoderSettings, check_settings
from remeasure.encoders.adapter import Adapter
from remeasure.encoders.onnx_session import open_session
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.vectors import Identity


class TextEncoder:
    """Embeds texts one at a time.

    The model is quantised while it runs, with a scale over everything in one call: in a batch the vector of
    a text would depend on its neighbours and on their padding (cosine down to 0.99 was measured). One text
    per call makes a vector a function of its text alone, whatever else is embedded and with however many
    threads, and needs less memory; long texts are even faster this way.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        model: Path,
        tokenizer: Path,
        threads: int,
        adapter: Adapter | None = None,
    ) -> None:
        check_settings(settings)
        self._settings, self._adapter, self._threads = settings, adapter, threads
        self._prefix = TEXT_MODELS[settings.model].query_prefix
        self._session = open_session(model)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]
        self.dim = self._session.get_outputs()[0].shape[-1]
        self._tokenizer = _tokenizer(tokenizer, settings.max_tokens)
        self._model_sha256, self._tokenizer_sha256 = sha256_file(model), sha256_file(tokenizer)
        if adapter is not None:
            adapter.check_base(self._model_sha256, self.dim)

    def identity(self) -> Identity:
        """Return what decides the values of this encoder's vectors."""
        name = f"OCR + {self._settings.model}" if self._settings.unit == "tiles" else self._settings.model
        return Identity(
            unit=self._settings.unit,
            encoder=name + (" + trained adapter" if self._adapter else ""),
            model_sha256=self._model_sha256,
            tokenizer_sha256=self._tokenizer_sha256,
            adapter_sha256=self._adapter.sha256 if self._adapter else None,
            dim=self.dim,
            normalised=True,
            pooling="cls",
            input_limit=f"{self._settings.max_tokens} tokens",
        )

    def n_tokens(self, text: str) -> int:
        """Return how many tokens of a text the model sees, special tokens included."""
        return len(self._tokenizer.encode(text).ids)

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """Embed texts as documents.

        Returns:
            Shape (len(texts), dim), float32, rows of length 1.
        """
        if self._threads == 1 or len(texts) < 2:
            rows = [self._one(text) for text in texts]
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                rows = list(pool.map(self._one, texts))
        vectors = np.stack(rows) if rows else np.empty((0, self.dim), dtype=np.float32)
        return self._adapter.apply(vectors) if self._adapter else vectors

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Embed questions: the model's query prefix, then as ``documents``."""
        return self.documents([self._prefix + text for text in texts])

    def _one(self, text: str) -> np.ndarray:
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        first = hidden[0, 0].astype(np.float64)
        return (first / np.sqrt((first * first).sum())).astype(np.float32)


def _tokenizer(path: Path, max_tokens: int):
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RemeasureError(
            f"{path}: cannot be read ({error.strerror}); rerun the target that fetches it"
        ) from None
    except ValueError as error:
        raise RemeasureError(
            f"{path}: not a tokenizer file ({error}); delete it and rerun the target that fetches it"
        ) from None
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer
