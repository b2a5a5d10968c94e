"""Differences that are no differences of pairs, that are not tested, or in which no pair differs."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tablekit
from remeasure.graders import by_name
from remeasure.options import decode
from remeasure.tables import contrast_rows, contrasts, drift
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_differences import differences
from remeasure.tables.settings import CellKey, TableSettings

NONE = np.nan
METRICS = [
    {"name": "accuracy", "title": "Accuracy", "better": "high"},
    {"name": "refusal_precision", "title": "Refusal precision", "better": "high", "of_answers": True},
    {"name": "seconds", "title": "Seconds", "better": "low", "kind": "number", "is_tested": False},
]
# Two conversations of four turns. The first system declines three times, once rightly: 1/3. The second
# declines four times, once rightly: 1/4. Where both decline they are right, and wrong, together.
RATIOS = ([1, NONE, NONE, NONE, 0, 0, NONE, NONE], [1, 0, NONE, NONE, 0, 0, NONE, NONE])


def told(axis="model") -> TableSettings:
    titles = {metric["name"]: metric["title"] for metric in METRICS}
    pair = {"axis": axis, "first": "one", "second": "two"}
    fixed = {"bench": "one", "arm": "rag", "model": "one"}
    keys = [fixed | {axis: value} for value in ("one", "two")]
    return decode(
        json.dumps(
            tablekit.table_settings(
                benches={},
                arms={},
                unit="share",
                decimals=4,
                cells=[[key["bench"], key["arm"], key["model"]] for key in keys],
                metrics=METRICS,
                titles={name: {"one": "One", "two": "Two"} for name in ("bench", "model")}
                | {"arm": {"rag": "rag", "one": "One", "two": "Two"}, "metric": titles},
                row_axes=["bench", "arm", "model"],
                column_axes=["metric"],
                rows=[{"at": key, "title": "x"} for key in keys],
                columns=[{"at": {"metric": name}, "title": title} for name, title in titles.items()],
                fixed={},
                contrasts=[pair],
            )
        ),
        TableSettings,
    )


def cell(value, axis="model", groups="aaaabbbb", **scores) -> Cell:
    key = {"bench": "one", "arm": "rag", "model": "one"} | {axis: value}
    columns = {name: np.array(column, dtype=np.float64) for name, column in scores.items()}
    return Cell(
        score=SimpleNamespace(**key, n=len(groups), headline="accuracy", grader="g@1"),
        score_path=Path("score.json"),
        graded_path=Path("graded.jsonl"),
        units_sha256="0",
        lost=(),
        groups=np.array([ord(group) for group in groups], dtype=np.int32),
        scores={name: {"published": column, "strict": column} for name, column in columns.items()},
        strata={},
        weights={},
        left_out={},
    )


def compared(first: dict, second: dict, axis="model", groups="aaaabbbb"):
    """Return the difference of one metric, its line in the file, and the page's text."""
    sides = [cell(name, axis, groups, **scores) for name, scores in (("one", first), ("two", second))]
    settings = told(axis)
    (found,) = contrasts.compare_all({CellKey(*one.key): one for one in sides}, settings)
    row = contrast_rows.row(found, settings)
    return found, row, "\n".join(differences([found], settings))


# -- two ratios --------------------------------------------------------------------------------------------


def test_where_answers_decide_the_denominator_two_ratios_are_subtracted():
    first, second = RATIOS
    found, row, page = compared({"refusal_precision": first}, {"refusal_precision": second})
    assert found.published.difference == pytest.approx(1 / 3 - 1 / 4)
    # Conversations drawn: both a: 1/1 - 1/2; a and b: 1/3 - 1/4; both b: 0 - 0; ends have a quarter each.
    assert found.published.interval == pytest.approx((0.0, 0.5))
    assert (row["difference"], row["low"], row["high"], row["favours"]) == (
        *("0.0833", "0.0000", "0.5000"),
        "first",
    )
    assert (row["n_denominator"], row["n_denominator_against"], row["n_pairs"]) == (3, 4, 8)
    assert [row[name] for name in ("mcnemar_p", "sign_p", "holm_p", "n_higher", "n_lower")] == [None] * 5
    assert row["low_wald"] is None and row["difference_strict"] == "0.0833"
    assert row["interval_method"].startswith("two ratios, clustered bootstrap 95 %")
    assert "| +0.0833 | 0.0000 to 0.5000 |" in page and "3 and 4" in page
    assert "Of Refusal precision, answers decide which units count" in page


