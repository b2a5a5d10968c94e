"""What page and picture of a table say in words: failures, units left out, counts, options, methods."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from msgspec import structs
from test_tables_conditions import cells_of, judged, make, part, ranked, rows

import conditionkit as kit
from remeasure.options import decode
from remeasure.records import Stage
from remeasure.tables import contrasts, figure_bars, figure_conditions, inputs, markdown_stages
from remeasure.tables.figure_style import PT_PER_IN, width_pt
from remeasure.tables.settings import TableSettings


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def read(line, published=None, strict=None, reason="made up", **changes):
    """Give a unit other verdicts, a reason of the strict one, and more."""
    own = {"published": published or line.published.verdict, "strict": strict or line.strict.verdict}
    found = {
        name: structs.replace(getattr(line, name), verdict=verdict, reason=reason)
        for name, verdict in own.items()
    }
    return structs.replace(line, **found, **changes)


def failing():
    """Of T1 1 answer and 3 judge's replies failed; of T2 a judge failed once, and twice could not be read."""
    cells = cells_of()
    cells["diagnosis", "fd", "m"] = [
        structs.replace(line, counts={"judge_failed": int(n < 3), "hits": 1, "nothing": 0})
        for n, line in enumerate(cells["diagnosis", "fd", "m"])
    ]
    cells["diagnosis", "lc", "m"] = [
        structs.replace(line, counts={"hits": 0, "nothing": 0}) for line in cells["diagnosis", "lc", "m"]
    ]
    lost = [judged(n, 0, 1, strict=None) for n in range(3)]
    cells["evidence", "img", "m"] = [
        read(lost[0], published="judge_failed", strict="judge_failed", reason="judge failed"),
        read(lost[1], strict="judge_unreadable", reason="3 lines, expected 5"),
        read(lost[2], strict="judge_unreadable", reason="3 lines, expected 5"),
        structs.replace(judged(3, 1, 1), counts={"points": 4}),
    ]
    return cells


def drawn(here, cells):
    files = kit.write(here, cells)
    told = decode(json.dumps(kit.settings(figure="conditions")), TableSettings)
    found = inputs.load(told, files["--scores"], files["--graded"])
    compared = contrasts.compare_all(found, told)
    figure = Figure(figsize=figure_conditions.size_in(found, compared, told))
    figure_conditions.draw(figure, found, compared, told, 0.5)
    return found, figure


def test_a_judge_s_failures_stand_behind_the_reader_s_and_only_where_the_headline_needs_it(here):
    cells, figure = drawn(here, failing())
    words = {key.arm: figure_bars.failure_words(cell) for key, cell in cells.items()}
    assert words["fd"] == (["1 failed"], [])  # the first hit needs no judge
    assert words["img"] == ([], ["1 judge failed", "2 judge unread."])
    assert words["txt"] == ([], [])
    first, second = ([text.get_text() for text in axes.texts] for axes in figure.axes[:2])
    assert first[:3] == ["0.200", "n 5", "1 failed"] and not [text for text in first if "judge" in text]
    assert second[2] == "3 judge failures"


def test_what_failed_never_runs_into_the_next_panel():
    room = (figure_conditions.VALUES_IN + figure_conditions.GAP_IN) * PT_PER_IN - 7
    for failed in (["10 cut off"], ["1000 cut off", "900 not sent", "800 others"], ["9" * 40 + " failed"]):
        text = figure_conditions.fitting(failed, "failures")
        assert text[0] in "129" and width_pt(text, figure_conditions.FAILED_PT) < room
    assert figure_conditions.fitting(["3 failed", "2 empty"], "failures") == "3 failed, 2 empty"


def test_a_mark_at_the_end_of_an_axis_has_room_beside_it(here):
    _, figure = drawn(here, cells_of())
    # Shares from 0 to 1, differences from -1 to 1; 7 % of either beyond the ends.
    assert figure.axes[0].get_xlim() == pytest.approx((-0.07, 1.07))
    reach = max(figure.axes[2].get_xticks())
    assert figure.axes[2].get_xlim() == pytest.approx((-1.14 * reach, 1.14 * reach))


