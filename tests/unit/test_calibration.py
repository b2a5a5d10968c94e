import json
import shutil
from pathlib import Path

import msgspec
import pytest

import build_calibration_requests
import make_calibration
import pick_answers
import tablekit
from remeasure import jsonl, reach
from remeasure.calibration import comparing, picking, sheet
from remeasure.calibration.picking import Chosen, Pool
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.plan import Plan
from remeasure.preflight import askings
from remeasure.records import Graded, Item, Reading, Request, Response, Stage, Trace, Turn
from remeasure.status import steps
from remeasure.tables import csv_text
from remeasure.wiring import Wiring
from statuskit import PLAN, RULES

CONFIG = Path(__file__).parents[2] / "config"


def chosen(number, *, passed=True, model="small", group=None, answer="Paris", meta=None, trace=None):
    more = {} if trace is None else {"trace": trace}
    return Chosen(
        answer_id=f"answer-{number:04}",
        key=f"{number:016x}",
        bench="sqa",
        arm="rag",
        model=model,
        item=Item(
            item_id=f"q{number}",
            question="Capital?",
            references=("Paris",),
            group=group or f"g{number}",
            meta=meta or {},
        ),
        response=Response(custom_id=f"q{number}", key="k", status="answered", text=answer, **more),
        passed=passed,
    )


def compared(table, other, *, own=None, labels=None, pool=(60, 60), groups=None):
    answers = [chosen(n, passed=passed, group=groups and groups[n]) for n, passed in enumerate(table)]
    votes = {"table": table, "judge": other} | ({"labels": labels} if labels else {})
    titles = {name: name for name in votes}
    flags = {"judge": own or [False] * len(table)}
    return comparing.rows(answers, votes, titles, flags, "g@1", Pool(*pool), 1)


def test_six_disagreements_of_120_are_an_agreement_of_095_and_a_kappa_of_09_however_they_are_split():
    # Ragbench card, 3.8: 60 pass and 60 fail by the first judge; Wilson 0.895 to 0.977.
    table = [True] * 60 + [False] * 60
    for n_other_way in (0, 2, 6):
        other = list(table)
        for place in range(n_other_way):
            other[place] = False
        for place in range(6 - n_other_way):
            other[60 + place] = True
        row = compared(table, other)[0]
        assert (row["first"], row["second"], row["n_both_readable"]) == ("table", "judge", 120)
        assert (row["agreement"], row["kappa"]) == ("0.950", "0.900")
        assert (row["agreement_low"], row["agreement_high"]) == ("0.895", "0.977")
        assert float(row["kappa_low"]) < 0.9 < float(row["kappa_high"])
        assert [row[name] for name in ("yes_no", "no_yes")] == [n_other_way, 6 - n_other_way]


def test_agreement_is_also_weighted_as_verdicts_occur_in_the_table():
    # Of those that passed 1 of 2 agree, of those that failed 2 of 2; 90 of 100 passed: 0.9 * 0.5 + 0.1.
    row = compared([True, True, False, False], [True, False, False, False], pool=(90, 10))[0]
    assert (row["agreement"], row["agreement_natural_mix"]) == ("0.750", "0.550")
    assert "natural mix" in row["remark"]


def test_a_half_that_was_not_sampled_leaves_the_natural_mix_unknown():
    assert compared([True, True], [True, False], pool=(90, 10))[0]["agreement_natural_mix"] is None
    assert compared([True, True], [True, False], pool=(2, 0))[0]["agreement_natural_mix"] == "0.500"


def test_what_cannot_be_read_leaves_the_comparison_and_is_counted():
    row = compared([True, False, True, False], [None, False, True, None])[0]
    assert (row["n"], row["n_second_unreadable"], row["n_both_readable"]) == (4, 2, 2)
    assert row["agreement"] == "1.000"


def test_raters_who_say_one_thing_only_have_no_kappa_and_no_interval_of_it():
    row = compared([True] * 4, [True] * 4)[0]
    assert (row["agreement"], row["kappa"], row["kappa_low"]) == ("1.000", None, None)
    assert compared([], [])[0]["agreement"] is None


