import json
from types import SimpleNamespace

import pytest

import grade
from remeasure import grading, jsonl, progress
from remeasure.records import Graded, Item, Ranked, Response, Score, Stage
from remeasure.tables import markdown_failures
from remeasure.tables.settings import CellKey

SETTINGS = {
    "study": "pixelrag",
    "bench": "nq",
    "arm": "base",
    "model": "reader",
    "grader": "em",
    "k": 3,
    "thinking": False,
    "reader": "A reader",
    "judge": None,
    "corpus": "factbook",
    "bootstrap": {"n": 200, "seed": 1},
    "max_judge_failed_share": 0.01,
}


def item(item_id, gold="Paris", group=None, relevant=("france",)):
    return Item(item_id=item_id, question="?", references=(gold,), relevant=relevant, group=group or item_id)


def response(item_id, text="Paris", status="answered"):
    return Response(custom_id=item_id, key=f"key-{item_id}", status=status, text=text)


def run(folder, items, responses, judging=None, ranking=None, **changes):
    jsonl.write(folder / "items.jsonl", items)
    jsonl.write(folder / "responses.jsonl", responses)
    argv = ["--settings", json.dumps(SETTINGS | changes)]
    argv += ["--items", str(folder / "items.jsonl"), "--responses", str(folder / "responses.jsonl")]
    if judging is not None:
        jsonl.write(folder / "judge.jsonl", judging)
        argv += ["--judge-responses", str(folder / "judge.jsonl")]
    if ranking is not None:
        jsonl.write(folder / "ranking.jsonl", ranking)
        argv += ["--ranking", str(folder / "ranking.jsonl")]
    argv += ["--out", str(folder / "graded.jsonl"), "--score", str(folder / "score.json")]
    return grade.main([*argv, "--record", str(folder / "grade.json")])


def score(folder):
    return jsonl.read_json(folder / "score.json", Score)


def test_every_item_gets_a_line_in_item_order_and_the_cell_a_number(tmp_path):
    items = [item("b"), item("a"), item("c"), item("d")]
    replies = [response("b"), response("a", "Rome"), response("c", None, "failed"), response("d")]
    assert run(tmp_path, items, replies) == 0
    graded = list(jsonl.read(tmp_path / "graded.jsonl", Graded))
    assert [line.item_id for line in graded] == ["b", "a", "c", "d"]
    assert [line.published.score for line in graded] == [1.0, 0.0, 0.0, 1.0]
    assert [line.strict.score for line in graded] == [1.0, 0.0, None, 1.0]
    assert {line.grader for line in graded} == {"em@1"}
    found = score(tmp_path)
    assert (found.headline, list(found.metrics)) == ("accuracy", ["accuracy"])
    number, strict = found.main.published, found.main.strict
    assert (number.value, found.n, number.n, found.main.n_differ) == (0.5, 4, 4, 1)
    assert strict.value == pytest.approx(2 / 3) and strict.n == 3
    assert (found.n_answers, found.n_empty, found.n_words_mean) == (4, 0, 1.0)
    assert found.statuses == {"answered": 3, "failed": 1}
    assert found.verdicts_strict == {"correct": 2, "incorrect": 1, "ungraded": 1}
    assert number.interval_method == "Wilson 95 %"
    # Wilson for 2 of 4.
    assert number.interval == pytest.approx((0.15004, 0.84996), abs=1e-5)
    assert (found.recall_at_k, found.k) == (None, None)


def test_the_stage_record_names_files_and_counts_every_reason(tmp_path):
    run(tmp_path, [item("a"), item("b", "The")], [response("a"), response("b", "")])
    stage = jsonl.read_json(tmp_path / "grade.json", Stage)
    assert set(stage.inputs) == {str(tmp_path / "items.jsonl"), str(tmp_path / "responses.jsonl")}
    assert set(stage.outputs) == {str(tmp_path / "graded.jsonl"), str(tmp_path / "score.json")}
    assert stage.counts["published: empty = empty"] == 1
    assert stage.counts["strict: empty answer"] == 1
    assert score(tmp_path).verdicts == {"correct": 1, "correct_empty": 1}


def test_repeated_groups_are_resampled_whole(tmp_path):
    items = [item(str(i), group=f"page{i // 2}") for i in range(8)]
    run(tmp_path, items, [response(str(i), "Paris" if i < 4 else "Rome") for i in range(8)])
    assert score(tmp_path).main.published.interval_method == "clustered bootstrap 95 %, 200 samples, seed 1"


