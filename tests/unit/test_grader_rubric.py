"""The grader of evidence points: MRareBench card, sections 7 to 9.1, and all states of answers and judges."""

import re
import time

import pytest

from remeasure import grading, judge_limit
from remeasure.aligned import Aligned
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.graders import Unit, by_name, rubric
from remeasure.grading import Bootstrap, GradeSettings, Tally
from remeasure.records import Item, Metric, Number, Response
from remeasure.rubrics.similarity import Lexical

FIVE = ["modality", "macro_pattern", "micro_pattern", "cross_image_integration", "diagnostic_attribution"]
ANSWER = "Image 1: a thick wall.\nImage 2: a mass."
MODEL = "results/sources/all-minilm-l6-v2-int8.onnx"
TOKENIZER = "results/sources/bge-small-en-v1.5.tokenizer.json"
OPTIONS = {
    "files": {
        "similarity_model": {"path": MODEL, "sha256": "8199be6f"},
        "similarity_tokenizer": {"path": TOKENIZER, "sha256": None},
    }
}


@pytest.fixture(autouse=True)
def words_for_vectors(monkeypatch, request):
    """Vectors take time: where they do not matter, words stand for them."""
    if "sources" not in request.fixturenames:
        monkeypatch.setattr(rubric, "open_embedding", lambda *_: Words())


class Words(Lexical):
    """Foresees nothing: it depends on what each text is compared with."""

    def foresee(self, texts):
        assert all(isinstance(text, str) for text in texts)


def points(categories, credit="required"):
    """Points of one word each that stands in no answer."""
    return [
        {"point": f"finding{n}", "image": "", "credit": credit, "category": category}
        for n, category in enumerate(categories)
    ]


def case(number, given, **meta):
    known = {"rationale": "a reference", "n_images": 2, "decisive": [], "supporting": []}
    return Item(item_id=f"i{number}", question="", group=f"g{number}", meta=known | {"points": given} | meta)


def said(number, text=ANSWER, status="answered"):
    return Response(custom_id=f"i{number}", key="k", status=status, text=text)


def replies(*bits):
    """A judge's lines."""
    return "\n".join("YES" if bit else "NO" for bit in bits)


def graded(items, answers, judged, options=OPTIONS, grader=None):
    """Grade; an answer or a reply is a text or (status, text), a reply null where the judge is not asked."""
    grader = grader or by_name("judge_rubric")

    def responses(given):
        for number, one in enumerate(given):
            if one is not None:
                status, text = one if isinstance(one, tuple) else ("answered", one)
                yield said(number, text, status)

    tally, found = Tally(grader.headline), []
    lines = grading.grade_all(
        grader,
        items,
        Aligned(responses(answers), "custom_id", "responses"),
        Aligned(responses(judged), "custom_id", "judge"),
        thinking=False,
        options=options,
    )
    for unit, line in lines:
        tally.add(line)
        for response in unit.responses:
            tally.add_answer(response.status, response.text)
        found.append(line)
    settings = GradeSettings(
        study="mrarebench",
        bench="evidence",
        arm="img",
        model="m",
        grader=grader.name,
        options=options,
        k=None,
        thinking=False,
        reader="M",
        judge="J",
        corpus=None,
        bootstrap=Bootstrap(n=50, seed=1),
        max_judge_failed_share=1.0,
    )
    return found, grading.score(settings, grader, tally, retrieved=False)


def values(score, names, reading="published"):
    numbers = {name: getattr(score.metrics[name], reading) for name in names}
    return {name: (None if n.value is None else round(n.value, 6), n.n) for name, n in numbers.items()}


# -- the judge ---------------------------------------------------------------------------------------------


def judged_cases(*cases):
    """Grade cases of (categories, bits of the required points); nothing is denied."""
    items = [case(n, points(categories)) for n, (categories, _) in enumerate(cases)]
    judged = [replies(*bits, *[0] * len(bits)) for _, bits in cases]
    return graded(items, [ANSWER] * len(cases), judged)


