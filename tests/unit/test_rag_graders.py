import msgspec
import pytest
from msgspec import UNSET

from remeasure import grading, judge_limit
from remeasure.aligned import Aligned
from remeasure.errors import RemeasureError
from remeasure.graders import by_name
from remeasure.grading import Bootstrap, GradeSettings, Tally
from remeasure.records import Hit, Item, Response, Trace, Usage

PASS, FAIL = (f'{{"reason": "so", "pass": {word}, "score": 1}}' for word in ("true", "false"))
WRONG = {"judge_failure": "wrong"}
LIVE = {"judge_failure": "exclude", "task_failure": "conversation"}


def item(item_id, group=None, gold=("d1",), label="ANSWERABLE", expected="42"):
    meta = {"answerability": label, "strata": {"type": "factoid"}}
    return Item(
        item_id=item_id,
        question="What?",
        references=(expected,),
        relevant=tuple(gold),
        group=group or item_id,
        meta=meta,
    )


def trace(cited=(), tokens=(), found=(), documents=(), seconds=1.0, **more):
    return Trace(
        cited=tuple(cited),
        requests=tuple(Usage(input_tokens=n, output_tokens=1) for n in tokens),
        found=tuple(Hit(uri=uri, chunk="1") for uri in found),
        found_documents=tuple(Hit(uri=uri, chunk="1") for uri in documents),
        seconds=seconds,
        **more,
    )


def answer(item_id, text="ANSWER: 42", status="answered", error=None, told=None, **of_trace):
    lost = status in ("failed", "refused", "not_sent")
    told = (UNSET if lost else trace(**of_trace)) if told is None else told
    text = None if lost else text
    return Response(custom_id=item_id, key="k", status=status, text=text, error=error, trace=told)


def reply(item_id, text, status="answered"):
    return Response(custom_id=item_id, key=f"j-{item_id}", status=status, text=text)


def grade(name, items, answers, replies=None, **options):
    """Grade a cell; return its units and its score."""
    grader = by_name(name)
    tally, units = Tally(grader.headline), []
    judge = None if replies is None else Aligned(replies, "custom_id", "judge.jsonl")
    cell = grading.grade_all(
        grader, items, Aligned(answers, "custom_id", "r.jsonl"), judge, thinking=False, options=options
    )
    for unit, graded in cell:
        tally.add(graded)
        for response in unit.responses:
            tally.add_answer(response.status, response.text)
        units.append(graded)
    settings = GradeSettings(
        study="ragbench",
        bench="b",
        arm="rag",
        model="m",
        grader=name,
        options=options,
        k=None,
        thinking=False,
        reader="A system",
        judge=None,
        corpus=None,
        bootstrap=Bootstrap(n=200, seed=1),
        max_judge_failed_share=1.0,
    )
    return units, grading.score(settings, grader, tally, retrieved=False), tally


def both(score, metric):
    """Value and denominator of a metric, as published and strict."""
    found = score.metrics[metric]
    return (found.published.value, found.published.n), (found.strict.value, found.strict.n)


# -- search ------------------------------------------------------------------------------------------------


def test_chunks_of_a_document_collapse_as_published_and_documents_fill_the_list_when_strict():
    asked = [item("q1", gold=("a", "b"))]
    # The limit of three chunks brings one document; three documents bring both gold ones.
    found = [answer("q1", "a", found="aaa", documents="abc")]
    (unit,), score, _ = grade("ranked_documents", asked, found)
    assert unit.published.score == 0.5 and unit.strict.score == 1.0
    assert both(score, "documents") == ((1.0, 1), (3.0, 1))
    assert score.counts["chunks_collapsed"] == 2
    assert unit.strata == {"type": "factoid"}


def test_a_failed_search_counts_as_nothing_found_and_is_told():
    asked = [item("q1"), item("q2"), item("q3")]
    found = [
        answer("q1", "d1", found=["d1"], documents=["d1"]),
        answer("q2", status="failed", error="bad_filter: no such column"),
        answer("q3", ""),
    ]
    units, score, _ = grade("ranked_documents", asked, found)
    assert both(score, "map") == ((pytest.approx(1 / 3), 3), (pytest.approx(1 / 3), 3))
    assert [unit.published.verdict for unit in units] == ["hit_first", "search_failed", "miss"]
    assert units[2].published.reason == "search found nothing"
    assert (score.counts["searches_failed"], score.counts["searches_empty"]) == (1, 1)
    assert score.failed == {"bad_filter": 1, "empty": 1}


