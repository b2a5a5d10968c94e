import numpy as np
import pytest

from remeasure.encoders import EncoderSettings, TrainingSettings, check_training, training
from remeasure.encoders.training import Pairs
from remeasure.errors import RemeasureError

BASE = EncoderSettings(unit="tiles", model="bge-small-en-v1.5", max_tokens=512)


def settings(**other):
    fields = dict(study="s", base="b", base_encoder=BASE, rank=2, temperature=0.1, learning_rate=0.01)
    return TrainingSettings(**fields | dict(max_steps=30, patience=5, seed=1) | other)


def unit(rows):
    rows = np.asarray(rows, dtype=float)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def turned_pairs(seed, turn, n=12, dim=6):
    """Documents, and questions that are the documents seen through one fixed map plus noise."""
    rng = np.random.default_rng(seed)
    documents = unit(rng.standard_normal((n, dim)))
    queries = unit(documents @ turn + 0.05 * rng.standard_normal((n, dim)))
    return Pairs(queries, documents, np.eye(n, dtype=bool))


def test_loss_at_the_start_by_hand():
    # Cosines 1 and 0 at temperature 1: -log(e / (e + 1)) = log(1 + 1/e).
    pairs = Pairs(np.float32([[1, 0]]), np.float32([[1, 0], [0, 1]]), np.array([[True, False]]))
    start = (np.ones((2, 1)), np.zeros((1, 2)))
    assert training.loss_function(pairs, 1.0)(start) == pytest.approx(np.log1p(np.exp(-1)))


def test_of_two_gold_tiles_the_sum_counts():
    pairs = Pairs(np.float32([[1, 0]]), np.float32([[1, 0], [0, 1]]), np.array([[True, True]]))
    assert training.loss_function(pairs, 0.05)((np.ones((2, 1)), np.zeros((1, 2)))) == pytest.approx(0)


def test_gradient_equals_differences():
    import autograd

    pairs = turned_pairs(0, np.eye(6))
    loss = training.loss_function(pairs, 0.1)
    rng = np.random.default_rng(1)
    down, up = rng.standard_normal((6, 2)), rng.standard_normal((2, 6))
    slopes = autograd.grad(loss)((down, up))
    for row, column in ((0, 0), (1, 3)):
        moved = [up.copy(), up.copy()]
        moved[0][row, column] += 1e-6
        moved[1][row, column] -= 1e-6
        difference = (loss((down, moved[0])) - loss((down, moved[1]))) / 2e-6
        assert slopes[1][row, column] == pytest.approx(difference, rel=1e-5)


def test_first_adamw_step_by_hand():
    # Both moments corrected give slope/|slope| = 1: 2 * (1 - 0.1 * 0.01) - 0.1 * 1 = 1.898.
    moments = [np.zeros(1)], [np.zeros(1)]
    (found,) = training._adamw((np.array([2.0]),), (np.array([5.0]),), *moments, 1, 0.1)
    assert found[0] == pytest.approx(1.898, abs=1e-8)


def test_a_map_that_can_be_learned_is_learned_and_twice_the_same():
    turn = np.eye(6)[[1, 0, 2, 3, 4, 5]]  # Two axes change places: a residual of rank 1.
    pairs = turned_pairs(0, turn, n=40), turned_pairs(1, turn, n=20)
    found, again = (training.train(*pairs, settings(max_steps=100)) for _ in range(2))
    assert found.steps[found.chosen].dev_mrr > found.steps[0].dev_mrr + 0.05
    assert found.up.tobytes() == again.up.tobytes() and found.steps == again.steps
    assert found.up.dtype == np.float32 and found.down.shape == (6, 2)
    other = training.train(*pairs, settings(max_steps=100, seed=2))
    assert other.down.tobytes() != found.down.tobytes()


def test_when_no_step_is_better_on_dev_the_map_is_the_identity_and_training_stops_early():
    train_pairs = turned_pairs(0, np.eye(6)[[1, 0, 2, 3, 4, 5]])
    # On dev the base encoder is perfect and the opposite documents are as far as can be.
    documents = unit(np.concatenate([np.eye(6), -np.eye(6)]))
    dev_pairs = Pairs(documents, documents, np.eye(12, dtype=bool))
    found = training.train(train_pairs, dev_pairs, settings(temperature=0.01, learning_rate=0.05))
    assert found.chosen == 0 and not found.up.any()
    assert len(found.steps) == 6  # Step 0 and five without a better one.


def test_of_equal_ranks_the_lower_dev_loss_wins_and_of_equal_losses_the_earlier_step():
    worse, same, better = (training.Step(n, 0.0, 1.0, loss) for n, loss in ((1, 0.3), (2, 0.3), (3, 0.2)))
    assert better.rank() > worse.rank() and not same.rank() > worse.rank()
    assert training.Step(4, 0.0, 0.9, 0.0).rank() < worse.rank()


def test_numbers_out_of_range_are_all_named():
    with pytest.raises(RemeasureError, match=r"rank 0 \(from 1\), temperature 0.001 \(from 0.005\)"):
        check_training(settings(rank=0, temperature=0.001))