def test_units_that_strict_leaves_out_are_told_with_their_reasons(here):
    make(here, failing())
    (line,) = [one for one in part(".md").read_text().splitlines() if one.startswith("The strict reading")]
    assert line == (
        "The strict reading leaves units out of its headline: Diagnosis (T1), FD: findings and images: "
        "1 of 5 (1 × made up); Evidence (T2), Img: images, diagnosis given: 3 of 4 "
        "(2 × 3 lines, expected 5, 1 × judge failed)."
    )


def test_where_strict_leaves_nothing_out_nothing_is_said(here):
    cells = cells_of()
    cells["diagnosis", "fd", "m"][4] = ranked(4, None)
    make(here, cells)
    assert "leaves units out of its headline" not in part(".md").read_text()


def test_what_was_counted_has_a_table_per_bench_without_zeros(here):
    make(here, failing())
    text = part(".md").read_text().partition("## Also counted")[2].partition("\n## ")[0]
    assert [line for line in text.splitlines() if line.startswith("|") and ":--" not in line] == [
        "| Bench | Arm | Hits |",
        "| Diagnosis (T1) | FD: findings and images | 5 |",
        "| Diagnosis (T1) | LC: images, findings withheld | 0 |",
        "| Diagnosis (T1) | TO: text only, findings withheld | – |",
        "| Bench | Arm | Points |",
        "| Evidence (T2) | Img: images, diagnosis given | 4 |",
        "| Evidence (T2) | Txt: no images, diagnosis given | – |",
        "| Evidence (T2) | NoDx: images, diagnosis withheld | – |",
    ]
    filed = {row["arm"]: (row["count_hits"], row["count_nothing"]) for row in rows(".cells.csv")}
    assert (filed["lc"], filed["to"], filed["img"]) == (("0", "0"), ("", ""), ("", ""))


def test_a_judge_s_failures_are_empty_where_there_is_no_judge(here):
    make(here)
    row = rows(".cells.csv")[0]
    assert (row["judge_failed"], row["judge_unreadable"], row["unreadable"]) == ("", "", "0")


def test_differences_are_points_only_in_percent_and_pairs_of_own_denominators_are_told(here):
    make(here)
    page = part(".md").read_text()
    assert "| Metric | Difference | 95 % interval |" in page and "| Points |" not in page
    assert "Of MR, pairs are the units that have the metric on both sides." in page
    make(here, unit="percent", decimals=1)
    page = part(".md").read_text()
    assert "| Metric | Points | 95 % interval |" in page  # the headline
    assert "| Metric | Difference | 95 % interval |" in page  # ranks among the others


def test_metrics_stand_in_the_order_of_the_layout_and_no_paper_without_its_values(here):
    make(here, shown=("mrr", "recall@1", "recall"))
    text = part(".md").read_text().partition("## Cells")[2].partition("\n## ")[0]
    table = [[field.strip() for field in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line]
    assert [row[2] for row in table[2:6]] == ["MRR ↑", "Recall@1 ↑", "MRR ↑", "Recall@1 ↑"]
    assert table[0][-2:] == ["Differ", "Verdict"]


def test_an_interval_that_there_is_not_is_explained(here):
    make(here)
    text = part(".md").read_text()
    assert "undefined: " not in text
    assert "*undefined*: there is no interval where nothing was graded." in text


def test_options_are_names_and_values_and_files_have_a_short_hash():
    grade = Stage(
        stage="grade",
        settings={
            "options": {
                "files": {"model": {"path": "results/sources/m.onnx", "sha256": "0123456789abcdef"}},
                "expected": {"a": 1, "b": [True, None]},
                "exclude": {},
            }
        },
        code="c",
        inputs={},
        outputs={},
    )
    tables = Stage(
        stage="index_tables",
        settings={"options": {"exclude": []}},
        code="c",
        inputs={},
        outputs={},
        counts={"rows": 4, "odd": 0},
    )
    assert markdown_stages.told([grade, tables]) == [
        "## Options\n",
        "Grading: exclude none, expected (a: 1, b: (on, not given)), files (model: m.onnx (SHA-256 "
        "0123456789ab…)).\n",
        "Tables: exclude none. Counted: rows 4.\n",
    ]
