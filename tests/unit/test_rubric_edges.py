"""Edges of evidence points: thresholds, images, counts of a judge's lines, directions of the numbers."""

import numpy as np
import pytest

from remeasure.graders import Unit, by_name
from remeasure.records import Item, Response
from remeasure.rubrics import overlap
from remeasure.rubrics.attribution import attribution
from remeasure.rubrics.overlap import Overlap
from remeasure.rubrics.points import Point, Rubric
from remeasure.rubrics.similarity import Lexical

ANSWER = "Image 1: a thick wall.\nImage 2: a mass."
BACKENDS = ("lexical", "embedding")
BUCKETS = (
    "modality",
    "macro_pattern",
    "micro_pattern",
    "other",
    "cross_image_integration",
    "diagnostic_attribution",
)


def alike(value):
    """A similarity that finds any two texts alike to one degree."""
    return lambda first, second: np.full((len(first), len(second)), value)


def equal(first, second):
    """A similarity that knows nothing but equal texts."""
    return np.array([[float(one == other) for other in second] for one in first])


def graded(bits, *, n=1, value=0.0, text=ANSWER, rationale="a reference", similar=None):
    """Grade a case of n required points; a judge's lines are bits."""
    points = [
        {"point": f"finding{k}", "image": "", "credit": "required", "category": "other"} for k in range(n)
    ]
    meta = {"points": points, "rationale": rationale, "n_images": 2, "decisive": [], "supporting": []}
    lines = "\n".join("YES" if bit else "NO" for bit in bits)
    unit = Unit(
        unit_id="i",
        items=(Item(item_id="i", question="", group="g", meta=meta),),
        responses=(Response(custom_id="i", key="k", status="answered", text=text),),
        judge=(Response(custom_id="i", key="k", status="answered", text=lines),),
        thinking=False,
    )
    similar = similar or alike(value)
    return by_name("judge_rubric").grade(unit, backends=dict.fromkeys(BACKENDS, similar))


@pytest.mark.parametrize(
    ("cosine", "recall"), [(0.45, 0.0), (0.49, 0.0), (0.5, 1.0), (0.55, 1.0), (0.6, 1.0)]
)
def test_the_gated_recall_begins_at_one_half(cosine, recall):
    found = Overlap(required=(cosine,), optional=(), grounded=(), by_image=(), best=(0,))
    scores, _ = overlap.scores(found, ["other"])
    assert scores["det_hierarchical_required_recall"] == recall
    assert scores["det_hierarchical_required_recall_drop"] == 0.0
    assert scores["det_required_recall@0.4"] == 1.0


def test_sentences_are_grounded_by_required_and_optional_points_and_by_the_rationale():
    rubric = Rubric(required=(Point("first", "other"),), optional=(Point("second", "other"),))
    found = overlap.overlap(["first", "second", "third", "fourth"], rubric, ["third"], equal)
    assert found.grounded == (1.0, 1.0, 1.0, 0.0)


def test_only_required_points_are_looked_for_beside_their_image():
    rubric = Rubric(
        required=(Point("[Image 1] a", "other"), Point("b", "other")),
        optional=(Point("[Image 1] c", "other"), Point("[Image 2] d", "other")),
    )
    assert overlap.overlap(["Image 1 and image 2"], rubric, [], alike(0.7)).by_image == (0.7,)
    assert overlap.silent(rubric).by_image == (0.0,)
    assert overlap.silent(rubric).optional == (0.0, 0.0)


def test_a_point_can_be_more_alike_to_its_image_alone_than_to_the_whole_answer():
    # Card, 9: weights are fitted to each comparison. "image" stands in both texts of the pair: idf 1, the two
    # others of each ln(3/2) + 1: 0.201993. Beside a third text with "image" in it they weigh ln(4/2) + 1:
    # 0.148511.
    rubric = Rubric(required=(Point("[Image 1] mass", "other"),), optional=())
    found = overlap.overlap(["Image 1 wall", "Image 2 cyst"], rubric, [], Lexical())
    assert found.required == (pytest.approx(0.148511, abs=5e-7),)
    assert found.by_image == (pytest.approx(0.201993, abs=5e-7),)
    assert found.by_image[0] > found.required[0]


