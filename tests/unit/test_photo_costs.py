"""Hours, dollars and bytes of the published plan and of ours, by the card's figures."""

from pathlib import Path

import pytest

from remeasure.instances import costs
from remeasure.plan import Plan

CONFIG = Path(__file__).resolve().parents[2] / "config"


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str | None], dict]:
    settings = Plan(CONFIG).photo_costs("paper", "landmarks")
    steps = [costs.Step(**step) for step in settings["steps"]]
    return {(row["step"], row["what"]): row for row in costs.rows(steps, "landmarks", "paper")}


def test_sizes_of_all_layouts_of_a_million_distractors():
    # Landmarks card, sections 3.4 and 6; AMES authors: 1.083 TB, 5.44, 6.89 and 0.08 GB.
    assert costs.flat_bytes(1_001_001, 700, 768) == 1_083_283_282_200
    assert costs.flat_bytes(1, 700, 768) == 1_082_200
    assert costs.compound_bytes(1, 700, 768) == 1_089_200
    assert round(costs.compound_bytes(4_993, 700, 768) / 1e9, 2) == 5.44
    assert round(costs.compound_bytes(6_322, 700, 768) / 1e9, 2) == 6.89
    assert round(costs.compound_bytes(70, 700, 768) / 1e9, 2) == 0.08
    assert round(costs.token_bytes(1_001_001, 600, 128) / 1e9, 1) == 153.8
    assert round(costs.token_bytes(1_001_001, 700, 128) / 1e9, 1) == 179.4


@pytest.mark.parametrize(
    ("step", "what", "hours", "usd"),
    [
        # 1,001,001 / 4.4 / 3600 h and 1,001,001 / 18 / 3600 h at 1.10 USD an hour.
        ("local descriptors, published plan", "revisitop1m by dinov2-locals", "63.19", "69.51"),
        ("vectors", "revisitop1m by dinov2-large", "15.45", "16.99"),
        # 1,580,470 / 18 / 3600.
        ("vectors", "gldv2 by dinov2-large", "24.39", "26.83"),
        # 484 GB at 11.7 MB/s.
        ("download", "revisitop1m", "11.49", "11.95"),
        # Four shortlists of 70 × 1,660.
        ("local descriptors", "revisitop1m by dinov2-locals", "29.34", "32.28"),
        # Two heads, Medium and Hard: 4 passes of 112,000 pairs at 150.5 a second, of each gallery.
        ("pairs, published plan", "roxford5k-1m by ames", "0.83", "0.91"),
        ("pairs, published plan", "rparis6k-1m by ames", "0.83", "0.91"),
    ],
)
def test_the_paper_run_costs_what_the_card_says(table, step, what, hours, usd):
    assert (table[step, what]["hours"], table[step, what]["usd"]) == (hours, usd)


def test_the_published_million_costs_a_hundred_dollars(table):
    # 69 + 17 + 12 + 2.
    total = table["total, published, distractors alone", None]
    assert round(float(total["usd"])) == 100
    assert table["local descriptors, published plan", "revisitop1m by dinov2-locals"]["stored_bytes"] == (
        1_083_283_282_200
    )


def test_shortlists_of_one_head_hold_116200_photographs():
    assert costs.shortlisted(70, 1600) == 116_200
    assert round(costs.flat_bytes(116_200, 700, 768) / 1e9) == 126
    assert round(costs.token_bytes(116_200, 600, 128) / 1e9, 1) == 17.8


def test_vectors_of_the_clean_training_set_take_ten_gigabytes(table):
    assert (
        table["vectors", "gldv2 by dinov2-large"]["stored_bytes"] == 1_580_470 * 3 * 1024 * 2 == 9_710_407_680
    )


def test_a_step_without_a_rate_is_named_and_not_counted_as_nothing():
    steps = [
        costs.Step(step="vectors", what="a by b", unit="photographs", n=10),
        costs.Step(step="pairs", what="c by d", unit="pairs", n=3600, per_s=1.0, usd_per_hour=2.0),
    ]
    *_, ours, published, _ = costs.rows(steps, "t", "r")
    assert (ours["hours"], ours["usd"]) == ("1.00", "2.00")
    assert ours["note"] == "without vectors: no rate is known"
    assert published["usd"] == "0.00"
