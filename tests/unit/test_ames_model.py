import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ameskit import PUBLISHED, SMALL, dense_logits, random_descriptors, random_weights
from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.ames import weights
from remeasure.instances.ames.model import Ames
from remeasure.instances.ames.weights import Shape

ROOT = Path(__file__).resolve().parents[2]


def logits(model, one, n_one, other, n_other, remapping=None):
    import torch

    torch.set_num_threads(1)  # two wait for each other where tests run side by side

    def side(x, counts, gallery):
        masked = None if min(counts) == x.shape[1] else torch.tensor(counts)
        return model.side((remapping or model).remap(torch.from_numpy(x), gallery), masked)

    with torch.inference_mode():
        return model.logits(side(one, n_one, False), side(other, n_other, True)).numpy()


def test_the_published_reranker_has_so_many_parameters():
    # Remap 768*128 + 128 and 256, token 128, five layers of 2*(3*128*128 + 3*128 + 128*128 + 128)
    # + 2*128*1024 + 1024 + 128 + 6*128 = 396,160 each, classifier 129.
    assert PUBLISHED.n_parameters() == 98_432 + 256 + 128 + 5 * 396_160 + 129 == 2_079_745


def test_logits_are_those_of_the_published_module():
    expected = json.loads((ROOT / "tests/data/ames/logits.json").read_text())
    model = Ames(random_weights(PUBLISHED, expected["weights_seed"]), PUBLISHED)
    for case in expected["cases"]:
        one = random_descriptors(4, max(case["n_query"]), 768, case["seed_query"])
        other = random_descriptors(4, max(case["n_gallery"]), 768, case["seed_gallery"])
        found = logits(model, one, case["n_query"], other, case["n_gallery"])
        assert np.abs(found - case["logits"]).max() <= 1e-5


@pytest.mark.parametrize("layers", [1, 3])
def test_blocks_give_what_one_masked_attention_over_all_tokens_gives(layers):
    shape = Shape(dim=16, width=32, heads=2, layers=layers, ffn=48)
    tensors = random_weights(shape, 5)
    one, other = random_descriptors(6, 9, 16, 1), random_descriptors(6, 14, 16, 2)
    for n_one, n_other in (([9] * 6, [14] * 6), ([9, 1, 4, 9, 2, 9], [14, 14, 3, 1, 1, 13])):
        expected = dense_logits(tensors, shape, one, n_one, other, n_other)
        found = logits(Ames(tensors, shape), one, n_one, other, n_other)
        assert np.abs(found - expected).max() <= 1e-5 < np.abs(expected).max()


def test_the_order_of_a_photographs_descriptors_does_not_matter():
    model = Ames(random_weights(SMALL, 5), SMALL)
    one, other = random_descriptors(2, 9, 16, 1), random_descriptors(2, 14, 16, 2)
    before = logits(model, one, [9, 9], other, [14, 14])
    after = logits(model, one[:, ::-1].copy(), [9, 9], other[:, ::-1].copy(), [14, 14])
    assert np.abs(before - after).max() <= 2e-6


def test_the_length_of_a_descriptor_does_not_matter():
    """They come as length 1 and are scaled to it again: those of float16 files are not quite."""
    model = Ames(random_weights(SMALL, 5), SMALL)
    one, other = random_descriptors(2, 9, 16, 1), random_descriptors(2, 14, 16, 2)
    before = logits(model, one, [9, 9], other, [14, 14])
    after = logits(model, 3 * one, [9, 9], 0.25 * other, [14, 14])
    assert np.abs(before - after).max() <= 1e-5


def test_query_and_gallery_are_not_the_same_side():
    # Only tokens of the gallery are rounded to 16 bits.
    model = Ames(random_weights(SMALL, 5), SMALL)
    one, other = random_descriptors(2, 9, 16, 1), random_descriptors(2, 14, 16, 2)
    there = logits(model, one, [9, 9], other, [14, 14])
    back = logits(model, other, [14, 14], one, [9, 9])
    assert (there != back).all() and np.abs(there - back).max() < 1e-2


def test_what_lies_in_padding_changes_nothing():
    model = Ames(random_weights(SMALL, 5), SMALL)
    one, other = random_descriptors(3, 9, 16, 1), random_descriptors(3, 14, 16, 2)
    before = logits(model, one, [9, 4, 1], other, [13, 14, 2])
    one[1, 4:], one[2, 1:], other[0, 13:], other[2, 2:] = 7, -3, 100, 0.5
    assert (logits(model, one, [9, 4, 1], other, [13, 14, 2]) == before).all()


def test_a_reranker_of_bits_takes_their_signs_with_or_without_the_directions():
    tensors = random_weights(SMALL, 5, binarises=True)
    one, other = random_descriptors(2, 9, 16, 1), random_descriptors(2, 14, 16, 2)
    expected = dense_logits(tensors, SMALL, one, [9, 9], other, [14, 14])
    assert np.abs(logits(Ames(tensors, SMALL), one, [9, 9], other, [14, 14]) - expected).max() <= 1e-5
    # Packed bits are the signs already: descriptors as wide as a token.
    packed = Shape(dim=32, width=32, heads=2, layers=3, ffn=48)
    bits = [np.sign(x @ tensors["remap_local.0.W"]) for x in (one, other)]
    checked = weights.check(tensors, packed, "x")
    assert np.abs(logits(Ames(checked, packed), bits[0], [9, 9], bits[1], [14, 14]) - expected).max() <= 1e-5


def test_sixteen_bits_are_near():
    tensors = random_weights(SMALL, 5)
    one, other = random_descriptors(3, 9, 16, 1), random_descriptors(3, 14, 16, 2)
    half, exact = Ames(tensors, SMALL, half=True), Ames(tensors, SMALL)
    found = logits(half, one, [9, 4, 1], other, [13, 14, 2], exact)
    expected = dense_logits(tensors, SMALL, one, [9, 4, 1], other, [13, 14, 2])
    assert found.dtype == np.float32 and 0 < np.abs(found - expected).max() < 0.02


def test_without_torch_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RemeasureError, match=r"^torch is missing: run make landmarks \(or pip install"):
        torch_module.load()


def test_no_step_of_planning_imports_torch():
    import subprocess

    code = "import sys; import remeasure.plan, score_pairs, train_reranker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT / "scripts", check=False).returncode == 0