@pytest.mark.parametrize("reading", ["published", "strict"])
def test_worked_items_of_the_hierarchy_give_the_means_of_the_card(reading):
    _, score = judged_cases(
        (FIVE, [1, 1, 0, 1, 1]),
        (FIVE, [1, 1, 1, 0, 1]),
        (["macro_pattern", "macro_pattern", "diagnostic_attribution"], [1, 1, 1]),
        (["cross_image_integration", "diagnostic_attribution"], [1, 0]),
        ([], []),
    )
    expected = {
        "hierarchical_required_recall": (0.624479, 4),
        "required_recall": (0.775, 4),
        "hierarchical_required_recall_drop": (0.150521, 4),
        "full_hierarchical_required_coverage": (0.25, 4),
        "full_required_coverage": (0.25, 4),
        "hier_visual_gate_pass_rate": (0.75, 4),
        "hier_cross_gate_pass_rate": (0.75, 4),
        "hier_level1_visual_recall": (0.888889, 3),
        "hier_level2_cross_recall_raw": (0.666667, 3),
        "hier_level2_cross_recall_gated": (0.333333, 3),
        "hier_level3_diag_recall_raw": (0.75, 4),
        "hier_level3_diag_recall_gated": (0.25, 4),
        # Pooled over points, by hand: of two micro points one is hit, of three points across images two.
        "required_recall_micro_pattern": (0.5, 2),
        "required_recall_cross_image_integration": (0.666667, 3),
        "required_recall_macro_pattern": (1.0, 4),
    }
    assert values(score, expected, reading) == expected
    assert score.counts["without_required_points"] == 1
    assert (score.counts["n_judged_required"], score.counts["required_points"]) == (4, 15)


def test_verdicts_say_how_much_is_covered():
    found, _ = judged_cases((["other"], [1]), (["other", "other"], [1, 0]), (["other"], [0]), ([], []))
    assert [line.published.verdict for line in found] == [
        "covered",
        "partly_covered",
        "not_covered",
        "ungraded",
    ]
    assert [line.published.score for line in found] == [1.0, 0.5, 0.0, None]
    assert found[3].published.reason == found[3].strict.reason == "no required points"


def test_recall_is_a_mean_of_items_and_pooled_by_category():
    # Card: bits [1,0] and [1]: 0.75, pooled 2/3, full coverage 0.5.
    _, score = judged_cases((["other", "other"], [1, 0]), (["other"], [1]))
    expected = {
        "required_recall": (0.75, 2),
        "required_recall_other": (0.666667, 3),
        "full_required_coverage": (0.5, 2),
    }
    assert values(score, expected) == expected


def test_a_reply_has_coverage_then_optional_coverage_then_contradictions():
    # Card: two required, one optional, YES NO YES NO YES.
    given = points(["modality", "modality"]) + points(["modality"], "optional")
    found, score = graded([case(0, given)], [ANSWER], [replies(1, 0, 1, 0, 1)])
    expected = {
        "required_recall": (0.5, 1),
        "optional_recall": (1.0, 1),
        "required_contradiction_rate": (0.5, 1),
    }
    assert values(score, expected) == values(score, expected, "strict") == expected
    assert score.counts["contradictions"] == 1 and score.counts["covered_and_contradicted"] == 0


def test_where_no_item_has_points_the_original_says_zero_for_four_numbers():
    _, score = judged_cases(([], []), ([], []))
    zero = ("required_recall", "optional_recall", "required_contradiction_rate", "full_required_coverage")
    assert values(score, zero) == dict.fromkeys(zero, (0.0, 0))
    assert values(score, zero, "strict") == dict.fromkeys(zero, (None, 0))
    assert values(score, ["hierarchical_required_recall"]) == {"hierarchical_required_recall": (None, 0)}


def test_an_item_without_required_points_still_has_optional_ones():
    found, _ = graded([case(0, points(["other"], "x"))], [ANSWER], ["YES"])
    assert found[0].published.scores["optional_recall"] == found[0].strict.scores["optional_recall"] == 1
    assert found[0].published.score is found[0].published.scores["det_required_recall@0.5_lexical"] is None
    assert found[0].published.scores["det_optional_recall@0.5_lexical"] == 0


