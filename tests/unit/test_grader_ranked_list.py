"""The grader of ranked lists: the card's hand example, every state of an answer, every state of a judge."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remeasure import grading, judge_limit
from remeasure.aligned import Aligned
from remeasure.errors import RemeasureError
from remeasure.graders import by_name
from remeasure.graders.base import SCORES, Unit
from remeasure.grading import Bootstrap, GradeSettings, Tally
from remeasure.records import ImageRef, Item, Response
from remeasure.tables import cells as rows

MARKER = "Failed to obtain answer via API."
FINE = "YES\nNO\n2\nYES\nYES"
GOLD = ("Fabry disease", "Anderson-Fabry disease")
IMAGE = ImageRef(sha256="0" * 64, path="images.zip", member="0")


def item(item_id="q1", references=GOLD, n_images=2):
    return Item(
        item_id=item_id, question="?", references=references, group=item_id, images=(IMAGE,) * n_images
    )


def response(text, status="answered", error=None, item_id="q1"):
    return Response(custom_id=item_id, key="k", status=status, text=text, error=error)


def graded(text, status="answered", *, error=None, judge=None, references=GOLD, grader=None):
    grader = by_name(grader or ("ranked_list" if judge is None else "judge_ranked_list"))
    reply = judge if judge is None or isinstance(judge, Response) else response(judge)
    unit = Unit("q1", (item(references=references),), (response(text, status, error),), (reply,), False)
    return grader.begin({})(unit)


def scored(answers, judged=None):
    """Grade (status, text) per item; return the cell's score.

    Args:
        answers: of the reader.
        judged: (status, text) of the judge, null where it was not asked; null: no judge.
    """
    ids = [f"q{n}" for n in range(len(answers))]
    grader = by_name("ranked_list" if judged is None else "judge_ranked_list")
    replies = [response(text, status, None, one) for one, (status, text) in zip(ids, answers, strict=True)]
    judge = None
    if judged is not None:
        said = [
            response(*reversed(one), None, place)
            for place, one in zip(ids, judged, strict=True)
            if one is not None
        ]
        judge = Aligned(said, "custom_id", "judge")
    tally = Tally(grader.headline)
    items = [item(one) for one in ids]
    found = grading.grade_all(
        grader, items, Aligned(replies, "custom_id", "responses"), judge, thinking=False, options={}
    )
    for unit, line in found:
        tally.add(line)
        for answer in unit.responses:
            tally.add_answer(answer.status, answer.text)
    cell = GradeSettings(
        study="mrarebench",
        bench="diagnosis",
        arm="lc",
        model="reader",
        grader=grader.name,
        k=None,
        thinking=False,
        reader="A reader",
        judge=None if judged is None else "A judge",
        corpus=None,
        bootstrap=Bootstrap(n=100, seed=1),
        max_judge_failed_share=0.01,
    )
    return grading.score(cell, grader, tally, retrieved=False), tally


def listed(rank, n=10):
    """Return a reply of n diagnoses with the right one at a rank; 0: nowhere."""
    return "\n".join(f"{k}. {'Fabry disease' if k == rank else f'Wrong{k}osis'}" for k in range(1, n + 1))


def values(score, reading):
    return {name: getattr(metric, reading).value for name, metric in score.metrics.items()}


def test_the_cards_hand_example():
    # Card, section 6: ranks 3, none, 1, 2, none over five items.
    score, _ = scored([("answered", listed(rank)) for rank in (3, 0, 1, 2, 0)])
    for reading in ("published", "strict"):
        assert values(score, reading) == pytest.approx(
            {
                "recall@1": 0.2,
                "recall@3": 0.6,
                "recall@5": 0.6,
                "recall@10": 0.6,
                "mrr": 0.366667,
                "mr": 2.0,
                "hit_rate": 0.6,
                "parse_fail_rate": 0.0,
                "infer_fail_rate": 0.0,
            },
            abs=1e-6,
        )
    assert score.metrics["mr"].published.n == score.counts["hits"] == 3
    assert score.metrics["recall@1"].published.n == 5


@pytest.mark.parametrize(("status", "text"), [("failed", None), ("failed", MARKER), ("refused", None)])
def test_the_cards_hand_example_with_a_fifth_item_that_failed(status, text):
    # Card, section 6: "PUB unchanged, infer_fail_rate = 20.00% (1/5); STRICT-clean over 4 items: recall@1 =
    # 0.25, MRR = 0.458333".
    score, _ = scored([*(("answered", listed(rank)) for rank in (3, 0, 1, 2)), (status, text)])
    published, strict = values(score, "published"), values(score, "strict")
    assert (published["recall@1"], published["hit_rate"], published["mr"]) == (0.2, 0.6, 2.0)
    assert published["mrr"] == pytest.approx(0.366667, abs=1e-6)
    assert published["infer_fail_rate"] == 0.2
    assert (strict["recall@1"], strict["infer_fail_rate"]) == (0.25, 0.2)
    assert strict["mrr"] == pytest.approx(0.458333, abs=1e-6)
    assert score.metrics["recall@1"].strict.n == 4
    assert score.metrics["infer_fail_rate"].strict.n == 5


def test_failure_rates_are_over_the_rows_that_each_reading_has():
    # Card, section 11: 300 expected, 296 ok, 3 marker texts, 1 missing row: 3/299 = 1.00 %, ours 4/300.
    answers = [("answered", "1. A")] * 296 + [("failed", MARKER)] * 3 + [("not_sent", None)]
    score, _ = scored(answers)
    found = score.metrics["infer_fail_rate"]
    assert (found.published.n, found.strict.n) == (299, 300)
    assert found.published.value == pytest.approx(0.0100, abs=5e-5)
    assert found.strict.value == pytest.approx(0.0133, abs=5e-5)


def test_the_mean_rank_without_any_hit_is_zero_as_published_and_no_number_when_strict():
    # Card, section 6: "PUB returns 0.0 when there is no hit"; "we emit null".
    score, _ = scored([("answered", listed(0))] * 3)
    found = score.metrics["mr"]
    assert (found.published.value, found.published.n, found.strict.value) == (0.0, 0, None)


# What became of an answer: reply, status, then published and strict as (verdict, recall@1, parse failure,
# failed request). Card, sections 4, 5 and 11; by hand.
STATES = [
    (listed(1), "answered", ("hit_first", 1.0, 0.0, 0.0), ("hit_first", 1.0, 0.0, 0.0)),
    (listed(4), "answered", ("hit_later", 0.0, 0.0, 0.0), ("hit_later", 0.0, 0.0, 0.0)),
    (listed(0), "answered", ("miss", 0.0, 0.0, 0.0), ("miss", 0.0, 0.0, 0.0)),
    # A failed request is a list with one candidate.
    (None, "failed", ("miss", 0.0, 0.0, 1.0), ("ungraded", None, None, 1.0)),
    (MARKER, "failed", ("miss", 0.0, 0.0, 1.0), ("ungraded", None, None, 1.0)),
    (None, "refused", ("miss", 0.0, 0.0, 1.0), ("ungraded", None, None, 1.0)),
    # Its text as an answer.
    (MARKER, "answered", ("miss", 0.0, 0.0, 1.0), ("ungraded", None, None, 1.0)),
    # No row.
    (None, "not_sent", ("ungraded", None, None, None), ("ungraded", None, None, 1.0)),
    # "nan" is no parse failure; white space and thinking alone are.
    ("", "answered", ("miss", 0.0, 0.0, 0.0), ("ungraded", None, None, 1.0)),
    (None, "answered", ("miss", 0.0, 0.0, 0.0), ("ungraded", None, None, 1.0)),
    ("nan", "answered", ("miss", 0.0, 0.0, 0.0), ("parse_failed", 0.0, 1.0, 0.0)),
    (" \n", "answered", ("parse_failed", 0.0, 1.0, 0.0), ("ungraded", None, None, 1.0)),
    (
        "<think>Fabry disease</think>",
        "answered",
        ("parse_failed", 0.0, 1.0, 0.0),
        ("ungraded", None, None, 1.0),
    ),
    # Thinking that does not end is an answer as published, and none when strict.
    ("<think>1. Fabry disease", "answered", ("hit_first", 1.0, 0.0, 0.0), ("parse_failed", 0.0, 1.0, 1.0)),
    ("<think>1. Fabry disease", "cut_off", ("hit_first", 1.0, 0.0, 0.0), ("ungraded", None, None, 1.0)),
    # A list before it is not the last word; other names of the tag; nothing behind what was closed.
    (
        "1. Fabry disease\n<THINKING>or",
        "answered",
        ("hit_first", 1.0, 0.0, 0.0),
        ("parse_failed", 0.0, 1.0, 1.0),
    ),
    ("Fabry disease</Thinking>\n", "answered", ("hit_first", 1.0, 0.0, 0.0), ("ungraded", None, None, 1.0)),
    (listed(1), "cut_off", ("hit_first", 1.0, 0.0, 0.0), ("ungraded", None, None, 1.0)),
    (None, "cut_off", ("miss", 0.0, 0.0, 0.0), ("ungraded", None, None, 1.0)),
    # Reasoning without an opening tag is ranked first as published.
    (
        "1. Gout\n</think>\n1. Fabry disease",
        "answered",
        ("hit_later", 0.0, 0.0, 0.0),
        ("hit_first", 1.0, 0.0, 0.0),
    ),
    # A list on one line is one candidate as published, so that its second diagnosis hits at rank 1.
    ("1. Gout 2. Fabry disease", "answered", ("hit_first", 1.0, 0.0, 0.0), ("hit_later", 0.0, 0.0, 0.0)),
    ("Gout, Lupus, Fabry disease", "answered", ("hit_first", 1.0, 0.0, 0.0), ("hit_later", 0.0, 0.0, 0.0)),
    ("0. Fabry disease\n1. Gout", "answered", ("hit_first", 1.0, 0.0, 0.0), ("hit_first", 1.0, 0.0, 0.0)),
    ("**1. Fabry disease**", "answered", ("hit_first", 1.0, 0.0, 0.0), ("hit_first", 1.0, 0.0, 0.0)),
    ("1. Disease", "answered", ("hit_first", 1.0, 0.0, 0.0), ("miss", 0.0, 0.0, 0.0)),
    # The eleventh does not count.
    (listed(11, 11), "answered", ("miss", 0.0, 0.0, 0.0), ("miss", 0.0, 0.0, 0.0)),
    ("I cannot help with this.", "answered", ("miss", 0.0, 0.0, 0.0), ("miss", 0.0, 0.0, 0.0)),
]


def told(reading):
    return (
        reading.verdict,
        reading.score,
        reading.scores["parse_fail_rate"],
        reading.scores["infer_fail_rate"],
    )


@pytest.mark.parametrize(("text", "status", "published", "strict"), STATES)
def test_what_becomes_of_an_answer(text, status, published, strict):
    found = graded(text, status)
    assert told(found.published) == published
    assert told(found.strict) == strict


def test_dropped_repeats_move_later_diagnoses_up():
    found = graded("1. Gout\n2. gout\n3. Gout.\n4. Fabry disease")
    assert found.published.scores["mr"] == 3.0  # "Gout." is another spelling
    assert found.strict.scores["mr"] == 2.0
    assert found.counts["doubled_diagnoses"] == 2


def test_an_answer_that_there_is_not_can_hit_as_published_and_never_when_strict():
    # Card, section 5, the last two vectors.
    for text, status, gold in (
        (MARKER, "failed", "AIN"),
        ("", "answered", "Malignant tumor of the nerve sheath"),
    ):
        found = graded(text, status, references=(gold,))
        assert (found.published.verdict, found.published.score) == ("hit_first", 1.0)
        assert (found.strict.verdict, found.strict.score) == ("ungraded", None)
        assert found.counts["hits_of_no_answer"] == 1


def test_reasons_name_the_step_of_the_parser_and_the_rule_that_decided():
    assert graded("1. Fabry disease").published.reason == "numbered lines; equal"
    assert graded("Fabry").published.reason == "lines and semicolons; substring"
    assert graded("1. Gout").strict.reason == "numbered lines; no candidate hits"
    assert graded(None, "failed", error="timeout: 60 s").strict.reason == "no whole answer: timeout"
    assert graded("<think>Fabry").strict.reason == "the answer ends while it thinks"


def test_what_is_shown_says_which_candidates_hit_and_why():
    found = graded("1. Gout\n2. Fabry\n3. **Fabry disease**: since")
    gold, *lists = found.shown
    assert [line.text for line in gold.lines] == list(GOLD)
    assert [shown.title for shown in lists] == [
        "list as read, published (numbered lines)",
        "list as read, strict (numbered lines)",
    ]
    assert [(line.text, line.mark, line.note) for line in lists[1].lines] == [
        ("Gout", None, ""),
        ("Fabry", "yes", "substring: Fabry disease"),
        ("Fabry disease", "yes", "equal: Fabry disease"),
    ]
    assert lists[0].lines[2].text == "**Fabry disease**: since"
    (both,) = graded("1. Gout").shown[1:]
    assert both.title == "list as read, published and strict (numbered lines)"


def test_marks_are_places_in_the_reply_as_it_came():
    reply = "<think>1. x</think>\n1. Gout\n2. Fabry disease"
    marks = graded(reply).marks
    assert [(reply[mark.start : mark.end], mark.label, mark.readings) for mark in marks] == [
        ("Gout", "", ("published", "strict")),
        ("Fabry disease", "hit", ("published", "strict")),
    ]
    assert graded(None, "failed").marks == ()


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        ("**1.** Gout\n**2.** Fabry disease", ["", "hit"]),
        ("- Gout\n- Fabry disease", ["1", "2, hit"]),  # the reply has no numbers of its own
        ("0. Gout\n1. Fabry disease", ["1", "2, hit"]),  # it counts otherwise
    ],
)
def test_a_mark_says_the_place_only_where_the_reply_does_not(reply, labels):
    marks = [mark for mark in graded(reply).marks if "strict" in mark.readings]
    assert [mark.label for mark in marks] == labels


def test_what_is_shown_of_a_megabyte_is_short():
    found = graded("1. " + "x" * 10**6)
    assert max(len(line.text) for shown in found.shown for line in shown.lines) < 310


def test_strata_are_images_and_names():
    assert graded("1. Gout").strata == {"images": "2", "names": "more"}
    assert graded("1. Gout", references=("Gout",)).strata["names"] == "one"


JUDGE = (
    "judge_score",
    "judge_presence",
    "judge_top1",
    "judge_typematch",
    "judge_specificity",
    "judge_coherence",
)


def judge_scores(reading):
    return [reading.scores[name] for name in JUDGE]


def test_the_judges_five_answers_stand_beside_the_headline():
    found = graded(listed(1), judge=FINE)
    for reading in (found.published, found.strict):
        # Card, 6.1: [1,0,2,1,1] is 0.733333.
        assert judge_scores(reading) == pytest.approx([0.733333, 1, 0, 2, 1, 1], abs=1e-6)
        assert (reading.verdict, reading.score) == ("hit_first", 1.0)
    shown = found.shown[-1]
    assert [(line.text, line.mark, line.note) for line in shown.lines] == [
        ("in the list", "yes", "1"),
        ("stands first", "no", "0"),
        ("type match (0-3)", "no", "2"),
        ("specific entities", "yes", "1"),
        ("coherent", "yes", "1"),
        ("contradiction: in the list, but type match 2", None, ""),
    ]
    assert found.counts["judge_contradicts_itself"] == 1


# A judge's reply, how it is counted, and the published judge_score (by hand).
JUDGES = [
    (response(FINE), None, 0.733333),
    (response("YES\nYES\n3"), "judge_unreadable", 0.6),  # fewer lines: 1, 1, 1, 0, 0
    (response(f"Sure:\n{FINE}"), "judge_unreadable", 0.4),  # one line down: 0, 1, 0, 0, 1
    (response("YES, NO, 2, YES, YES"), "judge_unreadable", 0.2),
    (response(MARKER), "judge_failed", 0.0),
    (response(""), "judge_failed", 0.0),
    (response(None, "failed"), "judge_failed", 0.0),
    (response(None, "not_sent"), "judge_failed", 0.0),
    (response("YES\nYES", "cut_off"), "judge_failed", 0.4),
]


@pytest.mark.parametrize(("reply", "kind", "published"), JUDGES)
def test_a_judge_that_fails_counts_zeros_as_published_and_no_number_when_strict(reply, kind, published):
    found = graded(listed(1), judge=reply)
    assert found.published.scores["judge_score"] == pytest.approx(published, abs=1e-6)
    assert (found.strict.scores["judge_score"] is None) == (kind is not None)
    assert {name for name in ("judge_failed", "judge_unreadable") if found.counts[name]} == {kind} - {None}
    assert (found.published.score, found.strict.score) == (1.0, 1.0)  # the headline needs no judge


def test_an_answer_that_there_is_not_is_not_judged():
    for status in ("failed", "refused"):
        found = graded(None, status, grader="judge_ranked_list")
        assert judge_scores(found.published) == [0.0] * 6
        assert judge_scores(found.strict) == [None] * 6
        assert found.counts["judge_failed"] == 0
    missing = graded(None, "not_sent", grader="judge_ranked_list")
    assert judge_scores(missing.published) == judge_scores(missing.strict) == [None] * 6


def test_a_judge_against_the_rule_and_a_judge_of_another_list_are_counted():
    found = graded("1. Gout 2. Fabry disease", judge="NO\nNO\n0\nYES\nYES")
    assert found.counts["judge_against_rule"] == 1
    assert found.counts["judge_saw_another_list"] == 1


def test_failed_judges_stop_the_cell_above_the_allowed_share():
    answers, fine = [("answered", listed(1))] * 3, ("answered", FINE)
    _, tally = scored(answers, [fine, fine, ("failed", None)])
    with pytest.raises(RemeasureError, match="the judge failed on 1 of 3 answers"):
        judge_limit.check(tally, 0.01)
    judge_limit.check(tally, 0.5)


# Of 100 replies: how many are so, whether they count against the limit of 1 %, and what is said.
JUDGES_LOST = [
    ("", 2, "failed on 2 of 100 answers (2.0%, allowed 1.0%)"),
    (MARKER, 2, "failed on 2 of 100 answers (2.0%, allowed 1.0%)"),
    ("I cannot say", 2, "failed on 0 of 100 answers, 2 of its replies cannot be read (2.0%, allowed"),
    ("", 1, None),
    ("I cannot say", 1, None),
]


@pytest.mark.parametrize(("reply", "n", "said"), JUDGES_LOST)
def test_a_judge_that_says_nothing_usable_stops_the_cell(reply, n, said):
    replies = [("answered", reply)] * n + [("answered", FINE)] * (100 - n)
    _, tally = scored([("answered", listed(1))] * 100, replies)
    assert by_name("judge_ranked_list").needs_form
    path = Path("results/r/mrarebench/diagnosis/lc/m/judge/responses.jsonl")
    if said is None:
        judge_limit.check(tally, 0.01, needs_form=True, replies=path)
        return
    with pytest.raises(RemeasureError) as caught:
        judge_limit.check(tally, 0.01, needs_form=True, replies=path)
    told = str(caught.value)
    assert said in told and "\n" not in told
    assert f"after deleting {path} " in told and "`max_judge_failed_share`" in told
    assert "`scripts/forget.py results/r/mrarebench/diagnosis/lc/m/judge/journal`" in told
    judge_limit.check(tally, 0.02, needs_form=True)


def test_failed_and_unreadable_replies_count_together():
    answers = [("answered", listed(1))] * 100
    _, tally = scored(answers, [("failed", None), ("answered", "?")] + [("answered", FINE)] * 98)
    with pytest.raises(RemeasureError, match="failed on 1 of 100 answers, 1 of its replies cannot"):
        judge_limit.check(tally, 0.01, needs_form=True)


def test_an_answer_of_a_failed_request_and_thinking_without_end_are_failures_of_the_cell():
    # By hand: of five, one sentence of the toolkit (left out) and one unfinished (a list that is none).
    answers = [
        ("answered", text) for text in (listed(1), listed(1), listed(0), MARKER, "<think>1. Fabry disease")
    ]
    score, _ = scored(answers)
    assert score.failed == {"marker": 1, "unfinished": 1}
    found = {name: (one.strict.value, one.strict.n) for name, one in score.metrics.items()}
    assert found["recall@1"] == (0.5, 4)
    assert found["parse_fail_rate"] == (0.25, 4)
    assert found["infer_fail_rate"] == (0.4, 5)
    assert score.metrics["infer_fail_rate"].published.value == 0.2  # the toolkit's sentence alone
    assert score.counts["hits_of_no_answer"] == 1


def test_a_judge_of_thinking_without_end_does_not_count_strictly():
    found = graded("<think>1. Fabry disease", judge=FINE)
    assert judge_scores(found.published)[0] == pytest.approx(0.733333, abs=1e-6)
    assert judge_scores(found.strict) == [None] * 6


def test_the_table_counts_unread_replies_and_failed_judges_in_their_own_columns():
    answers = [("answered", listed(1)), ("answered", listed(1)), ("answered", "nan"), ("failed", None)]
    judged = [("answered", "YES"), ("failed", None), ("answered", FINE), None]
    score, _ = scored(answers, judged)
    cell = SimpleNamespace(score=score)
    assert rows.failures(cell) == {
        "cut_off": 0,
        "refused": 0,
        "failed": 1,
        "not_sent": 0,
        "empty": 0,
        "unreadable": 1,
        "judge_failed": 1,
        "judge_unreadable": 1,
    }
    counted = rows.counted({"a cell": cell})
    assert "hits" in counted
    assert not {"judge_failed", "judge_unreadable"} & set(counted)


def test_an_answer_without_a_judges_line_is_an_error():
    with pytest.raises(RemeasureError, match="no line in the judge's responses"):
        scored([("answered", listed(1))], [None])


def test_numbers_name_their_rules_and_there_are_no_options():
    grader = by_name("judge_ranked_list")
    assert grader.method({}) == {
        "lists": "published@1 strict@1",
        "hits_published": "equal, substring, token F1 >= 0.6 @1",
        "hits_strict": grader.method({})["hits_strict"],
    }
    assert "one word >= 4 letters" in grader.method({})["hits_strict"]
    with pytest.raises(RemeasureError, match="has no option 'k'"):
        grader.begin({"k": 1})


STATUSES = ("answered", "cut_off", "refused", "failed", "not_sent")
replies = (
    st.none() | st.text() | st.sampled_from([listed(1), listed(3), "<think>", "nan", MARKER, FINE, "1. a"])
)


@settings(deadline=None)
@given(replies, st.sampled_from(STATUSES), st.none() | st.tuples(replies, st.sampled_from(STATUSES)))
def test_every_answer_gets_the_same_metrics_that_fit_together(text, status, judge):
    found = graded(text, status, judge=response(*judge) if judge else None, grader="judge_ranked_list")
    names = {metric.name for metric in by_name("judge_ranked_list").metrics}
    for reading in (found.published, found.strict):
        assert {"recall@1", *reading.scores} == names
        assert reading.score == SCORES[reading.verdict]
        assert reading.reason
        scores = reading.scores
        if reading.score is None:
            assert {scores[name] for name in ("recall@3", "mrr", "mr", "hit_rate", "parse_fail_rate")} == {
                None
            }
        else:
            assert reading.score <= scores["recall@3"] <= scores["recall@5"] <= scores["recall@10"]
            assert scores["recall@10"] == scores["hit_rate"]
            assert (scores["mr"] is None) == (scores["hit_rate"] == 0.0)
            assert scores["mrr"] == (1 / scores["mr"] if scores["mr"] else 0.0)
            assert scores["parse_fail_rate"] + scores["hit_rate"] <= 1.0
