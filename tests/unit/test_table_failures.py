"""Failed answers in a table: rates, footnotes, rows, the limit of a study and what publishing does about it.

Expected numbers are counted by hand from the cells below (MRareBench card, section 11: expected answers whose
status is not ok, divided by the expected answers).
"""

from pathlib import Path

import pytest
from msgspec import structs

import make_table
import publish_table
import tablekit
from remeasure import jsonl
from remeasure.records import Failed, Reading, Score
from remeasure.tables import csv_text, failures, limits

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "config/published/pixelrag.csv"
OUTCOMES = {("nq", "naive"): [0, 0, 0, 1], ("nq", "traf"): [0, 1, 1, 0], ("nq", "base"): [1, 1, 1, 1]}
SMALL = {"benches": ("nq",), "arms": ("naive", "traf", "base")}
# 0 of 4, 3 of 4 and 1 of 4 answers fail; item q03 in both.
STATUSES = {
    ("nq", "traf", 1): "cut_off",
    ("nq", "traf", 2): "failed",
    ("nq", "traf", 3): "failed",
    ("nq", "base", 3): "not_sent",
}
SENTENCE = (
    "Too many answers failed: nq traf: 3 of 4 (75.00 %: 2 timeout, 1 truncated); "
    "allowed are 25 % of a cell's answers."
)
SUFFIXES = [".csv", ".cells.csv", ".contrasts.csv", ".breakdown.csv", ".failures.csv", ".md", ".json", ".svg"]
TABLES = SUFFIXES[:5]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def part(suffix):
    return Path(f"results/embedded/tables/table1{suffix}")


def make(here, status_of=STATUSES, **changes):
    files = tablekit.write_table_inputs(here, OUTCOMES, status_of=status_of)
    settings = tablekit.table_settings(**SMALL, **changes)
    return make_table.main(tablekit.table_argv(here, files, PUBLISHED, settings))


def publish(suffixes=SUFFIXES):
    argv = ["--run", "embedded", "--inputs", *(str(part(suffix)) for suffix in suffixes)]
    return publish_table.main([*argv, "--outputs", *(f"results/table1{suffix}" for suffix in suffixes)])


def test_every_failed_answer_is_a_row(here):
    assert make(here) == 0
    rows = csv_text.read(part(".failures.csv"), failures.COLUMNS)
    assert [tuple(row.values()) for row in rows] == [
        ("nq", "traf", "reader", "1", "reader", "q01", "q01", "truncated", "cut_off: 8 tokens"),
        ("nq", "traf", "reader", "1", "reader", "q02", "q02", "timeout", "timeout: no reply within 60 s"),
        ("nq", "traf", "reader", "1", "reader", "q03", "q03", "timeout", "timeout: no reply within 60 s"),
        ("nq", "base", "reader", "1", "reader", "q03", "q03", "missing", "not_sent"),
    ]


def test_a_table_without_failures_has_a_file_with_a_header_alone(here):
    assert make(here, status_of={}) == 0
    header = "bench,arm,model,repeat,role,unit_id,item_id,class,error\n"
    assert part(".failures.csv").read_text() == header
    rows = csv_text.read(part(".cells.csv"))
    assert {row["failed_share"] for row in rows} == {"0.00"}
    assert not [
        name for name in rows[0] if name.startswith(("failed_", "judge_failed_")) and name != "failed_share"
    ]
    page = part(".md").read_text()
    assert "Every request was answered" in page and "¹" not in page


def test_cells_have_the_share_and_the_classes(here):
    make(here)
    found = {row["arm"]: row for row in csv_text.read(part(".cells.csv"))}
    names = ("failed_share", "failed_timeout", "failed_truncated", "failed_missing")
    assert {arm: [row[name] for name in names] for arm, row in found.items()} == {
        "naive": ["0.00", "0", "0", "0"],
        "traf": ["75.00", "2", "1", "0"],
        "base": ["25.00", "0", "0", "1"],
    }


def test_the_share_has_enough_decimals_where_the_unit_is_a_share(here):
    # 1 of 4; of 300 it would be 0.0033.
    files = tablekit.write_table_inputs(here, OUTCOMES, status_of=STATUSES)
    settings = tablekit.table_settings(**SMALL, unit="share", decimals=3)
    nothing = tablekit.put(here / "published.csv", tablekit.NOTHING_PUBLISHED)
    assert make_table.main(tablekit.table_argv(here, files, nothing, settings)) == 0
    found = {row["arm"]: row["failed_share"] for row in csv_text.read(part(".cells.csv"))}
    assert found == {"naive": "0.0000", "traf": "0.7500", "base": "0.2500"}