@pytest.mark.parametrize(
    ("reply", "recall", "verdict", "reason", "count"),
    [
        ("Failed to obtain answer via API.", 0.0, "judge_failed", "judge marker", "judge_lines_too_few"),
        ("", 0.0, "judge_failed", "judge empty", "judge_lines_too_few"),
        ("I have no answer\nYES\nNO", 0.0, "judge_unreadable", "too many lines", "judge_lines_too_many"),
        ("YES", 1.0, "judge_unreadable", "too few lines", "judge_lines_too_few"),
        ("maybe\nYES", 1.0, "judge_unreadable", "neither yes nor no", "judge_lines_too_few"),
        ("YES\nYES", 1.0, "judge_unreadable", "stated and denied", "covered_and_contradicted"),
    ],
)
def test_a_judge_that_does_not_keep_to_the_form(reply, recall, verdict, reason, count):
    (line,), score = graded([case(0, points(["other"]))], [ANSWER], [reply])
    assert line.published.scores["required_recall"] == recall
    assert (line.strict.verdict, line.strict.score) == (verdict, None)
    assert line.strict.scores["required_recall"] is line.strict.scores["optional_recall"] is None
    assert reason in line.strict.reason
    assert score.counts[count] == 1
    # What needs no judge is there all the same.
    assert line.strict.scores["det_required_recall@0.5_lexical"] == 0
    assert line.strict.scores["det_image_coverage"] == 1
    assert line.strict.scores["judge_vs_det_required_recall_mae_lexical"] is None


@pytest.mark.parametrize("status", ["failed", "not_sent", "refused"])
def test_a_judge_that_says_nothing_is_no_to_everything_as_published(status):
    given = points(["other", "other"]) + points(["other"], "optional")
    (line,), score = graded([case(0, given)], [ANSWER], [(status, None)])
    assert (line.published.verdict, line.published.score) == ("judge_failed", 0.0)
    assert line.published.scores["required_recall"] == line.published.scores["optional_recall"] == 0
    assert line.published.scores["required_contradiction_rate"] == 0
    assert (line.strict.verdict, line.strict.score) == ("judge_failed", None)
    assert line.strict.reason == f"judge {status.replace('_', ' ')}"
    # Counted by the original as judged.
    assert score.counts["n_judged_required"] == 1
    assert score.verdicts == {"judge_failed": 1}


def test_a_reply_that_was_cut_off_is_read_by_the_original_alone():
    (line,), _ = graded([case(0, points(["other"]))], [ANSWER], [("cut_off", "YES\nNO")])
    assert (line.published.score, line.strict.score) == (1.0, None)
    assert (line.strict.verdict, line.strict.reason) == ("judge_unreadable", "the judge's reply is cut off")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "failed on 2 of 100 answers (2.0%"),
        (" \n", "failed on 2 of 100 answers (2.0%"),
        ("Failed to obtain answer via API.", "failed on 2 of 100 answers (2.0%"),
        (("refused", None), "failed on 2 of 100 answers (2.0%"),
        ("I cannot say", "failed on 0 of 100 answers, 2 of its replies cannot be read (2.0%"),
        (("cut_off", "YES\nNO"), "failed on 0 of 100 answers, 2 of its replies cannot be read (2.0%"),
        ("<think>YES\nNO", "failed on 0 of 100 answers, 2 of its replies cannot be read (2.0%"),
    ],
)
@pytest.mark.parametrize("answer", ["ok", "<think>so</think>ok"])
def test_a_judge_that_says_nothing_usable_stops_the_cell(reply, said, answer, caplog):
    """Whatever the answer: a model that thinks has no strict verdicts at all that would tell."""
    grader = by_name("judge_rubric")
    tally = Tally(grader.headline)
    items = [case(n, points(["other"])) for n in range(100)]
    for line in graded(items, [answer] * 100, [reply] * 2 + [replies(1, 0)] * 98)[0]:
        tally.add(line)
    with pytest.raises(RemeasureError, match=re.escape(said)):
        judge_limit.check(tally, 0.01, needs_form=grader.needs_form)
    judge_limit.check(tally, 0.02, needs_form=grader.needs_form)
    assert ("2 of 100 replies of the judge cannot be read" in caplog.text) == ("cannot be read" in said)


def test_a_judge_that_said_nothing_is_named_and_its_published_score_stays_zero():
    found, score = graded(
        [case(n, points(["other"])) for n in range(2)],
        [ANSWER] * 2,
        ["", "Failed to obtain answer via API."],
    )
    assert [(one.published.verdict, one.published.score, one.published.reason) for one in found] == [
        ("judge_failed", 0.0, "judge empty: no to every point"),
        ("judge_failed", 0.0, "judge marker: no to every point"),
    ]
    assert [one.strict.score for one in found] == [None, None]
    assert score.judge_failed == {"empty": 1, "marker": 1}


def test_nothing_is_the_right_reply_about_a_case_without_points():
    (line,), score = graded([case(0, [])], [ANSWER], [""])
    assert (line.published.verdict, line.strict.reason) == ("ungraded", "no required points")
    assert score.counts["judge_unreadable"] == 0 and "judge_failed" not in score.verdicts


