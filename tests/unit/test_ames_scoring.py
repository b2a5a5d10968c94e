import numpy as np
import pytest

from ameskit import SMALL, dense_logits, random_descriptors, random_weights
from remeasure.errors import RemeasureError
from remeasure.instances import vectors_file
from remeasure.instances.ames import scoring
from remeasure.instances.ames.layouts import Block
from remeasure.instances.ames.scoring import kind_of
from remeasure.instances.ames.tokens import Tokens, remapped

LENGTH = 70


def photos(n, seed, n_valid=None):
    counts = np.full(n, LENGTH) if n_valid is None else np.array(n_valid)
    x = random_descriptors(n, LENGTH, SMALL.dim, seed)
    x[np.arange(LENGTH) >= counts[:, None]] = 0
    return x, counts


def ready(model, x, counts, gallery=True):
    return scoring.ready(model, remapped(model, Block(x, counts), gallery), counts)


@pytest.mark.parametrize(
    ("n_valid", "n", "expected"),
    [
        (600, 600, (600, False)),
        (599, 600, (600, True)),
        (64, 600, (64, False)),
        (65, 600, (96, True)),
        (1, 600, (32, True)),
        (1, 1, (1, False)),
        (7, 20, (20, True)),
    ],
)
def test_lengths_are_rounded_up_to_32_or_what_there_is(n_valid, n, expected):
    assert kind_of(n_valid, n) == expected


def test_a_logit_does_not_depend_on_the_pairs_beside_it():
    model = scoring.opened(random_weights(SMALL, 5), SMALL, "fp32", "cpu", 1)
    queries = ready(model, *photos(3, 1, [70, 12, 70]), gallery=False)
    x, counts = photos(30, 2, [70] * 27 + [1, 32, 33])
    everything = np.array([(q, g) for q in range(3) for g in range(30)])
    found = scoring.logits(model, queries, ready(model, x, counts), everything)
    # Nor on how many threads there are.
    threads = scoring.opened(random_weights(SMALL, 5), SMALL, "fp32", "cpu", 3)
    assert (scoring.logits(threads, queries, ready(threads, x, counts), everything) == found).all()
    # Two passes over what settings ask for, and photographs one by one, give the same bits.
    for chosen in (everything[::3], everything[1::2], everything[7:8], everything[40:71]):
        numbers = chosen[:, 0] * 30 + chosen[:, 1]
        used, at = np.unique(chosen[:, 1], return_inverse=True)
        some = ready(model, x[used], counts[used])
        again = scoring.logits(model, queries, some, np.stack([chosen[:, 0], at], 1))
        assert (again == found[numbers]).all()


def test_all_lengths_give_what_the_dense_form_gives():
    tensors = random_weights(SMALL, 5)
    model = scoring.opened(tensors, SMALL, "fp32", "cpu")
    one, n_one = photos(4, 1, [70, 1, 33, 64])
    other, n_other = photos(4, 2, [5, 70, 64, 32])
    pairs = np.array([(q, g) for q in range(4) for g in range(4)])
    found = scoring.logits(model, ready(model, one, n_one, False), ready(model, other, n_other), pairs)
    q, g = pairs.T
    expected = dense_logits(tensors, SMALL, one[q], n_one[q], other[g], n_other[g])
    assert np.abs(found - expected).max() <= 1e-5


def test_a_photograph_without_tokens_is_refused():
    model = scoring.opened(random_weights(SMALL, 5), SMALL, "fp32", "cpu")
    with pytest.raises(RemeasureError, match="photograph 1 of 2 has no tokens"):
        ready(model, *photos(2, 1, [3, 0]))


def test_a_logit_that_is_no_number_is_refused():
    tensors = random_weights(SMALL, 5)
    tensors["classifier.bias"][:] = np.inf
    model = scoring.opened(tensors, SMALL, "fp32", "cpu")
    side = ready(model, *photos(1, 1))
    with pytest.raises(RemeasureError, match=r"pair \[0, 0\]: its logit is inf"):
        scoring.logits(model, side, side, np.array([[0, 0]]))


def test_sixteen_bits_give_nearly_the_same():
    tensors = random_weights(SMALL, 5)
    pairs = np.array([(q, g) for q in range(3) for g in range(3)])
    found = []
    for numeric in ("fp32", "tf32", "fp16"):
        model = scoring.opened(tensors, SMALL, numeric, "cpu")
        exact = scoring.opened(tensors, SMALL, "fp32", "cpu")
        sides = [
            scoring.ready(model, remapped(exact, Block(*photos(3, seed)), True), np.full(3, LENGTH))
            for seed in (1, 2)
        ]
        found.append(scoring.logits(model, *sides, pairs))
    assert (found[0] == found[1]).all()  # a CPU has no tf32
    assert 0 < np.abs(found[0] - found[2]).max() < 0.02


def test_fewer_tokens_than_are_stored_are_the_first_ones(tmp_path):
    """A file of 5 tokens a photograph, the published 700; 3 are asked for, the published 600."""
    tok = np.arange(1, 41, dtype=np.float16).reshape(2, 5, 4)
    tok[1, 2:] = 0
    arrays = {"tok": tok, "n_valid": np.array([5, 2], np.uint16), "row": np.arange(2)}
    vectors_file.write(tmp_path / "t.h5", ["a", "b"], about={}, **arrays)
    found, n_valid = Tokens(tmp_path / "t.h5", 4).take(np.array([0, 1]), 3)
    assert found.shape == (2, 3, 4) and n_valid.tolist() == [3, 2]
    assert found[0, 2].tolist() == [9, 10, 11, 12] and found[1, 2].tolist() == [0, 0, 0, 0]