def test_numbers_of_cells_with_failures_carry_a_mark_with_the_rate(here):
    make(here)
    page = part(".md").read_text()
    assert "| NQ | em@1 | 25.0 | 50.0 ¹ | 100.0 ² |" in page
    assert (
        "\n¹ Trafilatura text: 3 of 4 answers failed (75.00 %); ² Tiles, base encoder: 1 of 4 answers "
        "failed (25.00 %). See Failures.\n"
    ) in page


def test_the_page_counts_classes_and_names_items_that_failed_again(here):
    make(here)
    page = part(".md").read_text()
    after = page[page.index("## Failures") :]
    assert "| Arm | Answers | Failed | Share | Timeout | Truncated | Missing |" in after
    assert "| Trafilatura text | 4 | 3 | 75.00 % | 2 | 1 | 0 |" in after
    assert "| Tiles, base encoder | 4 | 1 | 25.00 % | 0 | 0 | 1 |" in after
    assert "The other 1 cell has none." in after
    assert "Items that failed in more than one cell: 1.\n" in after
    assert "| NQ | q03 | 2 | timeout, missing |" in after


def lost(number, kind, role="reader"):
    return Failed(item_id=f"q{number:02}", role=role, kind=kind, error=f"{kind}: x")


def write_cells(here, lines_of):
    """Cells of NQ with these graded lines."""
    folders = {("nq", arm): tablekit.write_cell(here, "nq", arm, lines) for arm, lines in lines_of.items()}
    return tablekit.write_stages(here, folders)


def make_of(here, lines_of, **changes):
    settings = tablekit.table_settings(benches=("nq",), arms=tuple(lines_of), contrasts=[], **changes)
    return make_table.main(tablekit.table_argv(here, write_cells(here, lines_of), PUBLISHED, settings))


def lines_with(*failed):
    lines = [tablekit.graded_line(number, 1) for number in range(4)]
    for one in failed:
        place = int(one.item_id[1:])
        lines[place] = structs.replace(lines[place], failed=(*lines[place].failed, one))
    return lines


def test_judges_fail_apart_and_are_no_part_of_the_rate(here):
    lines = lines_with(lost(0, "timeout", "judge"), lost(1, "refused", "judge"))
    assert make_of(here, {"naive": lines, "traf": lines_with()}, max_failed_share=0.0) == 0
    page = part(".md").read_text()
    assert not page.startswith("**") and "¹" not in page
    assert "| No retrieval | 4 | 0 | 0 | 0 | 1 | 1 |" in page  # units, unreadable twice, judge's classes
    assert "Judge: timeout | Judge: refused" in page
    found = {row["arm"]: row for row in csv_text.read(part(".cells.csv"))}
    assert [found["naive"][f"judge_failed_{kind}"] for kind in ("timeout", "refused")] == ["1", "1"]
    assert found["naive"]["failed_share"] == "0.00"
    assert [row["role"] for row in csv_text.read(part(".failures.csv"))] == ["judge", "judge"]


def test_replies_that_cannot_be_read_are_explained_where_there_are_some(here):
    said = "A judge's reply that cannot be read is in no strict number"
    lines = lines_with(lost(0, "timeout", "judge"))
    make_of(here, {"naive": lines})
    assert said not in part(".md").read_text()
    unread = Reading(verdict="judge_unreadable", score=None, reason="x")
    make_of(here, {"naive": [structs.replace(lines[0], strict=unread), *lines[1:]], "traf": lines_with()})
    page = part(".md").read_text()
    assert said in page
    assert "| Units | Unreadable | Judge failed | Judge unreadable | Judge: timeout |" in page
    assert "| No retrieval | 4 | 0 | 0 | 1 | 1 |" in page


def test_unknown_classes_stay_visible_and_too_many_of_them_are_one(here):
    # Eleven classes that nobody knows: K00 twice, so it is among the eight that are kept.
    lines = [tablekit.graded_line(number, 1) for number in range(12)]
    lines = [
        structs.replace(line, failed=(lost(number, f"K{number % 11:02}"),))
        for number, line in enumerate(lines)
    ]
    assert make_of(here, {"naive": lines}) == 0
    row = csv_text.read(part(".cells.csv"))[0]
    kept = {name: row[name] for name in row if name.startswith("failed_") and name != "failed_share"}
    assert kept == {"failed_other": "3", "failed_K00": "2"} | {f"failed_K{n:02}": "1" for n in range(1, 8)}
    assert "| K00 | K01 |" in part(".md").read_text()


