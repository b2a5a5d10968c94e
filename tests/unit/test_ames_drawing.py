import numpy as np
import pytest

from remeasure.errors import RemeasureError
from remeasure.instances.ames import drawing, starting
from remeasure.instances.ames.drawing import Pairs, Photos
from remeasure.instances.ames.weights import Shape


def photos(classes, dim=4):
    n = len(classes)
    x = np.zeros((n, 2, dim), np.float16)
    x[np.arange(n), 0, np.array(classes) % dim] = 1
    return Photos(x, np.ones(n, np.int64), np.array(classes, np.int64))


def test_auc_counts_ties_half():
    # High 2 and 1 against low 1 and 0: 1 + 1 + 0.5 + 1 of four.
    assert drawing.auc(np.array([2, 1, 1, 0.0]), np.array([1, 0, 1, 0])) == 3.5 / 4


def test_every_second_pair_is_of_one_class():
    given = photos([0, 0, 1, 1, 1, 2, 2, 3])
    drawn = Pairs(given, 0, "x").draw(40)
    assert drawn.same.tolist() == [1, 0] * 20
    assert ((given.classes[drawn.one] == given.classes[drawn.other]) == (drawn.same > 0)).all()
    assert (drawn.one != drawn.other).all()
    # Class 3 has one photograph: none of its own kind.
    assert 7 not in drawn.one


def test_what_looks_alike_is_of_another_class():
    # Classes 0 and 4 look the same, as the numbers of their descriptors do.
    given = photos([0, 0, 4, 4, 1, 1])
    assert sorted(drawing.alike(given)[0][:2].tolist()) == [2, 3]


def test_classes_are_held_out_whole():
    given = photos([name for name in range(10) for _ in range(3)] + [99])
    trained, held = drawing.split(given, 1)
    assert len(np.unique(held.classes)) == 2 and len(trained.classes) == 25
    assert not set(held.classes.tolist()) & set(trained.classes.tolist()) and 99 in trained.classes


def test_too_few_classes_are_one_line():
    with pytest.raises(RemeasureError, match="3 photographs with local descriptors, 1 classes with two"):
        Pairs(photos([0, 0, 1]), 0, "plan.parquet")


def test_main_axes_are_those_of_the_spread():
    x = np.array([[1, 0, 0], [-1, 0, 0], [0, 0.5, 0], [0, -0.5, 0]], np.float32) + np.float32([0, 0, 2])
    mean, found = starting.axes(x, 2)
    assert mean.tolist() == [0, 0, 2] and np.abs(found - [[1, 0, 0], [0, 1, 0]]).max() < 1e-7


def test_scores_become_logits():
    # Eight of ten with score 1 are of one class, two of ten with score 0: +-log(4), less a penalty.
    scores = np.repeat([1.0, 0.0], 10)
    same = np.array([1] * 8 + [0] * 2 + [1] * 2 + [0] * 8, np.float32)
    factor, offset = starting.calibrated(scores, same)
    assert abs(factor + offset - np.log(4)) < 0.02 and abs(offset + np.log(4)) < 0.02
    assert starting.calibrated(np.ones(4), np.array([0, 1, 0, 1])) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("sizes", "n"),
    [
        ({"width": 64, "heads": 2, "layers": 2, "ffn": 128}, 30),
        ({"width": 128, "heads": 2, "layers": 5, "ffn": 128}, 32),
        ({"width": 64, "heads": 1, "layers": 2, "ffn": 128}, 0),
        ({"width": 64, "heads": 2, "layers": 1, "ffn": 128}, 0),
    ],
)
def test_a_matcher_needs_room(sizes, n):
    assert starting.n_content(Shape(dim=112, **sizes)) == n
