"""What an answer has in common with its points: MRareBench card, section 9."""

import time

import numpy as np
import pytest

from remeasure.rubrics import overlap
from remeasure.rubrics.overlap import Overlap, sentences
from remeasure.rubrics.points import Point, Rubric
from remeasure.rubrics.similarity import Lexical, NoWords, lenient

P1 = Point("[Image 1] a mass", "macro_pattern")
P2 = Point("[Image 2] both fit", "cross_image_integration")
P3 = Point("it is this", "diagnostic_attribution")
S1, S2 = "Image 1 shows a mass.", "Image 3 shows a wall."
MATRIX = {P1.text: (0.62, 0.10), P2.text: (0.45, 0.52), P3.text: (0.20, 0.33)}
RUBRIC = Rubric(required=(P1, P2, P3), optional=())
BUCKETS = ["macro_pattern", "cross_image_integration", "diagnostic_attribution"]


def injected(first, second):
    """The card's matrix: points by sentences, either way round."""
    if first[0] in MATRIX:
        return np.array([[MATRIX[point][(S1, S2).index(one)] for one in second] for point in first])
    return injected(second, first).T


def test_worked_matrix():
    found = overlap.overlap([S1, S2], RUBRIC, [], injected)
    assert found == Overlap(
        required=(0.62, 0.52, 0.33),
        optional=(),
        grounded=(0.62, 0.52),
        by_image=(0.62, 0.0),
        best=(0, 1, 1),
    )


def test_scores_of_the_worked_matrix():
    scores, weights = overlap.scores(overlap.overlap([S1, S2], RUBRIC, [], injected), BUCKETS)
    third = pytest.approx
    expected = {
        "det_required_meanmaxsim": third(0.49),
        "det_required_recall@0.3": 1.0,
        "det_required_recall@0.35": third(0.666667, abs=5e-7),
        "det_required_recall@0.4": third(0.666667, abs=5e-7),
        "det_required_recall@0.5": third(0.666667, abs=5e-7),
        "det_required_recall@0.6": third(0.333333, abs=5e-7),
        "det_mean_sent_groundedness": third(0.57),
        "det_grounded_ratio@0.5": 1.0,
        "det_grounded_ratio@0.6": 0.5,
        "det_image_grounded_meanmaxsim": third(0.31),
        "det_image_grounded_recall@0.5": 0.5,
        "det_hierarchical_required_recall": third(0.8),
        "det_hierarchical_required_recall_drop": third(-0.133333, abs=5e-7),
        "det_required_macro_pattern_meanmaxsim": 0.62,
        "det_required_macro_pattern_recall@0.6": 1.0,
        "det_required_cross_image_integration_recall@0.5": 1.0,
        "det_required_cross_image_integration_recall@0.6": 0.0,
        "det_required_diagnostic_attribution_recall@0.35": 0.0,
    }
    assert {name: scores[name] for name in expected} == expected
    assert "det_optional_meanmaxsim" not in scores and "det_required_modality_meanmaxsim" not in scores
    assert weights["det_required_macro_pattern_meanmaxsim"] == 1
    assert not [name for name in weights if "modality" in name]


def test_a_cosine_on_a_threshold_reaches_it():
    found = Overlap(required=(0.5, 0.3), optional=(0.35,), grounded=(0.6,), by_image=(), best=(0, 0))
    scores, _ = overlap.scores(found, ["modality", "other"])
    assert (scores["det_required_recall@0.5"], scores["det_required_recall@0.3"]) == (0.5, 1.0)
    assert (scores["det_optional_recall@0.35"], scores["det_grounded_ratio@0.6"]) == (1.0, 1.0)
    # Points of 0.5 and 1.0; the first is hit: 0.5 of 1.5.
    assert scores["det_hierarchical_required_recall"] == pytest.approx(1 / 3)