def test_the_verdict_of_a_search_is_where_the_first_gold_document_stands():
    asked = [item("q1"), item("q2"), item("q3"), item("q4", gold=())]
    rankings = (["d1", "x"], ["x", "d1"], ["x"], ["x"])
    found = [answer(f"q{n}", found=uris, documents=uris) for n, uris in enumerate(rankings, start=1)]
    units, score, _ = grade("ranked_documents", asked, found)
    assert [unit.published.verdict for unit in units] == ["hit_first", "hit_later", "miss", "miss"]
    assert [unit.published.score for unit in units] == [1.0, 0.5, 0.0, 0.0]
    assert score.counts["queries_without_gold"] == 1


def test_measures_of_more_results_than_the_limit_are_left_out():
    found = [answer("q1", "d1", found=["x", "d1"], documents=["x", "d1"])]
    _, score, _ = grade("ranked_documents", [item("q1")], found, limit=5)
    assert both(score, "recall@5") == ((1.0, 1), (1.0, 1))
    assert both(score, "recall@10") == ((None, 0), (None, 0))


def test_a_ranking_without_a_trace_is_read_from_its_lines():
    found = [answer("q1", "x\nd1\nd1", told=UNSET)]
    (unit,), _, _ = grade("ranked_documents", [item("q1")], found)
    assert unit.published.score == unit.strict.score == 0.5


# -- answers by a judge ------------------------------------------------------------------------------------


def test_a_judge_failure_counts_as_wrong_or_is_excluded_and_the_counts_are_those_of_the_card():
    # RAG card, section 2.7: one right, one wrong, one judge failure, one task failure: 1/3; excluded: 1/2.
    asked = [item(f"q{n}") for n in range(4)]
    answers = [answer(f"q{n}") for n in range(3)]
    answers += [answer("q3", status="failed", error="request_limit: 30 requests")]
    replies = [reply("q0", PASS), reply("q1", FAIL), reply("q2", None, "failed")]
    _, wrong, tally = grade("judge_rag_answer", asked, answers, replies, **WRONG)
    _, exclude, _ = grade("judge_rag_answer", asked, answers, replies, judge_failure="exclude")
    assert both(wrong, "accuracy") == ((pytest.approx(1 / 3), 3), (0.5, 2))
    assert both(exclude, "accuracy") == ((0.5, 2), (0.5, 2))
    assert both(wrong, "accuracy_of_all") == both(exclude, "accuracy_of_all") == ((0.25, 4), (0.25, 4))
    assert (wrong.n, wrong.counts["tasks_failed"], wrong.counts["scored"]) == (4, 1, 3)
    assert exclude.counts["scored"] == 2
    assert wrong.verdicts["judge_failed"] == 1
    assert wrong.failed == {"request_limit": 1} and wrong.judge_failed == {"other": 1}
    with pytest.raises(RemeasureError, match="the judge failed on 1 of 3 answers"):
        judge_limit.check(tally, 0.05)


@pytest.mark.parametrize(
    ("said", "verdict", "reason"),
    [
        (reply("q", "I think that this is fine."), "judge_unreadable", "the judge's reply has no verdict"),
        (reply("q", PASS, "cut_off"), "judge_unreadable", "judge cut off"),
        (reply("q", ""), "judge_unreadable", "the judge's reply is empty"),
        (reply("q", "<think>hm, pass"), "judge_unreadable", "the judge's reply is empty"),
        (reply("q", None, "refused"), "judge_failed", "judge refused"),
        (reply("q", f"<think>{FAIL}</think>{PASS}"), "correct", "judge: pass"),
    ],
    ids=["prose", "cut off", "empty", "never ends", "refused", "behind thinking"],
)
def test_a_reply_of_the_judge_that_is_no_verdict_is_a_state(said, verdict, reason):
    (unit,), score, _ = grade("judge_rag_answer", [item("q")], [answer("q")], [said], **WRONG)
    assert unit.strict.verdict == unit.published.verdict == verdict
    assert unit.strict.reason.startswith(reason)
    assert unit.published.score == (1.0 if verdict == "correct" else 0.0)
    assert unit.strict.score == (1.0 if verdict == "correct" else None)


