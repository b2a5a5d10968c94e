"""Edges of tables: differences, drift, limits, failures, parts, means; numbers are worked out by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import conditionkit as kit
from remeasure import means, repeats
from remeasure.options import decode
from remeasure.records import Failed, Score
from remeasure.tables import breakdown, contrasts, drift, failures, inputs, limits
from remeasure.tables.settings import CellKey, TableSettings

DRAWS = {"n_resamples": 200, "seed": 1}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def load(here, cells, **changes):
    """Cells and settings of a table; cells that are not given have units without hits."""
    changes.setdefault("benches", tuple(dict.fromkeys(bench for bench, *_ in cells)))
    told = decode(json.dumps(kit.settings(**changes)), TableSettings)
    n = len(next(iter(cells.values())))
    made = {
        (bench, arm, model): cells.get((bench, arm, model)) or [UNIT[bench](k, 0.0) for k in range(n)]
        for bench, arm, model in told.cells
    }
    files = kit.write(here, made)
    return inputs.load(told, files["--scores"], files["--graded"]), told


def ranked(number, score, strict="same", **changes):
    def scores(value):
        return {"recall@1": value, "mrr": value, "mr": None}

    strict = scores(strict) if isinstance(strict, float) else strict
    return kit.unit(number, "diagnosis", scores(score), strict, **changes)


def judged(number, score, weight=1, **changes):
    scores = {"recall": score, "pooled": score, "drop": 0.0}
    return kit.unit(number, "evidence", scores, weights={"pooled": weight}, **changes)


UNIT = {"diagnosis": ranked, "evidence": judged}


def first_hits(n_hits, n=100, unit=ranked):
    return [unit(k, float(k < n_hits)) for k in range(n)]


def contrast(found, name, metric):
    (one,) = [one for one in found if (one.pair.name, one.metric) == (name, metric)]
    return one


# -- differences -------------------------------------------------------------------------------------------


def test_the_cards_differences(here):
    # Card, section 10: recall@1 FD .42, LC .30, TO .22: +0.12, +0.08; Img .55, Txt .35: +0.20.
    cells = {("diagnosis", arm, "m"): first_hits(n) for arm, n in (("fd", 42), ("lc", 30), ("to", 22))}
    cells |= {("evidence", arm, "m"): first_hits(n, unit=judged) for arm, n in (("img", 55), ("txt", 35))}
    found = contrasts.compare_all(*load(here, cells))
    for name, metric, difference in (
        ("delta_sub", "recall@1", 0.12),
        ("delta_vis", "recall@1", 0.08),
        ("delta_grd", "recall", 0.20),
    ):
        one = contrast(found, name, metric)
        assert one.published.difference == pytest.approx(difference, abs=1e-12)
        assert one.strict.difference == pytest.approx(difference, abs=1e-12)
        assert (one.published.n_pairs, one.published.n_dropped) == (100, 0)
        low, high = one.published.interval
        assert 0 < low < difference < high


def test_groups_are_drawn_whole_where_scores_are_no_bits_too(here):
    # Two groups with mean differences of 0.5 and 0: either is drawn twice in a quarter of all draws, so that
    # the interval ends at these. Unit by unit it would reach above 0.5.
    cells = {
        ("diagnosis", "fd", "m"): [
            ranked(k, score, group=group)
            for k, (score, group) in enumerate(zip((0.25, 0.75, 0, 0), "aabb", strict=True))
        ],
        ("diagnosis", "lc", "m"): [ranked(k, 0.0, group=group) for k, group in enumerate("aabb")],
        ("diagnosis", "to", "m"): [ranked(k, 0.0, group=group) for k, group in enumerate("aabb")],
    }
    one = contrast(contrasts.compare_all(*load(here, cells)), "delta_sub", "mrr").published
    assert (one.is_binary, one.n_pairs, one.n_groups) == (False, 4, 2)
    assert one.interval == pytest.approx((0.0, 0.5), abs=1e-12)


def test_holms_family_is_of_published_p_values(here):
    # Published: 5 of 12 units are higher, p = 2 / 2^5; then 7, p = 2 / 2^7. Holm: 1 * 0.0625 and
    # 2 * 0.015625.
    # Strict: the first condition has no answer to three of the five.
    fd = [ranked(k, 1.0, None if 7 <= k < 10 else "same") for k in range(12)]
    found = contrasts.compare_all(
        *load(here, {("diagnosis", "fd", "m"): fd, ("diagnosis", "lc", "m"): first_hits(7, 12)})
    )
    one, other = (contrast(found, name, "recall@1") for name in ("delta_sub", "delta_vis"))
    assert (one.published.p, other.published.p) == pytest.approx((0.0625, 0.015625))
    assert (one.holm_p, other.holm_p) == pytest.approx((0.0625, 0.03125))
    assert one.strict.p == pytest.approx(0.5)


def test_weighted_bits_are_compared_by_the_weights_of_each_arm_and_have_a_sign_test(here):
    # 3 of 4 points against 1 of 5; with the weights of one arm the difference would be 0.
    cells = {
        ("evidence", "img", "m"): [judged(0, 1.0, 3), judged(1, 0.0, 1)],
        ("evidence", "txt", "m"): [judged(0, 1.0, 1), judged(1, 0.0, 4)],
    }
    one = contrast(contrasts.compare_all(*load(here, cells)), "delta_grd", "pooled")
    assert one.published.difference == pytest.approx(0.55)
    assert (one.published.is_weighted, one.published.is_binary) == (True, False)
    assert (one.mcnemar_p, one.sign_p) == (None, 1.0)


def test_where_no_pair_is_left_all_units_are_dropped(here):
    cells = {("diagnosis", "fd", "m"): [ranked(k, 1.0) for k in range(5)]}
    one = contrast(contrasts.compare_all(*load(here, cells)), "delta_sub", "mr")
    for reading in (one.published, one.strict):
        assert (reading.n_pairs, reading.n_dropped, reading.difference, reading.p) == (0, 5, None, None)
        assert (reading.is_binary, reading.interval, reading.n_groups) == (False, None, 0)


# -- drift -------------------------------------------------------------------------------------------------


def test_where_one_side_was_asked_more_often_both_are_compared_as_often(here):
    cells = {
        ("diagnosis", arm, model): first_hits(n, 10)
        for arm, hits in (("fd", (6, 7, 0)), ("lc", (3, 4, 5)))
        for model, n in zip(("m", "m@2", "m@3"), hits, strict=True)
    }
    loaded, told = load(here, cells, repeat=3)
    del loaded[CellKey("diagnosis", "fd", "m@3")]
    (one,) = [
        one
        for one in drift.of_table(loaded, told)
        if (one.pair.name, one.metric, one.reading) == ("delta_sub", "recall@1", "published")
    ]
    assert (one.n_repeats, one.values) == (2, ((0.6, 0.7), (0.3, 0.4)))
    assert drift.row(one, told)["n_repeats"] == 2


def test_weights_of_each_time_are_in_the_values_that_drift(here):
    # 3 of 4 points, then 1 of 4; against 2 of 4 both times.
    cells = {
        ("evidence", "img", "m"): [judged(0, 1.0, 3), judged(1, 0.0, 1)],
        ("evidence", "img", "m@2"): [judged(0, 1.0, 1), judged(1, 0.0, 3)],
        ("evidence", "txt", "m"): [judged(0, 1.0, 2), judged(1, 0.0, 2)],
        ("evidence", "txt", "m@2"): [judged(0, 1.0, 2), judged(1, 0.0, 2)],
    }
    loaded, told = load(here, cells, repeat=2)
    (one,) = [
        one
        for one in drift.of_table(loaded, told)
        if (one.pair.name, one.metric, one.reading) == ("delta_grd", "pooled", "published")
    ]
    assert one.values == ((0.75, 0.25), (0.5, 0.5))
    assert (one.arms, one.contrast, one.n_changed) == ((0.5, 0.0), 0.5, (0, 0))


def test_the_tenth_time_comes_after_the_ninth():
    called = ["m@10", "m", "m@2", "other@2", "m@9", "m@11"]
    cells = {key: SimpleNamespace(key=key) for key in (CellKey("diagnosis", "fd", model) for model in called)}
    found = drift.times(cells, CellKey("diagnosis", "fd", "m"))
    assert [cell.key.model for cell in found] == ["m", "m@2", "m@9", "m@10", "m@11"]


def drifted(first, second):
    return drift.Drift(
        metric="recall@1",
        is_headline=True,
        reading="published",
        pair=None,
        first=CellKey("diagnosis", "fd", "m"),
        second=CellKey("diagnosis", "lc", "m"),
        grader="made@1",
        n_repeats=2,
        n_units=10,
        n_dropped=0,
        values=(first, second),
        n_changed=(1, 1),
    )


@pytest.mark.parametrize(
    ("first", "second", "less"),
    [
        # The difference moves by 0.2, the two by 0.1 and 0.3: as much on paper, by 3e-17 less for Python.
        ((0.0, 0.1), (0.0, 0.3), False),
        ((0.2, 0.5), (0.4, 0.5), False),
        ((0.0, 0.1), (0.0, 0.2), True),
        ((0.0, 0.1), (0.0, 0.4), False),
        ((0.0, 0.0), (0.0, 0.0), None),
    ],
)
def test_a_difference_that_drifts_as_far_as_its_arms_does_not_drift_less(first, second, less):
    assert drifted(first, second).drifts_less is less


# -- failures ----------------------------------------------------------------------------------------------


def score(n, n_answers, statuses, failed):
    return Score(
        study="s",
        bench="b",
        arm="img",
        model="m",
        grader="g@1",
        reader="R",
        judge=None,
        corpus=None,
        headline="x",
        metrics={},
        n=n,
        n_answers=n_answers,
        n_empty=0,
        n_words_mean=None,
        n_words_median=None,
        statuses=statuses,
        verdicts={},
        verdicts_strict={},
        failed=failed,
    )


def over(one, limit):
    return limits.over([(Path("results/r/s/b/img/m/score.json"), one)], limit, False, lambda _: "cell")


def test_the_rate_is_of_answers_where_units_have_several():
    # 6 of 300 answers to 100 units: 2 %, not 6 %.
    one = score(100, 300, {"answered": 294, "failed": 6}, {"timeout": 6})
    assert limits.failed_share(one) == 0.02
    assert over(one, 0.02) is None
    (cell,) = over(one, 0.019).cells
    assert (cell.n, cell.n_failed, cell.share) == (300, 6, 0.02)


def test_what_failed_or_was_never_sent_is_asked_again():
    statuses = {"answered": 3, "failed": 2, "not_sent": 3, "cut_off": 1, "refused": 1}
    (cell,) = over(
        score(10, 10, statuses, {"timeout": 2, "missing": 3, "truncated": 1, "refused": 1}), 0.1
    ).cells
    assert (cell.n_failed, cell.n_asked_again) == (7, 5)


def test_an_item_whose_judge_fails_in_two_cells_is_no_item_whose_answers_fail_again():
    def cell(*roles):
        lost = [("q1", Failed(item_id="q1", role=role, kind="timeout", error=None)) for role in roles]
        return SimpleNamespace(lost=tuple(lost))

    one, other = (CellKey("b", arm, "m") for arm in ("img", "txt"))
    assert failures.again({one: cell("judge"), other: cell("judge")}) == []
    assert failures.again({one: cell("reader", "judge"), other: cell("judge")}) == []
    (found,) = failures.again({one: cell("judge", "reader"), other: cell("reader")})
    assert (found.item_id, found.cells, found.classes) == ("q1", (one, other), ("timeout",))


# -- parts and means ---------------------------------------------------------------------------------------


def test_the_weight_of_a_unit_without_a_score_does_not_count_in_a_part(here):
    # Of the part "ct" 1 of 2 points is hit; the unit of 5 points has no score.
    def line(number, value, weight):
        scores = {"recall": 0.0, "pooled": value, "drop": 0.0}
        weights = {"pooled": weight}
        return kit.unit(number, "evidence", scores, weights=weights, part="ct")

    cells = {("evidence", "img", "m"): [line(0, None, 5), line(1, 0.5, 2)]}
    loaded, told = load(here, cells)
    (part,) = [part for part in breakdown.parts(loaded, told) if part.key.metric == "pooled"]
    assert (part.level, part.n_units, part.n, part.value) == ("ct", 2, 2, 0.5)
    assert (part.n_strict, part.value_strict) == (2, 0.5)


def test_two_groups_are_enough_for_an_interval():
    # Each of the two is drawn twice in a quarter of all draws: the interval ends at their means.
    bits = means.mean_with_interval([1.0, 1.0, 0.0, 1.0], "aabb", **DRAWS)
    assert (bits.mean, bits.interval) == (0.75, (0.5, 1.0))
    shares = means.mean_with_interval([0.25, 0.75, 0.0, 0.0], "aabb", **DRAWS)
    assert (shares.mean, shares.interval) == (0.25, (0.0, 0.5))
    numbers = means.mean_with_interval([2.0, 4.0], "ab", shares=False, **DRAWS)
    assert (numbers.mean, numbers.interval) == (3.0, (2.0, 4.0))
    assert numbers.method == "bootstrap 95 %, 200 samples, seed 1"


@pytest.mark.parametrize("value", [0.0, 1.0, 3.0])
def test_equal_numbers_that_are_no_shares_have_no_interval(value):
    found = means.mean_with_interval([value, value], "ab", shares=False, **DRAWS)
    assert found == (value, None, "undefined: all alike")
    found = means.mean_with_interval([value, value], "aa", shares=False, **DRAWS)
    assert found == (value, None, "undefined: one group")
    found = means.mean_with_interval([value, value], "ab", weights=[1, 2], **DRAWS)
    assert found == (value, None, "undefined: all alike")


@pytest.mark.parametrize(
    ("called", "parsed"),
    [
        ("m", ("m", 1)),
        ("m@2", ("m", 2)),
        ("m@10", ("m", 10)),
        ("m@2@3", ("m@2", 3)),
        # No further time is called so: these are names.
        ("m@1", ("m@1", 1)),
        ("m@0", ("m@0", 1)),
        ("m@02", ("m@02", 1)),
        ("m@", ("m@", 1)),
    ],
)
def test_the_number_of_a_time_is_two_or_more(called, parsed):
    assert repeats.parse(called) == parsed
