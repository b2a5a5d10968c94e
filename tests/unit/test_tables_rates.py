"""Tables with a row per model and a column per metric: nine rates of image triplets, two models."""

import json
from pathlib import Path

import msgspec
import pytest
from matplotlib.figure import Figure
from msgspec import structs

import make_table
import publish_table
import tablekit
from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.records import Failed, Score
from remeasure.tables import csv_text, figure_points, inputs, published
from remeasure.tables.settings import TableSettings

# The worked example of the TOSC card, section 3.2, with its seventh triplet.
LARGE = [(1, 0, 0, 1), (1, 1, 0, 1), (1, 0, 1, 1), (0, 0, 0, 1), (1, 0, 0, 0), (1, 0, 0, 1), (1, 0, 1, 0)]
# The last triplet has no caption: it mentions nothing in the published reading and is none in the strict one.
SMALL = [(1, 0, 0, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 0, 0), (1, 0, 1, 1), (1, 1, 0, 1), (0, 0, 0, 0)]


def triplet(number, bits, **changes):
    overlap = "none" if number < 5 else "o_in_r"
    return tablekit.rates_line(
        number, bits, strata={"overlap": overlap}, counts={"mentions": sum(bits), "denied": 1}, **changes
    )


def small_lines():
    lines = [triplet(number, bits) for number, bits in enumerate(SMALL)]
    # One more reading, over five triplets, in which the first origin caption mentions nothing.
    lines[0] = triplet(0, SMALL[0], phrase=(0, 0, 0, 1))
    lines[2] = triplet(2, SMALL[2], phrase=False)
    lines[4] = triplet(4, SMALL[4], phrase=False)
    lost = [
        Failed(item_id=f"000006-{state}", role="reader", kind=kind, error=error)
        for state, kind, error in (
            ("origin", "timeout", "timeout: no reply within 60 s"),
            ("removed", "truncated", "cut_off: 1 tokens"),
            ("replaced", "empty", None),
        )
    ]
    lines[6] = structs.replace(triplet(6, SMALL[6], status="failed"), failed=tuple(lost))
    return lines


def large_lines():
    lines = [triplet(number, bits) for number, bits in enumerate(LARGE)]
    # The strict reading finds the object in the fourth origin caption.
    lines[3] = triplet(3, LARGE[3], strict=(1, 0, 0, 1))
    return lines


