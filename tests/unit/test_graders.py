import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure.errors import RemeasureError
from remeasure.graders import GRADERS, Case, Grader, by_name
from remeasure.graders.base import SCORES
from remeasure.graders.choice import extract_published, extract_strict
from remeasure.records import Response

GOLDEN = Path(__file__).parents[1] / "golden"
STATUSES = ["answered", "cut_off", "refused", "failed", "not_sent"]


def rows(name):
    with open(GOLDEN / name, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def response(text, status="answered"):
    return Response(custom_id="q1", key="k", status=status, text=text)


def case(text="Paris", references=("Paris",), status="answered", judge=None, thinking=False):
    return Case(references=references, response=response(text, status), judge=judge, thinking=thinking)


def verdicts(grader, a_case):
    return GRADERS[grader].published(a_case).verdict, GRADERS[grader].strict(a_case).verdict


@pytest.mark.parametrize("row", rows("graders.tsv"), ids=lambda row: f"{row['grader']}: {row['reply']}")
def test_graders_without_judge_read_the_cards_strings_as_it_says(row):
    a_case = case(row["reply"].replace("\\n", "\n"), tuple(row["references"].split("|")))
    assert verdicts(row["grader"], a_case) == (row["published"], row["strict"])


@pytest.mark.parametrize("row", rows("judge_replies.tsv"), ids=lambda row: f"{row['grader']}: {row['reply']}")
def test_judge_graders_read_the_cards_replies_as_it_says(row):
    a_case = case("something", judge=response(row["reply"].replace("\\n", "\n")))
    assert verdicts(row["grader"], a_case) == (row["published"], row["strict"])


@pytest.mark.parametrize("status", ["failed", "refused", "not_sent"])
def test_a_failed_item_is_a_wrong_empty_answer_as_published_and_no_item_at_all_when_strict(status):
    for grader in ("em", "mcq_letter"):
        published, strict = verdicts(grader, case(None, ("C",), status))
        assert (SCORES[published], SCORES[strict]) == (0.0, None)


@pytest.mark.parametrize("grader", ["judge_simpleqa", "judge_worldvqa", "judge_anyof"])
def test_a_failed_item_without_a_judges_reply_is_not_attempted_as_published(grader):
    reading = GRADERS[grader].published(case(None, status="failed"))
    assert (reading.verdict, reading.score) == ("not_attempted", 0.0)
    assert "no answer" in reading.reason
    assert GRADERS[grader].strict(case(None, status="failed")).score is None


def test_the_older_script_leaves_empty_rows_out_of_the_denominator():
    assert verdicts("judge_or10", case(None, status="failed")) == ("ungraded", "ungraded")
    assert verdicts("judge_or10", case("<think>x</think> ")) == ("ungraded", "not_attempted")


def test_thinking_that_was_cut_off_is_an_answer_as_published_and_ungraded_when_strict():
    without_tag = case("Paris", status="cut_off", thinking=True)
    assert verdicts("em", without_tag) == ("correct", "ungraded")
    assert verdicts("em", case("<think>Paris", status="cut_off")) == ("correct", "ungraded")
    assert verdicts("em", case("<think>hm</think>Paris", status="cut_off", thinking=True)) == (
        "correct",
        "correct",
    )


def test_a_cut_off_answer_of_a_reader_that_does_not_think_is_graded():
    assert verdicts("em", case("Paris", status="cut_off", thinking=False)) == ("correct", "correct")


def test_a_failed_judge_leaves_the_denominator_in_both_readings():
    for grader in ("judge_simpleqa", "judge_worldvqa", "judge_or10", "judge_anyof"):
        failed = case("Paris", judge=response(None, "failed"))
        assert verdicts(grader, failed) == ("judge_failed", "judge_failed")


def test_empty_answers_of_a_judged_bench_are_never_correct_when_strict():
    assert verdicts("judge_simpleqa", case(" ", judge=response("A"))) == ("correct", "not_attempted")


def test_the_choice_extractors_agree_on_plain_letters():
    for letter in "ABCDE":
        assert extract_published(letter) == extract_strict(letter) == letter


def test_two_letters_or_a_sentence_are_no_clear_choice():
    for reply in ("A or B", "Answer: a great city", "A great city", "AB", "Both A and C"):
        assert extract_strict(reply) is None, reply
    for reply in (
        "Answer: C, because of the flag",
        "The correct answer is **C**.",
        "(C)",
        "C: Lisbon",
        "Option C",
    ):
        assert extract_strict(reply) == "C", reply


def test_an_unknown_grader_is_one_line_with_a_suggestion():
    with pytest.raises(RemeasureError, match="did you mean 'judge_simpleqa'"):
        by_name("judge_simplqa")


def test_every_grader_names_its_version():
    assert {grader.label for grader in GRADERS.values()} == {
        "em@1",
        "mcq_letter@1",
        "judge_simpleqa@1",
        "judge_worldvqa@1",
        "judge_or10@1",
        "judge_anyof@1",
        "triplets@1",
        "ranked_list@1",
        "judge_ranked_list@1",
        "judge_rubric@1",
        "ranked_documents@1",
        "judge_rag_answer@1",
        "number_match@1",
        "placed_photos@1",
    }


replies = (
    st.none()
    | st.text()
    | st.sampled_from(["A", "Label: Correct", "<think>", "C", "incorrect", "x</think>B"])
)


@given(
    st.sampled_from(sorted(name for name, one in GRADERS.items() if isinstance(one, Grader))),
    replies,
    st.sampled_from(STATUSES),
    replies,
    st.sampled_from(STATUSES),
    st.booleans(),
    st.booleans(),
)
def test_every_grader_gives_every_reply_a_verdict_of_the_closed_list(
    grader, text, status, reply, judge_status, judged, thinking
):
    judge = response(reply, judge_status) if judged else None
    a_case = case(text, ("C", "the"), status, judge, thinking)
    for reading in (GRADERS[grader].published(a_case), GRADERS[grader].strict(a_case)):
        assert reading.score == SCORES[reading.verdict]
        assert reading.reason
    if not a_case.answer.strip():
        assert GRADERS[grader].strict(a_case).score != 1.0


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_strict_exact_match_is_correct_only_where_published_equality_of_something_is(text, references):
    a_case = case(text, tuple(references))
    if "exact" not in text.lower() and GRADERS["em"].strict(a_case).score == 1.0:
        assert GRADERS["em"].published(a_case).score == 1.0