def test_recall_looks_at_the_pages_of_the_first_k_and_counts_a_row_without_hits_as_a_miss(tmp_path):
    items = [item("a"), item("b"), item("c"), item("d", relevant=())]
    ranking = [
        Ranked(item_id="a", ids=("spain/0001", "spain/0002", "france/0000"), scores=(3.0, 2.0, 1.0)),
        Ranked(item_id="b", ids=("x/0", "y/0", "z/0", "france/0"), scores=(4.0, 3.0, 2.0, 1.0)),
        Ranked(item_id="c", ids=(), scores=()),
        Ranked(item_id="d", ids=("france/0000",), scores=(1.0,)),
    ]
    run(tmp_path, items, [response(name) for name in "abcd"], ranking=ranking)
    assert score(tmp_path).recall_at_k == pytest.approx(1 / 3)
    run(tmp_path, items, [response(name) for name in "abcd"], ranking=[ranking[0], ranking[3]])
    assert score(tmp_path).recall_at_k == pytest.approx(1 / 3)


def test_p1_the_grader_stands_in_every_output(tmp_path):
    run(tmp_path, [item("a")], [response("a")])
    for name in ("graded.jsonl", "score.json"):
        assert "em@1" in (tmp_path / name).read_text()


@pytest.mark.parametrize("references", [(), ("",), ("Paris", " ")])
def test_p2_items_without_gold_answers_stop_the_cell(tmp_path, capsys, references):
    bad = Item(item_id="bad", question="?", references=references, group="g")
    assert run(tmp_path, [item("a"), bad], [response("a"), response("bad")]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "line 2" in error and "'bad'" in error and "references" in error
    assert not (tmp_path / "graded.jsonl").exists()


def judged(n, n_failed):
    items = [item(f"q{i}") for i in range(n)]
    judge = [response(f"q{i}", *((None, "failed") if i < n_failed else ("A",))) for i in range(n)]
    return items, [response(f"q{i}") for i in range(n)], judge


JUDGED = {"grader": "judge_simpleqa", "judge": "A judge"}


def test_p3_more_than_one_failed_judgement_in_a_hundred_stops_the_cell_and_names_both_denominators(
    tmp_path, capsys
):
    assert run(tmp_path, *judged(100, 2), **JUDGED) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "2 of 100" in error and "98 of 100 items" in error
    assert not (tmp_path / "score.json").exists()


def test_p3_a_single_failed_judgement_in_a_hundred_leaves_the_denominator(tmp_path):
    assert run(tmp_path, *judged(100, 1), **JUDGED) == 0
    found = score(tmp_path)
    assert (found.n, found.main.published.n, found.main.published.value) == (100, 99, 1.0)
    assert found.judge_statuses == {"answered": 99, "failed": 1}


def test_p3_a_dead_judge_is_an_error_and_not_a_score_of_zero(tmp_path):
    assert run(tmp_path, *judged(10, 10), **JUDGED) == 2
    assert run(tmp_path, *judged(10, 10), **JUDGED, max_judge_failed_share=1.0) == 0
    assert score(tmp_path).main.published.value is None


def test_unreadable_replies_that_the_original_has_a_reading_for_are_told_and_do_not_stop(tmp_path, capsys):
    items, replies, _ = judged(10, 0)
    odd = [response(f"q{i}", "CORRECT") for i in range(10)]
    assert run(tmp_path, items, replies, odd, **JUDGED) == 0
    assert "10 of 10 replies of the judge cannot be read" in capsys.readouterr().err
    assert score(tmp_path).main.published.value == 0.0


def test_p3_the_message_says_what_is_to_be_deleted(tmp_path, capsys):
    assert run(tmp_path, *judged(10, 10), **JUDGED) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"after deleting {tmp_path / 'judge.jsonl'} " in error
    assert f"scripts/forget.py {tmp_path / 'journal'}" in error


def test_p4_words_and_bold_labels_of_a_judge_are_read_both_ways_and_counted(tmp_path):
    items = [item("a"), item("b")]
    replies = [response("a"), response("b")]
    run(tmp_path, items, replies, [response("a", "NOT_ATTEMPTED"), response("b", "B")], **JUDGED)
    found = score(tmp_path)
    assert (found.main.published.value, found.main.strict.value, found.main.n_differ) == (0.5, 0.0, 1)
    assert found.verdicts_strict == {"judge_unreadable": 1, "incorrect": 1}
    bold = "Evaluation: not incorrect\n**Label:** Correct"
    run(
        tmp_path,
        items,
        replies,
        [response("a", bold), response("b", "Label: Correct")],
        **JUDGED | {"grader": "judge_worldvqa"},
    )
    found = score(tmp_path)
    assert (found.main.published.value, found.main.strict.value) == (0.5, 1.0)
    counts = jsonl.read_json(tmp_path / "grade.json", Stage).counts
    assert counts["published: fallback: word in the judge's reply"] == 1


def test_p6_two_gradings_differ_only_where_the_judge_did_and_keep_its_keys(tmp_path):
    items, replies, judge = judged(3, 0)
    run(tmp_path, items, replies, judge, **JUDGED)
    first = list(jsonl.read(tmp_path / "graded.jsonl", Graded))
    run(tmp_path, items, replies, [*judge[:2], response("q2", "B")], **JUDGED)
    second = list(jsonl.read(tmp_path / "graded.jsonl", Graded))
    assert first[:2] == second[:2] and first[2].published != second[2].published
    assert first[0].judge_key == "key-q0"


def test_items_whose_reader_failed_need_no_judge_but_answered_ones_do(tmp_path, capsys):
    items = [item("a"), item("b"), item("c")]
    replies = [response("a", None, "failed"), response("b"), response("c", "<think>x</think> ")]
    assert run(tmp_path, items, replies, [response("b", "A")], **JUDGED) == 0
    assert score(tmp_path).verdicts == {"not_attempted": 2, "correct": 1}
    assert run(tmp_path, items, replies, [], **JUDGED) == 2
    assert "'b' has an answer but no line in the judge's responses" in capsys.readouterr().err


def test_a_missing_a_surplus_and_a_misplaced_response_are_errors(tmp_path, capsys):
    items = [item("a"), item("b")]
    for replies in ([response("a")], [response("b"), response("a")], [response(n) for n in "abc"]):
        assert run(tmp_path, items, replies) == 2
        assert "rerun" in capsys.readouterr().err


def test_duplicate_items_and_an_empty_file_are_errors(tmp_path, capsys):
    assert run(tmp_path, [item("a"), item("a")], [response("a"), response("a")]) == 2
    assert "unique" in capsys.readouterr().err
    assert run(tmp_path, [], []) == 2
    assert "no items" in capsys.readouterr().err


def test_a_judge_file_must_fit_the_grader(tmp_path, capsys):
    assert run(tmp_path, [item("a")], [response("a")], [response("a", "A")]) == 2
    assert "has no use for --judge-responses" in capsys.readouterr().err
    assert run(tmp_path, [item("a")], [response("a")], **JUDGED) == 2
    assert "needs --judge-responses" in capsys.readouterr().err


def test_unknown_settings_and_graders_are_one_line(tmp_path, capsys):
    assert run(tmp_path, [item("a")], [response("a")], grader="emm") == 2
    assert "did you mean 'em'" in capsys.readouterr().err
    assert run(tmp_path, [item("a")], [response("a")], colour="red") == 2
    assert "colour" in capsys.readouterr().err


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    items = [item(str(i), group=f"p{i % 3}") for i in range(9)]
    contents = []
    for _ in range(2):
        run(tmp_path, items, [response(str(i), "Paris" if i % 2 else "Rome") for i in range(9)])
        contents.append(
            [(tmp_path / name).read_bytes() for name in ("graded.jsonl", "score.json", "grade.json")]
        )
    assert contents[0] == contents[1]


def test_progress_is_said_at_most_every_ten_seconds_and_never_of_a_fast_cell(tmp_path, monkeypatch, capsys):
    items, replies = [item(f"i{n}") for n in range(100)], [response(f"i{n}") for n in range(100)]
    assert run(tmp_path, items, replies) == 0
    assert "items graded" not in capsys.readouterr().err
    # A clock by which every item takes a second.
    ticks = iter(range(10**6))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    assert run(tmp_path, items, replies) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "items graded" in line]
    assert said[0].endswith("remeasure.grade: items graded 10/100 1/s eta 90 s") and len(said) == 10


