import json
import math

import numpy as np
import pytest

import project
from remeasure.instances import projecting, vectors_file
from remeasure.instances.heads import model, network
from remeasure.instances.vectors_file import Rows

HEAD = {
    "0.weight": np.array([[1, 0], [0, 1]], np.float32),
    "0.bias": np.zeros(2, np.float32),
    "2.weight": np.array([[1, 0], [0, 1]], np.float32),
    "3.weight": np.ones(2, np.float32),
    "3.bias": np.zeros(2, np.float32),
    "3.running_mean": np.zeros(2, np.float32),
    "3.running_var": np.ones(2, np.float32),
}
SETTINGS = {"name": "h-0-published", "hidden": 2, "dim": 2, "backbone": "b"}


def test_a_descriptor_can_be_worked_out_by_hand():
    # GELU(1) = (1 + erf(1 / sqrt 2)) / 2 = 0.8413447, the normal distribution at 1; GELU(0) = 0.
    # Batch norm by weight 1, 2 and mean 0, -0.25: (0.8413447, 0.5) / sqrt(1.00001).
    head = HEAD | {
        "3.weight": np.array([1, 2], np.float32),
        "3.running_mean": np.array([0, -0.25], np.float32),
    }
    found = projecting.project(head, np.array([[1, 0]], np.float32))
    length = math.hypot(0.8413447, 0.5)
    assert found.dtype == np.float32
    assert found[0] == pytest.approx([0.8413447 / length, 0.5 / length], abs=1e-6)


def test_it_is_what_torch_says():
    import torch

    torch.manual_seed(0)
    head = network.build(24, 40, 16)
    head(torch.randn(64, 24) * 3)  # running statistics that are not 0 and 1
    with torch.no_grad():
        head[3].weight.uniform_(0.5, 2)
        head[3].bias.normal_()
    vectors = np.random.default_rng(0).normal(size=(50, 24)).astype(np.float32)
    with torch.inference_mode():
        wanted = torch.nn.functional.normalize(head.eval()(torch.from_numpy(vectors))).numpy()
    assert np.abs(projecting.project(network.tensors(head), vectors) - wanted).max() < 1e-6


def ran(tmp_path, cls, status, head=HEAD, settings=SETTINGS):
    model.write(tmp_path / "head.safetensors", head)
    names = [f"g{i}" for i in range(len(cls))]
    vectors_file.write(
        tmp_path / "cls.h5",
        names,
        about={"extractor": "e", "piece": "1of1"},
        cls=np.asarray(cls, np.float16),
        status=np.asarray(status, np.uint8),
    )
    return project.main(
        ["--settings", json.dumps(settings), "--head", str(tmp_path / "head.safetensors")]
        + [
            "--cls",
            str(tmp_path / "cls.h5"),
            "--out",
            str(tmp_path / "d.h5"),
            "--record",
            str(tmp_path / "d.json"),
        ]
    )


def test_scales_are_averaged_and_what_was_not_decoded_stays_zero(tmp_path):
    # The mean of (1, 0) and (0, 1) points to (1, 1); the head leaves that direction.
    assert ran(tmp_path, [[[1, 0], [0, 1]], [[0, 0], [0, 0]]], [0, 2]) == 0
    rows = Rows(tmp_path / "d.h5")
    assert rows.read("descriptor") == pytest.approx(np.array([[0.5**0.5, 0.5**0.5], [0, 0]]), abs=1e-6)
    assert rows.names() == ["g0", "g1"]
    assert rows.read("status").tolist() == [0, 2]
    assert rows.about["extractor"] == "e" and rows.about["projection"] == "h-0-published"
    assert json.loads((tmp_path / "d.json").read_text())["counts"] == {
        "ok": 1,
        "truncated": 0,
        "undecodable": 1,
    }


@pytest.mark.parametrize(
    ("cls", "status", "settings", "says"),
    [
        ([[[0, 0], [0, 1]]], [0], {}, "row 0 has the status 0 and a vector of zeros"),
        ([[[1, 0], [0, 1]]], [7], {}, "row 0 has the status 7"),
        ([[[1, 0, 0], [0, 1, 0]]], [0], {}, "0.weight"),
        ([[[1, 0], [0, 1]]], [0], {"dim": 3}, "expected floats of shape [3, 2]"),
    ],
)
def test_vectors_that_do_not_fit_the_head_are_refused(tmp_path, capsys, cls, status, settings, says):
    assert ran(tmp_path, cls, status, settings=SETTINGS | settings) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "d.h5").exists()


def test_a_head_that_leaves_nothing_of_a_photograph_is_refused(tmp_path, capsys):
    nothing = HEAD | {"3.weight": np.zeros(2, np.float32), "3.bias": np.zeros(2, np.float32)}
    assert ran(tmp_path, [[[1, 0], [0, 1]], [[0, 0], [0, 0]]], [0, 2], head=nothing) == 2
    said = capsys.readouterr().err
    assert "head.safetensors: leaves nothing of row 0 of" in said and "of 0 more in these rows" in said
    assert not (tmp_path / "d.h5").exists()


def test_vectors_at_no_scale_are_refused(tmp_path, capsys):
    assert ran(tmp_path, np.zeros((1, 0, 2)), [0]) == 2
    assert "vectors at no scale" in capsys.readouterr().err
