import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import landmarks_gpu


@pytest.fixture(autouse=True)
def threads():
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_script_for_a_gpu_runs_at_a_tiny_size_on_a_cpu(tmp_path, capsys):
    assert landmarks_gpu.main(["--tiny", "--threads", "1", "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["rerank"]["fp32"]["pairs"] == 2 * 5
    assert (
        set(found["describe, three scales"])
        == set(found["describe, local descriptors"])
        == {"float16", "float32"}
    )
    assert "rerank, fp32: seconds" in capsys.readouterr().out


def test_real_shapes_are_those_of_the_card():
    assert landmarks_gpu.REAL[:4] == (70, 1653, 4993, 600)
    assert landmarks_gpu.FLOORS_S["H200"] == (1.7, 1.7)


def test_without_a_gpu_the_real_shapes_are_not_begun(capsys):
    import torch

    if torch.cuda.is_available():
        return
    assert landmarks_gpu.main([]) == 2
    assert "there is no GPU here" in capsys.readouterr().err
