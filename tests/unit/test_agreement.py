import json
from pathlib import Path

import pytest

import build_agreement_requests
import make_agreement
import tablekit
from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.graders import by_name
from remeasure.records import Graded, Item, Reading, Request, Response, Stage
from remeasure.tables import agreement, csv_text
from remeasure.tables.agreement import Picked

GRADER = by_name("judge_simpleqa")


def picked(number, answer, reference="Paris"):
    return Picked(
        answer_id=f"answer-{number:04}", cell="c", item_id="q", references=(reference,), answer=answer
    )


def reply(number, text, status="answered"):
    return Response(custom_id=f"answer-{number:04}", key="k", status=status, text=text)


def test_agreement_and_kappa_of_every_pair_with_raw_counts():
    answers = [picked(1, "Paris"), picked(2, "It is Paris."), picked(3, "Rome"), picked(4, "Oslo")]
    replies = {
        "good": [reply(1, "A"), reply(2, "A"), reply(3, "B"), reply(4, "B")],
        "no": [reply(1, "B"), reply(2, "B"), reply(3, "B"), reply(4, "C")],
    }
    found = agreement.rows(GRADER, answers, replies, {"good": "Good judge", "no": "Always no"})
    assert [(row["first"], row["second"]) for row in found] == [
        ("good", "no"),
        ("good", "exact-match"),
        ("no", "exact-match"),
    ]
    assert (found[0]["agreement"], found[0]["kappa"]) == ("0.500", "0.000")
    assert (found[1]["agreement"], found[1]["kappa"]) == ("1.000", "1.000")
    assert [found[0][name] for name in ("yes_yes", "yes_no", "no_yes", "no_no")] == [0, 2, 0, 2]


def test_unreadable_replies_leave_the_strict_comparison_and_are_counted():
    answers = [picked(1, "Paris"), picked(2, "Rome")]
    replies = {"wordy": [reply(1, "NOT_ATTEMPTED"), reply(2, None, "failed")]}
    (row,) = agreement.rows(GRADER, answers, replies, {"wordy": "Wordy"})
    assert (row["n"], row["n_both_readable"], row["n_first_unreadable"]) == (2, 0, 2)
    assert (row["agreement"], row["kappa"]) == (None, None)
    # Published reading: the A in NOT_ATTEMPTED counts as correct; the failed reply is left out.
    assert (row["agreement_published"], row["kappa_published"]) == ("1.000", None)


def verdict_line(item_id, answer, status="answered"):
    reading = Reading(verdict="correct", score=1.0, reason="r")
    return Graded(
        item_id=item_id,
        group=item_id,
        status=status,
        answer=answer,
        grader="judge_simpleqa@1",
        published=reading,
        strict=reading,
    )


def test_answers_are_picked_one_cell_after_the_other_and_empty_ones_are_not():
    items = [Item(item_id=name, question="?", references=("x",), group="g") for name in "pqr"]
    cells = [
        ("one", [verdict_line("p", "1"), verdict_line("q", " "), verdict_line("r", "3")]),
        ("two", [verdict_line("p", None, "failed"), verdict_line("q", "5"), verdict_line("r", "6")]),
    ]
    cells = [(name, [(line, reply(1, "x")) for line in lines]) for name, lines in cells]
    found = [(line.cell, line.item_id) for line, _, _ in agreement.pick(items, cells, 3)]
    assert found == [("one", "p"), ("two", "q"), ("one", "r")]
    assert len(agreement.pick(items, cells, 60)) == 4


def test_items_and_cells_are_read_to_their_ends_though_few_answers_are_picked():
    items = iter([Item(item_id=name, question="?", references=("x",), group="g") for name in "pqr"])
    lines = iter([(verdict_line(name, name), reply(1, "x")) for name in "pqr"])
    assert [picked.answer for picked, _, _ in agreement.pick(items, [("one", lines)], 1)] == ["p"]
    assert next(items, None) is None and next(lines, None) is None


