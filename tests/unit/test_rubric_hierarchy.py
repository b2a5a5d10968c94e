"""Recall with gates: MRareBench card, section 8 (all verified there by running the original)."""

from statistics import mean

import pytest

from remeasure.rubrics.hierarchy import hierarchy_of

FIVE = ["modality", "macro_pattern", "micro_pattern", "cross_image_integration", "diagnostic_attribution"]
A = hierarchy_of([1, 1, 0, 1, 1], FIVE)
B = hierarchy_of([1, 1, 1, 0, 1], FIVE)
C = hierarchy_of([1, 1, 1], ["macro_pattern", "macro_pattern", "diagnostic_attribution"])
D = hierarchy_of([1, 0], ["cross_image_integration", "diagnostic_attribution"])
ALL = [A, B, C, D]


@pytest.mark.parametrize(
    ("found", "visual", "cross", "recall"),
    [
        (A, 0, 1, 0.275229),  # 1.5 of 5.45: the missed micro point takes what stands above it
        (B, 1, 0, 0.495413),  # 2.7 of 5.45
        (C, 1, 1, 1.0),
        (D, 1, 1, 0.727273),  # 2.0 of 2.75; the flat recall is 0.5
    ],
    ids="ABCD",
)
def test_worked_items(found, visual, cross, recall):
    assert (found.visual_gate, found.cross_gate) == (visual, cross)
    assert found.recall == pytest.approx(recall, abs=5e-7)


def test_without_required_points_there_is_no_recall():
    assert hierarchy_of([], []) is None  # item E
    assert hierarchy_of([1], FIVE) is None


def test_means_over_the_four_items():
    assert mean(one.recall for one in ALL) == pytest.approx(0.624479, abs=5e-7)
    # The flat recalls are 0.8, 0.8, 1 and 0.5.
    assert 0.775 - mean(one.recall for one in ALL) == pytest.approx(0.150521, abs=5e-7)
    assert mean(one.recall >= 1 for one in ALL) == 0.25
    assert (mean(one.visual_gate for one in ALL), mean(one.cross_gate for one in ALL)) == (0.75, 0.75)


@pytest.mark.parametrize(
    ("level", "n", "raw", "gated"),
    [(1, 3, 0.888889, 0.888889), (2, 3, 0.666667, 0.333333), (3, 4, 0.75, 0.25)],
)
def test_recall_of_a_level_over_the_items_that_have_it(level, n, raw, gated):
    found = [(one.raw[level - 1], one.gated[level - 1]) for one in ALL if one.raw[level - 1] is not None]
    assert len(found) == n
    assert mean(one for one, _ in found) == pytest.approx(raw, abs=5e-7)
    assert mean(one for _, one in found) == pytest.approx(gated, abs=5e-7)


def test_one_missed_modality_point_takes_everything_above_it():
    # The weak spot that the card names: 0.5 of 3.25 is missed, 2.75 is lost with it.
    found = hierarchy_of([0, 1, 1], ["modality", "cross_image_integration", "diagnostic_attribution"])
    assert found.recall == 0
    assert (found.raw, found.gated) == ((0.0, 1.0, 1.0), (0.0, 0.0, 0.0))


def test_the_cross_gate_looks_at_hits_before_gating():
    # The visual gate is closed, the cross gate is open all the same.
    assert (A.visual_gate, A.cross_gate) == (0.0, 1.0)
    assert [A.gate(bucket) for bucket in FIVE] == [1, 1, 1, 0, 0]
    assert [B.gate(bucket) for bucket in FIVE] == [1, 1, 1, 1, 0]


def test_nothing_hit_is_nothing_and_everything_is_all():
    assert hierarchy_of([0] * 5, FIVE).recall == 0
    assert hierarchy_of([1] * 5, FIVE).recall == 1
