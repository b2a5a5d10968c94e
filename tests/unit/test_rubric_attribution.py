"""Images that an answer names: MRareBench card, section 9.1 (verified there by running the original)."""

import time

import pytest

from remeasure.rubrics.attribution import attribution, has_distractors, labelled, named


@pytest.mark.parametrize(
    ("text", "names", "labels"),
    [
        ("Image 3: x", {3}, {3}),
        ("**Image 3**: x", {3}, {3}),
        ("**Image 3:** x", {3}, {3}),
        ("Image 3 - x", {3}, {3}),
        ("- Image #3) x", {3}, {3}),
        ("Image 3\n- foo", {3}, {3}),  # the mark may be on the next line
        ("Image 3 – x", {3}, set()),  # en dash
        ("1. Image 3: x", {3}, set()),
        ("Image 3 (CT): x", {3}, set()),
        ("### Image 3", {3}, set()),
        ("see Image 3: x", {3}, set()),
        ("Image 1 and Image 2: x", {1, 2}, set()),
        ("Image 1/3", {1}, set()),
        ("Image 1 and 3", {1}, set()),
        ("images 1 and 2", set(), set()),
        ("Figure 2", set(), set()),
        ("subimage 4", set(), set()),
        ("Image1", {1}, set()),
        ("image 01", {1}, set()),
        # By hand.
        ("", set(), set()),
        ("### Image 3:", {3}, {3}),
        ("\n\n  > IMAGE\t12 ** :", {12}, {12}),
        ("Image 1: x\nImage 2: y", {1, 2}, {1, 2}),
        ("Image 3***: x", {3}, set()),  # two stars at most
        ("İmage 2: x", {2}, {2}),  # i with a dot is an i where case is ignored
        ("Image ٣: x", {3}, {3}),  # every digit is one
        # The label takes the bullet of the next line with it, which then begins nothing.
        ("Image 1\n- Image 2: x", {1, 2}, {1}),
        ("x Image 1\n- Image 2: x", {1, 2}, {2}),
    ],
)
def test_names_and_labels(text, names, labels):
    assert named(text) == names
    assert labelled(text) == labels


def test_a_range_is_its_first_image_and_looks_like_a_label():
    # The card says that it is no label; the original, run on it, says that it is: the dash is the mark.
    assert named("Image 1-3") == {1}
    assert labelled("Image 1-3") == {1}
    assert labelled("as in Image 1-3") == set()


def test_worked_example():
    text = "Image 1: a mass.\nImage 2: a wall.\nSee image 5 too."
    assert attribution(text, 4, {1}, {1, 3}) == {
        "det_image_coverage": 0.5,
        "det_image_ref_out_of_range_rate": pytest.approx(1 / 3),
        "det_image_format_compliance": 0.5,
        "det_image_attribution_hallucination_rate": pytest.approx(2 / 3),
        "det_image_select_recall": 1.0,
        "det_image_select_precision": 0.5,
        "det_image_attribution_offtarget_rate": 0.5,
    }


def test_an_answer_that_names_nothing_has_the_best_rate_of_images_that_are_none():
    failed = "Failed to obtain answer via API."
    assert attribution(failed, 3, {1}, {2}) == {
        "det_image_coverage": 0.0,
        "det_image_ref_out_of_range_rate": 0.0,
        "det_image_format_compliance": 0.0,
        "det_image_select_recall": 0.0,
    }


@pytest.mark.parametrize(
    ("n", "decisive", "expected"),
    [(2, {1, 2}, False), (3, {1, 2}, True), (1, {1}, False), (2, set(), False), (0, {1}, False)],
)
def test_selection_needs_images_that_are_not_decisive(n, decisive, expected):
    assert has_distractors(n, decisive) is expected
    assert ("det_image_select_recall" in attribution("Image 1: x", n, decisive, set())) is expected


def test_without_gold_images_nothing_is_hallucinated():
    assert "det_image_attribution_hallucination_rate" not in attribution("Image 9: x", 2, set(), set())
    assert attribution("Image 1: x", 0, set(), set()) == {}


def test_only_images_out_of_range_leave_precision_undefined():
    found = attribution("Image 7: x", 2, {1}, set())
    assert found["det_image_select_recall"] == 0
    assert found["det_image_attribution_hallucination_rate"] == 1
    assert "det_image_select_precision" not in found


# The original's expressions take time in the square or the cube of these.
@pytest.mark.parametrize(
    "text",
    [
        "\n" * 10**6,
        "image" + " " * 10**6,
        "\n" + "#" * 10**6,
        "image 1" + "*" * 10**6,
        "image 1" + " " * 10**6,
        "image " + "1" * 10**6,
        ("image" + " \n" * 20) * 20_000,
        "Image 1:\n" * 100_000,
        "image 1 > " * 100_000,
        "x" * 10**6,
        "\u202e\x00" * 500_000,
    ],
    ids=["lines", "spaces", "marks", "stars", "behind", "digits", "gaps", "labels", "run", "word", "control"],
)
def test_a_megabyte_of_anything_is_read_at_once(text):
    started = time.process_time()
    attribution(text, 3, {1}, {2})
    assert time.process_time() - started < 2.0


def test_a_number_too_long_for_one_is_an_image_that_there_is_not():
    # The original ends with an error here.
    found = attribution("Image " + "1" * 5000 + ": x, Image 1", 2, {1}, set())
    assert found["det_image_ref_out_of_range_rate"] == 0.5
    assert found["det_image_format_compliance"] == 0
