import math

import ml_dtypes
import numpy as np
import pytest

from adapterkit import CONFIG, qwen_adapter
from remeasure.adapters import checkpoint, merging, peft, qwen
from remeasure.errors import RemeasureError
from remeasure.number_types import Spec

BASE = {
    "model.embed_tokens.weight": Spec("BF16", (6, 2)),
    "model.layers.0.q_proj.weight": Spec("BF16", (2, 2)),
    "model.layers.0.q_proj.bias": Spec("BF16", (2,)),
    "model.layers.1.q_proj.weight": Spec("BF16", (2, 2)),
    "visual.patch.weight": Spec("BF16", (2, 3, 1, 1, 1)),
    "lm_head.weight": Spec("BF16", (6, 2)),
}


def pair(module: str, rows=2, columns=2, rank=1, kind=np.float32) -> dict[str, np.ndarray]:
    here = f"base_model.model.{module}.lora_"
    return {f"{here}A.weight": np.ones((rank, columns), kind), f"{here}B.weight": np.ones((rows, rank), kind)}


BOTH = pair("model.layers.0.q_proj") | pair("model.layers.1.q_proj")


def changes(tmp_path, tensors, **config) -> peft.Changes:
    qwen_adapter(tmp_path, tensors, **({"r": 1, "lora_alpha": 2} | config))
    found, opened = peft.open_folder(tmp_path)
    return peft.changes(found, opened, BASE, qwen.canonical, "adapter")


def test_a_product_of_two_by_two_by_hand():
    # B·A = [[1], [2]]·[[3, 4]] = [[3, 4], [6, 8]]; times 0.5: [[1.5, 2], [3, 4]]; plus [[1, 1], [1, 1]].
    rows = np.ones((2, 2), np.float16)
    found = merging.added(rows, np.float32([[3, 4]]), np.float32([[1], [2]]), 0.5, np.dtype(np.float16))
    assert found.tolist() == [[2.5, 3.0], [4.0, 5.0]] and found.dtype == np.float16


def test_the_sum_is_rounded_once():
    # Near 1 numbers of bf16 are 1/128 apart. 1 + 3/512 is nearer to 1 + 1/128, and 3/512 is itself such a
    # number; where 1/512 and 2/512 are added one after the other, each is rounded away.
    dtype = np.dtype(ml_dtypes.bfloat16)
    one = np.ones((1, 1), dtype)
    down = np.float32([[1 / 512], [2 / 512]])
    assert merging.added(one, down, np.float32([[1, 1]]), 1.0, dtype) == 1 + 1 / 128
    assert (one + dtype.type(1 / 512)) + dtype.type(2 / 512) == 1


def test_scale_is_alpha_by_rank_or_by_its_root(tmp_path):
    assert changes(tmp_path, BOTH).pairs["model.layers.0.q_proj.weight"].scale == 2.0
    four = {**pair("model.layers.0.q_proj", rank=4), **pair("model.layers.1.q_proj", rank=4)}
    # alpha 2, rank 4: 2 / 4, and 2 / sqrt(4).
    assert changes(tmp_path, four, r=4).pairs["model.layers.1.q_proj.weight"].scale == 0.5
    assert changes(tmp_path, four, r=4, use_rslora=True).pairs["model.layers.1.q_proj.weight"].scale == 1.0


def test_patterns_give_single_modules_another_rank_and_alpha(tmp_path):
    tensors = pair("model.layers.0.q_proj") | pair("model.layers.1.q_proj", rank=2)
    patterns = {"rank_pattern": {"layers.1.q_proj": 2}, "alpha_pattern": {r"model\.layers\.0\..*": 5}}
    found = changes(tmp_path, tensors, **patterns).pairs
    assert (found["model.layers.0.q_proj.weight"].scale, found["model.layers.1.q_proj.weight"].scale) == (
        5.0,
        1.0,
    )
    # A pattern matches whole words at the end of a name: `1.q_proj` not in `11.q_proj`.
    assert peft.scale_of({"r": 1, "lora_alpha": 1, "rank_pattern": {"1.q_proj": 2}}, "a.11.q_proj", "") == (
        1,
        1.0,
    )
    with pytest.raises(RemeasureError, match="no regular expression"):
        changes(tmp_path, tensors, rank_pattern={"(": 2})


