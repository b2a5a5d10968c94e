"""Cosines of words and of vectors: MRareBench card, section 9, and what the model's documentation says."""

import math
import sys
import time

import numpy as np
import pytest

from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.rubrics import similarity
from remeasure.rubrics.similarity import Embedding, Lexical, NoWords, lenient, open_embedding

MODEL = "all-minilm-l6-v2-int8.onnx"
TOKENIZER = "bge-small-en-v1.5.tokenizer.json"


@pytest.fixture(scope="module")
def files(sources):
    """The sentence model and its tokenizer."""
    if not (sources / MODEL).exists():
        pytest.fail(f"results/sources lacks {MODEL}; run: snakemake -c1 results/sources/{MODEL}")
    return sources / MODEL, sources / TOKENIZER


@pytest.fixture(scope="module")
def embedding(files):
    return Embedding(*files)


# -- words -------------------------------------------------------------------------------------------------


def test_two_findings_that_share_one_word():
    # Card: idf(red) = 1, the others ln(3/2) + 1; cosine 1 / (1 + 2 * 1.405465**2).
    found = Lexical()(["red mass"], ["red nodule"])
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(0.201993, abs=5e-7)
    assert found[0, 0] == pytest.approx(1 / (1 + 2 * (math.log(1.5) + 1) ** 2), abs=1e-15)


def test_the_same_pair_is_less_alike_beside_a_third_text():
    # "red" stands in all three, "mass" in one: ln(4/2) + 1 = 1.693147; 1 / (1 + 2 * 1.693147**2).
    found = Lexical()(["red mass"], ["red nodule", "red cyst"])
    assert found[0].tolist() == [pytest.approx(0.148511, abs=5e-7)] * 2


def test_words_are_lower_case_of_two_characters_or_more_and_no_stop_words():
    # "A" and "x" are too short, "the", "is", "of" are stop words: nothing but "mass" is left.
    found = Lexical()(["A MASS x"], ["the mass is of", "the wall"])
    assert found[0].tolist() == [pytest.approx(1.0), 0.0]


def test_pairs_are_made_after_stop_words_are_gone():
    found = Lexical()(["red of the mass"], ["red mass"])
    assert found[0, 0] == pytest.approx(1.0)


def test_texts_of_stop_words_alone_cannot_be_compared():
    words = Lexical()
    with pytest.raises(NoWords):
        words(["the of a"], ["is it", "x"])
    assert lenient(words)(["the of a"], ["is it", "x"]).tolist() == [[0.0, 0.0]]
    # One text with words is enough; the others are like nothing.
    assert words(["the of a"], ["mass"]).tolist() == [[0.0]]


def test_no_texts_and_blank_texts_are_like_nothing():
    words = Lexical()
    assert words([], ["mass"]).shape == (0, 1)
    assert words(["mass"], []).shape == (1, 0)
    assert words(["  "], ["\n", ""]).tolist() == [[0.0, 0.0]]


def test_the_packages_own_vectoriser_gives_the_same_bits():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    draw = np.random.default_rng(1)
    vocabulary = np.array("the of red mass wall thick fat kidney cyst image 1 2 histiocytes CD68 é x".split())
    ours = Lexical()
    for _ in range(50):
        first, second = (
            [" ".join(draw.choice(vocabulary, size=draw.integers(1, 12))) + " mass" for _ in range(n)]
            for n in draw.integers(1, 6, size=2)
        )
        fitted = TfidfVectorizer(stop_words="english", ngram_range=(1, 2)).fit(first + second)
        theirs = cosine_similarity(fitted.transform(first), fitted.transform(second))
        assert np.array_equal(ours(first, second), theirs)


@pytest.mark.parametrize("text", ["x" * 10**6, "\u202e\x00" * 500_000, "mass " * 200_000, "ض" * 10**6])
def test_a_megabyte_of_anything_is_compared_at_once(text):
    started = time.process_time()
    lenient(Lexical())(["red mass"], [text])
    assert time.process_time() - started < 3.0


