"""How alike two sentences are: by their words, or by the vectors of a model. Each under its own name.

The original takes vectors and falls back to words where the model cannot be loaded, so that its numbers may
be either. Here both are worked out, and one that cannot be is an error.

Source:
    MRareBench card, section 9.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from remeasure.encoders.onnx_session import open_session
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.passages import load_tokenizer
from remeasure.progress import Progress

log = logging.getLogger("remeasure.similarity")

Similar = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""From n and m texts to their cosines, shape (n, m)."""
LEXICAL = "lexical"
EMBEDDING = "embedding"
BACKENDS = (LEXICAL, EMBEDDING)
MAX_TOKENS = 256
"""As the authors of the model have set it, special tokens included."""
_REMEMBERED = 16_384
"""Texts whose words or vectors are kept: those of a case are compared several times."""
_TOKENS_PER_CALL = 256
"""As many as the longest text has. More are no faster: what a layer makes then falls out of the cache."""
_NEIGHBOURS = ("a thick wall", "the left kidney", "no such mass", "red 7 !")
"""Texts to try a model with; those of as many tokens as the first are used."""
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

    A vector depends on nothing but its text: one call of the model holds texts of one number of tokens, so
    that nothing is padded, and a model whose vectors depend on their neighbours all the same (one that is
    quantised while it runs) gets one text per call.

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
        self._known: dict[str, np.ndarray] = {}
        self.batches = self._is_free_of_neighbours()

    def __call__(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """Return the cosines of every text of ``first`` with every one of ``second``, -1 to 1."""
        if not first or not second:
            return np.zeros((len(first), len(second)))
        self.foresee([*first, *second])
        ours, theirs = (np.stack([self._known[text] for text in texts]) for texts in (first, second))
        return ours @ theirs.T

    def foresee(self, texts: Iterable[str]) -> None:
        """Work the vectors of texts out that are asked for soon: the more at once, the faster.

        Remembers these, and of those before as many as there is room for.
        """
        wanted = dict.fromkeys(texts)
        new = [text for text in wanted if text not in self._known]
        if len(self._known) + len(new) > _REMEMBERED:
            self._known = {text: self._known[text] for text in wanted if text in self._known}
        by_length: dict[int, list[tuple[str, list[int]]]] = defaultdict(list)
        for text in new:
            ids = self._tokenizer.encode(text.strip()).ids
            by_length[len(ids)].append((text, ids))
        progress = Progress(log, "texts compared", len(new))
        for length, members in sorted(by_length.items()):
            size = max(1, _TOKENS_PER_CALL // length) if self.batches else 1
            for start in range(0, len(members), size):
                part = members[start : start + size]
                vectors = self._embed([ids for _, ids in part])
                self._known |= {text: vector for (text, _), vector in zip(part, vectors, strict=True)}
                progress.add(len(part))

    def _embed(self, rows: list[list[int]]) -> np.ndarray:
        """Return the vectors of texts of one length, shape (n, dimensions)."""
        ids = np.array(rows, dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        tokens = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        means = tokens.astype(np.float64).mean(axis=1)
        lengths = np.sqrt((means * means).sum(axis=1, keepdims=True))
        return (means / np.maximum(lengths, 1e-12)).astype(np.float32)

    def _is_free_of_neighbours(self) -> bool:
        """Return whether the model gives a text the same bits alone and in a batch."""
        rows = [self._tokenizer.encode(text).ids for text in _NEIGHBOURS]
        rows = [row for row in rows if len(row) == len(rows[0])]
        alone = np.concatenate([self._embed([row]) for row in rows])
        return len(rows) > 1 and np.array_equal(self._embed(rows), alone)


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