def test_the_newer_spelling_of_names_finds_the_older(tmp_path):
    tensors = pair("model.language_model.layers.0.q_proj") | pair("model.layers.1.q_proj")
    assert changes(tmp_path, tensors).pairs.keys() == {f"model.layers.{n}.q_proj.weight" for n in (0, 1)}
    assert qwen.canonical("model.visual.blocks.0.attn.qkv.weight") == "visual.blocks.0.attn.qkv.weight"


def test_whole_tensors_are_those_that_the_configuration_names(tmp_path):
    head = {"base_model.model.lm_head.weight": np.ones((6, 2), np.float32)}
    bias = {"base_model.model.model.layers.0.q_proj.base_layer.bias": np.ones(2, np.float32)}
    found = changes(tmp_path, BOTH | head | bias, modules_to_save=["lm_head"], bias="lora_only")
    assert found.replaced == {
        "lm_head.weight": "base_model.model.lm_head.weight",
        "model.layers.0.q_proj.bias": "base_model.model.model.layers.0.q_proj.base_layer.bias",
    }
    for tensors in (head, bias):
        with pytest.raises(RemeasureError, match="names it neither under modules_to_save nor as a bias"):
            changes(tmp_path, BOTH | tensors)


def test_an_embedding_s_product_is_turned(tmp_path):
    here = "base_model.model.model.embed_tokens.lora_embedding_"
    tensors = {f"{here}A": np.float32([[1, 2, 3, 4, 5, 6]]), f"{here}B": np.float32([[10], [100]])}
    found = changes(tmp_path, tensors, target_modules=["embed_tokens"])
    base = checkpoint.Checkpoint([])
    base.specs = {"w": Spec("F32", (6, 2))}
    base.blocks = lambda name: iter([(0, np.zeros((4, 2), np.float32)), (4, np.zeros((2, 2), np.float32))])
    weights = merging.Weights(
        {"model.embed_tokens.weight": merging.Place(base, "w")}, {"model.embed_tokens.weight": "F32"}
    )
    weights.merge(peft.open_folder(tmp_path)[1], found.pairs)
    made = np.concatenate(list(weights.blocks("model.embed_tokens.weight")))
    # Row n: 2 · (n + 1) · (10, 100).
    assert made.tolist() == [[20 * n, 200 * n] for n in range(1, 7)]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"peft_type": "IA3"}, "expected LORA"),
        ({"use_dora": True}, "DoRA"),
        ({"fan_in_fan_out": True}, "transposed"),
        ({"init_lora_weights": "pissa_niter_4"}, "changes the base's weights"),
        ({"init_lora_weights": "olora"}, "changes the base's weights"),
        ({"bias": "some"}, "expected none, all or lora_only"),
        ({"r": 0}, "r is 0"),
        ({"r": -1}, "r is -1"),
        ({"r": True}, "r is True"),
        ({"r": "8"}, "r is '8'"),
        ({"lora_alpha": 0}, "lora_alpha is 0"),
        ({"lora_alpha": math.inf}, "lora_alpha is inf|Inf|JSON"),
        ({"lora_bias": True}, "lora_bias is set"),
        ({"layer_replication": [[0, 2]]}, "layer_replication is set"),
        ({"trainable_token_indices": [3]}, "trainable_token_indices is set"),
        ({"target_parameters": ["x"]}, "target_parameters is set"),
        ({"use_qalora": True}, "use_qalora is set"),
        ({"something_new": 1}, "something_new is set"),
        ({"rank_pattern": {"q_proj": 0}}, "numbers above 0"),
        ({"rank_pattern": ["q_proj"]}, "numbers above 0"),
        ({"target_modules": ["q_proj", "k_proj"]}, "names the module k_proj, but no tensor"),
    ],
)
def test_what_would_be_ignored_is_refused_with_a_reason(tmp_path, config, says):
    with pytest.raises(RemeasureError, match=says):
        changes(tmp_path, BOTH, **config)