def test_a_decisive_image_supports_the_diagnosis_whether_or_not_it_is_listed_so():
    # The published module gives the same; of three images two are named, one of them decisive.
    assert attribution("Image 1: x.\nImage 2: y.", 3, {1}, {2}) == {
        "det_image_coverage": pytest.approx(2 / 3),
        "det_image_ref_out_of_range_rate": 0.0,
        "det_image_format_compliance": pytest.approx(2 / 3),
        "det_image_attribution_hallucination_rate": 0.0,
        "det_image_select_recall": 1.0,
        "det_image_select_precision": 0.5,
        "det_image_attribution_offtarget_rate": 0.0,
    }


def test_a_decisive_image_that_there_is_not_can_be_named_and_is_out_of_range():
    # The published module gives the same.
    assert attribution("See Image 5.", 4, {5}, set()) == {
        "det_image_coverage": 0.0,
        "det_image_ref_out_of_range_rate": 1.0,
        "det_image_format_compliance": 0.0,
        "det_image_attribution_hallucination_rate": 1.0,
        "det_image_select_recall": 1.0,
    }


def test_a_missing_rationale_is_a_word_as_published_and_nothing_when_strict():
    # Card, 9: a missing rationale is "nan". The answer says that word, and is read alike by both readings.
    found = graded([0, 0], text="nan.", rationale="", similar=Lexical())
    name = "det_mean_sent_groundedness_lexical"
    assert found.published.scores[name] == pytest.approx(1.0)
    assert found.strict.scores[name] == 0.0


@pytest.mark.parametrize(
    ("bit", "cosine", "expected"), [(0, 0.45, 0.0), (1, 0.45, 1.0), (0, 0.5, 1.0), (1, 0.5, 0.0)]
)
def test_a_judge_is_compared_with_points_alike_to_one_half_or_more(bit, cosine, expected):
    # |recall by the judge - share of points of 0.5 or more|; 0.45 would do for the threshold of 0.4.
    found = graded([bit, 0], value=cosine)
    for reading in (found.published, found.strict):
        for backend in BACKENDS:
            assert reading.scores[f"judge_vs_det_required_recall_mae_{backend}"] == expected


@pytest.mark.parametrize(
    ("bits", "few", "many"), [([0], 1, 0), ([0, 0], 0, 0), ([0, 0, 0], 0, 1), ([0] * 9, 0, 1)]
)
def test_too_few_and_too_many_lines_of_a_judge_are_counted(bits, few, many):
    counts = graded(bits).counts
    assert (counts["judge_lines_too_few"], counts["judge_lines_too_many"]) == (few, many)


@pytest.mark.parametrize(
    ("stated", "denied", "contradictions", "both"),
    [([0, 0], [0, 0], 0, 0), ([0, 0], [0, 1], 1, 0), ([0, 0], [1, 1], 2, 0), ([1, 1], [0, 1], 1, 1)],
)
def test_every_denied_point_is_counted(stated, denied, contradictions, both):
    found = graded([*stated, *denied], n=2)
    assert (found.counts["contradictions"], found.counts["covered_and_contradicted"]) == (
        contradictions,
        both,
    )
    # The rate is per point, as published: 0, 0.5 or 1.
    assert found.published.scores["required_contradiction_rate"] == contradictions / 2


def test_what_is_better_low_or_no_share():
    # Every other metric is a share of which more is better. Means of cosines may be below 0.
    cosines = ("det_required", "det_optional", "det_image_grounded", *(f"det_required_{b}" for b in BUCKETS))
    expected = {
        "det_image_ref_out_of_range_rate": ("low", "share"),
        "det_image_attribution_hallucination_rate": ("low", "share"),
        "det_image_attribution_offtarget_rate": ("low", "share"),
        "required_contradiction_rate": ("low", "share"),
        "hierarchical_required_recall_drop": ("low", "difference"),
        "infer_fail_rate": ("low", "share"),
    }
    for backend in BACKENDS:
        expected |= {f"{name}_meanmaxsim_{backend}": ("high", "number") for name in cosines}
        expected |= {
            f"det_mean_sent_groundedness_{backend}": ("high", "number"),
            f"det_hierarchical_required_recall_drop_{backend}": ("low", "difference"),
            f"judge_vs_det_required_recall_mae_{backend}": ("low", "share"),
        }
    metrics = by_name("judge_rubric").metrics
    assert {
        m.name: (m.better, m.kind) for m in metrics if (m.better, m.kind) != ("high", "share")
    } == expected
    assert len(expected) == 30  # 6, and 9 + 3 for each of two similarities
