import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from remeasure import means, stats

DRAWS = {"n_resamples": 2000, "seed": 1}


def test_wilson_of_literals():
    # Wilson 1927 without correction, worked by hand for 0/10 (z^2/(n+z^2) = 3.8415/13.8415) and 5/10.
    assert stats.wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert stats.wilson(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)
    assert stats.wilson(5, 10) == pytest.approx((0.23659, 0.76341), abs=1e-5)
    assert stats.wilson(0, 0) is None


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_statsmodels_and_holds_the_share(pair):
    successes, n = pair
    low, high = stats.wilson(successes, n)
    assert (low, high) == pytest.approx(proportion_confint(successes, n, method="wilson"), abs=1e-9)
    assert 0 <= low <= successes / n + 1e-12 and successes / n - 1e-12 <= high <= 1


def test_the_bootstrap_of_a_mean_agrees_with_scipy():
    values = np.random.default_rng(3).gamma(2.0, size=200)
    theirs = bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20000, rng=np.random.default_rng(5)
    )
    ours = stats.bootstrap_mean(values, n_resamples=20000, seed=1)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)


def test_the_clustered_bootstrap_agrees_with_drawing_groups_one_by_one():
    rng = np.random.default_rng(7)
    groups = rng.integers(0, 30, size=200)
    values = (rng.random(200) < 0.3 + 0.4 * (groups % 2)).astype(float)
    members = [values[groups == group] for group in np.unique(groups)]
    plain = np.random.default_rng(11)
    means = [
        np.concatenate([members[i] for i in plain.integers(0, len(members), len(members))]).mean()
        for _ in range(5000)
    ]
    ours = stats.bootstrap_mean(values, groups=groups, n_resamples=5000, seed=1)
    assert ours == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.012)


def test_the_bootstrap_depends_on_the_seed_and_not_on_the_order_of_items():
    values, groups = [0.0, 1.0, 1.0, 0.5, 0.25, 1.0], ["a", "a", "b", "c", "c", "d"]
    first = stats.bootstrap_mean(values, groups=groups, **DRAWS)
    assert first == stats.bootstrap_mean(values[::-1], groups=groups[::-1], **DRAWS)
    assert first == stats.bootstrap_mean(values, groups=groups, **DRAWS)
    assert first != stats.bootstrap_mean(values, groups=groups, n_resamples=2000, seed=2)


def test_clusters_widen_the_interval_when_their_items_agree():
    values = [1.0] * 10 + [0.0] * 10
    clustered = stats.bootstrap_mean(values, groups=[i // 5 for i in range(20)], **DRAWS)
    plain = stats.bootstrap_mean(values, **DRAWS)
    assert clustered[1] - clustered[0] > plain[1] - plain[0]


def test_nothing_to_resample_is_undefined():
    assert stats.bootstrap_mean([], **DRAWS) is None
    assert stats.bootstrap_mean([1.0], **DRAWS) is None
    assert stats.bootstrap_mean([1.0, 0.0], groups=["a", "a"], **DRAWS) is None
    assert stats.bootstrap_difference([], [], **DRAWS) is None


def test_the_paired_bootstrap_agrees_with_scipy_on_the_differences():
    rng = np.random.default_rng(2)
    ours, theirs = rng.random(150), rng.random(150)
    reference = bootstrap(
        (ours, theirs),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=20000,
        rng=np.random.default_rng(4),
    )
    found = stats.bootstrap_difference(ours, theirs, n_resamples=20000, seed=1)
    assert found == pytest.approx(tuple(reference.confidence_interval), abs=0.005)


def test_pairs_that_never_differ_have_a_difference_of_exactly_zero():
    assert stats.bootstrap_difference([1, 0, 1], [1, 0, 1], **DRAWS) == (0.0, 0.0)


def test_a_cells_interval_names_its_method():
    rate = means.mean_with_interval([1.0, 0.0, 1.0, 1.0], "abcd", **DRAWS)
    assert (rate.mean, rate.method) == (0.75, "Wilson 95 %")
    assert rate.interval == stats.wilson(3, 4)
    grouped = means.mean_with_interval([1.0, 0.0, 1.0, 1.0], "aabb", **DRAWS)
    assert grouped.method == "clustered bootstrap 95 %, 2000 samples, seed 1"
    graded = means.mean_with_interval([0.5, 0.25, 1.0], "abc", **DRAWS)
    assert graded.method.startswith("bootstrap")


def test_a_cell_where_all_are_right_is_not_certain():
    # Two groups: Wilson of 2/2.
    found = means.mean_with_interval([1.0, 1.0, 1.0, 1.0], "aabb", **DRAWS)
    assert found.interval == stats.wilson(2, 2) and found.method == "Wilson 95 % over groups"


def test_an_empty_cell_has_no_value_and_a_single_group_no_interval():
    assert means.mean_with_interval([], [], **DRAWS)[:2] == (None, None)
    assert means.mean_with_interval([1.0, 0.0], "aa", **DRAWS)[:2] == (0.5, None)


def test_mcnemar_of_literals():
    assert stats.mcnemar_exact(0, 0) == 1.0
    assert stats.mcnemar_exact(5, 5) == 1.0
    assert stats.mcnemar_exact(0, 5) == pytest.approx(2 / 2**5)
    # 1 against 9: 2 (1 + 10) / 1024.
    assert stats.mcnemar_exact(1, 9) == pytest.approx(22 / 1024)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_agrees_with_scipy_and_statsmodels(first, second):
    ours = stats.mcnemar_exact(first, second)
    assert ours == pytest.approx(mcnemar([[7, first], [second, 9]], exact=True).pvalue, rel=1e-8)
    if first + second:
        assert ours == pytest.approx(binomtest(first, first + second).pvalue, rel=1e-8)


def test_mcnemar_of_many_pairs_is_finite():
    assert stats.mcnemar_exact(13000, 14000) == pytest.approx(binomtest(13000, 27000).pvalue, rel=1e-6)


def test_holm_of_literals():
    # 3 x 0.01, 2 x 0.02, 1 x 0.03 raised to the one before.
    assert stats.holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert stats.holm([None, 0.04, None]) == [None, 0.04, None]
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_agrees_with_statsmodels(p_values):
    assert stats.holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]), abs=1e-12)