def test_points_of_a_bucket_weigh_as_many_as_there_are():
    found = Overlap(required=(0.5, 0.3, 0.1), optional=(), grounded=(), by_image=(), best=(0, 0, 0))
    scores, weights = overlap.scores(found, ["other", "modality", "other"])
    assert scores["det_required_other_meanmaxsim"] == pytest.approx(0.3)
    assert (scores["det_required_other_recall@0.5"], weights["det_required_other_recall@0.5"]) == (0.5, 2)
    assert weights["det_required_modality_recall@0.5"] == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3 cm nodule in the lobe.", ["cm nodule in the lobe."]),  # card: the number is taken for a bullet
        ("Fig. 3 shows a wall.", ["Fig.", "shows a wall."]),
        ("Image 1:\na thick wall", ["Image 1:", "a thick wall"]),  # card: a label is a sentence
        (
            "- one.\n* two!\n# three?\n> four\n• five\n2) six",
            ["one.", "two!", "three?", "four", "five", "six"],
        ),
        ("A b. C.D e", ["A b.", "C.D e"]),
        ("ab\nabc\n 1. \n", ["abc"]),  # three characters at least
        ("no end", ["no end"]),
        ("**Image 1**: a wall", ["Image 1**: a wall"]),
        ("one.\u2003two.\u2028three", ["one.", "two.", "three"]),
        ("one\rtwo", ["one\rtwo"]),
        ("nan", ["nan"]),
        ("", []),
        (" \n\t", []),
        ("جملة أولى. جملة ثانية", ["جملة أولى.", "جملة ثانية"]),
    ],
)
def test_sentences(text, found):
    assert sentences(text) == found


def test_an_answer_without_sentences_has_no_values_but_for_images():
    # Card: all are absent (the item leaves the mean), image-grounded values are 0.
    found = overlap.overlap([], RUBRIC, ["a rationale"], injected)
    assert found == Overlap(required=(), optional=(), grounded=(), by_image=(0.0, 0.0), best=())
    scores, weights = overlap.scores(found, BUCKETS)
    assert set(scores) == {"det_image_grounded_meanmaxsim"} | {
        f"det_image_grounded_recall@{threshold}" for threshold in (0.3, 0.35, 0.4, 0.5, 0.6)
    }
    assert set(scores.values()) == {0.0} and not weights


def test_a_silent_answer_states_no_point():
    rubric = Rubric(required=(P1, P3), optional=(P2,))
    scores, _ = overlap.scores(overlap.silent(rubric), rubric.buckets)
    assert scores["det_required_recall@0.3"] == scores["det_optional_recall@0.3"] == 0
    assert scores["det_hierarchical_required_recall"] == scores["det_image_grounded_meanmaxsim"] == 0
    assert "det_mean_sent_groundedness" not in scores


def test_a_missing_answer_with_a_missing_rationale_is_grounded():
    # Card: both are the word "nan", so its groundedness is 1 and everything else 0.
    scores, _ = overlap.scores(overlap.overlap(["nan"], RUBRIC, ["nan"], lenient(Lexical())), BUCKETS)
    assert scores["det_mean_sent_groundedness"] == pytest.approx(1.0)
    assert scores["det_required_meanmaxsim"] == 0


def test_without_points_only_sentences_are_looked_at():
    empty = Rubric(required=(), optional=())
    assert overlap.overlap(["a mass"], empty, [], Lexical()) == Overlap((), (), (), (), ())
    found = overlap.overlap(["a mass"], empty, ["a mass"], Lexical())
    assert found.grounded == (pytest.approx(1.0),) and not found.required


def test_the_image_of_a_point_has_to_be_named_without_a_mark_and_as_it_is_written():
    rubric = Rubric(required=(Point("[Image 1] mass", "other"),), optional=())
    said = ["Image #1 mass", "image 01 mass", "Image 12 mass", "subimage 1 mass", "images 1 mass"]
    assert overlap.overlap(said, rubric, [], Lexical()).by_image == (0.0,)
    assert overlap.overlap(["IMAGE  1 mass"], rubric, [], Lexical()).by_image == (pytest.approx(1.0),)


def test_a_part_of_stop_words_alone_ends_the_comparison():
    rubric = Rubric(required=(Point("it is", "other"),), optional=())
    with pytest.raises(NoWords):
        overlap.overlap(["that is it"], rubric, ["mass"], Lexical())
    assert overlap.overlap(["that is it"], rubric, ["mass"], lenient(Lexical())).required == (0.0,)


@pytest.mark.parametrize(
    "text", ["x" * 10**6, "\n" * 10**6, "! " * 500_000, "-" * 10**6, "image " * 160_000, "\u202e" * 10**6]
)
def test_a_megabyte_of_anything_is_split_and_compared_at_once(text):
    started = time.process_time()
    overlap.overlap(sentences(text), RUBRIC, [], lenient(Lexical()))
    assert time.process_time() - started < 5.0
