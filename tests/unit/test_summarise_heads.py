"""Mean and spread of heads over seeds, and their differences seed by seed."""

import json

import pytest

import summarise_heads
from remeasure import stats


def write(folder, head, seed, medium, *, holdout=None, decontaminated=False, epoch=0):
    galleries = {"walls": {"backbone": {"medium": 0.5}, "published": {"medium": medium}}}
    if holdout is not None:
        galleries["walls"]["holdout"] = {"medium": holdout}
    report = {
        "head": head,
        "seed": seed,
        "decontaminated": decontaminated,
        "deterministic": True,
        "galleries": galleries,
        "best_epoch": {"published": epoch},
        "rows": 54,
        "classes": 12,
        "more": "is passed over",
    }
    path = folder / head / f"{seed}.report.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report))
    return path


def run(folder, *paths):
    out = folder / "summary.json"
    words = [
        "--reports",
        *map(str, paths),
        "--out",
        str(out),
        "--record",
        str(folder / "summary.record.json"),
    ]
    assert summarise_heads.main(words) == 0
    return json.loads(out.read_text())


def of(rows, **wanted):
    (found,) = [row for row in rows if wanted.items() <= row.items()]
    return found


def test_spread_has_the_sample_standard_deviation():
    # 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, over 2: 13.
    assert stats.spread([2.0, 4.0, 9.0]) == (3, 5.0, pytest.approx(13**0.5), 2.0, 9.0)
    assert stats.spread([2.0]) == (1, 2.0, None, 2.0, 2.0)
    assert stats.spread([]) is None
    # 0.8934044176323257 three times is 2.680213252896977 and a third of that another number.
    assert stats.spread([0.8934044176323257] * 3)[1:3] == (0.8934044176323257, 0.0)


def test_heads_are_summarised_over_seeds_and_compared_seed_by_seed(tmp_path):
    plain = [write(tmp_path, "standard", seed, value) for seed, value in ((2, 0.9), (0, 0.7), (1, 0.8))]
    clean = [write(tmp_path, "decon", s, v, decontaminated=True) for s, v in ((0, 0.6), (1, 0.65), (5, 0.1))]
    found = run(tmp_path, *clean, *plain)
    # 0.7, 0.8, 0.9: mean 0.8, sd 0.1.
    spread = of(found["spread"], head="standard", selection="published")
    assert (spread["n"], spread["min"], spread["max"]) == (3, 0.7, 0.9)
    assert (spread["mean"], spread["sd"]) == (pytest.approx(0.8), pytest.approx(0.1))
    # Seeds 0 and 1 are in both: 0.7 - 0.6 and 0.8 - 0.65; mean 0.125, sd 0.05/√2.
    differ = of(found["differences"], selection="published")
    assert (differ["first"], differ["second"], differ["seeds"]) == ("standard", "decon", [0, 1])
    assert differ["values"] == pytest.approx([0.1, 0.15])
    assert (differ["mean"], differ["sd"]) == (pytest.approx(0.125), pytest.approx(0.035355339))
    row = of(found["rows"], head="standard", seed=2, selection="published")
    assert (row["rows"], row["classes"], row["best_epoch"]) == (54, 12, 0)
    assert {row["selection"] for row in found["rows"] + found["differences"]} == {"published"}
    assert of(found["spread"], head="decon", selection="backbone")["mean"] == 0.5
    assert row["map"] == {"walls": {"medium": 0.9}}


def test_one_seed_has_no_standard_deviation(tmp_path):
    spread = of(run(tmp_path, write(tmp_path, "standard", 0, 0.7))["spread"], selection="published")
    assert (spread["n"], spread["mean"], spread["sd"]) == (1, 0.7, None)


def test_what_has_no_number_is_left_out(tmp_path):
    paths = [write(tmp_path, "standard", 0, None), write(tmp_path, "standard", 1, 0.5)]
    assert of(run(tmp_path, *paths)["spread"], selection="published")["n"] == 1


def test_seconds_stand_in_the_log_and_not_in_the_file(tmp_path, capsys):
    path = write(tmp_path, "standard", 0, 0.7)
    (path.parent / "logs").mkdir()
    (path.parent / "logs" / "0.benchmark.tsv").write_text("s\th:m:s\n12.5\t0:00:12\n")
    found = run(tmp_path, path)
    assert "standard seed 0: best_epoch published=0 wall_s=12.5" in capsys.readouterr().err
    assert "12.5" not in json.dumps(found)


def test_a_report_that_is_given_twice_is_refused(tmp_path, capsys):
    path = write(tmp_path, "standard", 0, 0.7)
    words = ["--reports", str(path), str(path), "--out", str(tmp_path / "s"), "--record", str(tmp_path / "r")]
    assert summarise_heads.main(words) == 2
    assert "head standard of seed 0 was given already" in capsys.readouterr().err
