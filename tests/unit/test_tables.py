import csv
import json
from pathlib import Path

import pytest

import make_table
import publish_table
import tablekit
from remeasure import jsonl, stats
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.tables import cells as cell_rows
from remeasure.tables import csv_text, published
from remeasure.tables.inputs import load_cell
from remeasure.tables.settings import TableSettings

PUBLISHED = Path(__file__).parents[2] / "config/published/pixelrag.csv"
T, F = True, False
SMALL = {"benches": ["nq", "sqa"], "arms": ["naive", "traf", "base"]}
OUTCOMES = {
    ("nq", "naive"): [F, F, F, F],
    ("nq", "traf"): [T, T, F, F],
    ("nq", "base"): [T, T, T, T],
    ("sqa", "naive"): [T, F, F, F],
    ("sqa", "traf"): [T, F, F, F],
    ("sqa", "base"): [F, T, T, T],
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def make(here, outcomes=OUTCOMES, status_of=None, answered_by=None, **changes):
    files = tablekit.write_table_inputs(here, outcomes, status_of=status_of, answered_by=answered_by)
    settings = tablekit.table_settings(**(SMALL | changes))
    return make_table.main(tablekit.table_argv(here, files, PUBLISHED, settings))


def part(suffix):
    return Path("results/embedded/tables") / f"table1{suffix}"


def rows(suffix):
    return csv_text.read(part(suffix))


def test_the_paper_layout_has_one_row_per_bench_and_one_decimal(here):
    assert make(here) == 0
    assert part(".csv").read_text() == "bench,naive,traf,base\nnq,0.0,50.0,100.0\nsqa,25.0,25.0,75.0\n"


def test_a_cell_row_says_what_its_number_rests_on_and_how_it_stands_to_the_paper(here):
    make(here, status_of={("nq", "traf", 3): "failed"})
    row = next(row for row in rows(".cells.csv") if (row["bench"], row["arm"]) == ("nq", "traf"))
    # Wilson for 2 of 4: 15.00 to 85.00; strict: 2 of the 3 that were answered.
    expected = {
        "value": "50.00",
        "low": "15.00",
        "high": "85.00",
        "value_strict": "66.67",
        "n": "4",
        "n_graded": "4",
        "n_graded_strict": "3",
        "n_differ": "1",
        "answered": "3",
        "failed": "1",
        "cut_off": "0",
        "grader": "em@1",
        "reader": "A reader",
        "corpus": "factbook",
        "published": "55.9",
        "difference": "-5.90",
        "verdict": "not comparable",
        "reason": "differs in data, grader, n, reader",
        "recall_at_k": "",
    }
    assert {name: row[name] for name in expected} == expected


def test_a_cell_that_two_servers_answered_is_flagged_beside_its_number_and_on_the_page(here):
    first = {"model": "toy", "server": "vllm 0.19.0, H100", "n": 3}
    two = [first, {"model": "toy", "server": None, "n": 1}]
    answered_by = {("nq", "traf"): two, ("nq", "naive"): [first | {"n": 4}]}
    assert make(here, answered_by=answered_by) == 0
    found = {(row["bench"], row["arm"]): row for row in rows(".cells.csv")}
    assert found["nq", "traf"]["mixed"] == "yes" and found["nq", "naive"]["mixed"] == "no"
    assert found["nq", "traf"]["answered_by"] == "toy on vllm 0.19.0, H100: 3; toy on unknown: 1"
    assert (
        "**Mixed: the answers of nq traf come from more than one model or server**" in part(".md").read_text()
    )


def test_contrasts_are_paired_and_corrected_over_all_that_are_shown(here):
    make(here)
    found = {(row["bench"], row["arm"]): row for row in rows(".contrasts.csv")}
    assert list(found) == [("nq", "traf"), ("nq", "base"), ("sqa", "traf"), ("sqa", "base")]
    base = found["nq", "base"]
    # 4 : 0 discordant pairs, p = 2 / 16; Holm: the smallest of four.
    assert (base["difference"], base["n_only_arm"], base["n_only_against"]) == ("100.00", "4", "0")
    assert (base["axis"], base["metric"], base["model"], base["against"]) == (
        "arm",
        "accuracy",
        "reader",
        "naive",
    )
    assert base["n_only_model"] == ""
    assert (base["mcnemar_p"], base["holm_p"]) == ("0.125", "0.5")
    assert (found["sqa", "traf"]["difference"], found["sqa", "traf"]["mcnemar_p"]) == ("0.00", "1")
    # sqa base against naive: 3 : 1 discordant, p = 2 (1 + 4) / 16.
    assert found["sqa", "base"]["mcnemar_p"] == "0.625"


def test_the_page_shows_layout_graders_and_that_nothing_is_comparable(here):
    make(here, status_of={("nq", "traf", 3): "failed"})
    page = part(".md").read_text()
    assert "| NQ | em@1 | 0.0 | 50.0 ¹ | 100.0 |" in page
    assert "\n¹ NQ, Trafilatura text: 1 of 4 answers failed (25.00 %). See Failures.\n" in page
    assert "**Not comparable with the paper: Embedded data and models**" in page
    assert "| NQ | Trafilatura text | 4 | 1 | 25.00 % | 1 |" in page
    assert "The other 5 cells have none." in page
    assert page.index("| Bench | Grader |") < page.index("## Cells") < page.index("## Differences")


def test_a_table_without_failures_says_so_in_words(here):
    make(here)
    assert "Every request was answered" in part(".md").read_text()


def test_the_picture_is_the_same_each_time_and_can_be_read_aloud(here):
    make(here)
    first = part(".svg").read_bytes()
    make(here)
    assert part(".svg").read_bytes() == first
    text = first.decode()
    assert "<title>Screenshots" in text and "NQ: No retrieval 0.0, Trafilatura text 50.0" in text
    assert "<dc:date>" not in text


def test_every_part_of_a_table_is_the_same_each_time(here):
    suffixes = [".csv", ".cells.csv", ".contrasts.csv", ".breakdown.csv", ".drift.csv", ".md", ".json"]
    make(here)
    first = [part(suffix).read_bytes() for suffix in suffixes]
    make(here)
    assert [part(suffix).read_bytes() for suffix in suffixes] == first
    assert str(here.absolute()).encode() not in b"".join(first)


def test_a_missing_and_a_surplus_cell_are_one_error_that_names_both(here, capsys):
    outcomes = {key: value for key, value in OUTCOMES.items() if key != ("nq", "base")} | {
        ("evqa", "base"): [T]
    }
    assert make(here, outcomes) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "missing: nq base;" in error and "without a place: evqa base;" in error


def test_a_number_that_does_not_follow_from_its_items_is_refused(here, capsys):
    files = tablekit.write_table_inputs(here, OUTCOMES)
    path = files["--scores"][0]
    document = json.loads(path.read_text())
    document["metrics"]["accuracy"]["published"]["value"] = 0.9
    path.write_text(json.dumps(document))
    assert make_table.main(tablekit.table_argv(here, files, PUBLISHED, tablekit.table_settings(**SMALL))) == 2
    error = capsys.readouterr().err
    assert "accuracy, published: value 0.9 of 4, found 0.0 of 4: it does not follow from" in error


def test_p1_cells_of_different_graders_are_never_compared(here, capsys):
    files = tablekit.write_table_inputs(here, OUTCOMES)
    folder = Path("results/embedded/pixelrag/nq/base/reader")
    for name in ("score.json", "graded.jsonl"):
        (folder / name).write_text((folder / name).read_text().replace("em@1", "judge_or10@1"))
    assert make_table.main(tablekit.table_argv(here, files, PUBLISHED, tablekit.table_settings(**SMALL))) == 2
    assert "only the same grader can be compared" in capsys.readouterr().err


def test_cells_with_other_items_are_never_compared(here, capsys):
    assert make(here, OUTCOMES | {("nq", "base"): [T]}) == 2
    assert "different items" in capsys.readouterr().err


def loaded(here, reader, **changes):
    folder = tablekit.write_cell(
        here, "nq", "base", [tablekit.graded_line(n, n < 3) for n in range(5)], reader=reader
    )
    settings = tablekit.table_settings(**{"not_comparable": [], **changes})
    settings = decode(json.dumps(settings), TableSettings)
    return load_cell(folder / "score.json", folder / "graded.jsonl"), settings


def printed(value=60.0, **changes):
    fields = {
        "metric": "accuracy",
        "unit": "percent",
        "source": "paper",
        "grader": "em",
        "n": 5,
        "reader": "R",
        "noise": 1.0,
        "note": "",
    }
    return published.Published(value=value, **(fields | changes))


def test_an_exact_number_is_held_against_the_tolerance_and_not_against_an_interval(here):
    """Of 5 units 3 are right: 60, and any number from 23 to 88 is in the interval."""
    cell, settings = loaded(here, "R", is_exact=True)
    values = {60.9: "within", 61.1: "outside", 80.0: "outside"}
    for value, said in values.items():
        assert cell_rows.verdict(cell, "accuracy", printed(value), settings).verdict == said
    assert cell_rows.verdict(cell, "accuracy", printed(80.0, noise=None), settings).verdict == "within"
    assert cell_rows.verdict(cell, "accuracy", printed(60.0, n=70), settings).verdict == "not comparable"


def test_a_verdict_is_computed_where_the_protocol_is_the_same(here):
    cell, settings = loaded(here, "R")
    assert cell_rows.verdict(cell, "accuracy", printed(60.0), settings).verdict == "within"
    # Wilson for 3 of 5 ends at 88.2; with a noise of 1 at 89.2.
    assert cell_rows.verdict(cell, "accuracy", printed(89.0), settings).verdict == "within"
    assert cell_rows.verdict(cell, "accuracy", printed(90.0), settings).verdict == "outside"


@pytest.mark.parametrize(
    ("change", "named"),
    [({"grader": "judge_or10"}, "grader"), ({"n": 1000}, "n"), ({"reader": "Qwen/Qwen3.5-4B"}, "reader")],
)
def test_a_changed_protocol_field_turns_the_verdict_and_is_named(here, change, named):
    cell, settings = loaded(here, "R")
    assert cell_rows.verdict(cell, "accuracy", printed(**change), settings) == stats.Verdict(
        "not comparable", f"differs in {named}"
    )


def test_further_protocol_fields_are_compared_too(here):
    cell, settings = loaded(here, "R", protocol={"prompts": ["own", "faithful"], "k": ["3", "3"]})
    assert cell_rows.verdict(cell, "accuracy", printed(), settings).reason == "differs in prompts"


def test_a_published_value_of_another_unit_is_an_error(here):
    cell, settings = loaded(here, "R")
    with pytest.raises(RemeasureError, match="published in share"):
        cell_rows.verdict(cell, "accuracy", printed(unit="share"), settings)


def test_the_published_values_are_those_of_the_card():
    found = published.load(PUBLISHED, "table1")
    paper = {
        "nq": (30.4, 55.9, 57.9, 58.7),
        "nqt": (24.5, 42.5, 47.0, 48.8),
        "sqa": (7.0, 71.6, 73.8, 78.8),
        "livevqa": (63.6, 59.0, 70.3, 70.0),
        "mms": (12.7, 24.7, 28.3, 28.3),
        "evqa": (27.2, 29.6, 40.7, 45.1),
    }
    for bench, values in paper.items():
        assert tuple(found[bench, arm].value for arm in ("naive", "traf", "base", "lora")) == values
    assert found["nq", "base"].grader == "judge_or10" and found["livevqa", "base"].n == 26888
    assert all(value.note for value in found.values())
    recall = published.load(PUBLISHED, "recall3", ["recall_at_3"])
    assert recall["livevqa", "base"].value == 38.9 and recall["evqa", "mwparser"].value == 6.5
    assert len(recall) == 19


def test_p5_and_p6_doubts_about_judges_stand_beside_the_values():
    found = published.load(PUBLISHED, "table1")
    assert "SimpleQA-style judge" in found["mms", "base"].note
    assert found["mms", "base"].noise == 3.0 and found["nq", "base"].noise == 1.0


def test_a_damaged_file_of_published_values_is_one_line(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(RemeasureError, match="expected"):
        published.load(path, "table1")
    good = PUBLISHED.read_text().splitlines()
    path.write_text("\n".join([*good, good[1]]) + "\n")
    with pytest.raises(RemeasureError, match="stands there twice"):
        published.load(path, "table1")
    path.write_text("\n".join([good[0], good[1].replace("30.4", "abc")]) + "\n")
    with pytest.raises(RemeasureError, match="row 2"):
        published.load(path, "table1")


def test_numbers_have_fixed_decimals_and_no_minus_zero():
    assert csv_text.decimals(-0.001, 1) == "0.0"
    assert csv_text.decimals(None, 1) is None
    assert csv_text.significant(0.0000123456789) == "1.23457e-05"
    # The number itself is rounded, not its text: 80.485 lies below the half (landmarks card, section 2.8).
    assert [csv_text.decimals(value, 2) for value in (80.488, 100 * 0.8049, 80.485)] == [
        "80.49", "80.49", "80.48",
    ]  # fmt: skip


def publish(suffixes, run="embedded"):
    argv = ["--run", run, "--inputs", *(str(part(suffix)) for suffix in suffixes)]
    return publish_table.main([*argv, "--outputs", *(f"results/table1{suffix}" for suffix in suffixes)])


def test_published_copies_name_their_run(here):
    make(here)
    tables = [".csv", ".cells.csv", ".contrasts.csv", ".breakdown.csv", ".drift.csv"]
    suffixes = [*tables, ".md", ".json", ".svg"]
    assert publish(suffixes) == 0
    with open("results/table1.csv", newline="") as stream:
        copied = list(csv.reader(stream))
    assert copied[0] == ["bench", "naive", "traf", "base", "run"]
    assert {row[-1] for row in copied[1:]} == {"embedded"}
    assert csv_text.read(Path("results/table1.cells.csv"))[0]["run"] == "embedded"
    # A breakdown of a table without strata is a header.
    assert Path("results/table1.breakdown.csv").read_text().endswith(",n_levels,n_levels_strict,run\n")
    for suffix in suffixes[len(tables) :]:
        assert Path(f"results/table1{suffix}").read_bytes() == part(suffix).read_bytes()
    assert jsonl.read_json(Path("results/table1.json"))["run"] == "embedded"


def test_another_runs_files_are_not_published(here, capsys):
    make(here)
    for suffix in (".md", ".json", ".svg"):
        assert publish([suffix], run="ci") == 2
        assert "does not name run 'ci'" in capsys.readouterr().err


def test_no_field_of_a_csv_file_is_a_formula_and_numbers_keep_their_signs():
    fields = ["=1+1", "@x", "-2+3|cmd", " =A1", "-0.5", "+1.2 pp", "-", "a=b", -3]
    text = csv_text.render(["field"], ({"field": field} for field in fields))
    assert text.split("\n") == [
        *("field", "'=1+1", "'@x", "'-2+3|cmd", "' =A1", "-0.5", "+1.2 pp", "-", "a=b", "-3", "")
    ]
