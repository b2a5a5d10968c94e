"""Average precision and precision at k, against numbers that are worked out by hand and a slow evaluator."""

import math
import time

import numpy as np
import pytest

import rankkit
from remeasure.errors import RemeasureError
from remeasure.instances import evaluation
from remeasure.instances.evaluation import average_precision, positions, precision_at

# Card, section 2.4, verified there against the published function: ranking, right ones, junk, AP, P@1, 5, 10.
GOLDEN = [
    ("30412", (0, 2), (3,), 0.7083333333333333, (1, 0.5, 0.5)),
    ("01234", (4,), (0, 1, 2, 3), 1.0, (1, 1, 1)),
    ("01234", (4,), (), 0.1, (0, 0.2, 0.2)),
    ("201", (0, 1, 7), (), 0.27777777777777773, (0, 2 / 3, 2 / 3)),
    ("5910728364", (1, 2, 3, 4), (9, 8), 0.3723214285714286, (0, 0.4, 0.5)),
]


def at(ranking: str, right, junk) -> np.ndarray:
    places = {int(photo): place for place, photo in enumerate(ranking)}
    return positions([places[i] for i in right if i in places], [places[i] for i in junk if i in places])


@pytest.mark.parametrize(("ranking", "right", "junk", "ap", "precisions"), GOLDEN)
def test_golden_vectors(ranking, right, junk, ap, precisions):
    found = at(ranking, right, junk)
    assert average_precision(found, len(right)) == ap
    assert tuple(precision_at(found, k, published=True) for k in (1, 5, 10)) == precisions


def test_a_query_without_positives_leaves_the_mean():
    """The card's sixth vector: rankings 0 1 2 3 and 3 2 1 0; the second has no positive."""
    labels = rankkit.labels(4, ((0, 3), (), ()), ((), (), (1,)))
    scores = np.float32([[4, 3, 2, 1], [1, 2, 3, 4]])
    ids = [labels.labelled(query) for query in range(2)]
    found = evaluation.mean_ap(evaluation.rank_rows(scores, ids), labels)
    assert found["easy"] == found["medium"] == 0.7083333333333333
    assert math.isnan(found["hard"])


def test_a_photograph_that_is_positive_and_ignored_is_not_moved_by_itself():
    """As the published function counts: only what is ignored strictly before a positive moves it."""
    assert positions([3], [3]).tolist() == [3] and positions([3, 5], [1, 3]).tolist() == [2, 3]


def test_areas_are_added_up_one_by_one():
    """The number is the published function's; added up in pairs or from the end the last bit is another."""
    places = [0, 1, 5, 12, 16, 17, 20, 22, 24, 25, 31, 39, 40, 45, 48, 50, 54, 55, 56, 57]
    assert average_precision(np.array(places), 20) == 0.39013967051337395


def test_strict_precision_always_divides_by_k():
    assert precision_at(np.array([0, 1]), 10, published=True) == 1.0
    assert precision_at(np.array([0, 1]), 10, published=False) == 0.2
    assert (
        precision_at(np.array([0, 7]), 5, published=True) == precision_at([0, 7], 5, published=False) == 0.2
    )


def test_the_degenerate_cases():
    none = np.empty(0, np.int64)
    assert math.isnan(average_precision(none, 0))
    # Positives that a ranking lacks cost recall; the published function ends with an error for P@k.
    assert average_precision(none, 3) == 0.0 and precision_at(none, 5, published=True) == 0.0
    assert average_precision(np.array([0, 1, 2]), 3) == 1.0
    assert positions([5, 2], []).tolist() == [2, 5] and positions([], [1]).tolist() == []