def test_without_the_package_words_are_an_error_and_not_vectors(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(
        RemeasureError, match=r"^similarity 'lexical': scikit-learn cannot be imported .*make"
    ):
        Lexical()


# -- vectors -----------------------------------------------------------------------------------------------


def test_sentences_of_the_models_documentation(embedding):
    # Sentence Transformers, quickstart: the full model gives 0.6660, 0.1046, 0.1411. Ours has 8 bit weights.
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    found = embedding(texts, texts)
    assert found.dtype == np.float32 and found.shape == (3, 3)
    assert np.diagonal(found).tolist() == [pytest.approx(1, abs=1e-6)] * 3
    assert [found[0, 1], found[0, 2], found[1, 2]] == pytest.approx([0.6660, 0.1046, 0.1411], abs=0.005)


def test_a_vector_depends_on_its_text_alone(embedding, files):
    texts = ["a thick wall", "a much longer sentence about a thick wall of the left kidney", "red"]
    together = embedding(texts, texts)
    alone = Embedding(*files)
    # The last bit is that of the product, which adds in another order where it is larger.
    assert alone(texts[:1], texts[2:])[0, 0] == pytest.approx(together[0, 2], abs=1e-6)
    assert alone(texts[1:2], texts[:1])[0, 0] == pytest.approx(together[1, 0], abs=1e-6)


def test_texts_of_one_length_share_calls_and_have_the_same_bits_as_alone(files):
    # 120 texts of 2 to 21 tokens; 20 lengths, 256 tokens a call.
    draw = np.random.default_rng(7)
    words = np.array("wall mass red left kidney thick fat of the in 3 cm cyst shows no".split())
    texts = [" ".join(draw.choice(words, size=n % 20)) + "?" * (n < 2) for n in range(120)]
    together, alone = Embedding(*files), Embedding(*files)
    assert together.batches
    alone.batches = False
    sizes = {"together": [], "alone": []}
    for name, one in (("together", together), ("alone", alone)):
        embed = one._embed
        one._embed = lambda rows, embed=embed, name=name: (sizes[name].append(len(rows)), embed(rows))[1]
        one.foresee(texts)
    n = len(set(texts))
    assert set(sizes["alone"]) == {1} and sum(sizes["alone"]) == sum(sizes["together"]) == n
    assert max(sizes["together"]) > 4 and len(sizes["together"]) < n / 3
    assert all(np.array_equal(together._known[text], alone._known[text]) for text in texts)


def test_a_model_that_is_quantised_while_it_runs_gets_one_text_per_call(sources):
    # The text encoder's model has one scale over everything in a call: neighbours change a vector.
    other = Embedding(sources / "bge-small-en-v1.5.onnx", sources / TOKENIZER)
    assert not other.batches
    assert np.array_equal(other(["a wall"], ["red"]), other(["a wall", "a mass"], ["red"])[:1])


def test_vectors_are_remembered_and_forgotten_without_loss(files, monkeypatch):
    monkeypatch.setattr(similarity, "_REMEMBERED", 4)
    one = Embedding(*files)
    first = one(["a", "b"], ["c"])
    one(["d", "e", "f"], ["g", "h", "i"])
    assert sorted(one._known) == ["d", "e", "f", "g", "h", "i"]
    assert np.array_equal(one(["a", "b"], ["c"]), first)


def test_what_stands_behind_256_tokens_is_not_seen(embedding):
    # 254 words of one token each, with a token before and behind them.
    long = "wall " * 254
    assert embedding([long], [long + "stadium"])[0, 0] == pytest.approx(1, abs=1e-6)
    assert embedding([long], ["wall " * 253 + "stadium"])[0, 0] < 1 - 1e-6


def test_case_and_outer_white_space_do_not_matter(embedding):
    assert embedding(["  A Thick WALL \n"], ["a thick wall"])[0, 0] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", ["x" * 10**6, "", "\u202e\x00\x07", "مرض نادر", "☃" * 1000])
def test_any_text_has_a_vector(embedding, text):
    found = embedding([text], ["a wall"])
    assert found.shape == (1, 1) and -1.0001 <= found[0, 0] <= 1.0001


def test_no_texts_have_no_vectors(embedding):
    assert embedding([], ["a"]).shape == (0, 1)
    assert embedding(["a"], []).shape == (1, 0)


def test_a_file_that_is_missing_is_one_line(files, tmp_path):
    with pytest.raises(RemeasureError, match="nowhere.onnx: is missing; run"):
        Embedding(tmp_path / "nowhere.onnx", files[1])
    with pytest.raises(RemeasureError, match=r"nowhere.json: "):
        Embedding(files[0], tmp_path / "nowhere.json")


def test_a_file_that_is_something_else_is_one_line(files, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("{}")
    with pytest.raises(RemeasureError, match="broken: not a usable ONNX model"):
        Embedding(broken, files[1])
    with pytest.raises(RemeasureError, match="broken: not a tokenizer file"):
        Embedding(files[0], broken)


def test_a_model_of_another_kind_is_one_line(files, sources):
    with pytest.raises(RemeasureError, match="ms-marco.*returns 2 axes, expected a model"):
        Embedding(sources / "ms-marco-minilm-l-12-v2.onnx", files[1])


def test_another_model_than_the_settings_mean_is_one_line(files):
    model, tokenizer = files
    with pytest.raises(RemeasureError, match=r"int8.onnx: SHA-256 is 8199be6f\w+, expected 00; delete it"):
        open_embedding(model, tokenizer, {model: "00", tokenizer: None})
    assert open_embedding(model, tokenizer, {model: sha256_file(model), tokenizer: None})


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_a_package_vectors_are_an_error_and_not_words(files, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        RemeasureError, match=r"^similarity 'embedding': onnxruntime and tokenizers cannot be"
    ):
        Embedding(*files)
