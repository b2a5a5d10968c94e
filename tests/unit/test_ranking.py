import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure import ranking


def test_of_equal_values_the_lower_position_wins():
    assert list(ranking.top_k(np.array([0.2, 0.9, 0.9, 0.1]), 3)) == [1, 2, 0]


def test_more_than_there_is_gives_everything():
    assert list(ranking.top_k(np.array([0.1, 0.2]), 10)) == [1, 0]
    assert list(ranking.top_k(np.array([]), 3)) == []


def test_equal_rows_have_equal_scores_and_noise_below_a_millionth_is_a_tie():
    rows = np.array([[0.6, 0.8], [0.6, 0.8000001], [1.0, 0.0]], dtype=np.float32)
    found = ranking.scores(rows, np.array([0.0, 1.0], dtype=np.float32))
    assert found[0] == found[1] == 0.8 and found[2] == 0


def test_fusion_by_hand():
    # a: 1/(10+1) + 2/(10+2) = 0.257576; b: 1/12 + 2/11 = 0.265152; c: 2/13 = 0.153846
    ids, scores = ranking.fuse([(1.0, ["a", "b"]), (2.0, ["b", "a", "c"])], 10, 5, "abc".index)
    assert ids == ["b", "a", "c"]
    assert scores == [0.265152, 0.257576, 0.153846]


def test_fusion_ties_fall_to_the_lower_position_in_the_order_file():
    ids, _ = ranking.fuse([(1.0, ["late"]), (1.0, ["early"])], 10, 2, ["early", "late"].index)
    assert ids == ["early", "late"]


def test_page_of_a_tile_whose_page_has_a_slash():
    assert ranking.page_of("a/b/0001") == "a/b"


def test_first_hit_counts_from_one_and_is_none_without_a_relevant_page():
    assert ranking.first_hit(["x/0000", "y/0000", "y/0001"], ["y"]) == 2
    assert ranking.first_hit(["x/0000"], ["y"]) is None
    assert ranking.first_hit(["x/0000"], []) is None


def test_mean_reciprocal_rank_by_hand():
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    gold = np.array([[False, False, True], [True, False, True]])
    assert ranking.mean_reciprocal_rank(scores, gold) == pytest.approx((1 / 2 + 1) / 2)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 40))
def test_top_k_equals_sorting_by_value_then_position(values, k):
    expected = sorted(range(len(values)), key=lambda place: (-values[place], place))[:k]
    assert list(ranking.top_k(np.array(values, dtype=float), k)) == expected