def test_kappa_of_a_literal():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: agreement 0.7, chance 0.5, kappa 0.4.
    first = [True] * 25 + [False] * 25
    second = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    found = stats.agreement(first, second)
    assert found[:4] == (20, 5, 10, 15)
    assert (found.agreement, found.kappa) == (pytest.approx(0.7), pytest.approx(0.4))


def test_kappa_is_undefined_where_chance_explains_everything():
    assert stats.agreement([True] * 3, [True] * 3) == (3, 0, 0, 0, 1.0, None)
    assert stats.agreement([], []) == (0, 0, 0, 0, None, None)


def test_a_judge_that_always_says_no_has_kappa_zero():
    assert stats.agreement([True, False, True], [False] * 3).kappa == 0.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_kappa_agrees_with_statsmodels(pairs):
    found = stats.agreement([one for one, _ in pairs], [other for _, other in pairs])
    table = np.array(found[:4]).reshape(2, 2)
    if found.kappa is not None:
        assert found.kappa == pytest.approx(cohens_kappa(table, return_results=False), abs=1e-9)
        assert math.isfinite(found.kappa)


def test_a_published_value_is_within_our_interval_widened_by_the_authors_noise():
    assert stats.verdict((50.0, 60.0), 60.5, 1.0, []).verdict == "within"
    assert stats.verdict((50.0, 60.0), 61.5, 1.0, []).verdict == "outside"
    assert stats.verdict((50.0, 60.0), 49.5, None, []).verdict == "outside"


def test_any_differing_protocol_field_makes_values_incomparable_and_is_named():
    found = stats.verdict((50.0, 60.0), 55.0, 1.0, ["grader", "n"])
    assert found == ("not comparable", "differs in grader, n")
    assert stats.verdict((50.0, 60.0), None, 1.0, []) == ("not comparable", "no published value")
    assert stats.verdict(None, 55.0, 1.0, []).verdict == "not comparable"


def test_what_is_not_sampled_is_compared_by_its_difference():
    """The harness check of the landmarks card, 92.70 with 0.05: 92.704 is it, 92.76 is not.

    Either of 80.488 (as AMES prints it) and 0.8049 (as the notes do) is within 0.05 of the printed 80.49.
    """
    found = stats.near(92.704, 92.70, 0.05)
    assert found == ("within", "published 92.7 against 92.7040, 0.0040 apart, allowed 0.05")
    assert stats.near(92.76, 92.70, 0.05).verdict == "outside"
    assert {stats.near(value, 80.49, 0.05).verdict for value in (80.4875, 80.4885, 80.485)} == {"within"}