def test_an_empty_answer_is_what_the_judge_says_as_published_and_wrong_when_strict():
    null = answer("q", "", events={"null_answers": 1})
    (unit,), score, _ = grade("judge_rag_answer", [item("q")], [null], [reply("q", PASS)], **WRONG)
    assert (unit.published.score, unit.strict.score) == (1.0, 0.0)
    assert unit.strict.reason == "empty answer"
    assert score.counts["null_answers"] == 1


def test_citations_of_the_cards_three_cases():
    # RAG card, section 3.2: cited_map 0.25 over 2 eligible, cite rate 2/3, mean citations 1.0.
    asked = [item("q1"), item("q2", gold=("d3",)), item("q3", gold=())]
    answers = [answer("q1", cited=("d2", "d1")), answer("q2"), answer("q3", cited=("d9",))]
    replies = [reply(f"q{n}", PASS) for n in (1, 2, 3)]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **WRONG)
    assert both(score, "cited_map") == ((0.25, 2), (0.25, 2))
    assert both(score, "cite_rate")[0] == (pytest.approx(2 / 3), 3)
    assert both(score, "citations")[0] == (1.0, 3)


def test_micro_and_macro_of_the_cards_conversations():
    # RAG card, section 3.3: A 3 of 3, B 0 of 1: micro 0.75, macro 0.5; C, not judged, changes neither.
    asked = [item(name, name[0]) for name in ("A-1", "A-2", "A-3", "B-1", "C-1", "C-2")]
    answers = [answer(one.item_id) for one in asked]
    replies = [reply(one.item_id, {"A": PASS, "B": FAIL, "C": "prose"}[one.group]) for one in asked]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **LIVE)
    assert both(score, "accuracy") == ((0.75, 4), (0.75, 4))
    assert both(score, "macro_accuracy") == ((0.5, 2), (0.5, 2))
    assert score.n == 6


def test_citations_by_conversation_count_each_conversation_once_and_those_without_gold_not():
    # RAG card, section 3.2: A has 1, 0, 0 and a turn without gold; B 1/2; C no turn with gold.
    cited = {"A-1": ["d1"], "A-2": [], "A-3": ["x"], "A-4": ["d9"], "B-1": ["x", "d1"], "C-1": []}
    asked = [item(name, name[0], gold=() if name in ("A-4", "C-1") else ("d1",)) for name in cited]
    answers = [answer(name, cited=uris) for name, uris in cited.items()]
    replies = [reply(name, PASS) for name in cited]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **LIVE)
    # Micro (1 + 0 + 0 + 1/2) / 4; macro (1/3 + 1/2) / 2.
    assert both(score, "cited_map")[0] == (0.375, 4)
    assert both(score, "macro_cited_map")[0] == (pytest.approx(5 / 12), 2)


def test_a_failed_turn_takes_its_conversation_out_of_the_published_reading_only():
    asked = [item("A-1", "A"), item("A-2", "A"), item("A-3", "A"), item("B-1", "B")]
    answers = [
        answer("A-1"),
        answer("A-2", status="failed", error="context_length: too long"),
        answer("A-3", status="not_sent", error="an earlier turn failed"),
        answer("B-1"),
    ]
    replies = [reply("A-1", PASS), reply("B-1", FAIL)]
    units, score, _ = grade("judge_rag_answer", asked, answers, replies, **LIVE)
    assert both(score, "accuracy") == ((0.0, 1), (0.5, 2))
    assert both(score, "accuracy_of_all") == ((0.0, 4), (0.25, 4))
    assert both(score, "cite_rate") == ((0.0, 1), (0.0, 2))
    assert units[0].published.reason == "another turn failed: conversation left out"
    assert score.counts["left_out_with_conversation"] == 1 and score.counts["tasks_failed"] == 2
    # Of single questions nothing but the failed one is left out.
    _, single, _ = grade("judge_rag_answer", asked, answers, replies, **WRONG)
    assert both(single, "accuracy") == ((0.5, 2), (0.5, 2))