def test_draws_in_which_a_ratio_has_nothing_to_divide_by_are_left_out():
    # Both a: 1 - 0; a and b: 1 - 1/2; both b: the first declines nothing.
    found, _, _ = compared({"refusal_precision": [1, NONE]}, {"refusal_precision": [0, 1]}, groups="ab")
    assert found.published.difference == pytest.approx(0.5)
    assert found.published.interval == pytest.approx((0.5, 1.0))


def test_a_side_that_declines_nothing_has_no_difference():
    found, row, page = compared({"refusal_precision": [NONE] * 8}, {"refusal_precision": [1] * 8})
    assert (found.published.difference, found.published.interval) == (None, None)
    assert (row["n_denominator"], row["n_denominator_against"]) == (0, 8)
    assert row["interval_method"] == "undefined: nothing in a denominator"


def test_ratios_drift_as_the_cells_numbers_do():
    # 1/3 then 1/2 of the first; 1/4 both times of the second.
    first, second = RATIOS
    again = [1, 0] + [NONE] * 6
    sides = (
        [cell("one", refusal_precision=first), cell("one@2", refusal_precision=again)],
        [cell("two", refusal_precision=second), cell("two@2", refusal_precision=second)],
    )
    (pair,) = told().contrasts
    found = drift.of_pair(sides, "refusal_precision", "published", pair, of_answers=True)
    assert found.values == (pytest.approx((1 / 3, 1 / 2)), pytest.approx((1 / 4, 1 / 4)))
    assert found.contrast == pytest.approx(1 / 6)


def test_refusals_are_of_answers_and_times_are_not_tested():
    metrics = {one.name: one for one in by_name("judge_rag_answer").metrics}
    assert [name for name, one in metrics.items() if one.of_answers] == [
        "refusal_precision",
        "refusal_recall",
    ]
    assert [name for name, one in metrics.items() if not one.is_tested] == ["seconds"]


# -- Wald, times, no pair ----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis, shown", [("model", True), ("bench", True), ("arm", False)])
def test_walds_interval_stands_beside_differences_of_benches_and_models(axis, shown):
    # Three pairs to one of eight: 1/4, error sqrt(4 - 4 / 8) / 8 = 0.2338536.
    first, second = [1, 1, 1, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0]
    _, row, page = compared({"accuracy": first}, {"accuracy": second}, axis)
    assert (row["low_wald"], row["high_wald"]) == ("-0.2083", "0.7083")
    assert ("-0.2083 to 0.7083" in page) == ("Wald 95 %" in page) == shown


def test_times_have_a_difference_and_no_test():
    first, second = [2.0] * 7 + [1.0], [1.0] * 8
    found, row, page = compared({"seconds": first}, {"seconds": second})
    assert row["difference"] == "0.875" and row["low"] is not None
    assert [row[name] for name in ("mcnemar_p", "sign_p", "holm_p")] == [None] * 3
    assert "Seconds: not tested. Cells run beside each other on one machine" in page
    assert found.published.n_higher == 7


@pytest.mark.parametrize(
    "metric, scores",
    [
        ("accuracy", [1, 0, 1, 0, 1, 1, 0, 0]),
        ("accuracy", [0.5, 0, 1, 0, 1, 1, 0, 0]),
        ("refusal_precision", RATIOS[0]),
    ],
)
def test_where_no_pair_differs_that_is_said_and_there_is_no_interval_of_no_width(metric, scores):
    found, row, page = compared({metric: scores}, {metric: list(scores)})
    assert (found.published.difference, found.published.interval, found.published.wald) == (0.0, None, None)
    assert [row[name] for name in ("low", "high", "low_wald", "high_wald", "low_strict")] == [None] * 5
    assert row["interval_method"] == "no pair differs" and row["difference"] == "0.0000"
    assert "| no pair differs |" in page and "0.0000 to 0.0000" not in page