# -- the answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["failed", "refused"])
def test_a_request_that_failed_is_a_sentence_as_published_and_left_out_under_strict(status):
    given = [{"point": "failed answer", "image": "Image 1", "credit": "required", "category": "other"}]
    (line,), score = graded([case(0, given, decisive=[1])], [(status, None)], [None])
    old = line.published.scores
    assert (line.published.verdict, line.published.score, old["required_recall"]) == ("not_covered", 0.0, 0.0)
    # It shares two words with the point: some similarity, as to any answer.
    assert old["det_required_meanmaxsim_lexical"] > 0.1
    assert old["det_image_grounded_meanmaxsim_lexical"] == 0
    assert (old["det_image_coverage"], old["det_image_ref_out_of_range_rate"]) == (0.0, 0.0)
    assert (old["det_image_select_recall"], old["det_image_select_precision"]) == (0.0, None)
    assert old["infer_fail_rate"] == line.strict.scores["infer_fail_rate"] == 1
    assert {name for name, value in line.strict.scores.items() if value is not None} == {"infer_fail_rate"}
    assert (line.strict.verdict, line.strict.reason) == ("ungraded", f"reader {status}")
    assert score.counts["n_image_attribution_scored"] == 1


def test_what_an_import_says_of_a_failure_is_kept():
    text = "Failed to obtain answer via API. Image 1: a wall"
    (line,), _ = graded([case(0, points(["other"]))], [("failed", text)], [None])
    assert line.published.scores["det_image_coverage"] == 0.5


@pytest.mark.parametrize(
    ("text", "reason", "kind"),
    [
        ("Failed to obtain answer via API.", "the answer is the sentence of a failed request", "marker"),
        ("<think>Image 1: a wall", "the answer ends while it thinks", "unfinished"),
        ("<Thinking>Image 1: a wall</THINKING>", "the answer is empty", "empty"),
    ],
)
def test_an_answered_text_without_an_answer_is_left_out_under_strict_and_counted(text, reason, kind):
    given = points(["other"])
    (line, _), score = graded([case(0, given), case(1, given)], [text, ANSWER], [replies(1, 0)] * 2)
    assert line.published.score == 1.0  # as judged
    assert (line.strict.verdict, line.strict.score, line.strict.reason) == ("ungraded", None, reason)
    assert (line.also["zeros"].score, score.failed) == (0.0, {kind: 1})
    found = score.metrics["infer_fail_rate"]
    assert (found.strict.value, found.strict.n) == (0.5, 2)
    assert found.published.value == (0.5 if kind == "marker" else 0.0)


def test_an_answer_with_the_words_of_a_failure_is_one_to_the_original():
    (line,), _ = graded([case(0, [])], ["Failed to obtain answer, sorry"], [""])
    assert (line.published.scores["infer_fail_rate"], line.strict.scores["infer_fail_rate"]) == (1.0, 0.0)


def test_a_request_that_was_not_sent_has_no_row_in_the_original():
    (line,), score = graded([case(0, points(["other"]))], [("not_sent", None)], [None])
    assert (line.published.verdict, line.published.score) == ("ungraded", None)
    assert not [value for value in line.published.scores.values() if value is not None]
    assert line.strict.scores["infer_fail_rate"] == 1
    assert score.counts["n_judged_required"] == 0
    assert score.metrics["infer_fail_rate"].published.n == 0