@pytest.mark.parametrize("status", ["failed", "refused", "not_sent"])
def test_a_question_without_an_answer_leaves_every_mean_but_the_lower_bound(status):
    # RAG card, section 2.7, "task raised": excluded from all rates; a server's refusal is one as well.
    asked = [item("q1"), item("q2")]
    # What it did before it failed stands in the trace and in no mean.
    told = trace(cited=["x"], tokens=(900,), seconds=99.0)
    answers = [
        answer("q1", "ANSWER: 42", cited=["d1"], tokens=(100,)),
        answer("q2", status=status, error="refused: no", told=told),
    ]
    for grader, replies, options in (
        ("judge_rag_answer", [reply("q1", PASS)], WRONG),
        ("number_match", None, {}),
    ):
        _, score, _ = grade(grader, asked, answers, replies, **options)
        for name in ("accuracy", "cited_map", "cite_rate", "citations", "requests", "seconds"):
            assert both(score, name) == ((1.0, 1), (1.0, 1)), name
        assert both(score, "tokens_per_request") == ((100.0, 1), (100.0, 1))
        assert both(score, "accuracy_of_all") == ((0.5, 2), (0.5, 2))
        assert score.counts["tasks_failed"] == 1


def test_what_the_judge_did_not_say_leaves_citations_and_refusals_alone():
    # RAG card, section 2.7: in live conversations the turn leaves the accuracy, and nothing else.
    asked = [item("A-1", "A", label="UNANSWERABLE"), item("A-2", "A", gold=("d2",))]
    answers = [answer("A-1", cited=["d1"]), answer("A-2", cited=["x", "d2"])]
    replies = [
        reply("A-1", None, "failed"),
        reply("A-1--refusal", PASS),
        reply("A-2", PASS),
        reply("A-2--refusal", FAIL),
    ]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **LIVE)
    assert both(score, "accuracy") == ((1.0, 1), (1.0, 1))
    # (1 + 1/2) / 2.
    assert both(score, "cited_map") == ((0.75, 2), (0.75, 2))
    assert both(score, "refusal_precision") == both(score, "refusal_recall") == ((1.0, 1), (1.0, 1))


def test_refusals_of_a_broken_conversation_count_in_the_strict_reading_only():
    asked = [item("A-1", "A", label="UNANSWERABLE"), item("A-2", "A"), item("B-1", "B", label="UNANSWERABLE")]
    answers = [answer("A-1"), answer("A-2", status="failed", error="timeout: 9 s"), answer("B-1")]
    replies = [
        reply("A-1", PASS),
        reply("A-1--refusal", PASS),
        reply("B-1", PASS),
        reply("B-1--refusal", FAIL),
    ]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **LIVE)
    assert both(score, "refusal_recall") == ((0.0, 1), (0.5, 2))
    assert both(score, "refusal_precision") == ((0.0, 0), (1.0, 1))
    # Counts are those of the published reading.
    assert (score.counts["refusals"], score.counts["unanswerable"]) == (0, 1)


def test_an_answer_that_ends_while_it_thinks_is_none_when_strict_and_its_citations_stay():
    # The system did its work: only what it said cannot be judged.
    answers = [answer("q", "<think>so", status="cut_off", cited=["d1"], tokens=[10])]
    items, replies = [item("q")], [reply("q", FAIL)]
    grader = by_name("judge_rag_answer")
    judge = Aligned(replies, "custom_id", "judge.jsonl")
    cell = grading.grade_all(
        grader, items, Aligned(answers, "custom_id", "r.jsonl"), judge, thinking=True, options=WRONG
    )
    ((_, unit),) = cell
    assert (unit.published.score, unit.strict.score) == (0.0, None)
    assert unit.strict.scores["cited_map"] == unit.published.scores["cited_map"] == 1.0
    assert unit.strict.scores["requests"] == 1.0


