"""A judge's lines: MRareBench card, section 7 (verified there by running the original)."""

import time

import pytest

from remeasure.rubrics import verdicts
from remeasure.rubrics.points import Point, Rubric
from remeasure.rubrics.verdicts import Verdicts

POINT = Point("[Image 1] a wall", "modality")
TWO_AND_ONE = Rubric(required=(POINT, POINT), optional=(POINT,))
EMPTY = Rubric(required=(), optional=())
SECONDS = 1.0
"""For a reply of a megabyte; it takes hundredths."""


def bits(found: Verdicts):
    return [list(found.required), list(found.optional), list(found.contradicted)]


def published(reply):
    return bits(verdicts.published(reply, TWO_AND_ONE))


def strict(reply):
    found, problem = verdicts.strict(reply, TWO_AND_ONE)
    return problem if found is None else bits(found)


GOOD = "YES\nNO\nYES\nNO\nYES"
FEW = "the judge's reply has too few lines"
MANY = "the judge's reply has too many lines"
OTHER = "the judge's reply has a line that is neither yes nor no"


def test_five_lines_are_coverage_optional_coverage_and_contradiction_in_both_readings():
    # Card: n_req 2, n_opt 1, required [1,0], optional [1], contradiction [0,1].
    assert published(GOOD) == strict(GOOD) == [[1, 0], [1], [0, 1]]


@pytest.mark.parametrize(
    ("reply", "as_published", "as_strict"),
    [
        # An API failure is five times no.
        ("Failed to obtain answer via API.", [[0, 0], [0], [0, 0]], FEW),
        ("", [[0, 0], [0], [0, 0]], FEW),
        # A preamble takes the first place: everything moves down, the last line is cut off.
        ("I have no answer\n" + GOOD, [[0, 1], [0], [1, 0]], MANY),
        # One line, one bit.
        ("YES NO YES\nYES\nYES\nYES\nNO", [[1, 1], [1], [1, 0]], OTHER),
        ("YES NO YES NO YES", [[1, 0], [0], [0, 0]], FEW),
        # A line with neither word is skipped: later ones move up, the end is filled with no.
        ("maybe\nNO\nYES\nNO\nYES", [[0, 1], [0], [1, 0]], OTHER),
        # Fewer and more lines.
        ("YES\nYES", [[1, 1], [0], [0, 0]], FEW),
        (GOOD + "\nNO\nNO", [[1, 0], [1], [0, 1]], MANY),
        # Whole words only.
        ("yesterday\nnothing\nNOTED\nknow\nyes", [[1, 0], [0], [0, 0]], OTHER),
        # "Not stated" holds no such word.
        ("not stated\nYES\nYES\nYES\nYES", [[1, 1], [1], [1, 0]], OTHER),
        # Thinking counts for the original.
        ("<think>yes or no</think>\n" + GOOD, [[1, 1], [0], [1, 0]], [[1, 0], [1], [0, 1]]),
        ("<think>yes\n" + GOOD, [[1, 1], [0], [1, 0]], "the judge's reply ends while it thinks"),
    ],
)
def test_a_reply_that_does_not_keep_to_the_form(reply, as_published, as_strict):
    assert published(reply) == as_published
    assert strict(reply) == as_strict


@pytest.mark.parametrize(
    "reply",
    [
        "yes\nno\nYes\nNo\nYES\n",
        "1. YES\n2. NO\n3. YES\n4. NO\n5. YES",
        "**YES**\n\n- NO\n`YES`\n\n(NO)\n'YES.'",
        "YES\r\nNO\r\nYES\r\nNO\r\nYES",
        "  > 1) yes\n\t2) no,\n3: YES!\n4 - NO;\n5. YES",
    ],
)
def test_numbers_markup_and_empty_lines_do_no_harm(reply):
    assert strict(reply) == published(reply) == [[1, 0], [1], [0, 1]]


def test_a_point_that_is_stated_and_denied_makes_a_reply_unreadable_under_strict_and_is_counted():
    reply = "YES\nYES\nNO\nYES\nNO"
    assert strict(reply) == "the judge says of a point that it is stated and denied"
    assert published(reply) == [[1, 1], [0], [1, 0]]
    assert verdicts.published(reply, TWO_AND_ONE).n_both == 1
    assert verdicts.published(GOOD, TWO_AND_ONE).n_both == 0


def test_without_points_there_is_nothing_to_say():
    assert bits(verdicts.published("YES\nNO", EMPTY)) == [[], [], []]
    assert verdicts.strict("", EMPTY) == (Verdicts((), (), ()), "")
    assert verdicts.strict("YES", EMPTY) == (None, MANY)


def test_no_reply_is_no_to_everything():
    assert bits(verdicts.none(TWO_AND_ONE)) == [[0, 0], [0], [0, 0]]


def test_lines_with_a_verdict_are_counted():
    assert [verdicts.n_lines(reply) for reply in (GOOD, "maybe\nno\nYES NO", "")] == [5, 2, 0]


@pytest.mark.parametrize(
    "reply",
    [
        "*" * 10**6,
        "1" * 10**6,
        "(" * 10**6 + "YES",
        "yes" * 350_000,
        " " * 10**6,
        "no\n" * 350_000,
        "\u202e" * 10**6,
    ],
    ids=["stars", "digits", "brackets", "no spaces", "spaces", "lines", "right to left"],
)
def test_a_megabyte_of_anything_is_read_at_once(reply):
    started = time.process_time()
    verdicts.published(reply, TWO_AND_ONE)
    assert verdicts.strict(reply, TWO_AND_ONE)[0] is None
    assert time.process_time() - started < SECONDS
