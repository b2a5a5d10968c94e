"""What torch, transformers and peft make of the same files; skipped without ``--torch-python PATH``."""

import json
import subprocess
from pathlib import Path

import pytest

import merge_adapter

SCRIPT = Path(__file__).resolve().parent.parent / "torch_models.py"
FAMILIES = {"llava15": "llava", "qwen2-vl": "qwen2-vl", "qwen2-5-vl": "qwen2-5-vl"}
pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def told(request, tmp_path_factory) -> dict:
    """What the second opinion says of models that it has written and we have merged."""
    python = request.config.getoption("--torch-python")
    if python is None:
        pytest.skip("no torch: give --torch-python PATH")
    here = tmp_path_factory.mktemp("torch")

    def call(word: str) -> str:
        done = subprocess.run([python, SCRIPT, word, here], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    call("build")
    for family, name in FAMILIES.items():
        words = ["--settings", json.dumps({"family": family}), "--base", here / name]
        words += ["--adapter", here / f"{name}-adapter", "--out", here / f"{name}-merged"]
        words += ["--vision", here / "clip"] if family == "llava15" else []
        assert merge_adapter.main([*map(str, words), "--record", str(here / f"{name}.json")]) == 0
    return json.loads(call("check"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_folder_loads_without_a_missing_or_unexpected_tensor(told, family):
    assert (told[family]["missing"], told[family]["unexpected"]) == ([], [])


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_peft_within_one_rounding(told, family):
    assert told[family]["furthest"] <= 1.0


@pytest.mark.parametrize(("family", "n"), [("qwen2-vl", 17), ("qwen2-5-vl", 23)])
def test_image_encoder_and_head_are_changed_too(told, family, n):
    # 2 layers of 7 weights, 2 blocks of the encoder (its 3 layers of a gated block, in the newer one), the
    # head.
    assert told[family]["changed"] == n


def test_a_converted_llava_gives_the_logits_of_the_original_s_formula(told):
    found = told["llava15"]
    assert found["size_of_logits"] > 1 and found["logits"] < 1e-4 * found["size_of_logits"]
    assert found["new_rows_win"] == 0 and found["n_image_tokens"] == 16


def test_the_prompt_has_the_original_s_tokens(told):
    found = told["llava15"]
    assert found["prompt"] == "<s>USER: <image>\nLook at the picture. ASSISTANT:"
    assert found["ids"] == found["ids_of_the_original"] and found["ids"].count(1) == 1


def test_an_object_at_the_border_of_a_wide_image_survives(told):
    found = told["llava15"]
    assert found["red_at_the_border"] and found["shape"] == [1, 3, 56, 56]
    assert found["top_row"] == [
        122,
        116,
        104,
    ]  # the mean colour, 255 times 0.4815, 0.4578, 0.4082, without fractions