@pytest.mark.parametrize(
    "text", ["", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>", "#N/A"]
)
def test_a_missing_answer_is_the_word_nan_to_the_original(text):
    # Card: one sentence; with a missing rationale, "nan" too, its groundedness is 1.
    items = [case(0, points(["other"]), rationale=""), case(1, points(["other"]), rationale="a wall")]
    (first, second), _ = graded(items, [text, text], [replies(0, 0)] * 2)
    name = "det_mean_sent_groundedness_lexical"
    assert (first.published.scores[name], second.published.scores[name]) == (pytest.approx(1), 0)
    assert first.published.scores["det_required_recall@0.3_lexical"] == 0
    assert first.published.scores["infer_fail_rate"] == 0


@pytest.mark.parametrize("text", ["none", "Null", "Nan", "-"])
def test_other_words_for_nothing_are_answers(text):
    (line,), score = graded([case(0, points(["other"]), rationale="")], [text], [replies(0, 0)])
    assert line.published.scores["det_mean_sent_groundedness_lexical"] != pytest.approx(1) or text == "Nan"
    assert score.counts["answers_without_sentences"] == (text == "-")


def test_white_space_is_a_text_without_sentences_to_the_original_and_no_answer_under_strict():
    (line,), score = graded([case(0, points(["other"]))], ["  \n"], [replies(0, 0)])
    assert line.published.scores["det_required_recall@0.3_lexical"] is None
    assert line.published.score == 0
    assert line.strict.reason == "the answer is empty"
    assert score.counts["answers_without_sentences"] == 1


def test_an_empty_cell_of_an_imported_table_is_the_word_nan_too():
    item = case(0, points(["other"]), rationale="")
    empty = Response(custom_id="i0", key="k", status="failed", text=None, error="empty: empty cell")
    unit = Unit(unit_id="i0", items=(item,), responses=(empty,), judge=(None,), thinking=False)
    line = by_name("judge_rubric").begin(OPTIONS)(unit)
    assert line.published.scores["det_mean_sent_groundedness_lexical"] == pytest.approx(1)
    assert (line.published.scores["infer_fail_rate"], line.strict.reason) == (0.0, "reader failed")


def test_an_empty_answer_is_left_out_under_strict_and_zero_in_the_third_reading():
    given = points(["other", "modality"])
    (line,), score = graded([case(0, given)], [""], [replies(1, 1, 0, 0)])
    assert (line.strict.verdict, line.strict.reason) == ("ungraded", "the answer is empty")
    third = line.also["zeros"]
    assert (third.verdict, third.score, third.scores["required_recall"]) == ("not_covered", 0.0, 0.0)
    assert third.scores["det_required_recall@0.5_lexical"] == third.scores["full_required_coverage"] == 0
    assert third.scores["optional_recall"] is None
    assert score.metrics["hierarchical_required_recall"].also["zeros"] == Number(
        value=0.0, n=1, interval=(0.0, pytest.approx(0.793, abs=1e-3)), interval_method="Wilson 95 %"
    )


def test_the_third_reading_is_strict_where_there_is_an_answer():
    (line,), _ = graded([case(0, points(["other"]))], [ANSWER], [replies(1, 0)])
    third = line.also["zeros"]
    assert (third.score, third.scores["required_recall"]) == (1.0, 1.0)
    assert {name: line.strict.scores[name] for name in third.scores} == third.scores


def test_an_answer_without_sentences_states_nothing_under_strict():
    # Card: the original has no values for it, so its mean rises; image-grounded values are 0.
    given = [{"point": "a wall", "image": "Image 1", "credit": "required", "category": "other"}]
    (line,), score = graded([case(0, given)], ["- 1."], [replies(0, 0)])
    old, new = line.published.scores, line.strict.scores
    assert old["det_required_recall@0.5_lexical"] is old["det_hierarchical_required_recall_lexical"] is None
    assert old["det_image_grounded_meanmaxsim_lexical"] == new["det_image_grounded_meanmaxsim_lexical"] == 0
    assert new["det_required_recall@0.5_lexical"] == new["det_hierarchical_required_recall_lexical"] == 0
    assert old["det_mean_sent_groundedness_lexical"] is new["det_mean_sent_groundedness_lexical"] is None
    assert old["judge_vs_det_required_recall_mae_lexical"] is None
    assert score.counts["answers_without_sentences"] == 1


def test_a_cut_off_answer_is_graded_by_the_original_alone():
    (line,), _ = graded([case(0, points(["other"]))], [("cut_off", ANSWER)], [replies(1, 0)])
    assert (line.published.score, line.strict.score) == (1.0, None)
    assert line.strict.reason == "reader cut off"
    assert line.published.scores["infer_fail_rate"] == 0 and line.strict.scores["infer_fail_rate"] == 1


def test_thinking_earns_points_as_published_and_its_verdicts_do_not_count_under_strict():
    given = [{"point": "a thick wall", "image": "Image 1", "credit": "required", "category": "other"}]
    text = "<think>Image 1: a thick wall.</think>\nNothing is to be seen."
    (line,), score = graded([case(0, given)], [text], [replies(1, 0)])
    assert line.published.score == 1.0
    assert line.published.scores["det_required_recall@0.3_lexical"] == 1
    assert (line.published.scores["det_image_coverage"], line.strict.scores["det_image_coverage"]) == (0.5, 0)
    assert line.strict.scores["det_required_recall@0.3_lexical"] == 0
    assert (line.strict.verdict, line.strict.score) == ("ungraded", None)
    assert line.strict.reason == "the judge was shown thinking too"
    assert (score.counts["judged_with_thinking"], line.answer) == (1, "\nNothing is to be seen.")


@pytest.mark.parametrize(
    "before", ["it may be</think>", "<Thinking>it\nmay be</THINKING>", "a<think>b</think>"]
)
def test_thinking_is_told_by_its_closing_tag(before):
    (line,), score = graded([case(0, points(["other"]))], [before + ANSWER], [replies(1, 0)])
    assert (score.counts["judged_with_thinking"], line.strict.score) == (1, None)
    assert line.strict.scores["det_image_coverage"] == 1


@pytest.mark.parametrize("tags", ["<think>\n\n</think>", "</think>", "<THINK></THINK>"])
def test_tags_without_thinking_do_no_harm(tags):
    text = tags + "\n" + ANSWER
    (line,), score = graded([case(0, points(["other"]))], [text], [replies(1, 0)])
    assert (line.strict.score, score.counts["judged_with_thinking"]) == (1.0, 0)


@pytest.mark.parametrize("tag", ["<think>", "so <Thinking>", "<think>a</think>b<think>"])
def test_thinking_that_does_not_end_is_no_answer_under_strict(tag):
    (line,), _ = graded([case(0, points(["other"]))], [tag + ANSWER], [replies(1, 0)])
    assert (line.published.score, line.strict.score) == (1.0, None)
    assert line.strict.reason == "the answer ends while it thinks"


# -- very long answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_before", "recall", "beyond"),
    [
        # The sentence that states the point is the 2,000th, or the first that is not compared.
        (1999, 1.0, 0),
        (2000, 0.0, 1),
    ],
)
def test_the_first_2000_sentences_of_an_answer_are_compared_and_the_rest_counted(n_before, recall, beyond):
    given = [{"point": "thick wall", "image": "", "credit": "required", "category": "other"}]
    text = "no such word.\n" * n_before + "a thick wall."
    (line,), score = graded([case(0, given)], [text], [replies(1, 0)])
    for reading in (line.published, line.strict):
        assert reading.scores["det_required_recall@0.5_lexical"] == recall
    assert line.counts["sentences_beyond_2000"] == line.counts["sentences_beyond_2000_strict"] == beyond
    assert score.counts["sentences_beyond_2000"] == beyond