SMALL_ANSWERS = [("answered", "a red dog")] * 18 + [("failed", None), ("cut_off", "a"), ("answered", " ")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tablekit.put(Path("published.csv"), tablekit.NOTHING_PUBLISHED)
    return Path(".")


def write(here, lines=None, answers=None):
    lines = lines or {"small": small_lines(), "large": large_lines()}
    return tablekit.write_rates_inputs(here, lines, answers=answers or {"small": SMALL_ANSWERS})


def make(here, files=None, **changes):
    settings = tablekit.rates_settings(**changes)
    files = files or write(here)
    return make_table.main(tablekit.table_argv(here, files, Path("published.csv"), settings))


def part(suffix):
    return Path("results/embedded/tables") / f"tosc{suffix}"


def row_of(suffix, **wanted):
    (found,) = [row for row in csv_text.read(part(suffix)) if wanted.items() <= row.items()]
    return found


def only(row, *names):
    return tuple(row[name] for name in names)


def test_the_wide_table_has_a_row_per_model_a_column_per_metric_and_two_decimals(here):
    assert make(here) == 0
    assert part(".csv").read_text() == (
        "model,opa,rca,rua,tosc,oldpersist_rem,oldpersist_rep,repfail,cc,mixconf\n"
        "small,57.14,71.43,57.14,28.57,28.57,14.29,28.57,28.57,14.29\n"
        "large,85.71,85.71,57.14,28.57,14.29,28.57,28.57,14.29,14.29\n"
    )


def test_every_number_has_a_row_with_all_readings_and_what_each_rests_on(here):
    make(here)
    assert len(csv_text.read(part(".cells.csv"))) == 18
    row = row_of(".cells.csv", model="small", metric="oldpersist_rem")
    # Published 2 of 7, strict 2 of 6, phrase 1 of 5 (the third and fifth are not graded there); Wilson.
    expected = {
        "bench": "triplets",
        "arm": "describe",
        "better": "low",
        "value": "28.57",
        "low": "8.22",
        "high": "64.11",
        "value_strict": "33.33",
        "low_strict": "9.68",
        "high_strict": "70.00",
        "value_phrase": "20.00",
        "n_phrase": "5",
        "n": "7",
        "n_graded": "7",
        "n_graded_strict": "6",
        "n_differ": "1",
        "n_answers": "21",
        "answered": "19",
        "cut_off": "1",
        "failed": "1",
        "empty": "1",
        "n_words_mean": "2.89",
        "n_words_median": "3.0",
        "count_denied": "7",
        "count_mentions": "12",
        "grader": "triplets@1",
        "reader": "A small model",
        "judge": "",
        "corpus": "",
        "k": "",
        "recall_at_k": "",
        "published": "",
        "difference": "",
        "verdict": "not comparable",
        "reason": "no published value",
    }
    assert {name: row[name] for name in expected} == expected
    assert row_of(".cells.csv", model="small", metric="opa")["value_phrase"] == "40.00"
    assert row_of(".cells.csv", model="large", metric="oldpersist_rem")["better"] == "low"
    assert only(row_of(".cells.csv", model="large", metric="opa"), "better", "value") == ("high", "85.71")


def test_nothing_that_is_not_known_is_a_word(here):
    make(here)
    for suffix in (".csv", ".cells.csv", ".contrasts.csv", ".breakdown.csv", ".drift.csv", ".md", ".svg"):
        assert "None" not in part(suffix).read_text(), suffix


def test_models_are_compared_pair_by_pair_under_every_metric_headline_first(here):
    make(here)
    found = csv_text.read(part(".contrasts.csv"))
    assert [row["metric"] for row in found][:3] == ["tosc", "opa", "rca"] and len(found) == 9
    opa = row_of(".contrasts.csv", metric="opa")
    assert only(opa, "axis", "arm", "model", "against") == ("model", "describe", "large", "small")
    # 6 of 7 against 4 of 7; two triplets that only the large model has, p = 2 / 4.
    assert only(opa, "difference", "n_only_model", "n_only_against") == ("28.57", "2", "0")
    assert only(opa, "n_only_arm", "mcnemar_p", "n_pairs", "better") == ("", "0.5", "7", "high")
    assert float(opa["low"]) <= 28.57 <= float(opa["high"])
    rca = row_of(".contrasts.csv", metric="rca")
    # 2 : 1 discordant triplets, p = 2 (1 + 3) / 8.
    assert only(rca, "difference", "n_only_model", "n_only_against", "mcnemar_p") == ("14.29", "2", "1", "1")
    persist = row_of(".contrasts.csv", metric="oldpersist_rem")
    assert only(persist, "difference", "n_only_model", "n_only_against") == ("-14.29", "1", "2")


def test_holm_s_family_is_the_differences_of_one_metric(here):
    models = {"small": "A small model", "large": "A large model", "mute": "A model that says nothing"}
    lines = {"small": small_lines(), "large": large_lines()}
    lines["mute"] = [triplet(number, (0, 0, 0, 0)) for number in range(7)]
    pairs = [("large", "small"), ("large", "mute")]
    contrasts = [{"axis": "model", "first": first, "second": second} for first, second in pairs]
    settings = tablekit.rates_settings(models, contrasts=contrasts)
    argv = tablekit.table_argv(here, write(here, lines), Path("published.csv"), settings)
    assert make_table.main(argv) == 0
    # 6 : 0 discordant, p = 2 / 64; the smaller of two is doubled, not taken eighteen times.
    mute = row_of(".contrasts.csv", metric="opa", against="mute")
    assert only(mute, "mcnemar_p", "holm_p") == ("0.03125", "0.0625")
    assert row_of(".contrasts.csv", metric="opa", against="small")["holm_p"] == "0.5"


def test_pairs_are_the_units_that_both_have_in_the_denominator(here):
    lines = {"small": small_lines(), "large": large_lines()}
    lines["small"][1] = ungraded(lines["small"][1])
    assert make(here, write(here, lines)) == 0
    opa = row_of(".contrasts.csv", metric="opa")
    # 5 of 6 against 3 of 6.
    assert only(opa, "n_pairs", "n_groups", "difference") == ("6", "6", "33.33")
    assert only(row_of(".cells.csv", model="small", metric="opa"), "value", "n_graded") == ("50.00", "6")
    (small, _) = jsonl.read_json(part(".json"))["cells"]
    assert small["numbers"]["opa"] == {"value": 0.5, "n": 6, "printed": "50.00"}


def ungraded(line):
    """The same triplet without a score in the published reading."""
    reading = tablekit.rates_reading((0, 0, 0, 0), graded=False)
    return msgspec.structs.replace(line, published=reading)


def test_groups_of_triplets_are_resampled_whole_in_differences(here):
    def grouped(lines, n_groups):
        return [
            msgspec.structs.replace(line, group=f"scene {number % n_groups}")
            for number, line in enumerate(lines)
        ]

    make(here, write(here, {"small": grouped(small_lines(), 3), "large": grouped(large_lines(), 3)}))
    opa = row_of(".contrasts.csv", metric="opa")
    assert only(opa, "n_pairs", "n_groups") == ("7", "3")
    assert opa["interval_method"] == "paired clustered bootstrap 95 %, 200 samples, seed 1"
    make(here, write(here, {"small": grouped(small_lines(), 1), "large": grouped(large_lines(), 1)}))
    opa = row_of(".contrasts.csv", metric="opa")
    assert only(opa, "low", "high", "n_groups", "interval_method") == (
        "",
        "",
        "1",
        "undefined: fewer than two groups",
    )


def test_cells_whose_units_are_grouped_otherwise_are_never_compared(here, capsys):
    lines = [msgspec.structs.replace(line, group="one") for line in large_lines()]
    assert make(here, write(here, {"small": small_lines(), "large": lines})) == 2
    assert "the cells have different items" in capsys.readouterr().err


def test_units_without_a_part_or_a_metric_are_in_neither(here):
    lines = small_lines()
    lines[0] = msgspec.structs.replace(lines[0], strata={})
    first = lines[2].published
    scores = {name: value for name, value in first.scores.items() if name != "opa"}
    lines[2] = msgspec.structs.replace(lines[2], published=msgspec.structs.replace(first, scores=scores))
    make(here, write(here, {"small": lines, "large": large_lines()}))
    # OPA 4 of 6 without the third triplet; of the first part 1, 0, 1 and not the first triplet.
    assert only(row_of(".cells.csv", model="small", metric="opa"), "value", "n_graded") == ("66.67", "6")
    found = row_of(".breakdown.csv", model="small", metric="opa", level="none")
    assert only(found, "n_units", "n", "value") == ("4", "3", "66.67")
    # The third triplet is one that only the large model could have: it is no pair.
    opa = row_of(".contrasts.csv", metric="opa")
    assert only(opa, "n_pairs", "n_only_model", "n_only_against") == ("6", "1", "0")


def test_a_breakdown_has_every_part_with_its_own_denominators_and_the_mean_over_parts(here):
    make(here)
    found = [row for row in csv_text.read(part(".breakdown.csv")) if row["metric"] == "rca"]
    columns = ("model", "level", "n_units", "n", "value", "n_strict", "value_strict", "n_levels")
    assert [only(row, *columns) for row in found] == [
        ("small", "(macro average)", "7", "7", "65.00", "6", "40.00", "2"),
        ("small", "none", "5", "5", "80.00", "5", "80.00", ""),
        ("small", "o_in_r", "2", "2", "50.00", "1", "0.00", ""),
        ("large", "(macro average)", "7", "7", "90.00", "7", "90.00", "2"),
        ("large", "none", "5", "5", "80.00", "5", "80.00", ""),
        ("large", "o_in_r", "2", "2", "100.00", "2", "100.00", ""),
    ]
    tosc = row_of(".breakdown.csv", model="large", metric="tosc", level="none")
    # 1 of 5; Wilson.
    assert only(tosc, "stratum", "value", "low", "high", "better") == (
        "overlap",
        "20.00",
        "3.62",
        "62.45",
        "high",
    )
    assert row_of(".breakdown.csv", model="small", metric="tosc", level="none")["value"] == "40.00"
    assert only(row_of(".breakdown.csv", model="small", metric="rca", level="none"), "low", "high") != (
        "",
        "",
    )


def test_a_part_in_which_nothing_was_graded_has_no_value_and_is_not_in_the_mean(here):
    lines = {"small": small_lines(), "large": large_lines()}
    lines["small"][5] = triplet(5, SMALL[5], status="failed")
    make(here, write(here, lines))
    row = row_of(".breakdown.csv", model="small", metric="rca", level="o_in_r")
    assert only(row, "n", "value", "n_strict", "value_strict") == ("2", "50.00", "0", "")
    macro = row_of(".breakdown.csv", model="small", metric="rca", level="(macro average)")
    assert only(macro, "value", "value_strict", "n_levels", "n_levels_strict") == ("65.00", "80.00", "2", "1")
    lines["small"][5:] = [ungraded(line) for line in lines["small"][5:]]
    make(here, write(here, lines))
    macro = row_of(".breakdown.csv", model="small", metric="rca", level="(macro average)")
    assert only(macro, "value", "n_levels", "n", "n_units") == ("80.00", "1", "5", "7")


def test_the_page_has_the_layout_first_then_numbers_differences_parts_and_failures(here):
    make(here, notes=["Only complete triplets."])
    page = part(".md").read_text()
    lines = page.splitlines()
    assert lines[2].startswith(
        "Run `embedded`, table `tosc`, in percent. Bench: Image triplets. Arm: Describe."
    )
    assert lines[4] == "Only complete triplets."
    assert lines[6] == "There is no published value to compare with."
    assert lines[8].startswith("| Model | Grader | OPA ↑ | RCA ↑ | RUA ↑ | TOSC ↑ | OldPersist_rem ↓ |")
    assert lines[10].startswith("| A small model | triplets@1 | 57.14 ¹ | 71.43 ¹ |")
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == [
        "## Cells",
        "## Differences between models",
        "## By overlap",
        "## Also counted",
        "## Failures",
    ]
    number = "| A small model | OldPersist_rem ↓ | 28.57 | 8.22 to 64.11 | 33.33 | 9.68 to 70.00 | 20.00 |"
    assert f"{number} 7 of 7 | 6 of 7 | 5 of 7 | 1 | not comparable |" in page
    first, second = (
        page.index("| A large model | A small model | TOSC ↑ | +0.00 |"),
        page.index("Other metrics:"),
    )
    assert first < second < page.index("| A large model | A small model | OPA ↑ | +28.57 |")
    assert "| A small model | o_in_r | 2 | 50.00 | 50.00 | 50.00 | 0.00 |" in page
    assert "| A small model | (macro average of 2 parts) | 7 | 55.00 | 65.00 |" in page
    assert "| Model | Answers | Failed | Share | Timeout | Empty | Truncated |" in page
    assert "| A small model | 21 | 3 | 14.29 % | 1 | 1 | 1 |" in page
    assert "The other 1 cell has none." in page
    assert (
        "A small model: mean 2.9, median 3, 4.8% of 21 cut off; A large model: mean 2.0, median 2, 0.0%"
        in page
    )


def test_of_many_parts_the_largest_are_shown_and_the_others_counted(here):
    lines = [
        tablekit.rates_line(n, (1, 0, 0, 1), strata={"object": f"class {n % 12:02}"})
        for n in range(12 * 2 + 2)
    ]
    assert make(here, write(here, {"small": lines, "large": lines}, answers={"x": []})) == 0
    page = part(".md").read_text()
    assert "The 10 largest of 12 parts; all of them are in `tosc.breakdown.csv`." in page
    # Classes 00 and 01 have a triplet more; of the others the first by name.
    shown = [line.split(" | ")[1] for line in page.splitlines() if line.startswith("| A large model | class")]
    assert shown == [f"class {n:02}" for n in range(10)]
    assert "(macro average of 12 parts)" in page


def test_a_metric_of_which_nothing_was_graded_is_blank_and_zero_units(here):
    mute = [triplet(number, (0, 0, 0, 0)) for number in range(7)]
    rates = tablekit.RATES | {"rca_given_opa": ("RCA | a=1", "high")}

    def conditional(line, bits):
        def given(reading):
            scores = reading.scores | {"rca_given_opa": float(1 - bits[1]) if bits[0] else None}
            return type(reading)(
                verdict=reading.verdict, score=reading.score, reason=reading.reason, scores=scores
            )

        fields = {name: getattr(line, name) for name in line.__struct_fields__}
        changed = {"published": given(line.published), "strict": given(line.strict)}
        return type(line)(**fields | changed | {"also": {"phrase": given(line.also["phrase"])}})

    lines = {
        "small": [conditional(line, (0, 0, 0, 0)) for line in mute],
        "large": [conditional(line, bits) for line, bits in zip(large_lines(), LARGE, strict=True)],
    }
    files = write(here, lines, answers={"x": []})
    settings = tablekit.rates_settings(rates=rates)
    assert make_table.main(tablekit.table_argv(here, files, Path("published.csv"), settings)) == 0
    small, large = part(".csv").read_text().splitlines()[1:]
    # RCA of the six triplets whose object was mentioned: one of them fails.
    assert small.endswith(",") and large.endswith(",83.33")
    row = row_of(".cells.csv", model="small", metric="rca_given_opa")
    assert only(row, "value", "low", "high", "n_graded", "n") == ("", "", "", "0", "7")
    contrast = row_of(".contrasts.csv", metric="rca_given_opa")
    assert only(contrast, "difference", "n_pairs", "mcnemar_p", "holm_p") == ("", "0", "", "")
    page = part(".md").read_text()
    assert "RCA \\| a=1 ↑" in page and "none graded" in page
    # Macro average over parts of different sizes: the denominator of a part stands in brackets.
    assert "| 75.00 (4) |" in page


def test_the_picture_has_a_panel_per_metric_and_says_all_values_in_words(here):
    make(here)
    first = part(".svg").read_bytes()
    make(here)
    assert part(".svg").read_bytes() == first
    text = first.decode()
    assert 'role="img"' in text and "<title>One object, three images (TOSC)</title>" in text
    assert "A small model: OPA ↑ 57.14, RCA ↑ 71.43," in text and "OldPersist_rem ↓ 14.29" in text


def test_what_is_drawn_is_the_published_number_with_its_n_and_the_strict_one_as_a_ring(here):
    lines = {"small": small_lines(), "large": large_lines()}
    lines["small"][1] = ungraded(lines["small"][1])
    files = write(here, lines)
    table = decode(json.dumps(tablekit.rates_settings()), TableSettings)
    figure = Figure(figsize=(9, 9))
    cells = inputs.load(table, files["--scores"], files["--graded"])
    figure_points.draw(figure, cells, {}, table, 0.5)
    opa = figure.axes[0]
    words = [text.get_text() for text in opa.texts]
    # Small: published 3 of 6, strict 4 of 6. Large: 6 of 7 and 7 of 7.
    assert words[:4] == ["50.00", "n 6", "85.71", "n 7"] and words[4:6] == ["OPA ↑", "higher is better"]
    drawn = [line for line in opa.lines if line.get_marker() == "o"]
    rings = [line.get_xdata()[0] for line in drawn if line.get_markerfacecolor() == "none"]
    points = [line.get_xdata()[0] for line in drawn if line.get_markerfacecolor() != "none"]
    assert rings == [pytest.approx(66.67, abs=0.01), 100.0]
    assert points == [50.0, pytest.approx(85.71, abs=0.01)]
    spans = [tuple(line.get_xdata()) for line in opa.lines if line.get_linewidth() == 1.6]
    # Wilson for 3 of 6 and 6 of 7.
    assert spans == [pytest.approx((18.76, 81.24), abs=0.01), pytest.approx((48.69, 97.43), abs=0.01)]
    assert "lower is better" in [text.get_text() for text in figure.axes[4].texts]
    assert any("1 cut off, 1 failed" in text.get_text() for text in figure.texts)


def test_published_values_are_found_by_row_and_column_of_their_metric(here):
    header = tablekit.NOTHING_PUBLISHED
    line = "tosc,{},{},{},{},percent,paper,triplets,7,,,\n"
    Path("published.csv").write_text(
        header + line.format("large", "opa", "opa", "80.5") + line.format("huge", "opa", "opa", "1.0")
    )
    make(here)
    opa = row_of(".cells.csv", model="large", metric="opa")
    assert only(opa, "published", "difference", "verdict") == ("80.50", "5.21", "within")
    assert row_of(".cells.csv", model="small", metric="opa")["published"] == ""
    Path("published.csv").write_text(header + line.format("large", "opa", "rca", "80.5"))
    settings = decode(json.dumps(tablekit.rates_settings()), TableSettings)
    with pytest.raises(RemeasureError, match="tosc large opa is of metric 'rca', expected 'opa'"):
        published.of_numbers(Path("published.csv"), settings)


def changed_score(folder, change):
    path = folder / "score.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def number_of(document, metric, reading):
    metric = document["metrics"][metric]
    return metric["also"][reading] if reading == "phrase" else metric[reading]


@pytest.mark.parametrize("metric", ["opa", "tosc", "mixconf"])
@pytest.mark.parametrize("reading", ["published", "strict", "phrase"])
@pytest.mark.parametrize("field", ["value", "n"])
def test_every_number_of_every_reading_must_follow_from_the_graded_units(here, metric, reading, field):
    folder = tablekit.write_cell(here, "triplets", "describe", small_lines(), headline="tosc")
    wrong = {"value": 0.41, "n": 4}[field]
    path = changed_score(folder, lambda document: number_of(document, metric, reading).update({field: wrong}))
    with pytest.raises(RemeasureError, match=f"score.json: {metric}, {reading}: value .* does not follow"):
        inputs.load_cell(path, folder / "graded.jsonl")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(n=8), "8 units, found 7"),
        (lambda d: d.update(grader="triplets@2"), "grader triplets@2, found triplets@1"),
        (lambda d: d.update(headline="rcb"), "headline rcb"),
        (lambda d: d["counts"].update(mentions=1), "counts .*, found .*'mentions': 12"),
        (lambda d: d["metrics"]["cc"].update(n_differ=0), "cc: 0 units differ, found 1"),
        (lambda d: d["metrics"].pop("cc"), "cc, phrase: not there"),
        (lambda d: d["metrics"].update(rcb=d["metrics"]["rca"]), "rcb: 1 units differ, found 0"),
        (
            lambda d: d["metrics"]["cc"]["also"].update(x=d["metrics"]["cc"]["strict"]),
            "cc, x: .* found no scores",
        ),
    ],
)
def test_a_score_of_other_units_counts_or_metrics_is_refused(here, change, said):
    folder = tablekit.write_cell(here, "triplets", "describe", small_lines(), headline="tosc")
    path = changed_score(folder, change)
    with pytest.raises(RemeasureError, match=said):
        inputs.load_cell(path, folder / "graded.jsonl")