def test_settings_without_a_meaning_for_the_weights_are_let_pass(tmp_path):
    harmless = {"lora_dropout": 0.1, "inference_mode": True, "loftq_config": {}, "megatron_config": None}
    harmless |= {
        "init_lora_weights": "gaussian",
        "use_dora": False,
        "corda_config": None,
        "peft_version": "0.17.1",
    }
    assert len(changes(tmp_path, BOTH, **harmless).pairs) == 2


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        (pair("model.layers.0.q_proj"), "no LoRA of model.layers.1.q_proj.weight, but of other layers"),
        (BOTH | pair("model.layers.2.q_proj"), "model.layers.2.q_proj.weight, which the base lacks"),
        (BOTH | pair("model.layers.0.q_proj", columns=3), "has shape .1, 3., which does not fit"),
        (BOTH | pair("model.layers.0.q_proj", rank=2), "rank 1; it belongs to another base"),
        (BOTH | pair("visual.patch", columns=3), "only matrices can be merged"),
        (dict(list(BOTH.items())[:3]), "lacks its half B"),
        (BOTH | pair("model.language_model.layers.0.q_proj"), "two changes of model.layers.0.q_proj.weight"),
        (BOTH | {"model.x": np.ones(2, np.float32)}, "does not begin with base_model.model."),
        (
            BOTH | {"base_model.model.q_proj.lora_magnitude_vector": np.ones(2, np.float32)},
            "cannot be merged",
        ),
        (BOTH | {"base_model.model.q_proj.lora_B.bias": np.ones(2, np.float32)}, "cannot be merged"),
        (BOTH | pair("model.layers.0.q_proj", kind=np.int64), "holds I64"),
        ({}, "holds no tensor"),
    ],
)
def test_every_tensor_has_its_place_or_the_adapter_is_refused(tmp_path, tensors, says):
    with pytest.raises(RemeasureError, match=says):
        changes(tmp_path, tensors)


def test_some_layers_may_be_left_out_where_the_configuration_says_so(tmp_path):
    first = pair("model.layers.0.q_proj")
    for config in (
        {"layers_to_transform": [0]},
        {"target_modules": r".*\.0\.q_proj"},
        {"target_modules": ["0.q_proj"]},
    ):
        assert changes(tmp_path, first, **config).pairs.keys() == {"model.layers.0.q_proj.weight"}


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\nb", "", "a b", "x" * 300 + "/"])
def test_names_that_are_no_names_of_tensors_are_refused(tmp_path, name):
    with pytest.raises(RemeasureError, match="expected letters, digits, dots and dashes") as told:
        changes(tmp_path, BOTH | {name: np.ones(2, np.float32)})
    assert "\n" not in str(told.value)


def test_a_folder_without_weights_or_configuration_says_so(tmp_path):
    with pytest.raises(RemeasureError, match="adapter_config.json"):
        peft.open_folder(tmp_path)
    (tmp_path / "adapter_config.json").write_text(
        str(CONFIG).replace("'", '"').replace("False", "false").replace("None", "null")
    )
    with pytest.raises(RemeasureError, match="holds no adapter_model.safetensors or adapter_model.bin"):
        peft.open_folder(tmp_path)


def test_the_root_is_that_of_the_module_s_own_rank():
    config = {"r": 1, "lora_alpha": 8, "rank_pattern": {"q_proj": 16}, "use_rslora": True}
    # 8 / sqrt(16), and 8 / sqrt(1) where the pattern does not fit.
    assert peft.scale_of(config, "model.layers.0.q_proj", "") == (16, 2.0)
    assert peft.scale_of(config, "model.layers.0.k_proj", "") == (1, 8.0)