def test_an_answer_to_a_question_of_another_bench_is_an_error():
    with pytest.raises(RemeasureError, match="one: item 'p' is not among the items"):
        agreement.pick([], [("one", [(verdict_line("p", "1"), reply(1, "x"))])], 1)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prompt = tablekit.put(Path("judge_simpleqa.txt"), "{{answer_json}}\n")
    items = [
        Item(item_id=f"q{n}", question=f"Question {n}?", references=("Paris",), group="g") for n in range(3)
    ]
    jsonl.write(Path("items.jsonl"), items)
    for arm in ("naive", "base"):
        texts = ["Paris", "Rome", "Oslo"]
        jsonl.write(Path(arm, "graded.jsonl"), [verdict_line(f"q{n}", texts[n]) for n in range(3)])
        jsonl.write(
            Path(arm, "responses.jsonl"),
            [Response(custom_id=f"q{n}", key="k", status="answered", text=texts[n]) for n in range(3)],
        )
    return {
        "model": "judge-x",
        "grader": "judge_simpleqa",
        "gold": "first",
        "max_tokens": 10,
        "sampling": {"temperature": 0.0},
        "prompts": {
            "profile": "own",
            "files": {"judge_simpleqa": str(prompt.absolute())},
            "sha256": {"judge_simpleqa": sha256_file(prompt)},
        },
        "study": "pixelrag",
        "n_answers": 4,
    }


def build(settings, judge):
    return build_agreement_requests.main(
        ["--settings", json.dumps(settings | {"model": judge}), "--items", "items.jsonl"]
        + ["--graded", "naive/graded.jsonl", "base/graded.jsonl"]
        + ["--responses", "naive/responses.jsonl", "base/responses.jsonl"]
        + ["--picked", f"judges/{judge}/picked.jsonl", "--out", f"judges/{judge}/requests.jsonl"]
        + ["--record", f"judges/{judge}/ask.json"]
    )


def table(judges):
    argv = ["--settings", json.dumps({"judges": judges, "grader": "judge_simpleqa"})]
    argv += ["--picked", *(f"judges/{judge}/picked.jsonl" for judge in judges)]
    argv += ["--responses", *(f"judges/{judge}/responses.jsonl" for judge in judges)]
    return make_agreement.main([*argv, "--out", "judges.csv", "--record", "judges.json"])


def test_from_stored_answers_to_the_table_of_judges(here):
    for judge, letters in {"small": "ABBA", "cross": "AABB"}.items():
        assert build(here, judge) == 0
        requests = list(jsonl.read(Path(f"judges/{judge}/requests.jsonl"), Request))
        assert [request.custom_id for request in requests] == [f"answer-000{n}" for n in range(1, 5)]
        assert requests[0].body["model"] == judge
        jsonl.write(
            Path(f"judges/{judge}/responses.jsonl"),
            [
                Response(custom_id=r.custom_id, key="k", status="answered", text=c)
                for r, c in zip(requests, letters, strict=True)
            ],
        )
    assert table({"small": "Small", "cross": "Cross"}) == 0
    found = csv_text.read(Path("judges.csv"), agreement.COLUMNS)
    assert [(row["first"], row["second"], row["n"]) for row in found] == [
        ("small", "cross", "4"),
        ("small", "exact-match", "4"),
        ("cross", "exact-match", "4"),
    ]
    # Picked in turn: Paris, Paris, Rome, Rome; the cross judge says A A B B, the small one A B B A.
    assert [row["kappa"] for row in found] == ["0.000", "0.000", "1.000"]
    stage = jsonl.read_json(Path("judges.json"), Stage)
    assert stage.counts == {"answers": 4, "judges": 2}


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ("01", "are not of one cell"),
        ("02", "are not of one cell"),
        ("0123", "are not of one cell"),
        ("013", "are not of one cell"),
        ("021", "have their items in different order (first at item 'q1')"),
    ],
)
def test_verdicts_and_responses_that_do_not_fit_are_one_line(here, capsys, answered, said):
    rows = [Response(custom_id=f"q{n}", key="k", status="answered", text="x") for n in answered]
    jsonl.write(Path("base/responses.jsonl"), rows)
    assert build(here | {"n_answers": 1}, "small") == 2
    err = capsys.readouterr().err
    assert err.startswith("error: base/graded.jsonl and base/responses.jsonl ") and said in err
    assert err.count("\n") == 1 and not Path("judges/small/picked.jsonl").exists()


def test_judges_that_were_shown_different_answers_are_not_compared(here, capsys):
    build(here, "small")
    build(here | {"n_answers": 3}, "cross")
    for judge in ("small", "cross"):
        jsonl.write(Path(f"judges/{judge}/responses.jsonl"), [])
    assert table({"small": "Small", "cross": "Cross"}) == 2
    assert "differ" in capsys.readouterr().err


def test_replies_that_do_not_fit_the_answers_are_an_error(here, capsys):
    build(here, "small")
    jsonl.write(Path("judges/small/responses.jsonl"), [reply(1, "A")])
    assert table({"small": "Small"}) == 2
    assert "do not fit" in capsys.readouterr().err