def test_what_was_said_is_one_visible_line_and_no_formula():
    assert failures.said(None) is None
    assert failures.said("a\nb\tc\x1b[31m\u202e") == "a b c⟨U+001B⟩[31m⟨U+202E⟩"
    assert failures.said('=HYPERLINK("x")') == '\'=HYPERLINK("x")'
    assert len(failures.said("x" * 100_000)) == 300


def test_a_repeated_model_says_which_time_it_was(here):
    lines = lines_with(lost(2, "timeout"))
    folders = {("nq", "naive"): tablekit.write_cell(here, "nq", "naive", lines, model="reader@3")}
    settings = tablekit.table_settings(
        benches=("nq",),
        arms=("naive",),
        cells=[["nq", "naive", "reader@3"]],
        contrasts=[],
        fixed={"model": "reader@3", "metric": "accuracy"},
    )
    settings["titles"]["model"] = {"reader@3": "A reader"}
    argv = tablekit.table_argv(here, tablekit.write_stages(here, folders), PUBLISHED, settings)
    assert make_table.main(argv) == 0
    row = csv_text.read(part(".failures.csv"))[0]
    assert (row["model"], row["repeat"]) == ("reader@3", "3")


def test_a_score_whose_failures_are_not_those_of_its_units_is_refused(here, capsys):
    files = write_cells(here, {"naive": lines_with(lost(0, "timeout"))})
    path = files["--scores"][0]
    score = jsonl.read_json(path, Score)
    jsonl.write_json(path, structs.replace(score, failed={"timeout": 2}))
    settings = tablekit.table_settings(benches=("nq",), arms=("naive",), contrasts=[])
    assert make_table.main(tablekit.table_argv(here, files, PUBLISHED, settings)) == 2
    assert "failures of the reader {'timeout': 2}, found {'timeout': 1}" in capsys.readouterr().err


# -- the limit ---------------------------------------------------------------------------------------------


def test_without_a_limit_or_below_it_nothing_is_said(here):
    make(here)
    plain = {suffix: part(suffix).read_bytes() for suffix in (*TABLES, ".svg")}
    # 3 of 4 is 0.75: equal to the limit is not over it.
    make(here, max_failed_share=0.75)
    assert {suffix: part(suffix).read_bytes() for suffix in plain} == plain
    assert part(".md").read_text().startswith("# Screenshots")
    assert jsonl.read_json(part(".json"))["over_limit"] is None
    assert publish() == 0


def test_a_table_over_the_limit_says_so_everywhere_and_is_made(here):
    assert make(here, max_failed_share=0.25) == 0
    assert part(".md").read_text().splitlines()[0] == f"**{SENTENCE}**"
    for suffix in TABLES:
        columns, rows = csv_text.read_table(part(suffix))
        assert columns[0] == "warning" and {row["warning"] for row in rows} <= {SENTENCE}
    assert csv_text.read(part(".csv"))[0]["warning"] == SENTENCE
    found = jsonl.read_json(part(".json"))["over_limit"]
    assert found == {
        "sentence": SENTENCE,
        "limit": 0.25,
        "allowed": False,
        "cells": [
            {
                "bench": "nq",
                "arm": "traf",
                "model": "reader",
                "n_failed": 3,
                "n": 4,
                "share": 0.75,
                "classes": {"timeout": 2, "truncated": 1},
                "n_asked_again": 2,
                "responses": "results/embedded/pixelrag/nq/traf/reader/responses.jsonl",
            }
        ],
    }


def test_the_picture_begins_with_the_warning(here, monkeypatch):
    from matplotlib.figure import Figure

    texts = []
    text = Figure.text
    monkeypatch.setattr(
        Figure, "text", lambda self, x, y, s, **k: texts.append(s) or text(self, x, y, s, **k)
    )
    make(here, max_failed_share=0.25)
    assert " ".join(" ".join(texts).split()).find(SENTENCE) >= 0
    assert "Run embedded: Embedded data and models" in " ".join(" ".join(texts).split())


