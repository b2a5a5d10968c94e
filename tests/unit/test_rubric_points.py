"""Evidence points: MRareBench card, section 7 (verified there by running the original)."""

import pytest

from remeasure.rubrics.points import BUCKETS, LEVELS, WEIGHTS, Point, bucket_of, rubric_of


def entry(point="a wall", image="Image 1", credit="required", category="modality"):
    return {"point": point, "image": image, "credit": credit, "category": category}


# The card's table of categories, with the two spellings that it names.
@pytest.mark.parametrize(
    ("category", "bucket", "level", "weight"),
    [
        ("abstract_modality", "modality", 1, 0.5),
        ("modality", "modality", 1, 0.5),
        ("macroscopic_pattern", "macro_pattern", 1, 1.0),
        ("region_or_field", "macro_pattern", 1, 1.0),
        ("macro_pattern", "macro_pattern", 1, 1.0),
        ("microstructural_pattern", "micro_pattern", 1, 1.2),
        ("micro_pattern", "micro_pattern", 1, 1.2),
        ("cross_image_integration", "cross_image_integration", 2, 2.0),
        ("diagnostic_attribution", "diagnostic_attribution", 3, 0.75),
        ("Region or Field", "macro_pattern", 1, 1.0),
        ("Cross-Image Integration", "cross_image_integration", 2, 2.0),
        ("  --Modality!!  ", "modality", 1, 0.5),
        ("laboratory", "other", 1, 1.0),
        ("", "other", 1, 1.0),
        (None, "other", 1, 1.0),
        ("Modalität", "other", 1, 1.0),
    ],
)
def test_a_category_goes_to_its_bucket_level_and_weight(category, bucket, level, weight):
    assert bucket_of(category) == bucket
    assert (LEVELS[bucket], WEIGHTS[bucket]) == (level, weight)
    assert Point("x", bucket).level == level and Point("x", bucket).weight == weight


def test_there_are_six_buckets():
    assert sorted(BUCKETS) == [
        "cross_image_integration",
        "diagnostic_attribution",
        "macro_pattern",
        "micro_pattern",
        "modality",
        "other",
    ]


def test_a_point_carries_its_image_in_front_as_it_stands():
    found = rubric_of([entry(image="Image 2"), entry(image=""), entry(image=" Images 1 and 2 ")])
    assert [point.text for point in found.required] == [
        "[Image 2] a wall",
        "a wall",
        "[Images 1 and 2] a wall",
    ]


@pytest.mark.parametrize("credit", ["required", " Required ", "REQUIRED\n"])
def test_required_is_read_whatever_its_case(credit):
    found = rubric_of([entry(credit=credit)])
    assert len(found.required) == 1 and not found.optional


@pytest.mark.parametrize("credit", ["optional", "bonus", "", None, "required!", 1])
def test_every_other_credit_is_optional(credit):
    found = rubric_of([entry(credit=credit)])
    assert len(found.optional) == 1 and not found.required


def test_what_is_no_object_or_has_no_point_is_left_out():
    given = [entry(point=""), entry(point="   "), entry(point=None), "a point", 3, None, ["x"], {}]
    assert rubric_of([*given, entry()]).required == (Point("[Image 1] a wall", "modality"),)
    assert rubric_of([]) == rubric_of(given)


def test_a_judge_writes_two_lines_for_a_required_point_and_one_for_an_optional_one():
    # Card, section 7: n_req 2, n_opt 1 are five lines.
    found = rubric_of([entry(), entry(credit="x"), entry(category="nothing")])
    assert found.n_lines == 5
    assert found.buckets == ["modality", "other"]


# Card, section 9.1, below the table of labels.
@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("[Image 1] a wall", 1),
        ("[Image 1, Image 2] a wall", 1),
        ("  [ image 12] a wall", 12),
        ("[Images 1 and 2] a wall", None),
        ("[1] a wall", None),
        ("[Image #3] a wall", None),
        ("a wall in Image 1", None),
        ("", None),
        ("[Image " + "9" * 5000 + "] a wall", None),  # longer than any number that Python reads
    ],
)
def test_the_label_of_a_point_is_its_first_number(text, image):
    assert Point(text, "other").image == image


def test_points_in_any_script_are_kept_as_they_are():
    text = "علامة \u202ecafé\x00 ☃"
    assert rubric_of([entry(point=text)]).required[0].text == f"[Image 1] {text}"
