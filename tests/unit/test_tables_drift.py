"""Everything asked twice or three times: how far arms and their differences drift."""

from pathlib import Path

import pytest

import conditionkit as kit
import make_table
from remeasure.tables import csv_text, drift


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def line(number, right, **changes):
    return kit.unit(
        number, "diagnosis", {"recall@1": float(right), "mrr": float(right), "mr": None}, **changes
    )


def write(hits, models=("m", "m@2"), strict=None):
    """Cells of ten units; the first so many of an arm are right, time by time.

    Args:
        hits: arm to how many are right, each time.
        models: as they are called, each time.
        strict: (arm, model, unit) of answers that there are not.
    """
    cells = {}
    for arm in kit.ARMS_OF["diagnosis"]:
        for time, model in enumerate(models):
            own = hits.get(arm, (0,) * len(models))[time]
            cells["diagnosis", arm, model] = [
                line(n, n < own, strict=None if (arm, model, n) in (strict or ()) else "same")
                for n in range(10)
            ]
    return cells


def make(here, cells, repeat=2, **changes):
    files = kit.write(here, cells)
    told = kit.settings(repeat=repeat, benches=("diagnosis",), **changes)
    return make_table.main(kit.argv(here, files, told))


def part(suffix):
    return Path("results/embedded/tables") / f"conditions{suffix}"


def row(reading="published", contrast="delta_sub", metric="recall@1"):
    wanted = {"reading": reading, "contrast": contrast, "metric": metric}
    (found,) = [row for row in csv_text.read(part(".drift.csv")) if wanted.items() <= row.items()]
    return found


def only(found, *names):
    return tuple(found[name] for name in names)


def test_a_shift_that_both_arms_share_leaves_their_difference_alone(here):
    # FD 6/10 then 7/10, LC 3/10 then 4/10: both drift by 0.1, so does their mean; 0.3 stays 0.3.
    assert make(here, write({"fd": (6, 7), "lc": (3, 4)})) == 0
    found = row()
    expected = {
        "bench": "diagnosis",
        "axis": "arm",
        "arm": "fd",
        "model": "m",
        "against": "lc",
        "unit": "share",
        "n_repeats": "2",
        "n_units": "10",
        "n_dropped": "0",
        "values": "0.6000; 0.7000",
        "values_against": "0.3000; 0.4000",
        "differences": "0.3000; 0.3000",
        "drift": "0.1000",
        "drift_against": "0.1000",
        "drift_common": "0.1000",
        "drift_contrast": "0.0000",
        "ratio": "0.000",
        "n_changed": "1",
        "n_changed_against": "1",
        "contrast_drifts_less": "yes",
    }
    assert {name: found[name] for name in expected} == expected
    assert "in 1 of 2 headline comparisons (published reading): here the claim holds in part." in page()


def page():
    return part(".md").read_text()


def test_arms_that_drift_apart_move_their_difference_further_than_themselves(here):
    # FD 6/10 then 8/10, LC 4/10 then 3/10: drifts 0.2 and 0.1; means 0.5 then 0.55; differences 0.2 then 0.5.
    # Ratio 0.3 : 0.15.
    make(here, write({"fd": (6, 8), "lc": (4, 3)}))
    found = row()
    assert only(found, "drift", "drift_against", "drift_common", "drift_contrast", "ratio") == (
        "0.2000",
        "0.1000",
        "0.0500",
        "0.3000",
        "2.000",
    )
    assert only(found, "n_changed", "n_changed_against", "contrast_drifts_less") == ("2", "1", "no")
    assert (
        "| 0.600 / 0.800 | 0.400 / 0.300 | 0.200 | 0.100 | 0.050 | 0.300 | 2.00 | 2, 1 of 10 | no |" in page()
    )
    assert "in 0 of 2 headline comparisons (published reading): here the claim does not hold." in page()