def test_raters_who_never_disagree_have_no_interval_of_kappa():
    row = compared([True, True, False, False], [True, True, False, False])[0]
    assert (row["kappa"], row["kappa_low"], row["kappa_high"]) == ("1.000", None, None)


def test_the_interval_of_kappa_draws_whole_conversations():
    table, other = [True, False] * 20, [True, False] * 15 + [False, True] * 5
    alone = compared(table, other)[0]
    talks = compared(table, other, groups=[str(n // 10) for n in range(40)])[0]
    widths = [float(row["kappa_high"]) - float(row["kappa_low"]) for row in (alone, talks)]
    assert widths[0] < widths[1]


def test_self_preference_is_the_excess_over_the_labels_on_own_answers_minus_that_on_others():
    # Own: judge 3 of 4, labels 1 of 4: +0.5. Others: judge 2 of 4, labels 3 of 4: -0.25. Difference 0.75.
    judge = [True, True, True, False] + [True, True, False, False]
    labels = [True, False, False, False] + [True, True, True, False]
    own = [True] * 4 + [False] * 4
    row = compared([True] * 8, judge, own=own, labels=labels)[-1]
    assert (row["kind"], row["first"], row["second"]) == ("self_preference", "judge", "labels")
    assert (row["n_own"], row["n_other"]) == (4, 4)
    assert [row[name] for name in ("excess_own", "excess_other", "self_preference")] == [
        "0.500",
        "-0.250",
        "0.750",
    ]
    assert float(row["self_preference_low"]) < 0.75 < float(row["self_preference_high"])


def test_a_judge_whose_model_wrote_nothing_has_no_self_preference_and_the_row_says_why():
    row = compared([True, False], [True, True])[-1]
    assert (row["n_own"], row["self_preference"]) == (0, None)
    assert row["remark"] == "the judge's model wrote none of the answers"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("  +1", "'  +1"),
        ("-5.2 %", "'-5.2 %"),
        ("@x", "'@x"),
        ("\t=1", "' =1"),
        ("\r=1", "' =1"),
        ("＝1", "'＝1"),
        ("Paris = capital", "Paris = capital"),
        ("a\x00b\x1b", "a b "),
        ("one\r\ntwo", "one\ntwo"),
        ("", ""),
    ],
)
def test_no_text_of_the_sheet_begins_like_a_formula(text, shown):
    assert sheet.safe(text) == shown


def test_the_sheet_tells_neither_verdict_nor_system_and_shows_the_conversation_as_it_went():
    turns = [
        {"speaker": "user", "text": "Hi"},
        {"speaker": "agent", "text": "Hello"},
        {"speaker": "user", "text": "?"},
    ]
    trace = Trace(before=(Turn(speaker="user", text="Live"),), seconds=1.0)
    lines = [
        chosen(1, meta={"turns": turns}),
        chosen(2, meta={"turns": turns}, trace=trace, answer='=cmd|"x"'),
        chosen(3, model="secret-system"),
    ]
    text = sheet.render(lines)
    rows = [dict(zip(sheet.COLUMNS, row, strict=True)) for row in _rows(text)]
    assert [row["conversation"] for row in rows] == ["user: Hi\nagent: Hello", "user: Live", ""]
    assert rows[1]["answer"] == '\'=cmd|"x"'
    assert rows[0]["key"] == "k0000000000000001"
    assert "secret-system" not in text and "pass" not in text


def _rows(text):
    import csv
    import io

    return list(csv.reader(io.StringIO(text)))[1:]


def test_a_label_belongs_to_question_and_answer(tmp_path):
    # Separated by semicolons, with a byte order mark and other columns: what a spreadsheet makes of it.
    path = tmp_path / "sheet.csv"
    path.write_text(
        "\ufeffanswer_id;key;label;mine\na;k12;Pass;x\nb;34; fail ;\nc;k56;;y\n", encoding="utf-8"
    )
    assert sheet.read(path) == {"12": True, "34": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("key,label\nk1,maybe\n", "answer 1: label 'maybe' is none; write pass or fail"),
        ("key,label\nk1,pass\nk1,fail\n", "answer 2: key k1 has two labels"),
        ("key,verdict\nk1,pass\n", "answer 1: lacks the columns key and label"),
        ("key,label\nk1\n", "answer 1: lacks the columns"),
        (b"key,label\nk1,p\xff\n", "not in UTF-8"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_one_line(tmp_path, text, said):
    path = tmp_path / "sheet.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RemeasureError, match=said):
        sheet.read(path)


# -- from graded cells to the table --------------------------------------------------------------------------


def graded(item_id, score, answer="Paris"):
    verdict = {1.0: "correct", 0.0: "incorrect", None: "judge_failed"}[score]
    reading = Reading(verdict=verdict, score=score, reason="made up")
    return Graded(
        item_id=item_id,
        group=item_id,
        status="answered",
        answer=answer,
        grader="judge_simpleqa@1",
        published=reading,
        strict=reading,
    )


SCORES = {"small": [1.0, 1.0, 1.0, 0.0, None, 0.0], "large": [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two cells of six answers each: eight passed, three failed, one without a verdict."""
    monkeypatch.chdir(tmp_path)
    items = [
        Item(item_id=f"q{n}", question=f"Question {n}?", references=("Paris",), group=f"q{n}")
        for n in range(6)
    ]
    jsonl.write(Path("sqa/items.jsonl"), items)
    for model, scores in SCORES.items():
        jsonl.write(Path(model, "graded.jsonl"), [graded(f"q{n}", score) for n, score in enumerate(scores)])
        answers = [
            Response(custom_id=f"q{n}", key="k", status="answered", text=f"{model} {n}") for n in range(6)
        ]
        jsonl.write(Path(model, "responses.jsonl"), answers)
    return tmp_path


def pick(n, seed=1, models=("small", "large")):
    settings = {
        "cells": [["sqa", "rag", model] for model in models],
        "benches": ["sqa"],
        "n": n,
        "seed": seed,
    }
    argv = ["--settings", json.dumps(settings), "--items", "sqa/items.jsonl"]
    argv += ["--graded", *(f"{model}/graded.jsonl" for model in models)]
    argv += ["--responses", *(f"{model}/responses.jsonl" for model in models)]
    argv += ["--picked", "cal/picked.jsonl", "--sheet", "cal/sheet.csv", "--record", "cal/sample.json"]
    assert pick_answers.main(argv) == 0
    return list(jsonl.read(Path("cal/picked.jsonl"), Chosen))


def test_half_of_the_sample_passed_and_half_failed_as_far_as_there_are(here):
    found = pick(4)
    assert sorted(one.passed for one in found) == [False, False, True, True]
    # Three failed in all; of the eight that passed no more than a half of the ten wanted are taken.
    found = pick(10)
    assert sorted(one.passed for one in found) == [False] * 3 + [True] * 5
    assert jsonl.read_json(Path("cal/sample.json"), Stage).counts == {
        "picked_passed": 5,
        "picked_failed": 3,
        "passed": 8,
        "failed": 3,
    }
    for one in found:
        assert SCORES[one.model][int(one.item.item_id[1:])] == one.passed
        assert one.response.text == f"{one.model} {one.item.item_id[1:]}"


def test_of_an_odd_number_one_more_passed(here):
    assert sorted(one.passed for one in pick(3)) == [False, True, True]


def test_verdicts_are_those_of_the_strict_reading_and_answers_cut_off_by_length_are_among_them(here):
    def line(item_id, published, strict, status="answered"):
        found = graded(item_id, strict)
        reading = msgspec.structs.replace(found.published, score=published)
        return msgspec.structs.replace(found, published=reading, status=status)

    lines = [
        line("q0", 1.0, 0.0),  # passes only as published: it failed
        line("q1", 0.0, None),  # no verdict: counts as wrong as published, and is not shown
        line("q2", 1.0, 1.0, "cut_off"),
        line("q3", 1.0, 1.0, "failed"),
    ]
    jsonl.write(Path("small/graded.jsonl"), lines)
    found = pick(6, models=("small",))
    assert {one.item.item_id: one.passed for one in found} == {"q0": False, "q2": True}


def test_the_order_of_the_sample_is_another_draw_than_the_sample(here):
    # Else those drawn first would stand first, and strata of other sizes would show.
    ranks = [
        picking._rank(1, picking.Folder(one.bench, one.arm, one.model, Path(), Path()), one.item.item_id)
        for one in pick(12)
    ]
    assert ranks != sorted(ranks) and ranks != sorted(ranks, reverse=True)


def test_votes_are_counted_by_group_first_rater_first():
    drawn = comparing.by_group([True, True, False, None], [False, True, True, True], ["a", "a", "b", "b"])
    assert drawn.table.tolist() == [[1, 1, 0, 0], [0, 0, 1, 0]]


def test_the_draw_depends_on_names_and_seed_alone(here):
    first = pick(6)
    assert pick(6, models=("large", "small")) == first
    assert pick(6, seed=2) != first


def judged(judge, letters):
    prompt = tablekit.put(Path("judge_simpleqa.txt"), "{{answer_json}}\n")
    settings = {
        "model": judge,
        "grader": "judge_simpleqa",
        "gold": "first",
        "max_tokens": 10,
        "sampling": {"temperature": 0.0},
        "response_format": None,
        "prompts": {
            "profile": "own",
            "files": {"judge_simpleqa": str(prompt.absolute())},
            "sha256": {"judge_simpleqa": sha256_file(prompt)},
        },
    }
    argv = ["--settings", json.dumps(settings), "--study", "pixelrag", "--picked", "cal/picked.jsonl"]
    argv += ["--out", f"cal/{judge}/requests.jsonl", "--record", f"cal/{judge}/ask.json"]
    assert build_calibration_requests.main(argv) == 0
    asked = list(jsonl.read(Path(f"cal/{judge}/requests.jsonl"), Request))
    replies = [
        Response(custom_id=one.custom_id, key="k", status="answered", text=letter)
        for one, letter in zip(asked, letters, strict=True)
    ]
    jsonl.write(Path(f"cal/{judge}/responses.jsonl"), replies)


def table(*more, judges=("one", "two")):
    settings = {
        "judges": {judge: f"Judge {judge}" for judge in judges},
        "own_models": {"two": ["large"]},
        "table_judge": "Judge one",
        "grader": "judge_simpleqa",
        "options": {"sqa": {}},
        "seed": 1,
    }
    argv = ["--settings", json.dumps(settings), "--picked", "cal/picked.jsonl", "--sample", "cal/sample.json"]
    argv += ["--responses", *(f"cal/{judge}/responses.jsonl" for judge in judges)]
    return make_calibration.main([*argv, *more, "--out", "judges.csv", "--record", "judges.json"])


def test_from_graded_cells_to_the_table_of_judges(here):
    answers = pick(6)
    judged("one", ["A" if one.passed else "B" for one in answers])
    judged("two", ["A"] * 5 + ["what?"])
    labels = ["key,label"] + [f"k{one.key},{'pass' if one.passed else 'fail'}" for one in answers[:4]]
    tablekit.put(Path("labels.csv"), "\n".join(labels) + "\n")
    assert table("--labels", "labels.csv") == 0
    rows = csv_text.read(Path("judges.csv"), comparing.COLUMNS)
    assert [(row["kind"], row["first"], row["second"]) for row in rows] == [
        ("agreement", "table", "one"),
        ("agreement", "table", "two"),
        ("agreement", "table", "labels"),
        ("agreement", "one", "two"),
        ("agreement", "one", "labels"),
        ("agreement", "two", "labels"),
        ("self_preference", "one", "labels"),
        ("self_preference", "two", "labels"),
    ]
    assert (rows[0]["agreement"], rows[0]["kappa"], rows[0]["n_both_readable"]) == ("1.000", "1.000", "6")
    assert rows[1]["n_second_unreadable"] == "1"
    assert (rows[2]["n_second_unreadable"], rows[2]["n_both_readable"]) == ("2", "4")
    assert rows[6]["remark"] == "the judge's model wrote none of the answers"
    assert int(rows[7]["n_own"]) + int(rows[7]["n_other"]) == int(rows[5]["n_both_readable"])


def test_labels_of_other_answers_are_counted_and_said(here, capsys):
    answers = pick(4)
    judged("one", ["A"] * 4)
    labels = [f"k{one.key},pass" for one in answers[:3]] + [
        "kffffffffffffffff,pass",
        "keeeeeeeeeeeeeeee,fail",
    ]
    tablekit.put(Path("labels.csv"), "\n".join(["key,label", *labels]) + "\n")
    assert table("--labels", "labels.csv", judges=("one",)) == 0
    rows = {
        (row["first"], row["second"]): row for row in csv_text.read(Path("judges.csv"), comparing.COLUMNS)
    }
    said = "2 labels of answers that are not in the sample: not used"
    assert rows["one", "labels"]["n_both_readable"] == "3"
    assert rows["one", "labels"]["remark"].endswith(said) and rows["table", "labels"]["remark"].endswith(said)
    assert said not in rows["table", "one"]["remark"]
    counts = jsonl.read_json(Path("judges.json"), Stage).counts
    assert (counts["labels"], counts["labels_of_other_answers"]) == (3, 2)
    assert "2 labels belong to answers that are not in the sample" in capsys.readouterr().err


def test_labels_of_another_sample_are_refused(here, capsys):
    answers = pick(4)
    judged("one", ["A"] * len(answers))
    tablekit.put(Path("labels.csv"), "key,label\nkffffffffffffffff,pass\n")
    assert table("--labels", "labels.csv", judges=("one",)) == 2
    assert "none of its 1 labels belongs to one of the 4 picked answers" in capsys.readouterr().err


def test_replies_to_another_sample_are_refused(here, capsys):
    answers = pick(4)
    judged("one", ["A"] * len(answers))
    pick(2)
    assert table(judges=("one",)) == 2
    assert "do not fit the 2 picked answers" in capsys.readouterr().err


def test_cells_without_a_readable_verdict_are_one_line(here, capsys):
    jsonl.write(Path("small/graded.jsonl"), [graded("q0", None)])
    settings = {"cells": [["sqa", "rag", "small"]], "benches": ["sqa"], "n": 2, "seed": 1}
    argv = ["--settings", json.dumps(settings), "--items", "sqa/items.jsonl"]
    argv += ["--graded", "small/graded.jsonl", "--responses", "small/responses.jsonl"]
    argv += ["--picked", "p.jsonl", "--sheet", "s.csv", "--record", "r.json"]
    assert pick_answers.main(argv) == 2
    err = capsys.readouterr().err
    assert "none of 1 cells has an answer with a readable verdict" in err and not Path("p.jsonl").exists()


def test_the_key_of_an_answer_is_of_question_and_answer():
    assert picking.key_of("q", "a") != picking.key_of("qa", "") and len(picking.key_of("q", "a")) == 16


# -- settings ------------------------------------------------------------------------------------------------


@pytest.fixture
def plan_of(tmp_path):
    """Return the plan of a run that says something of its own about the study."""

    def made(text):
        shutil.copytree(CONFIG, tmp_path / "config")
        text = f"extends: embedded\ntitle: mine\nstudies: {{pixelrag: {text}}}\n"
        (tmp_path / "config/runs/mine.yaml").write_text(text)
        return Plan(tmp_path / "config")

    return made


def test_the_cells_and_the_judge_of_a_calibration_are_those_of_the_table(plan_of):
    plan = plan_of("{calibration: {benches: [sqa], judges: [judge-smollm2], n: 8, max_tokens: 9}}")
    assert plan.is_calibrated("mine", "table1") and not plan.is_calibrated("mine", "tosc")
    assert not plan.is_calibrated("ci", "table1")
    told = plan.pick_answers("mine", "table1")
    arms = ("naive", "traf", "base", "lora")
    assert told["cells"] == [("sqa", arm, "page-reader-smollm2") for arm in arms]
    assert (told["benches"], told["n"], told["seed"]) == (["sqa"], 8, 1)
    asked = plan.calibration_request("mine", "table1", "judge-smollm2")
    assert (asked["model"], asked["grader"]) == ("judge-smollm2", "judge_simpleqa")
    assert asked["max_tokens"] == 9 and plan.judge_request("mine", "pixelrag", "sqa")["max_tokens"] == 1000
    compared = plan.make_calibration("mine", "table1")
    assert compared["own_models"] == {"judge-smollm2": []} and compared["grader"] == "judge_simpleqa"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("{benches: [sq], judges: [judge-smollm2]}", "'sq' has no cell in table1 .did you mean 'sqa'"),
        ("{benches: [nq], judges: [judge-smollm2]}", "grader em@1 has no judge"),
        ("{benches: [sqa, mms], judges: [judge-smollm2]}", "judge_simpleqa and judge_worldvqa"),
        (
            "{benches: [sqa], judges: [judge-smollm2], labels: results/x.csv}",
            "labels: 'results/x.csv' lies below",
        ),
        ("{benches: [sqa], judges: [judge-smolm2]}", "did you mean 'judge-smollm2'"),
    ],
)
def test_a_calibration_that_cannot_be_is_one_line(plan_of, told, said):
    with pytest.raises(RemeasureError, match=said):
        plan_of(f"{{calibration: {told}}}").calibration("mine", "table1")


def test_a_model_that_answers_for_a_system_is_the_judge_itself(plan_of):
    plan = plan_of("{}")
    assert plan._wrote("embedded", "evidence-reader", "builtin")
    assert not plan._wrote("embedded", "answer-judge", "builtin")
    assert plan._wrote("embedded", "page-reader-smollm2", "page-reader-smollm2@2")


def test_the_labels_of_the_embedded_run_are_there_and_are_those_of_no_other_run(
    plan_of, tmp_path, monkeypatch
):
    plan = plan_of("{}")
    monkeypatch.chdir(
        tmp_path / "config"
    )  # called from elsewhere, the file that ships with the workflow is found
    assert plan.labels("embedded", "ragbench") == str(tmp_path / "config/labels/ragbench.csv")
    found = sheet.read(tmp_path / "config/labels/ragbench.csv")
    assert len(found) == 20 and list(found.values()).count(True) == 9
    assert plan.labels("ci", "ragbench") is None


# -- where else it is known ----------------------------------------------------------------------------------


def test_the_report_of_a_run_has_the_steps_of_a_calibration():
    assert "ragbench.judges" in steps.tables(PLAN, "embedded")
    found = steps.steps(PLAN, RULES, "embedded", "ragbench.judges")
    rows = {one.made.rule: one.rows for one in found}
    assert rows["pick_answers"] == ("judges/ragbench",)
    assert rows["make_calibration"] == ("ragbench.judges",)
    asked = [one.rows for one in found if one.made.rule == "ask_calibration"]
    assert asked == [("judges/ragbench/answer-judge",), ("judges/ragbench/judge-smollm2",)]
    assert "make_table" not in rows


def test_preflight_reach_and_estimates_know_the_judges_that_are_asked_anew():
    names = [one.cell for one in askings.askings(PLAN, "embedded")]
    assert names[-2:] == ["calibration/ragbench/answer-judge", "calibration/ragbench/judge-smollm2"]
    assert "judge-smollm2" in reach.of(PLAN, "embedded").models
    place = "results/embedded/calibration/ragbench/judge-smollm2/estimate.json"
    assert Wiring(PLAN).all_estimated("embedded")[place]["table"] == "ragbench.judges"
    assert PLAN.estimate_calibration("embedded", "ragbench", "judge-smollm2")["n_answers"] == 24
