"""How alike two sentences are: by their words, or by the vectors of a model. Each under its own name.

The original takes vectors and falls back to words where the model cannot be loaded, so that its numbers may
be either. Here both are worked out, and one that cannot be is an error.

Source:
    MRareBench card, section 9.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from remeasure.encoders.onnx_session import open_session
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.passages import load_tokenizer

Similar = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""From n and m texts to their cosines, shape (n, m)."""
LEXICAL = "lexical"
EMBEDDING = "embedding"
BACKENDS = (LEXICAL, EMBEDDING)
MAX_TOKENS = 256
"""As the authors of the model have set it, special tokens included."""
_REMEMBERED = 16_384
"""Texts whose words or vectors are kept: those of a case are compared several times."""
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class NoWords(Exception):
    """No text of a comparison has a word that is compared. The original ends there, without a result."""


class Lexical:
    """Cosines of weighted words, as the original has them.

    Lower-cased words of two or more letters or digits without scikit-learn's English stop words, alone and in
    pairs. Weights are fitted to the texts of each comparison alone, so the same two sentences are not alike
    to the same degree in two comparisons.
    """

    def __init__(self) -> None:
        try:
            import sklearn
            from sklearn.feature_extraction.text import TfidfVectorizer
            from sklearn.metrics.pairwise import cosine_similarity
        except ImportError as error:
            raise _lacks(LEXICAL, "scikit-learn", error) from None
        self._vectorizer, self._cosines = TfidfVectorizer, cosine_similarity
        # Checks of arguments that do not change take half of the time.
        self._unchecked = lambda: sklearn.config_context(assume_finite=True, skip_parameter_validation=True)
        words = TfidfVectorizer(stop_words="english", ngram_range=(1, 2)).build_analyzer()
        self._words = lru_cache(_REMEMBERED)(words)

    def __call__(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """Return the cosines of every text of ``first`` with every one of ``second``, 0 to 1.

        Raises:
            NoWords: no text has a word that is no stop word.

        Edges:
            A text without such words is like no other.
        """
        if not first or not second:
            return np.zeros((len(first), len(second)))
        texts = [*first, *second]
        if not any(text.strip() for text in texts):
            return np.zeros((len(first), len(second)))
        if not any(map(self._words, texts)):
            raise NoWords
        with self._unchecked():
            fitted = self._vectorizer(analyzer=self._words).fit(texts)
            return self._cosines(fitted.transform(first), fitted.transform(second))


class Embedding:
    """Cosines of the vectors of a sentence model (ONNX): the mean over all tokens of a text, to length 1.

    One text at a time: a vector depends on nothing but its text. In batches of texts of one length the model
    is about a sixth faster.

    Args:
        model: the model.
        tokenizer: its tokenizer.

    Raises:
        RemeasureError: one of the files or packages is missing, or they are no sentence model.
    """

    def __init__(self, model: Path, tokenizer: Path) -> None:
        try:
            self._session = open_session(model)
            self._tokenizer = load_tokenizer(tokenizer)
        except ImportError as error:
            raise _lacks(EMBEDDING, "onnxruntime and tokenizers", error) from None
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]
        shape = self._session.get_outputs()[0].shape
        if not {"input_ids"} <= set(self._inputs) <= _INPUTS or len(shape) != 3:
            raise RemeasureError(
                f"{model}: takes {', '.join(self._inputs)} and returns {len(shape)} axes, expected a "
                "model with input_ids and a vector per token; correct files.similarity_model of the bench"
            )
        self._vector = lru_cache(_REMEMBERED)(self._embed)

    def __call__(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """Return the cosines of every text of ``first`` with every one of ``second``, -1 to 1."""
        if not first or not second:
            return np.zeros((len(first), len(second)))
        ours, theirs = (np.stack([self._vector(text) for text in texts]) for texts in (first, second))
        return ours @ theirs.T

    def _embed(self, text: str) -> np.ndarray:
        ids = np.array([self._tokenizer.encode(text.strip()).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        tokens = self._session.run(None, {name: feed[name] for name in self._inputs})[0][0]
        mean = tokens.astype(np.float64).mean(axis=0)
        return (mean / max(np.sqrt((mean * mean).sum()), 1e-12)).astype(np.float32)


def open_embedding(model: Path, tokenizer: Path, wanted: dict[Path, str | None]) -> Embedding:
    """Open the sentence model that the settings mean.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        wanted: SHA-256 of each file; null where the settings know none.

    Raises:
        RemeasureError: as in ``Embedding``, or a file is another than the settings say.
    """
    found = Embedding(model, tokenizer)
    for path, sha256 in wanted.items():
        own = sha256_file(path) if sha256 is not None else None
        if own != sha256:
            raise RemeasureError(
                f"{path}: SHA-256 is {own}, expected {sha256}; delete it and run snakemake -c1 {path}"
            )
    return found


def lenient(similar: Similar) -> Similar:
    """Return the same comparison where texts without words are alike to the degree 0."""

    def compare(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        try:
            return similar(first, second)
        except NoWords:
            return np.zeros((len(first), len(second)))

    return compare


def _lacks(backend: str, package: str, error: ImportError) -> RemeasureError:
    return RemeasureError(
        f"similarity {backend!r}: {package} cannot be imported ({error}); run make setup, there is no other "
        "way to work it out"
    )
