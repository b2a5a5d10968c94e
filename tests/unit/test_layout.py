"""Where the numbers of a table stand, and what is compared."""

import shutil
from pathlib import Path

import msgspec
import pytest

from remeasure import layout, settings
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.plan import Plan
from remeasure.settings import Cell, Study, StudyRun
from remeasure.tables.settings import NumberKey, TableSettings

CONFIG = Path(__file__).resolve().parents[2] / "config"
RATES = ["opa", "rca", "rua", "tosc", "oldpersist_rem", "oldpersist_rep", "repfail", "cc", "mixconf"]
EXTRA = ["rca_given_opa", "rua_given_opa"]
BENCH = {"title": "Triplets", "grader": "triplets", "max_tokens": 9, "thinking": False}
STUDY = {
    "title": "One object, three images",
    "published": "x.csv",
    "unit": "percent",
    "layout": {"rows": ["model"], "columns": ["metric"]},
    "sampling": {"temperature": 0.0},
    "arms": {"plain": {"title": "Plain", "evidence": "none"}, "hint": {"title": "Hint", "evidence": "none"}},
    "contrasts": [["hint", "plain"]],
    "benches": {"one": BENCH | {"title": "One"}, "two": BENCH | {"title": "Two"}},
}


def of(cells, readers=("small", "large"), compare=(), **changes):
    study = msgspec.convert(STUDY | changes, Study)
    here = StudyRun(reader=list(readers), prompts="own", items_per_bench=1, compare=list(compare))
    lines = [Cell(study="s", bench=bench, arm=arm, table="t") for bench, arm in cells]
    return layout.of_table(lines, study, study.benches, here, lambda cell: here.readers)


def test_table_1_has_a_row_per_bench_a_column_per_arm_and_one_decimal():
    found = Plan(CONFIG).table("ci", "table1")
    table = decode(msgspec.json.encode(found), TableSettings)
    table.check()
    assert [table.row_name(row) for row in table.rows] == ["nq", "nqt", "sqa", "livevqa", "mms", "evqa"]
    assert [table.column_name(column) for column in table.columns] == ["naive", "traf", "base", "lora"]
    assert (table.decimals, table.notes, table.open_axes) == (1, (), ("bench", "arm"))
    assert table.number_at(table.rows[0], table.columns[2]) == NumberKey(
        "nq", "base", "page-reader-smollm2", "accuracy"
    )
    assert [(pair.axis, pair.first, pair.second) for pair in table.contrasts][:2] == [
        ("arm", "traf", "naive"),
        ("arm", "base", "naive"),
    ]


def test_metrics_may_be_columns_and_models_rows():
    found = of([("one", "plain")], compare=[("large", "small")], contrasts=[])
    assert [row["at"] for row in found["rows"]] == [{"model": "small"}, {"model": "large"}]
    assert [column["at"]["metric"] for column in found["columns"]] == RATES + EXTRA
    assert found["fixed"] == {"bench": "one", "arm": "plain"}
    assert found["cells"] == [["one", "plain", "small"], ["one", "plain", "large"]]
    assert {metric["name"]: metric["better"] for metric in found["metrics"]}["mixconf"] == "low"
    assert found["contrasts"] == [{"axis": "model", "first": "large", "second": "small"}]


def test_the_wide_table_may_show_some_metrics_only():
    shown = {"rows": ["model"], "columns": ["metric"], "metrics": ["tosc", "opa"]}
    found = of([("one", "plain")], layout=shown)
    assert [column["at"]["metric"] for column in found["columns"]] == ["tosc", "opa"]
    assert [metric["name"] for metric in found["metrics"]] == RATES + EXTRA
    # Of one metric the axis is no row and no column.
    found = of([("one", "plain")], layout={"rows": ["bench"], "columns": ["arm"], "metrics": ["tosc"]})
    assert found["fixed"] == {"metric": "tosc"} and found["row_axes"] == ["bench", "model"]


def test_an_axis_with_several_values_that_nobody_placed_joins_the_rows():
    found = of([("one", "plain"), ("two", "plain"), ("two", "hint")])
    assert found["row_axes"] == ["model", "bench", "arm"] and found["fixed"] == {}
    names = [tuple(row["at"].values()) for row in found["rows"]]
    # A row that has no cell at all is none: there is no hint in bench one.
    assert names == [
        (model, *cell)
        for model in ("small", "large")
        for cell in (("one", "plain"), ("two", "plain"), ("two", "hint"))
    ]
    assert found["rows"][0]["title"] == "small, One, Plain"


def test_a_difference_between_arms_of_another_table_is_left_out():
    assert of([("one", "plain")])["contrasts"] == []
    assert of([("one", "plain"), ("two", "hint")])["contrasts"] == [
        {"axis": "arm", "first": "hint", "second": "plain", "name": None, "title": None}
    ]