def test_sentences_of_thinking_are_beyond_in_the_published_reading_alone():
    text = "<think>" + "no word.\n" * 2500 + "</think>a thick wall."
    (line,), _ = graded([case(0, points(["other"]))], [text], [replies(1, 0)])
    # 2,500 sentences and the last, with what closes the thinking in it.
    assert (line.counts["sentences_beyond_2000"], line.counts["sentences_beyond_2000_strict"]) == (501, 0)


def test_texts_of_32_cases_are_foreseen_together_and_long_answers_are_not(monkeypatch):
    seen = []

    class Watched(Words):
        def foresee(self, texts):
            seen.append(list(texts))

    monkeypatch.setattr(rubric, "open_embedding", lambda *_: Watched())
    items = [case(n, points(["other"]), rationale=f"reference {n}") for n in range(33)]
    answers = [f"answer {n}" for n in range(32)] + ["long " * 5000]
    lines, _ = graded(items, answers, [replies(1, 0)] * 33)
    assert [line.item_id for line in lines] == [f"i{n}" for n in range(33)]
    # 25,000 characters are left for their own turn; the last case is alone in the second look.
    assert [len(texts) for texts in seen] == [96, 0]
    assert seen[0][:3] == ["finding0", "reference 0", "answer 0"]


# -- images and similarities -------------------------------------------------------------------------------


def test_selection_is_averaged_over_cases_with_images_that_are_not_decisive():
    items = [
        case(0, [], n_images=4, decisive=[1], supporting=[1, 3]),
        case(1, [], n_images=2, decisive=[1, 2]),
        case(2, [], n_images=3, decisive=[2]),
    ]
    text = "Image 1: a mass.\nImage 2: a wall.\nSee image 5 too."
    _, score = graded(items, [text, text, "nothing named"], ["", "", ""])
    expected = {
        # First case: the card's example. The second has no others; the third names nothing.
        "det_image_select_recall": (0.5, 2),
        "det_image_select_precision": (0.5, 1),
        "det_image_attribution_offtarget_rate": (0.5, 1),
        # 0.5, 1 and 0; 1/3, 1/3 and 0; 2/3 and 1/3.
        "det_image_coverage": (0.5, 3),
        "det_image_ref_out_of_range_rate": (0.222222, 3),
        "det_image_attribution_hallucination_rate": (0.5, 2),
    }
    assert values(score, expected) == values(score, expected, "strict") == expected
    assert score.counts["n_image_attribution_scored"] == 3
    assert score.counts["n_image_select_scored_distractor_subset"] == 2