def test_models_whose_triplets_are_not_the_same_never_stand_side_by_side(here, capsys):
    assert make(here, write(here, {"small": small_lines(), "large": large_lines()[:6]}), contrasts=[]) == 2
    assert "the cells have different items" in capsys.readouterr().err


def test_a_metric_that_the_table_does_not_know_is_named(here, capsys):
    rates = {name: value for name, value in tablekit.RATES.items() if name != "cc"}
    settings = tablekit.rates_settings(rates=rates)
    assert make_table.main(tablekit.table_argv(here, write(here), Path("published.csv"), settings)) == 2
    assert "metric 'cc' is none of the table's (mixconf, " in capsys.readouterr().err


def test_missing_models_are_named_as_the_table_names_cells(here, capsys):
    assert make(here, write(here, {"small": small_lines(), "huge": large_lines()})) == 2
    error = capsys.readouterr().err
    assert (
        "missing: triplets describe large;" in error and "without a place: triplets describe huge;" in error
    )


def test_a_layout_that_leaves_an_axis_open_is_one_line(here, capsys):
    assert make(here, fixed={"bench": "triplets"}) == 2
    assert "tosc: the layout says nothing of arm; name each axis" in capsys.readouterr().err


def test_provenance_has_every_number_with_its_denominator(here):
    make(here)
    (small, large) = jsonl.read_json(part(".json"))["cells"]
    assert (small["model"], small["headline"]) == ("small", "tosc")
    assert small["numbers"]["oldpersist_rep"] == {"value": 1 / 7, "n": 7, "printed": "14.29"}
    assert large["numbers"]["opa"]["printed"] == "85.71"
    assert jsonl.read_json(Path(small["score"]), Score).metrics["opa"].strict.n == 6