def test_a_table_over_the_limit_is_not_published_and_nothing_older_stays(here, capsys):
    make(here)
    assert publish() == 0
    make(here, max_failed_share=0.25)
    capsys.readouterr()
    assert publish() == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said == (
        "error: results/embedded/tables/table1.md: not published: Too many answers failed: nq traf: 3 of 4 "
        "(75.00 %: 2 timeout, 1 truncated); allowed are 25 % of a cell's answers; to ask again what failed, "
        "delete results/embedded/pixelrag/nq/traf/reader/responses.jsonl and rerun; the other 1 (cut off, "
        "refused or empty) stay, unless the journal folder beside them is deleted too; to publish it all the "
        "same set `allow_failures: true`, or a higher `max_failed_share`, under studies.pixelrag in "
        "config/runs/embedded.yaml; older copies in results/ are removed, of whichever run\n"
    )
    assert [path.name for path in Path("results").iterdir() if path.is_file()] == []
    assert part(".csv").exists()


def test_copies_of_another_run_are_removed_too_and_it_is_said_where_they_still_are(here, capsys):
    make(here)
    assert publish() == 0
    Path("results/embedded").rename("results/other")
    make(here, max_failed_share=0.25)
    capsys.readouterr()
    assert publish() == 2
    assert capsys.readouterr().err.endswith(
        "config/runs/embedded.yaml; older copies in results/ are removed, of whichever run: those of run "
        "other are still in results/other/tables\n"
    )
    assert not Path("results/table1.csv").exists() and Path("results/other/tables/table1.csv").exists()


def test_what_is_allowed_is_published_and_still_says_it(here):
    make(here, max_failed_share=0.25, allow_failures=True)
    assert publish() == 0
    assert Path("results/table1.md").read_text().splitlines()[0] == f"**{SENTENCE}**"
    row = csv_text.read(Path("results/table1.csv"))[0]
    assert (row["warning"], row["run"]) == (SENTENCE, "embedded")
    assert jsonl.read_json(Path("results/table1.json"))["over_limit"]["allowed"] is True


def score(arm, n_failed, n, **classes):
    base = {"study": "s", "bench": "b", "model": "m", "grader": "g@1", "reader": "R", "judge": None}
    return Score(
        arm=arm,
        corpus=None,
        headline="x",
        metrics={},
        n=n,
        n_answers=n,
        n_empty=0,
        n_words_mean=None,
        n_words_median=None,
        statuses={"answered": n - n_failed, "failed": n_failed},
        verdicts={},
        verdicts_strict={},
        failed=classes,
        **base,
    )


def over(*scores, limit):
    named = [(Path(f"results/r/s/b/{one.arm}/m/score.json"), one) for one in scores]
    return limits.over(named, limit, False, lambda one: f"{one.bench} {one.arm}")


def test_the_rate_of_the_card_s_example():
    # 300 expected, 296 ok, 3 marker texts, 1 missing row: ours 4/300 = 1.33 %.
    one = score("img", 4, 300, marker=3, missing=1)
    assert limits.of_all(4, 300) == "4 of 300 answers failed (1.33 %)"
    assert limits.failed_share(one) == pytest.approx(4 / 300)
    assert over(one, limit=0.02) is None
    assert over(one, limit=0.01).sentence == (
        "Too many answers failed: b img: 4 of 300 (1.33 %: 3 marker, 1 missing); allowed are 1 % of a cell's "
        "answers."
    )


def test_the_limit_itself_is_allowed_and_zero_allows_nothing():
    # 6 of 300 is 0.02.
    assert over(score("img", 6, 300, timeout=6), limit=0.02) is None
    assert over(score("img", 7, 300, timeout=7), limit=0.02) is not None
    assert over(score("img", 0, 300), limit=0.0) is None
    assert over(score("img", 1, 300, timeout=1), limit=0.0) is not None
    assert over(score("img", 300, 300, timeout=300), limit=None) is None
    assert over(score("img", 0, 0), limit=0.0) is None


def test_many_cells_and_classes_are_bounded():
    classes = {"timeout": 9, "http_5xx": 3, "http_4xx": 2, "empty": 1, "refused": 1}
    scores = [score(f"a{number}", 16, 32, **classes) for number in range(11)]
    sentence = over(*scores, limit=0.1).sentence
    assert (
        "b a7: 16 of 32 (50.00 %: 9 timeout, 3 http_5xx, 2 http_4xx, 1 refused, …); and 3 more;" in sentence
    )
    assert "a8" not in sentence
    assert publish_table.again(over(*scores, limit=0.1)) == (
        "to ask again what failed, delete results/r/s/b/a0/m/responses.jsonl, "
        "results/r/s/b/a1/m/responses.jsonl, results/r/s/b/a2/m/responses.jsonl (and those of 8 more cells) "
        "and rerun"
    )