def test_a_document_that_is_cited_twice_counts_once_and_states_of_citation_are_counted():
    asked = [item("q1"), item("q2", gold=("d1", "d2")), item("q3")]
    answers = [
        answer("q1", cited=["x", "x", "d1"], citation_status="grounded"),  # x, d1: 1/2
        answer("q2", citation_status="missing"),  # gold exists, nothing cited: 0
        answer("q3", cited=["d1"], citation_status="grounded"),
    ]
    _, score, _ = grade(
        "judge_rag_answer", asked, answers, [reply(f"q{n}", PASS) for n in (1, 2, 3)], **WRONG
    )
    assert both(score, "cited_map")[0] == (0.5, 3)
    assert both(score, "citations")[0] == (1.0, 3)
    assert (score.counts["citations_grounded"], score.counts["citations_missing"]) == (2, 1)


@pytest.mark.parametrize(
    ("n_refused", "n_right", "precision", "recall"),
    [(21, 7, 0.3333, 0.4375), (22, 5, 0.2273, 0.3125), (29, 7, 0.2414, 0.4375)],
    ids=["compacted", "uncompacted", "gold prefix"],
)
def test_refusals_of_the_cards_arms(n_refused, n_right, precision, recall):
    # RAG card, section 3.5: 16 of 224 turns are unanswerable; PARTIAL ones are not eligible.
    labels = ["UNANSWERABLE"] * 16 + ["ANSWERABLE"] * 170 + ["PARTIAL"] * 38
    refused = [n < n_right for n in range(16)] + [n < n_refused - n_right for n in range(170)] + [True] * 38
    asked = [item(f"q{n:03}", label=label) for n, label in enumerate(labels)]
    replies = []
    for one, declines in zip(asked, refused, strict=True):
        replies.append(reply(one.item_id, PASS))
        replies.append(reply(f"{one.item_id}--refusal", PASS if declines else FAIL))
    answers = [answer(one.item_id) for one in asked]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **WRONG)
    assert both(score, "refusal_precision")[0] == (pytest.approx(precision, abs=5e-5), n_refused)
    assert both(score, "refusal_recall")[0] == (pytest.approx(recall, abs=5e-5), 16)
    assert (score.counts["refusals"], score.counts["unanswerable"]) == (n_refused, 16)


def test_without_a_refusal_both_rates_are_zero_as_published_and_unknown_when_strict():
    replies = [reply("q", PASS), reply("q--refusal", FAIL)]
    _, score, _ = grade("judge_rag_answer", [item("q")], [answer("q")], replies, **WRONG)
    assert both(score, "refusal_precision") == ((0.0, 0), (None, 0))
    assert both(score, "refusal_recall") == ((0.0, 0), (None, 0))


def test_a_refusal_that_was_not_judged_is_no_refusal_and_its_failure_is_on_record():
    asked = [item("q1", label="UNANSWERABLE"), item("q2", label="UNANSWERABLE")]
    replies = [
        reply("q1", PASS),
        reply("q1--refusal", None, "failed"),
        reply("q2", PASS),
        reply("q2--refusal", "He declines."),
    ]
    units, score, _ = grade("judge_rag_answer", asked, [answer("q1"), answer("q2")], replies, **WRONG)
    assert "refusal_recall" not in score.metrics
    assert score.counts["refusal_judge_failed"] == score.counts["refusal_judge_unreadable"] == 1
    assert [(one.item_id, one.role) for one in units[0].failed] == [("q1--refusal", "judge")]
    assert both(score, "accuracy")[0] == (1.0, 2)


def test_tokens_per_request_are_all_tokens_over_all_requests():
    # RAG card, section 3.6, in small: 100 + 300 + 200 tokens over 3 requests are 200, not the mean of cases.
    asked = [item("q1"), item("q2")]
    answers = [answer("q1", tokens=(100, 300), seconds=4.0), answer("q2", tokens=(200,), seconds=1.0)]
    replies = [reply("q1", PASS), reply("q2", PASS)]
    _, score, _ = grade("judge_rag_answer", asked, answers, replies, **WRONG)
    assert both(score, "tokens_per_request") == ((200.0, 3), (200.0, 3))
    assert both(score, "requests")[0] == (1.5, 2)
    assert both(score, "seconds")[0] == (2.5, 2)
    assert (score.counts["requests"], score.counts["input_tokens"]) == (3, 600)