def test_a_header_without_rows_is_published_with_the_run(here):
    assert make(here, contrasts=[]) == 0
    source = part(".contrasts.csv")
    argv = ["--run", "embedded", "--inputs", str(source), "--outputs", "results/tosc.contrasts.csv"]
    assert publish_table.main(argv) == 0
    header = source.read_text().strip()
    assert Path("results/tosc.contrasts.csv").read_text() == f"{header},run\n"
    source.write_text("")
    assert publish_table.main(argv) == 2


def test_rows_and_columns_of_several_axes_are_joined(here):
    lines = {"small": small_lines(), "large": large_lines()}
    rows = [
        {"at": {"metric": metric, "model": model}, "title": "x"}
        for model in ("small", "large")
        for metric in ("opa", "oldpersist_rem")
    ]
    columns = [{"at": {"arm": "describe", "bench": "triplets"}, "title": "x"}]
    changes = {"row_axes": ["model", "metric"], "column_axes": ["bench", "arm"], "fixed": {}}
    header = tablekit.NOTHING_PUBLISHED
    Path("published.csv").write_text(
        f"{header}tosc,large/opa,triplets.describe,opa,80.5,percent,paper,,,,,\n"
    )
    assert make(here, write(here, lines), rows=rows, columns=columns, **changes) == 0
    assert part(".csv").read_text().splitlines()[:3] == [
        "model,metric,triplets.describe",
        "small,opa,57.14",
        "small,oldpersist_rem,28.57",
    ]
    assert row_of(".cells.csv", model="large", metric="opa")["published"] == "80.50"
    # No metric among the columns: bars.
    assert "Bars in percent" in part(".svg").read_text()
    assert "| A small model, OldPersist_rem ↓ | triplets@1 | 28.57 ¹ |" in part(".md").read_text()


def test_a_division_whose_parts_are_no_classes_is_not_averaged(here):
    make(here, averaged=["object"])
    levels = {row["level"] for row in csv_text.read(part(".breakdown.csv"))}
    assert levels == {"none", "o_in_r"}


def test_a_number_names_the_lexicon_and_the_matchers_that_it_rests_on(here):
    make(here)
    row = row_of(".cells.csv", model="small", metric="tosc")
    assert only(row, "method_lexicon", "method_matcher_strict") == ("coco", "phrase+context@1")
    assert len(row["method_lexicon_sha256"]) == 64


def test_names_of_objects_are_no_markup_on_the_page(here):
    lines = [
        tablekit.rates_line(n, (1, 0, 0, 1), strata={"overlap": f"<img src=x> | {n}\n# h"}) for n in range(2)
    ]
    files = write(here, {"small": lines, "large": lines}, answers={"x": []})
    assert make(here, files, notes=["<b>note</b>\n# heading"], run_title="a*b*") == 0
    page = part(".md").read_text()
    assert "&lt;img src=x&gt; \\| 1 # h" in page and "&lt;b&gt;note&lt;/b&gt; # heading" in page
    assert "<img" not in page and "<b>" not in page and "\n# h" not in page.partition("\n")[2]