@pytest.mark.slow
def test_a_hundred_thousand_photographs_take_a_fifth_of_a_full_sort_at_most():
    """The card's gate; CPU seconds of one thread, since other work may share the cores."""
    rng = np.random.default_rng(0)
    labels = rankkit.random_labels(rng, 6000, 20, most=100)
    scores = (rng.standard_normal((20, 100_000)) / 22).astype(np.float32)
    ids = [labels.labelled(query) for query in range(20)]

    def sorted_whole() -> list[np.ndarray]:
        order = np.argsort(-scores, axis=1, kind="stable")
        return [np.flatnonzero(np.isin(row, found)) for row, found in zip(order, ids, strict=True)]

    took = {}
    for name, function in (("ours", lambda: evaluation.rank_rows(scores, ids)), ("whole", sorted_whole)):
        times = []
        for _ in range(5):
            begin = time.thread_time()
            found = function()
            times.append(time.thread_time() - begin)
        took[name], wanted = min(times), found
    ranks = evaluation.rank_rows(scores, ids)
    assert all(sorted(one.rank.tolist()) == other.tolist() for one, other in zip(ranks, wanted, strict=True))
    assert took["whole"] >= 5 * took["ours"], took


def test_areas_are_trapezoids_not_rectangles():
    """One positive at the second place: 1/2 as rectangles, (0 + 1/2) / 2 as trapezoids."""
    assert average_precision(np.array([1]), 1) == 0.25


def test_junk_before_a_positive_moves_it_up_and_behind_it_does_not():
    assert positions([3, 6], [0, 1, 5, 9]).tolist() == [1, 3]


@pytest.mark.parametrize("decimals", [1, 2, 7])
def test_counted_ranks_give_the_same_as_whole_rankings(decimals):
    rng = np.random.default_rng(decimals)
    for _ in range(20):
        n = int(rng.integers(40, 200))
        labels = rankkit.random_labels(rng, n, 6)
        scores = np.round(rng.uniform(-1, 1, (6, n)), decimals).astype(np.float32)
        ranks = evaluation.rank_rows(scores, [labels.labelled(query) for query in range(6)])
        rankings = rankkit.by_score(scores)
        found, wanted = evaluation.mean_ap(ranks, labels), rankkit.slow_map(rankings, labels)
        assert all(abs(found[name] - wanted[name]) <= 1e-12 for name in wanted), (found, wanted)
        for query, truth in enumerate(labels.gnd):
            places = evaluation.positions_of(ranks[query], labels.settings(query))
            for name, (positives, junk) in rankkit.asked(truth).items():
                for k in (1, 5, 10) if positives else ():
                    wanted_k = rankkit.slow_precision(rankings[query], positives, junk, k)
                    assert precision_at(places[name], k, published=True) == wanted_k


def test_descriptors_are_ranked_by_inner_products():
    labels = rankkit.labels(3, ((2,), (), ()))
    queries, gallery = np.float32([[1, 0]]), np.float32([[0.6, 0.8], [0, 1], [1, 0]])
    assert evaluation.evaluate(queries, gallery, labels)["easy"] == 1.0
    gallery[0] = [1, 0]  # equal: the lower id is first, and the positive second
    assert evaluation.evaluate(queries, gallery, labels)["easy"] == 0.25


def test_descriptors_that_do_not_fit_are_refused():
    labels = rankkit.labels(3, ((2,), (), ()))
    with pytest.raises(RemeasureError, match="expected 1 queries"):
        evaluation.evaluate(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32), labels)
    with pytest.raises(RemeasureError, match="the same length"):
        evaluation.evaluate(np.ones((1, 3), np.float32), np.ones((3, 4), np.float32), labels)
    with pytest.raises(RemeasureError, match="photograph 2 of a gallery of 2 .0 to 1."):
        evaluation.evaluate(np.ones((1, 4), np.float32), np.ones((2, 4), np.float32), labels)


@pytest.mark.parametrize(("number", "word"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
def test_scores_that_are_no_numbers_are_an_error(number, word):
    scores = np.float32([[0.5, number, 0.1]])
    with pytest.raises(RemeasureError, match=f"score of photograph 1 of the gallery is {word}"):
        evaluation.rank_rows(scores, [np.array([0])])