@pytest.mark.parametrize(("tokens", "requests", "mean"), [(5_207_627, 698, 7461), (9_707_530, 717, 13539)])
def test_tokens_per_request_of_the_page(tokens, requests, mean):
    # 697 or 716 requests of one token, and one of the rest.
    told = (1,) * (requests - 1) + (tokens - requests + 1,)
    _, score, _ = grade("number_match", [item("q")], [answer("q", tokens=told)])
    (value, n), _ = both(score, "tokens_per_request")
    assert (round(value), n) == (mean, requests)


def test_the_ratio_and_the_reduction_of_the_page():
    # 1.81x as many; 44.9 % fewer.
    compacted, uncompacted = 5_207_627 / 698, 9_707_530 / 717
    assert (round(compacted, 2), round(uncompacted, 2)) == (7460.78, 13539.09)
    assert round(uncompacted / compacted, 4) == 1.8147
    assert round(1 - compacted / uncompacted, 6) == 0.448945
    # All tokens fell by another share, since there were fewer requests; 224 turns.
    assert round(1 - 5_207_627 / 9_707_530, 3) == 0.464
    assert (round(698 / 224, 3), round(717 / 224, 3)) == (3.116, 3.201)


def test_options_are_checked():
    with pytest.raises(RemeasureError, match="judge_failure"):
        by_name("judge_rag_answer").begin({})
    with pytest.raises(RemeasureError, match="judge_failure"):
        by_name("judge_rag_answer").begin({"judge_failure": "drop"})
    with pytest.raises(RemeasureError, match="limit"):
        by_name("number_match").begin({"limit": 5})


# -- numbers -----------------------------------------------------------------------------------------------


def test_numbers_are_graded_in_both_readings_and_nulls_leave_the_denominator():
    asked = [item("q1"), item("q2"), item("q3"), item("q4", expected="yes"), item("q5")]
    answers = [
        answer("q1", "ANSWER: 42"),
        answer("q2", "It was 42 in 2019."),
        answer("q3", "ANSWER: 7"),
        answer("q4", "ANSWER: yes"),
        answer("q5", status="failed", error="request_limit: 30"),
    ]
    units, score, _ = grade("number_match", asked, answers)
    # Published: 2 of 4, the gold answer without a number stays in; strict: 1 of 3.
    assert both(score, "accuracy") == ((0.5, 4), (pytest.approx(1 / 3), 3))
    assert both(score, "accuracy_of_all") == ((0.4, 5), (0.2, 5))
    assert [unit.strict.verdict for unit in units] == [
        "correct",
        "unreadable",
        "incorrect",
        "ungraded",
        "ungraded",
    ]
    assert score.counts["matched_only_loosely"] == 1 and score.counts["gold_without_number"] == 1


def test_every_answer_missing_gives_no_number_and_no_error():
    asked = [item("q1"), item("q2")]
    answers = [answer(one.item_id, status="failed", error="timeout: 600 s") for one in asked]
    for name, options in (("number_match", {}), ("judge_rag_answer", LIVE)):
        replies = [] if name == "judge_rag_answer" else None
        _, score, _ = grade(name, asked, answers, replies, **options)
        assert both(score, "accuracy") == ((None, 0), (None, 0))
        assert both(score, "tokens_per_request") == ((None, 0), (None, 0))
        assert both(score, "accuracy_of_all")[0] == (0.0, 2)


def test_a_verdict_that_quotes_tags_of_thinking_is_read_and_can_be_written():
    said = '{"reason": "the answer ends with </think> \\ud83d", "pass": false}'
    (unit,), _, _ = grade("judge_rag_answer", [item("a")], [answer("a")], [reply("a", said)], **WRONG)
    assert unit.strict.verdict == "incorrect"
    assert b"ends with </think> ?" in msgspec.json.encode(unit)