def test_words_that_cannot_be_compared_leave_the_lexical_values_of_the_item_out():
    # The original ends here, without a table.
    given = [{"point": "it is", "image": "", "credit": "required", "category": "other"}]
    (line, other), score = graded(
        [case(0, given), case(1, points(["other"]))], ["that is it", ANSWER], [replies(0, 0)] * 2
    )
    lexical = {name: value for name, value in line.published.scores.items() if name.endswith("_lexical")}
    assert set(lexical.values()) == {None}
    assert line.strict.scores["det_required_meanmaxsim_lexical"] == 0
    assert other.published.scores["det_required_meanmaxsim_lexical"] == 0
    assert score.counts["lexical_without_words"] == 1
    assert "lexical: none, no text has words to compare" in line.shown[0].lines[0].note


def test_the_judge_is_compared_with_both_similarities(sources):
    """The real model: the same wording is found by words and vectors, another one by vectors alone."""
    given = [
        {
            "point": "thick gallbladder wall",
            "image": "Image 1",
            "credit": "required",
            "category": "macro_pattern",
        },
        {"point": "enlarged heart", "image": "Image 2", "credit": "required", "category": "other"},
    ]
    text = "Image 1 shows a thick gallbladder wall. Image 2 shows cardiomegaly."
    (line,), _ = graded([case(0, given)], [text], [replies(1, 1, 0, 0)], options=real(sources))
    found = line.published.scores
    assert found["det_required_recall@0.35_lexical"] == 0.5
    assert found["det_required_recall@0.35_embedding"] == 1.0
    assert found["judge_vs_det_required_recall_mae_lexical"] == 1 - found["det_required_recall@0.5_lexical"]
    assert found["det_image_grounded_recall@0.35_embedding"] == 1.0
    assert line.strict.scores == found


def real(sources):
    model, tokenizer = (sources / path.rpartition("/")[2] for path in (MODEL, TOKENIZER))
    if not model.exists():
        pytest.fail(f"results/sources lacks {model.name}; run: snakemake -c1 {MODEL}")
    files = {"similarity_model": model, "similarity_tokenizer": tokenizer}
    return {"files": {name: {"path": str(path), "sha256": sha256_file(path)} for name, path in files.items()}}


# -- what is shown and said --------------------------------------------------------------------------------


def test_the_page_shows_bits_gates_and_the_best_sentence_of_every_point():
    given = [
        {"point": "thick wall", "image": "Image 1", "credit": "required", "category": "modality"},
        {"point": "both fit", "image": "", "credit": "required", "category": "cross_image_integration"},
        {"point": "red", "image": "", "credit": "optional", "category": "other"},
    ]
    item = case(0, given, n_images=3, decisive=[1], supporting=[2])
    (line,), _ = graded([item], [ANSWER + " Image 9"], [replies(0, 1, 1, 1, 0)])
    required, optional, images = line.shown
    assert [part.title for part in line.shown] == ["Required points", "Optional points", "Images named"]
    assert [(one.text, one.mark) for one in required.lines] == [
        ("[Image 1] thick wall", "no"),
        ("both fit", "yes"),
    ]
    assert required.lines[0].note.startswith(
        "modality, level 1, weight 0.5; published: not stated, denied; strict: not stated, denied; "
        "lexical 1.000: “Image 1: a thick wall.”; "
    )
    assert "“Image 1: a thick wall.”" in required.lines[0].note
    assert "cross_image_integration, level 2, weight 2.0" in required.lines[1].note
    assert "gate closed" in required.lines[1].note
    assert [(one.text, one.mark, one.note) for one in optional.lines] == [("red", "yes", "other")]
    assert [(one.text, one.mark, one.note) for one in images.lines] == [
        ("Image 1", "yes", "decisive; as a label"),
        ("Image 2", "yes", "supporting; as a label"),
        ("Image 3", None, "neither; not named"),
        ("Image 9", "no", "there is none"),
    ]