def test_of_three_times_all_pairs_count_alike(here):
    # FD 5, 6, 8 of 10: (0.1 + 0.3 + 0.2) / 3 = 0.2. LC 2, 2, 5: (0 + 0.3 + 0.3) / 3 = 0.2.
    # Differences 0.3, 0.4, 0.3: (0.1 + 0 + 0.1) / 3; means 0.35, 0.4, 0.65: (0.05 + 0.3 + 0.25) / 3.
    make(here, write({"fd": (5, 6, 8), "lc": (2, 2, 5)}, ("m", "m@2", "m@3")), repeat=3)
    found = row()
    assert only(found, "n_repeats", "drift", "drift_against", "drift_contrast", "drift_common", "ratio") == (
        "3",
        "0.2000",
        "0.2000",
        "0.0667",
        "0.2000",
        "0.333",
    )
    assert found["n_changed"] == "3" and "Everything was asked 3 times." in page()


def test_the_strict_reading_drops_what_one_side_lacks_once(here):
    # The first answer of the second time failed: strict numbers are of the other nine, on both sides.
    # FD 5/9 then 6/9, LC 2/9 then 3/9.
    make(here, write({"fd": (6, 7), "lc": (3, 4)}, strict={("fd", "m@2", 0)}))
    assert only(row("strict"), "n_units", "n_dropped", "values", "values_against", "drift_contrast") == (
        "9",
        "1",
        "0.5556; 0.6667",
        "0.2222; 0.3333",
        "0.0000",
    )
    assert row()["n_units"] == "10"


def test_where_nothing_changed_nothing_is_claimed(here):
    make(here, write({"fd": (6, 6), "lc": (3, 3)}))
    found = row()
    assert only(found, "drift", "drift_contrast", "ratio", "contrast_drifts_less") == (
        "0.0000",
        "0.0000",
        "",
        "nothing drifts",
    )
    assert "Nothing drifted: every headline number was the same each time." in page()


def test_a_metric_without_units_has_no_drift(here):
    make(here, write({"fd": (6, 7), "lc": (3, 4)}))
    assert only(row(metric="mr"), "n_units", "values", "drift", "ratio", "contrast_drifts_less") == (
        "0",
        "",
        "",
        "",
        "",
    )
    assert row(metric="mr")["n_repeats"] == "2"


def test_the_table_shows_the_first_time_and_the_file_of_cells_every_time(here):
    make(here, write({"fd": (6, 7), "lc": (3, 4)}))
    assert [line.split(",")[:4] for line in part(".csv").read_text().splitlines()[1:]] == [
        ["m", "diagnosis", "fd", "0.600"],
        ["m", "diagnosis", "lc", "0.300"],
        ["m", "diagnosis", "to", "0.000"],
    ]
    cells = [row for row in csv_text.read(part(".cells.csv")) if row["metric"] == "recall@1"]
    assert [only(row, "arm", "model", "repeat", "value") for row in cells[:2]] == [
        ("fd", "m", "1", "0.6000"),
        ("fd", "m@2", "2", "0.7000"),
    ]
    # Two differences of the first time; the second time is in the file of drifts.
    found = [row for row in csv_text.read(part(".contrasts.csv")) if row["metric"] == "recall@1"]
    assert [only(row, "model", "difference") for row in found] == [("m", "0.3000"), ("m", "0.3000")]
    assert "m@2" not in page().partition("## Drift")[0]
    assert "m@2" not in part(".svg").read_text().partition("</desc>")[0]


def test_a_table_without_repeats_has_a_header_of_drifts(here):
    make(here, write({"fd": (6,), "lc": (3,)}, ("m",)), repeat=1)
    assert part(".drift.csv").read_text() == ",".join(drift.COLUMNS) + "\n"
    assert "## Drift" not in page()


def test_models_that_are_compared_drift_too(here):
    pairs = [{"axis": "model", "first": "n", "second": "m"}]
    cells = write({"fd": (3, 4)}) | write({"fd": (6, 7)}, ("n", "n@2"))
    assert make(here, cells, models=("m", "n"), contrasts=pairs) == 0
    found = [
        row
        for row in csv_text.read(part(".drift.csv"))
        if only(row, "arm", "metric", "reading") == ("fd", "recall@1", "published")
    ]
    assert [only(row, "axis", "model", "against", "differences", "drift_contrast") for row in found] == [
        ("model", "n", "m", "0.3000; 0.3000", "0.0000")
    ]
