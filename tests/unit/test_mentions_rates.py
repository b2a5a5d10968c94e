import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure.mentions.rates import CONDITIONAL, HEADLINE, METRICS, Bits, check_identities, rates, scores

NAMES = ["opa", "rca", "rua", "tosc", "oldpersist_rem", "oldpersist_rep", "repfail", "cc", "mixconf"]
# TOSC card, section 3.1: a b c d, then the nine metrics in the order of NAMES.
TRUTH_TABLE = """
0 0 0 0  0 1 0 0 0 0 1 1 0
0 0 0 1  0 1 1 0 0 0 0 0 0
0 0 1 0  0 1 0 0 0 1 1 0 0
0 0 1 1  0 1 0 0 0 1 0 0 1
0 1 0 0  0 0 0 0 1 0 1 1 0
0 1 0 1  0 0 1 0 1 0 0 0 0
0 1 1 0  0 0 0 0 1 1 1 0 0
0 1 1 1  0 0 0 0 1 1 0 0 1
1 0 0 0  1 1 0 0 0 0 1 1 0
1 0 0 1  1 1 1 1 0 0 0 0 0
1 0 1 0  1 1 0 0 0 1 1 0 0
1 0 1 1  1 1 0 0 0 1 0 0 1
1 1 0 0  1 0 0 0 1 0 1 1 0
1 1 0 1  1 0 1 0 1 0 0 0 0
1 1 1 0  1 0 0 0 1 1 1 0 0
1 1 1 1  1 0 0 0 1 1 0 0 1
"""
ROWS = [[int(word) for word in line.split()] for line in TRUTH_TABLE.split("\n") if line]
# TOSC card, section 3.2: bits of its six triplets, and of the seventh that tells RepFail from CC.
SIX = ["1001", "1101", "1011", "0001", "1000", "1001"]
SEVENTH = "1010"
bit_rows = st.lists(st.builds(Bits, *[st.booleans()] * 4), max_size=40)


def bits(digits: str) -> Bits:
    return Bits(*(digit == "1" for digit in digits))


def percent(triplets: list[str]) -> dict[str, str]:
    found = rates(map(bits, triplets))
    return {name: f"{100 * found[name].value:.2f}" for name in NAMES}


def test_the_truth_table_has_every_row_once():
    assert [tuple(row[:4]) for row in ROWS] == list(itertools.product((0, 1), repeat=4))


@pytest.mark.parametrize("row", ROWS)
def test_a_triplet_scores_as_in_the_truth_table(row):
    found = scores(Bits(*map(bool, row[:4])))
    assert [found[name] for name in NAMES] == row[4:]
    assert found["rca_given_opa"] == (row[5] if row[0] else None)
    assert found["rua_given_opa"] == (row[6] if row[0] else None)


def test_the_hand_example_of_six_triplets():
    assert percent(SIX) == {
        "opa": "83.33",
        "rca": "83.33",
        "rua": "66.67",
        "tosc": "33.33",
        "oldpersist_rem": "16.67",
        "oldpersist_rep": "16.67",
        "repfail": "16.67",
        "cc": "16.67",
        "mixconf": "16.67",
    }


def test_conditional_rates_have_their_own_n():
    found = rates(map(bits, SIX))
    assert found["rca_given_opa"] == (4 / 5, 5)
    assert found["rua_given_opa"] == (3 / 5, 5)
    assert found["tosc"] == (2 / 6, 6)


def test_the_seventh_triplet_tells_the_pairs_apart():
    assert percent([*SIX, SEVENTH]) == {
        "opa": "85.71",
        "rca": "85.71",
        "rua": "57.14",
        "tosc": "28.57",
        "oldpersist_rem": "14.29",
        "oldpersist_rep": "28.57",
        "repfail": "28.57",
        "cc": "14.29",
        "mixconf": "14.29",
    }


def test_substring_search_would_have_moved_five_rates():
    # "bear" found inside "teddy bear": the sixth triplet becomes 1 0 1 1.
    right, wrong = percent(SIX), percent([*SIX[:5], "1011"])
    assert {name: wrong[name] for name in NAMES if wrong[name] != right[name]} == {
        "rua": "50.00",
        "tosc": "16.67",
        "oldpersist_rep": "33.33",
        "mixconf": "33.33",
    }


def test_no_triplets_have_no_rate():
    assert set(rates([]).values()) == {(None, 0)}
    assert rates([bits("0001")])["rca_given_opa"] == (None, 0)


@given(bit_rows)
def test_means_are_those_of_the_scores_and_identities_hold(rows):
    found = rates(rows)
    for name in [*NAMES, "rca_given_opa", "rua_given_opa"]:
        values = [value for row in rows if (value := scores(row)[name]) is not None]
        assert found[name].n == len(values)
        assert found[name].value == (sum(values) / len(values) if values else None)
    if rows:
        check_identities({name: found[name].value for name in NAMES})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("oldpersist_rem", "OldPersist_rem = 1 - RCA"),
        ("rca", "OldPersist_rem = 1 - RCA"),
        ("rua", "RUA = 1 - OldPersist_rep - CC"),
        ("cc", "RUA = 1 - OldPersist_rep - CC"),
        ("mixconf", "RUA + CC + MixConf"),
        ("repfail", "RepFail = CC + mean"),
        ("oldpersist_rep", "RUA = 1 - OldPersist_rep - CC"),
        ("tosc", "TOSC <= min"),
    ],
)
def test_means_that_do_not_fit_together_are_a_defect(name, said):
    means = {key: rates(map(bits, SIX))[key].value for key in NAMES}
    check_identities(means, 0.0)
    with pytest.raises(AssertionError, match=re.escape(said)):
        check_identities(means | {name: means[name] + 0.5}, 0.0)


def test_swapping_repfail_and_cc_is_seen_from_the_means_alone():
    means = {key: rates(map(bits, [*SIX, SEVENTH]))[key].value for key in NAMES}
    with pytest.raises(AssertionError):
        check_identities(means | {"repfail": means["cc"], "cc": means["repfail"]})


def test_metrics_have_names_titles_and_a_direction():
    assert [metric.name for metric in METRICS] == NAMES
    assert [metric.title for metric in METRICS] == [
        "OPA", "RCA", "RUA", "TOSC", "OldPersist_rem", "OldPersist_rep", "RepFail", "CC", "MixConf"
    ]  # fmt: skip
    assert [metric.better for metric in METRICS] == ["high"] * 4 + ["low"] * 5
    assert [metric.name for metric in CONDITIONAL] == ["rca_given_opa", "rua_given_opa"]
    assert HEADLINE == "tosc"
