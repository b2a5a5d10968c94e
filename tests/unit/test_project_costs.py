"""What the first part of a large set says about the rest, and when that stops a run."""

import json

import pytest

import project_costs

STEPS = [
    {"step": "vectors", "what": "far by dino", "unit": "photographs", "n": 36_000, "per_s": 1.0},
    {"step": "pairs", "what": "g by ames", "unit": "pairs", "n": 7_200, "per_s": 1.0, "usd_per_hour": 3.0},
    {"step": "pairs", "what": "old", "unit": "pairs", "n": 10**9, "per_s": 1.0, "usd_per_hour": 3.0}
    | {"way": "published"},
]


def run(tmp_path, *, pause: float, times: str = "s\th:m:s\n100.0\t0:01:40\n", counts=None) -> int:
    settings = {"step": "vectors", "what": "far by dino", "n_parts": 4, "steps": STEPS}
    settings |= {"usd_per_hour": 1.1, "pause_if_usd": pause}
    (tmp_path / "1of4.h5").write_bytes(bytes(4_000))
    (tmp_path / "1of4.json").write_text(json.dumps({"counts": counts or {"ok": 990, "truncated": 10}}))
    (tmp_path / "times.tsv").write_text(times)
    words = ["--settings", json.dumps(settings), "--first", str(tmp_path / "1of4.h5")]
    words += ["--first-record", str(tmp_path / "1of4.json"), "--times", str(tmp_path / "times.tsv")]
    words += ["--out", str(tmp_path / "out.json"), "--record", str(tmp_path / "record.json")]
    return project_costs.main(words)


def test_ten_photographs_a_second_make_an_hour_of_36000(tmp_path):
    assert run(tmp_path, pause=8.0) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["measured"]["hours"] == pytest.approx(1.0)
    # An hour at 1.10 and two hours of pairs at 3.00; the published plan is not ours.
    assert found["run_usd"] == pytest.approx(7.1)
    assert found["measured"]["stored_bytes"] == 144_000


def test_too_much_stops_the_run_with_one_line_and_writes_no_projection(tmp_path, capsys):
    assert run(tmp_path, pause=7.0) == 2
    said = capsys.readouterr().err
    assert "above projection.pause_if_usd (7) of the run" in said and "1.00 hours" in said
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"times": "s\th:m:s\n"}, "no time of the first part"),
        ({"times": "s\n-\n"}, "no time of the first part"),
    ],
)
def test_a_lost_time_is_said_and_not_taken_for_nothing(tmp_path, capsys, given, said):
    assert run(tmp_path, pause=8.0, **given) == 2
    assert said in capsys.readouterr().err
