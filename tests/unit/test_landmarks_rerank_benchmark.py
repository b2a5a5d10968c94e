import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import landmarks  # noqa: E402
import landmarks_rerank  # noqa: E402
import numpy as np  # noqa: E402

PEER = """
import numpy as np

from ameskit import dense_logits
from remeasure.instances.ames.weights import Shape


class AMES:
    def __init__(self, root, dim, width, heads, layers, ffn, activation, before, binarized):
        self.shape = Shape(dim=dim, width=width, heads=heads, layers=layers, ffn=ffn)

    def load_state_dict(self, state, strict):
        self.state = {name: value.numpy() for name, value in state.items()}

    def eval(self):
        pass

    def __call__(self, one, one_mask, other, other_mask):
        import torch

        counts = [(~mask).sum(1).tolist() for mask in (one_mask, other_mask)]
        return torch.from_numpy(
            dense_logits(self.state, self.shape, one.numpy(), counts[0], other.numpy(), counts[1])
        )
"""


def test_pairs_of_two_passes_and_of_their_union_are_counted():
    two, one = landmarks_rerank.counted_pairs()
    # 70 queries, 1,600 photographs, Medium and Hard; beyond 1,600 the union has at most the easy ones.
    easy = sum(len(truth.easy) for truth in landmarks.truths(np.random.default_rng(0)).gnd)
    assert two == 70 * 1600 * 2 == 224_000 and 112_000 < one <= 112_000 + easy


@pytest.fixture
def peer(tmp_path, monkeypatch):
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "models" / "matcher.py").write_text(PEER)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "models"]:
        del sys.modules[name]


def test_both_score_the_same_pairs_and_agree(peer, capsys):
    out = peer / "found.json"
    words = ["--ames", str(peer), "--pairs", "20", "--tokens", "7", "5", "--out", str(out)]
    assert landmarks_rerank.main(words) in (0, 1)  # how fast it is says nothing at this size
    found = json.loads(out.read_text())
    assert (found["pairs"], found["tokens"]) == (20, [7, 5])
    assert found["largest_difference"] <= 1e-5 < found["spread_of_logits"]
    ratio = found["published"]["cpu_ms_per_pair"] / found["ours"]["cpu_ms_per_pair"]
    assert found["ratio"] == pytest.approx(ratio * 224_000 / found["pairs_of_union"])
    assert "together x" in capsys.readouterr().out


def test_a_folder_without_the_published_code_is_one_line(tmp_path, capsys):
    assert landmarks_rerank.main(["--ames", str(tmp_path)]) == 2
    assert "has no src/models/matcher.py" in capsys.readouterr().err