def test_a_ranking_has_no_length_and_nothing_is_said_of_one():
    tally = grading.Tally("map_medium")
    tally.add_answer("answered", "photo_1\nphoto_2", is_text=False)
    assert (tally.n_answers, tally.n_empty, tally.n_words) == (1, 0, [])
    counts = {"statuses": {"answered": 1}, "n_words_mean": None, "n_answers": 1}
    ranked = {CellKey("nq", "base", "reader"): SimpleNamespace(score=SimpleNamespace(n_empty=0, **counts))}
    silent = {CellKey("nq", "base", "reader"): SimpleNamespace(score=SimpleNamespace(n_empty=1, **counts))}
    settings = SimpleNamespace(open_axes=(), title_of=lambda axis, name: name)
    assert markdown_failures.lengths(ranked, settings) == []
    assert "no words" in markdown_failures.lengths(silent, settings)[0]


def test_the_words_of_answers_have_a_mean_and_a_median(tmp_path):
    texts = {"a": "one", "b": "one two", "c": "one two three four five six seven eight nine", "d": ""}
    run(tmp_path, [item(name) for name in texts], [response(name, text) for name, text in texts.items()])
    found = score(tmp_path)
    # 1, 2 and 9 words; the empty answer is counted on its own.
    assert (found.n_words_mean, found.n_words_median, found.n_empty) == (4.0, 2.0, 1)
