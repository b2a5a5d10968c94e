"""Tables of conditions: benches with arms of their own, metrics that are no shares, named differences."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import conditionkit as kit
import make_table
from remeasure import resampling, stats
from remeasure.errors import RemeasureError
from remeasure.options import decode
from remeasure.tables import (
    contrasts,
    csv_text,
    figure_bars,
    figure_conditions,
    figure_points,
    figure_scale,
    inputs,
)
from remeasure.tables.settings import TableSettings

# Ranks of the first hit: the hand example of the MRareBench card, section 6 (ranks 3, none, 1, 2, none).
RANKS = {
    "fd": (3, None, 1, 2, None),
    "lc": (1, None, 1, None, 4),
    "to": (None, None, None, None, None),
}
# Points hit and points: pooled over points, shares per unit.
POINTS = {
    "img": ((2, 2), (1, 4), (0, 1), (1, 1)),
    "txt": ((1, 2), (1, 4), (0, 1), (0, 1)),
    "nodx": ((2, 2), (1, 4), (0, 1), (0, 1)),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def ranked(number, rank, **changes):
    scores = {
        "recall@1": float(rank == 1),
        "mrr": 1 / rank if rank else 0.0,
        "mr": float(rank) if rank else None,
    }
    return kit.unit(number, "diagnosis", scores, **changes)


def judged(number, hits, n, **changes):
    # The drop is made up: as far below zero as above in two units.
    scores = {"recall": hits / n, "pooled": hits / n, "drop": (-0.25, 0.5)[number % 2]}
    return kit.unit(number, "evidence", scores, weights={"pooled": n}, **changes)


def cells_of(model="m"):
    cells = {
        ("diagnosis", arm, model): [ranked(number, rank) for number, rank in enumerate(ranks)]
        for arm, ranks in RANKS.items()
    }
    # The fifth answer of the first arm failed: the published reading counts it as a miss.
    cells["diagnosis", "fd", model][4] = ranked(4, None, strict=None, status="failed")
    return cells | {
        ("evidence", arm, model): [judged(n, *point) for n, point in enumerate(points)]
        for arm, points in POINTS.items()
    }


def make(here, cells=None, **changes):
    files = kit.write(here, cells or cells_of())
    return make_table.main(kit.argv(here, files, kit.settings(**changes)))


def part(suffix):
    return Path("results/embedded/tables") / f"conditions{suffix}"


def rows(suffix, **wanted):
    return [row for row in csv_text.read(part(suffix)) if wanted.items() <= row.items()]


def only(row, *names):
    return tuple(row[name] for name in names)


def test_the_wide_table_is_blank_where_a_metric_is_none_of_the_bench_and_counts_beside_a_rank(here):
    assert make(here) == 0
    # Recall@1 1/5; MRR (1/3 + 1 + 1/2) / 5; MR (3 + 1 + 2) / 3. Without a hit the original says MR 0.0.
    # Points: 4 of 8; shares (1 + 1/4 + 0 + 1) / 4. Drop (-0.25 + 0.5) / 2.
    assert part(".csv").read_text() == (
        "model,bench,arm,recall@1,mrr,mr,mr.n,recall,pooled,drop\n"
        "m,diagnosis,fd,0.200,0.367,2.000,3,,,\n"
        "m,diagnosis,lc,0.400,0.450,2.000,3,,,\n"
        "m,diagnosis,to,0.000,0.000,0.000,0,,,\n"
        "m,evidence,img,,,,,0.562,0.500,0.125\n"
        "m,evidence,txt,,,,,0.188,0.250,0.125\n"
        "m,evidence,nodx,,,,,0.312,0.375,0.125\n"
    )


def test_a_number_that_is_no_share_is_printed_as_it_is_in_a_table_of_percents(here):
    assert make(here, unit="percent", decimals=1) == 0
    first = part(".csv").read_text().splitlines()[1]
    assert first == "m,diagnosis,fd,20.0,36.7,2.00,3,,,"
    (mr,) = rows(".cells.csv", arm="fd", metric="mr")
    assert only(mr, "unit", "value", "n_graded", "n") == ("number", "2.000", "3", "5")
    (drop,) = rows(".cells.csv", arm="img", metric="drop")
    assert only(drop, "unit", "value") == ("percent", "12.50")
    page = part(".md").read_text()
    assert "| 2.00 (n 3) |" in page and "Numbers of their own, not in percent: MR." in page
    (pair,) = rows(".contrasts.csv", contrast="delta_sub", metric="mr")
    assert pair["unit"] == "number"
    assert rows(".contrasts.csv", contrast="delta_sub", metric="mrr")[0]["unit"] == "percent points"


def test_shares_in_files_have_four_decimals(here):
    make(here)
    (mrr,) = rows(".cells.csv", arm="fd", metric="mrr")
    # Strict: 11/6 over the four that were answered.
    assert only(mrr, "unit", "value", "value_strict", "n_graded_strict", "repeat") == (
        "share",
        "0.3667",
        "0.4583",
        "4",
        "1",
    )


def test_weights_are_in_the_mean_and_its_denominator(here):
    make(here)
    (pooled,) = rows(".cells.csv", arm="img", metric="pooled")
    assert only(pooled, "value", "n_graded", "n") == ("0.5000", "8", "4")
    assert pooled["interval_method"] == "weighted bootstrap 95 %, 200 samples, seed 1"
    assert "| 8 in all |" in part(".md").read_text()


def test_a_weighted_mean_that_does_not_follow_from_its_units_is_refused(here):
    files = kit.write(here, cells_of())
    place = files["--scores"].index(Path("results/embedded/made/evidence/img/m/score.json"))
    path = files["--scores"][place]
    document = json.loads(path.read_text())
    # The mean of the units, each counted once.
    document["metrics"]["pooled"]["published"]["value"] = 0.5625
    path.write_text(json.dumps(document))
    with pytest.raises(RemeasureError, match="pooled, published: value 0.5625 of 8, found 0.5 of 8"):
        inputs.load_cell(path, files["--graded"][place])


def test_what_the_original_says_of_nothing_is_accepted_in_its_reading_only(here):
    files = kit.write(here, cells_of())
    place = files["--scores"].index(Path("results/embedded/made/diagnosis/to/m/score.json"))
    path, graded = files["--scores"][place], files["--graded"][place]
    assert inputs.load_cell(path, graded, {"mr": 0.0}).score.metrics["mr"].published.value == 0.0
    with pytest.raises(RemeasureError, match="mr, published: value 0.0 of 0, found None of 0"):
        inputs.load_cell(path, graded)
    document = json.loads(path.read_text())
    document["metrics"]["mr"]["strict"]["value"] = 0.0
    path.write_text(json.dumps(document))
    with pytest.raises(RemeasureError, match="mr, strict: value 0.0 of 0, found None of 0"):
        inputs.load_cell(path, graded, {"mr": 0.0})


def test_a_difference_has_a_name_both_readings_and_the_pairs_that_were_dropped(here):
    make(here)
    (pair,) = rows(".contrasts.csv", contrast="delta_sub", metric="recall@1")
    # Published 1/5 - 2/5. Strict without the fifth: 1/4 - 2/4. One unit is lower: p = 2 * 1/2, at most 1.
    expected = {
        "arm": "fd",
        "against": "lc",
        "model": "m",
        "difference": "-0.2000",
        "favours": "second",
        "n_pairs": "5",
        "n_dropped": "0",
        "n_higher": "0",
        "n_lower": "1",
        "n_only_arm": "0",
        "n_only_against": "1",
        "mcnemar_p": "1",
        "sign_p": "",
        "difference_strict": "-0.2500",
        "n_pairs_strict": "4",
        "n_dropped_strict": "1",
    }
    assert {name: pair[name] for name in expected} == expected
    assert float(pair["low_strict"]) <= -0.25 <= float(pair["high_strict"])


def test_scores_between_0_and_1_have_a_sign_test_over_the_units_that_differ(here):
    make(here)
    (grd,) = rows(".contrasts.csv", contrast="delta_grd", metric="recall")
    # 1 - 1/2, 1/4 - 1/4, 0 - 0, 1 - 0: two units are higher, none lower: p = 2 / 4.
    assert only(grd, "difference", "n_higher", "n_lower", "n_only_arm", "mcnemar_p", "sign_p") == (
        "0.3750",
        "2",
        "0",
        "",
        "",
        "0.5",
    )
    # Two differences of this metric; the other has one unit that differs: p = 1. Holm: 2 * 0.5.
    assert grd["holm_p"] == "1"


def test_where_lower_is_better_the_page_and_the_file_say_so(here):
    make(here)
    (mr,) = rows(".contrasts.csv", contrast="delta_sub", metric="mr")
    # Both have a rank of the first and the third unit: 3 - 1 and 1 - 1.
    assert only(mr, "difference", "n_pairs", "n_dropped", "favours", "better") == (
        "1.000",
        "2",
        "3",
        "second",
        "low",
    )
    page = part(".md").read_text()
    assert "Where lower is better, the sign is reversed" in page
    assert "| Δ_sub: what findings tell | MR ↓ | +1.000 (lower is better) |" in page
    assert "- Δ_sub: what findings tell: FD: findings and images minus LC: images, findings withheld" in page


def test_a_difference_without_a_common_unit_is_undefined(here):
    make(here)
    (vis,) = rows(".contrasts.csv", contrast="delta_vis", metric="mr")
    assert only(vis, "difference", "low", "sign_p", "holm_p", "n_pairs", "favours") == (
        "",
        "",
        "",
        "",
        "0",
        "",
    )
    assert vis["interval_method"] == "undefined: fewer than two groups"


def test_weighted_metrics_differ_by_their_ratios_of_sums(here):
    make(here)
    (pooled,) = rows(".contrasts.csv", contrast="delta_grd", metric="pooled")
    # 4 of 8 points against 2 of 8.
    assert only(pooled, "difference", "n_pairs") == ("0.2500", "4")
    assert pooled["interval_method"] == "paired weighted bootstrap 95 %, 200 samples, seed 1"


def test_the_interval_of_a_weighted_difference_is_that_of_ratios_drawn_one_by_one():
    rng = np.random.default_rng(5)
    weights = [rng.integers(1, 6, size=80).astype(float) for _ in range(2)]
    hits = [rng.binomial(w.astype(int), p) / w for w, p in zip(weights, (0.6, 0.4), strict=True)]
    groups = rng.integers(0, 30, size=80).tolist()
    tops = [h * w for h, w in zip(hits, weights, strict=True)]
    (ours,) = resampling.intervals(
        [resampling.sums(tops, weights, groups)], n_resamples=5000, seed=1, confidence=0.95
    )
    members = [np.flatnonzero(np.array(groups) == group) for group in sorted(set(groups))]
    plain, values = np.random.default_rng(9), []
    for _ in range(5000):
        drawn = np.concatenate([members[i] for i in plain.integers(0, len(members), len(members))])
        first, second = (top[drawn].sum() / w[drawn].sum() for top, w in zip(tops, weights, strict=True))
        values.append(first - second)
    assert ours == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.012)


def test_an_interval_is_the_same_alone_and_beside_others_and_in_any_order():
    rng = np.random.default_rng(2)
    values = rng.random((200, 40))
    samples = [resampling.sums([one], [None], range(40)) for one in values]
    draws = {"n_resamples": 1000, "seed": 1, "confidence": 0.95}
    together = resampling.intervals(samples, **draws)
    alone = resampling.intervals([samples[150]], **draws)
    assert together[150] == pytest.approx(alone[0], abs=1e-12)
    turned = resampling.intervals([resampling.sums([values[150][::-1]], [None], range(40))], **draws)
    assert turned == alone
    plain = stats.bootstrap_mean(values[150], n_resamples=20000, seed=3)
    (many,) = resampling.intervals([samples[150]], n_resamples=20000, seed=1, confidence=0.95)
    assert many == pytest.approx(plain, abs=0.004)


def test_one_group_cannot_be_resampled():
    one = resampling.sums([np.array([0.5, 0.25])], [None], ["a", "a"])
    none = resampling.sums([np.array([])], [None], [])
    assert resampling.intervals([one, none], n_resamples=100, seed=1, confidence=0.95) == [None, None]


def test_scores_of_0_and_1_keep_the_interval_that_they_had(here):
    files = kit.write(here, cells_of())
    told = decode(json.dumps(kit.settings()), TableSettings)
    cells = inputs.load(told, files["--scores"], files["--graded"])
    (first, *_) = contrasts.compare_all(cells, told)
    # Differences of the five units: 0, 0, 0, 0 (the third both hit) and the first only the second arm has.
    expected = stats.bootstrap_mean([-1.0, 0.0, 0.0, 0.0, 0.0], n_resamples=200, seed=1)
    assert (first.metric, first.published.interval) == ("recall@1", expected)


def test_the_page_shows_the_metrics_of_the_layout_and_says_where_the_others_are(here):
    cells = cells_of()
    cells["diagnosis", "fd", "m"] = [
        ranked(n, rank, part="ct" if n % 2 else "mri") for n, rank in enumerate(RANKS["fd"])
    ]
    assert make(here, cells, shown=("recall@1", "recall")) == 0
    page = part(".md").read_text()
    assert "MRR" not in page and "Drop ↓" not in page
    for suffix in ("cells", "contrasts", "breakdown"):
        words = f"Shown are the metrics of the layout; all 6 metrics are in `conditions.{suffix}.csv`."
        assert words in page
    assert len(rows(".cells.csv")) == 18 and len(rows(".contrasts.csv")) == 12
    assert {row["metric"] for row in rows(".breakdown.csv")} == {"recall@1", "mrr", "mr"}
    (mr,) = rows(".breakdown.csv", metric="mr", level="mri")
    # Ranks 3, 1 and none.
    assert only(mr, "unit", "value", "n", "n_units") == ("number", "2.000", "2", "3")


def test_a_breakdown_of_a_weighted_metric_is_weighted(here):
    cells = cells_of()
    cells["evidence", "img", "m"] = [
        judged(n, *point, part="ct" if n < 2 else "mri") for n, point in enumerate(POINTS["img"])
    ]
    make(here, cells)
    found = rows(".breakdown.csv", metric="pooled")
    # 3 of 6 and 1 of 2 points; each counted once it would be (1 + 1/4) / 2.
    assert [only(row, "level", "value", "n", "value_strict") for row in found] == [
        ("ct", "0.5000", "6", "0.5000"),
        ("mri", "0.5000", "2", "0.5000"),
    ]


def loaded(here, cells, **changes):
    files = kit.write(here, cells)
    told = decode(json.dumps(kit.settings(figure="conditions", **changes)), TableSettings)
    return inputs.load(told, files["--scores"], files["--graded"]), told


def test_the_picture_has_conditions_of_every_bench_and_differences_with_a_line_at_zero(here):
    cells, told = loaded(here, cells_of("m") | cells_of("n"), models=("m", "n"))
    compared = contrasts.compare_all(cells, told)
    figure = Figure(figsize=figure_conditions.size_in(cells, compared, told))
    figure_conditions.draw(figure, cells, compared, told, 0.5)
    assert len(figure.axes) == 6
    words = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert words[0][:3] == ["0.200", "n 5", "1 failed"]
    assert "Diagnosis (T1)" in words[0] and "Recall@1: higher is better" in words[0]
    assert words[1][:2] == ["0.562", "n 4"] and "Evidence (T2)" in words[1]
    assert words[2][:2] == ["-0.200", "n 5"] and "+0.375" in words[2] and "first minus second" in words[2]
    zero = [line for line in figure.axes[2].lines if list(line.get_xdata()) == [0, 0]]
    assert len(zero) == 1
    low, high = figure.axes[2].get_xlim()
    assert low == -high


def test_the_picture_of_conditions_can_be_read_aloud(here):
    make(here, figure="conditions")
    text = part(".svg").read_text()
    assert "Diagnosis (T1), Recall@1: FD: findings and images 0.200 (1 failed); LC:" in text
    assert "Differences: Δ_sub: what findings tell -0.200 (" in text and "run embedded" in text


def test_points_and_bars_of_numbers_that_are_no_shares_have_axes_of_their_own(here):
    cells, told = loaded(here, cells_of())
    figure = Figure(figsize=(9, 9))
    figure_points.draw(figure, cells, {}, told, 0.5)
    # Recall@1, MRR, MR, recall, pooled, drop; the drop's interval reaches from below -0.2 to 0.5.
    assert [axes.get_xlim() for axes in figure.axes][:3] == [(0, 1), (0, 1), (0, 5)]
    assert figure.axes[5].get_xlim() == (-0.5, 0.5)
    rows = [{"at": {"metric": "mr"}, "title": "MR"}]
    columns = [{"at": {"arm": arm}, "title": arm} for arm in ("fd", "lc")]
    axes = {"row_axes": ["metric"], "column_axes": ["arm"], "rows": rows, "columns": columns}
    _, told = loaded(here, cells_of(), **axes, fixed={"bench": "diagnosis", "model": "m"})
    figure = Figure(figsize=(9, 9))
    figure_bars.draw(figure, cells, {}, told, 0.5)
    assert figure.axes[0].get_ylim() == (0, pytest.approx(1.12 * 5))
    assert [text.get_text() for text in figure.axes[0].texts][:2] == ["2.000", "n 3/5"]


@pytest.mark.parametrize(
    ("kind", "values", "ends", "words"),
    [
        ("share", [0.2], (0, 1), ("0", "", "0.5", "", "1")),
        ("number", [2.1, 4.4], (0, 5), ("0", "2.5", "5")),
        ("difference", [-0.13, 0.08], (-0.2, 0.2), ("−0.2", "0", "0.2")),
        ("difference", [], (-0.01, 0.01), ("−0.01", "0", "0.01")),
    ],
)
def test_axes_reach_as_far_as_their_kind_needs(kind, values, ends, words):
    found = figure_scale.scale(kind, 1.0, values)
    assert (found.low, found.high) == pytest.approx(ends) and found.words == words
