import json

import h5py
import numpy as np
import pytest

import check_locals
from photokit import benchmark, jpeg
from remeasure.instances import local_check, local_models
from remeasure.instances.local_check import Compared

SETTINGS = {
    "name": "map",
    "backend": "efficientnet-lite0",
    "dim": 112,
    "n": 10,
    "size_px": 64,
    "precision": "float32",
    "batch": 4,
}


def test_the_same_descriptors_agree_in_any_order():
    rows = np.eye(4)
    assert local_check.compare(rows[::-1], rows) == Compared(4, 1.0, 4, 4)


def test_a_descriptor_that_is_elsewhere_counts_against_all_three():
    # Of four, the last has its nearest at right angles: mean (1 + 1 + 1 + 0) / 4.
    assert local_check.compare(np.eye(4)[:3], np.eye(4)) == Compared(4, 0.75, 3, 3)


def test_two_that_share_a_partner_match_once():
    near = np.array([[1.0, 0.001], [1.0, 0.0]])
    found = local_check.compare(np.array([[1.0, 0.0]]), near)
    assert (found.n_close, found.n_matched) == (2, 1)


def test_a_turn_of_three_degrees_is_too_much():
    # cos 3 degrees = 0.99863, cos 2 degrees = 0.99939; the limit is 0.999.
    turned = [[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in (2, 3)]
    one = np.array([[1.0, 0.0]])
    assert [local_check.compare(np.array([row]), one).n_close for row in turned] == [1, 0]


def test_without_descriptors_nothing_agrees():
    assert local_check.compare(np.zeros((0, 4)), np.eye(4)) == Compared(4, 0.0, 0, 0)
    assert local_check.verdict({"a": Compared(0, 0.0, 0, 0)})["ok"] is False


@pytest.mark.parametrize(
    ("close", "matched", "ok"), [(95, 98, [True, True]), (94, 98, [False, True]), (95, 97, [True, False])]
)
def test_limits_are_those_of_the_card(close, matched, ok):
    found = local_check.verdict(
        {"a": Compared(60, 1.0, 60, 60), "b": Compared(40, 1.0, close - 60, matched - 60)}
    )
    assert [check["ok"] for check in found["checks"]] == ok
    assert found["ok"] is all(ok)


# -- the script --------------------------------------------------------------------------------------------


def published(path, descriptors, n_valid):
    """Write what the published flat form has: five numbers, of which the fourth says padding, and values."""
    rows = np.zeros((len(descriptors), 10, 5 + 112), np.float32)
    rows[:, :, 5:] = descriptors
    for row, n in zip(rows, n_valid, strict=True):
        row[n:, 3] = 1
    with h5py.File(path, "w") as store:
        store["features"] = rows
    return path


def ran(tmp_path, sources, change=lambda rows: rows, extra=0):
    gallery = {f"g{i}": jpeg(seed=i) for i in range(3)} | {"none": b"no photograph"}
    pictures, labels = benchmark(tmp_path, gallery, {"q": jpeg(seed=9)})
    model = sources / "efficientnet-lite0.onnx"
    encoder = local_models.open_local_model(local_models.Told(**SETTINGS), {"model": model}, 1)
    rows = np.zeros((4 + extra, 10, 112), np.float32)
    for i in range(3):
        (_, output), *_ = encoder.prepare(encoder.decode(gallery[f"g{i}"]).pixels)
        rows[i] = encoder.finish([output])["descriptor"]
    path = published(tmp_path / "locals.hdf5", change(rows), [10, 10, 10, 0] + [10] * extra)
    return check_locals.main(
        ["--settings", json.dumps(SETTINGS), "--pictures", str(pictures), "--labels", str(labels)]
        + ["--model", str(model), "--published", str(path), "--out", str(tmp_path / "check.json")]
        + ["--record", str(tmp_path / "check.record.json")]
    )


@pytest.mark.models
def test_our_own_descriptors_pass(tmp_path, sources):
    assert ran(tmp_path, sources) == 0
    found = json.loads((tmp_path / "check.json").read_text())
    assert found["ok"] is True
    assert found["photos"]["g0"]["n"] == 10
    assert [check["value"] for check in found["checks"]] == [1.0, 1.0]


@pytest.mark.models
def test_other_descriptors_stop_what_follows_and_leave_what_was_seen(tmp_path, sources, capsys):
    def other(rows):
        rows[0] = rows[0, :, ::-1]
        return rows

    assert ran(tmp_path, sources, other) == 2
    assert "share of descriptors that agree 0.6667 (at least 0.95)" in capsys.readouterr().err
    assert not (tmp_path / "check.json").exists()
    assert json.loads((tmp_path / "check.failed.json").read_text())["photos"]["g0"]["n_close"] < 10


@pytest.mark.models
def test_a_file_of_another_gallery_is_refused(tmp_path, sources, capsys):
    def filled(rows):
        rows[4:] = 1
        return rows

    assert ran(tmp_path, sources, filled, extra=2) == 2
    assert "has 6 photographs, the gallery 4" in capsys.readouterr().err