def test_the_page_says_where_there_is_no_verdict():
    (line,), _ = graded([case(0, points(["other"]))], [("not_sent", None)], [None])
    (required,) = line.shown
    assert required.lines[0].mark is None
    assert required.lines[0].note.endswith("published: no verdict; strict: no verdict")


@pytest.mark.parametrize(("task", "part"), [("why", {"task_type": "why"}), (" ", {"task_type": "(blank)"})])
def test_a_case_belongs_to_its_type_of_task(task, part):
    (line,), _ = graded([case(0, [], task_type=task)], [ANSWER], [""])
    assert line.strata == part


def test_without_types_of_tasks_there_is_no_division():
    (line,), _ = graded([case(0, [])], [ANSWER], [""])
    assert line.strata == {}


def test_every_metric_is_in_every_reading_so_that_every_cell_has_all_numbers():
    found, score = graded([case(0, [])], [("not_sent", None)], [None])
    names = {metric.name for metric in by_name("judge_rubric").metrics}
    assert set(score.metrics) == names and len(names) == 154
    assert (
        set(found[0].strict.scores)
        == set(found[0].published.scores)
        == names - {"hierarchical_required_recall"}
    )


def test_the_method_is_known_before_the_files_are_there():
    method = by_name("judge_rubric").method(OPTIONS)
    assert method["similarity_embedding"] == "all-minilm-l6-v2-int8.onnx, mean, 256 tokens"
    assert method["similarity_lexical"].endswith("scikit-learn 1.9.1")
    assert method["thresholds"] == "0.3, 0.35, 0.4, 0.5, 0.6"
    assert (method["similarity_model_sha256"], method["similarity_tokenizer_sha256"]) == ("8199be6f", "any")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "missing required field `files`"),
        ({"files": {}}, "similarity_model"),
        ({"files": OPTIONS["files"] | {"model": {"path": "x", "sha256": None}}}, "unknown field `model`"),
        (OPTIONS | {"negation": True}, "unknown field `negation`"),
    ],
)
def test_an_option_that_is_missing_or_unknown_is_one_line(options, problem):
    with pytest.raises(RemeasureError, match=problem) as caught:
        by_name("judge_rubric").method(options)
    assert "options of grader judge_rubric" in str(caught.value) and "\n" not in str(caught.value)


def test_a_model_that_is_missing_is_one_line(monkeypatch, tmp_path):
    monkeypatch.undo()
    files = {name: {"path": str(tmp_path / name), "sha256": None} for name in OPTIONS["files"]}
    with pytest.raises(RemeasureError, match="similarity_model: is missing; run"):
        by_name("judge_rubric").begin({"files": files})


@pytest.mark.parametrize("lacking", ["points", "n_images", "decisive", "supporting", "rationale"])
def test_an_item_that_lacks_something_is_one_line(lacking):
    item = case(0, [])
    del item.meta[lacking]
    with pytest.raises(RemeasureError, match=f"item 'i0': meta: .*{lacking}.*delete items.jsonl"):
        graded([item], [ANSWER], [""])


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10**6,
        "\n" * 10**6,
        "image " * 160_000,
        "\u202e\x00\x07" * 300_000,
        "Image 1:\n" * 50_000,
        "☃" * 10**6,
    ],
)
def test_a_megabyte_of_anything_is_graded_at_once(text):
    started = time.process_time()
    graded([case(0, points(FIVE), decisive=[1])], [text], [replies(*[0] * 10)])
    assert time.process_time() - started < 20


def test_numbers_that_do_not_fit_together_are_noticed():
    def metric(value):
        return Metric(
            published=Number(value=value, n=2, interval_method=""),
            strict=Number(value=value, n=2, interval_method=""),
            n_differ=0,
        )

    grader = by_name("judge_rubric")
    good = {"required_recall": 0.8, "hierarchical_required_recall": 0.5}
    grader.check(
        {name: metric(value) for name, value in (good | {"hierarchical_required_recall_drop": 0.3}).items()}
    )
    with pytest.raises(AssertionError):
        grader.check(
            {
                name: metric(value)
                for name, value in (good | {"hierarchical_required_recall_drop": 0.2}).items()
            }
        )
    with pytest.raises(AssertionError):
        grader.check(
            {"hier_level2_cross_recall_raw": metric(0.2), "hier_level2_cross_recall_gated": metric(0.3)}
        )