def test_the_layout_names_the_shown_metrics_and_the_picture():
    found = of([("one", "plain")])
    assert found["shown_metrics"] == [] and found["figure"] is None
    chosen = {"rows": ["model"], "columns": ["metric"], "metrics": ["tosc", "opa"], "figure": "conditions"}
    found = of([("one", "plain")], layout=chosen)
    assert found["shown_metrics"] == ["tosc", "opa"] and found["figure"] == "conditions"
    assert len(found["metrics"]) > 2


def test_repeats_are_cells_and_no_rows():
    study = settings.load_study(CONFIG, "mrarebench")
    lines = [cell for cell in settings.load_cells(CONFIG) if cell.table == "mrarebench"]
    here = StudyRun(reader=["a", "b"], prompts="own", items_per_bench=1, repeat=2)
    found = layout.of_table(lines, study, study.benches, here, lambda cell: here.readers)
    assert len(found["cells"]) == 24 and len(found["rows"]) == 12
    assert list(found["rows"][3]["at"].values()) == ["a", "evidence", "img"]
    assert found["figure"] == "conditions" and [pair["name"] for pair in found["contrasts"]] == [
        "delta_sub",
        "delta_vis",
        "delta_grd",
        "delta_dx",
    ]
    assert [column["at"]["metric"] for column in found["columns"]][4:7] == ["mrr", "mr", "hit_rate"]


def test_the_two_kinds_of_query_are_compared_and_the_other_set_stands_beside_them():
    plan = Plan(CONFIG)
    found = plan.table("embedded", "ragbench")
    assert {
        "axis": "bench",
        "first": "mtrag_clapnq_rewrite_search",
        "second": "mtrag_clapnq_search",
        "name": "delta_rewrite",
        "title": "Δ_rewrite: what a stand-alone question gives",
    } in found["contrasts"]
    (block,) = [one for one in found["blocks"] if one["title"] == "MTRAG ClapNQ: retrieval"]
    assert list(block["benches"]) == [
        "mtrag_clapnq_search",
        "mtrag_clapnq_rewrite_search",
        "mtrag_un_clapnq_search",
    ]
    assert not any("mtrag_un_clapnq_search" in (one["first"], one["second"]) for one in found["contrasts"])


@pytest.fixture
def config(tmp_path):
    """A copy of the configuration that may be changed."""
    shutil.copytree(CONFIG, tmp_path / "config")
    return tmp_path / "config"


def keep(config, *cells):
    lines = ["study\tbench\tarm\ttable", *(f"pixelrag\t{bench}\t{arm}\ttable1" for bench, arm in cells)]
    (config / "cells.tsv").write_text("\n".join(lines) + "\n")
    return Plan(config)


def test_an_arm_that_is_compared_and_has_no_cell_anywhere_is_one_line(config):
    plan = keep(config, ("nq", "naive"), ("nq", "base"))
    with pytest.raises(RemeasureError) as caught:
        plan.table("ci", "table1")
    assert str(caught.value) == (
        f"{config}/studies/pixelrag.yaml: contrasts: [traf, naive]: arm 'traf' has no cell in "
        f"{config}/cells.tsv; take the pair out or add the cells"
    )


def test_benches_may_have_different_arms(config):
    arms = ("naive", "traf", "base", "lora")
    plan = keep(config, *(("nq", arm) for arm in arms), ("sqa", "naive"), ("sqa", "base"))
    found = plan.table("ci", "table1")
    assert [row["at"]["bench"] for row in found["rows"]] == ["nq", "sqa"]
    assert len(found["columns"]) == 4 and len(found["cells"]) == 6 and len(found["contrasts"]) == 5


def test_what_a_run_changes_of_a_bench_reaches_its_table(config):
    path = config / "runs" / "mine.yaml"
    path.write_text(
        "extends: ci\ntitle: Mine\nstudies: {pixelrag: {benches: {nq: {grader: judge_or10, title: My NQ}}}}\n"
    )
    assert Plan(config).table("mine", "table1")["titles"]["bench"]["nq"] == "My NQ"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("layout: {metrics: [accuracyy]}", "layout.metrics: metric 'accuracyy' is not defined (did you mean"),
        ("layout: {metrics: [accuracy, accuracy]}", "layout.metrics: 'accuracy' stands twice; remove one"),
        ("decimals: -1", "decimals: Expected `int` >= 0"),
        ("notes: one", "notes: Expected `array`, got `str`"),
    ],
)
def test_a_mistake_in_what_a_study_says_of_its_table_is_one_line(config, line, said):
    path = config / "studies" / "pixelrag.yaml"
    path.write_text(path.read_text() + line + "\n")
    settings.load_study.cache_clear()
    with pytest.raises(RemeasureError) as caught:
        settings.load_study(config, "pixelrag")
    assert said in str(caught.value)


def test_decimals_and_notes_of_a_study_reach_its_table(config):
    path = config / "studies" / "pixelrag.yaml"
    path.write_text(path.read_text() + "decimals: 2\nnotes: [Read this.]\n")
    found = Plan(config).table("ci", "table1")
    assert (found["decimals"], found["notes"]) == (2, ["Read this."])
