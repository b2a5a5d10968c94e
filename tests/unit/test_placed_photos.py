"""Grades of rankings: average precision and precision at k of one query, by difficulty and reading."""

import pytest

from remeasure.errors import RemeasureError
from remeasure.graders import by_name
from remeasure.graders.base import Unit
from remeasure.records import Item, Placed, Response


def graded(options=None, **placed):
    item = Item(item_id="q", question="", group="all_souls", meta={})
    n = {"easy": 0, "medium": 0, "hard": 0}
    given = {"n_gallery": 9, "n_positives": n, "positions": {}} | placed
    response = Response(custom_id="q", key="k", status="answered", text="", placed=Placed(**given))
    grade = by_name("placed_photos").begin(options or {})
    return grade(Unit(unit_id="q", items=(item,), responses=(response,), judge=(None,), thinking=False))


def test_a_query_has_its_numbers_by_difficulty_in_two_readings():
    """Places 0 and 1 of 2: AP 1. Of 1 at place 1: (0 + 1/2) / 2. P@5 as published divides by the last."""
    found = graded(
        n_positives={"easy": 2, "medium": 3, "hard": 1},
        positions={"easy": (0, 1), "medium": (0, 1, 4), "hard": (1,)},
    )
    assert found.published.scores["map_easy"] == 1.0 and found.published.scores["map_hard"] == 0.25
    assert found.published.score == found.strict.score == pytest.approx((1 + 1 + (2 / 4 + 3 / 5) / 2) / 3)
    assert found.published.scores["mp5_easy"] == 1.0 and found.strict.scores["mp5_easy"] == 0.4
    assert found.published.scores["mp10_hard"] == 0.5 and found.strict.scores["mp10_hard"] == 0.1
    assert found.published.scores["mp5_medium"] == found.strict.scores["mp5_medium"] == 0.6
    assert found.published.verdict == "hit_first" and found.group == "all_souls" and found.also == {}


def test_ties_are_ordered_as_published_in_one_reading_only():
    found = graded(
        n_positives={"easy": 0, "medium": 1, "hard": 1},
        positions={"medium": (0,), "hard": (0,)},
        as_sorted={"medium": (1,)},
        n_tied=1,
    )
    assert found.published.score == 0.25 and found.strict.score == 1.0
    assert found.published.scores["map_hard"] == found.strict.scores["map_hard"] == 1.0
    assert found.published.verdict == "hit_later" and found.counts["queries_with_tied_positives"] == 1


def test_a_query_without_positives_leaves_every_mean():
    found = graded(
        n_positives={"easy": 0, "medium": 1, "hard": 1}, positions={"easy": (), "medium": (0,), "hard": (0,)}
    )
    assert found.published.scores["map_easy"] is None and found.published.scores["mp1_easy"] is None
    assert found.counts["queries_without_easy"] == 1 and found.counts["queries_without_hard"] == 0
    none = graded(positions={"easy": (), "medium": (), "hard": ()})
    assert none.published.score is None and none.strict.verdict == "ungraded"


def test_a_difficulty_that_was_not_reranked_has_no_number():
    found = graded(n_positives={"easy": 1, "medium": 1, "hard": 0}, positions={"medium": (0,), "hard": ()})
    assert found.published.scores["map_easy"] is None and found.published.score == 1.0


def test_positives_that_a_ranking_lacks_cost_recall():
    found = graded(
        n_positives={"easy": 1, "medium": 2, "hard": 1}, positions={"easy": (0,), "medium": (0,), "hard": ()}
    )
    assert found.published.score == 0.5
    assert found.published.scores["map_hard"] == found.published.scores["mp5_hard"] == 0.0


def test_a_cut_list_is_a_reading_of_its_own():
    """Cut at 2, one of three positives is found at the first place, and two are expected at most: 1/2."""
    n = {"easy": 0, "medium": 3, "hard": 0}
    found = graded({"truncate": 2}, n_positives=n, positions={"medium": (0, 2, 3)})
    assert found.also["truncated"].score == 0.5
    assert found.published.score == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + (2 / 3 + 3 / 4) / 2) / 3)


def test_a_list_is_cut_before_what_is_ignored_is_taken_out():
    """A list of junk, positive, other: the second positive, third of those that count, is the fourth of all.

    As in the AMES authors' evaluator with a list of the nearest: one of two positives, at the first place.
    """
    n = {"easy": 0, "medium": 2, "hard": 0}
    found = graded({"truncate": 3}, n_positives=n, positions={"medium": (0, 2)}, ignored={"medium": (0, 7)})
    assert found.also["truncated"].score == 0.5 and found.published.score == (1 + 1 + 1 / 2 + 2 / 3) / 4


def test_positives_that_could_not_be_decoded_are_counted():
    found = graded(n_positives={"easy": 0, "medium": 1, "hard": 1}, positions={"medium": (8,)}, n_undecoded=1)
    assert found.counts["undecoded_positives"] == 1


def test_a_reader_that_ranked_nothing_is_left_out():
    item = Item(item_id="q", question="", group="g")
    response = Response(custom_id="q", key="k", status="failed", text=None, error="x")
    unit = Unit(unit_id="q", items=(item,), responses=(response,), judge=(None,), thinking=False)
    found = by_name("placed_photos").begin({})(unit)
    assert found.published.score is None and set(found.published.scores.values()) == {None}


@pytest.mark.parametrize("options", [{"truncate": 0}, {"cut": 3}])
def test_options_that_the_grader_does_not_have_are_refused(options):
    with pytest.raises(RemeasureError, match="grader placed_photos: options: .*it has `truncate`"):
        by_name("placed_photos").method(options)
