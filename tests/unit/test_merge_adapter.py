"""Whole folders: an original LLaVA-1.5 and a Qwen with their adapters, tiny, through the script."""

import json
import os
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import adapterkit
import merge_adapter
import torchkit
from remeasure import jsonl
from remeasure.adapters import checkpoint, folder, llava, llava_files
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.records import Stage


@pytest.fixture
def here(tmp_path) -> Path:
    adapterkit.llava_base(tmp_path / "base")
    adapterkit.clip(tmp_path / "clip")
    adapterkit.llava_adapter(tmp_path / "adapter")
    return tmp_path


def call(here, adapter="adapter", base="base", vision="clip", out="out", **settings) -> int:
    words = ["--settings", json.dumps({"family": "llava15"} | settings), "--base", here / base]
    words += ["--adapter", here / adapter] if adapter else []
    words += ["--vision", here / vision] if vision else []
    return merge_adapter.main(
        [*map(str, words), "--out", str(here / out), "--record", str(here / f"{out}.json")]
    )


def call_qwen(here, adapter="adapter", **settings) -> int:
    return call(here, adapter, vision=None, **({"family": "qwen2-vl"} | settings))


def weights(path) -> dict[str, np.ndarray]:
    found = checkpoint.of_folder(path)
    return {name: found.read(name) for name in found.specs}


def the_error(capsys) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def test_a_llava_is_merged_and_converted_tensor_by_tensor(here):
    pairs, whole = adapterkit.llava_adapter(here / "adapter")
    base, clip = adapterkit.llava_base(here / "again"), adapterkit.clip(here / "clip2")
    assert call(here) == 0
    found = weights(here / "out")
    assert {values.dtype for values in found.values()} == {np.dtype(np.float16)}
    # 2 layers of 9 weights, embedding, norm, head; 4 of the projector; 3 layers of 16 and 7 of the encoder.
    assert len(found) == 21 + 4 + 55
    layer = "model.layers.1.mlp.down_proj"
    down, up = (pairs[f"base_model.model.{layer}.lora_{half}.weight"] for half in "AB")
    sums = base[f"{layer}.weight"].astype(np.float32) + 2 * (up @ down)  # alpha 8, rank 4
    assert (found[f"language_model.{layer}.weight"] == sums.astype(np.float16)).all()
    same = "model.layers.1.mlp.up_proj.weight"
    assert (found[f"language_model.{same}"] == base[same]).all()
    for number, part in (("0", "linear_1"), ("2", "linear_2")):
        for kind in ("weight", "bias"):
            expected = whole[f"model.mm_projector.{number}.{kind}"].astype(np.float16)
            assert (found[f"multi_modal_projector.{part}.{kind}"] == expected).all()
    seen = "vision_model.encoder.layers.2.mlp.fc1.bias"
    assert (found[f"vision_tower.{seen}"] == clip[seen].astype(np.float16)).all()
    assert not any("inv_freq" in name or "position_ids" in name or "text_model" in name for name in found)


def test_rows_of_added_tokens_are_the_mean_of_all_others(here):
    base = adapterkit.llava_base(here / "again")
    assert call(here) == 0
    found = weights(here / "out")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        rows = found[f"language_model.{name}"]
        assert rows.shape == (128, 64)  # 100 and 2 tokens: the next multiple of 64
        assert (rows[:100] == base[name]).all() and (rows[100:] == rows[100]).all()
        mean = base[name].astype(np.float64).mean(axis=0)
        assert np.abs(rows[100].astype(np.float64) - mean).max() < 2e-5  # half a step of float16 near 0.03


@pytest.mark.parametrize(("n_tokens", "n_rows"), [(32000, 32064), (62, 64), (63, 128), (32062, 32064)])
def test_rows_come_in_multiples_of_64_with_two_more_tokens(n_tokens, n_rows):
    assert llava.n_rows(n_tokens) == n_rows


def test_names_are_those_of_the_converted_layout():
    assert [
        llava.converted(name)
        for name in (
            "model.layers.7.self_attn.q_proj.weight",
            "lm_head.weight",
            "model.mm_projector.0.bias",
            "model.mm_projector.2.weight",
            "model.vision_tower.vision_tower.vision_model.post_layernorm.weight",
        )
    ] == [
        "language_model.model.layers.7.self_attn.q_proj.weight",
        "language_model.lm_head.weight",
        "multi_modal_projector.linear_1.bias",
        "multi_modal_projector.linear_2.weight",
        "vision_tower.vision_model.post_layernorm.weight",
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["base_model.model.model.mm_projector.0.weight"], ["model.mm_projector.0.weight"]),
        # No name begins with `model.model.` once `base_model.` is gone: nothing more is dropped.
        (["base_model.model.mm_projector.0.weight"], ["model.mm_projector.0.weight"]),
        (["model.mm_projector.0.weight"], ["model.mm_projector.0.weight"]),
        # One does: of all others, too, one `model.` goes.
        (
            ["base_model.model.model.mm_projector.0.bias", "base_model.model.lm_head.weight"],
            ["model.mm_projector.0.bias", "lm_head.weight"],
        ),
    ],
)
def test_what_was_trained_without_lora_is_renamed_as_the_original_loader_does(names, expected):
    assert list(llava.renamed(names)) == expected


def test_the_files_beside_the_weights_say_what_the_original_does(here):
    assert call(here, system='Be "plain" {{ x }} {%.') == 0
    out = here / "out"
    config = json.loads((out / "config.json").read_text())
    assert (config["image_token_index"], config["pad_token_id"]) == (100, 101)
    assert (config["text_config"]["vocab_size"], config["torch_dtype"]) == (128, "float16")
    assert (config["vision_feature_layer"], config["vision_feature_select_strategy"]) == (-2, "default")
    assert config["image_seq_length"] == 16 and config["text_config"]["num_key_value_heads"] == 2
    pixels = json.loads((out / "preprocessor_config.json").read_text())
    assert pixels["do_pad"] is True and pixels["image_processor_type"] == "LlavaImageProcessor"
    assert pixels["crop_size"] == {"height": 56, "width": 56} and pixels["size"] == {"shortest_edge": 56}
    tokens = json.loads((out / "tokenizer.json").read_text())
    assert [(t["content"], t["id"]) for t in tokens["added_tokens"][-2:]] == [
        ("<image>", 100),
        ("<pad>", 101),
    ]
    record = jsonl.read_json(here / "out.json", Stage)
    assert record.facts["chat_template_sha256"] == sha256_file(out / "chat_template.jinja")
    assert record.outputs == {str(p): sha256_file(p) for p in sorted(out.iterdir())}
    counted = {
        "lora_pairs": 4,
        "whole_tensors": 4,
        "projector_tensors": 4,
        "projector_tensors_that_differ": 4,
    }
    assert record.counts == counted | {"tensors": 80, "base_numbers_that_are_not_finite": 0}
    assert (record.facts["ranks"], record.facts["scales"]) == ([4], [2.0])
    assert record.facts["target_modules"] == ["down_proj", "q_proj"]
    assert str(here / "adapter" / "non_lora_trainables.bin") in record.inputs
    assert str(here / "base" / "tokenizer.json") in record.inputs


def prompt(system, messages, **words) -> str:
    import jinja2

    found = jinja2.Environment().from_string(llava_files.template(system))
    return found.render(messages=messages, bos_token="<s>", eos_token="</s>", **words)


def test_the_template_puts_the_image_first_and_ends_without_a_blank():
    image, text = {"type": "image"}, {"type": "text", "text": "What is it?"}
    asked = {"role": "user", "content": [text, image]}
    assert prompt(None, [asked], add_generation_prompt=True) == "<s>USER: <image>\nWhat is it? ASSISTANT:"
    kind = 'Say "a\\b" {{ x }}.'
    assert (
        prompt(kind, [asked], add_generation_prompt=True)
        == f"<s>{kind} USER: <image>\nWhat is it? ASSISTANT:"
    )
    turns = [{"role": "system", "content": "Hm."}, asked, {"role": "assistant", "content": "A cat."}]
    turns += [{"role": "user", "content": "Sure?"}]
    expected = "<s>Hm. USER: <image>\nWhat is it? ASSISTANT: A cat.</s>USER: Sure? ASSISTANT:"
    assert prompt(kind, turns, add_generation_prompt=True) == expected


def test_the_base_alone_is_converted_with_the_same_files(here):
    assert call(here) == 0 and call(here, adapter=None, out="plain") == 0
    for name in ("config.json", "chat_template.jinja", "tokenizer.json", "preprocessor_config.json"):
        assert (here / "out" / name).read_bytes() == (here / "plain" / name).read_bytes()
    merged, plain = weights(here / "out"), weights(here / "plain")
    differing = [name for name in plain if not (plain[name] == merged[name]).all()]
    assert len(differing) == 8  # four pairs, four tensors of the projector
    assert jsonl.read_json(here / "plain.json", Stage).counts["lora_pairs"] == 0


def test_an_image_encoder_in_the_checkpoint_goes_before_clip(here):
    clip = adapterkit.arrays(llava.vision_shapes(adapterkit.CLIP), "F16", 9)
    base = adapterkit.llava_base(here / "b2")
    shutil.rmtree(here / "b2")
    whole = {n: v for n, v in base.items() if "inv_freq" not in n} | {
        llava.VISION + n: v for n, v in clip.items()
    }
    adapterkit.write_safetensors(here / "b2" / "model.safetensors", whole)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(here / "base" / name, here / "b2" / name)
    assert call(here, base="b2", adapter=None) == 0
    name = "vision_model.embeddings.class_embedding"
    assert (weights(here / "out")[f"vision_tower.{name}"] == clip[name]).all()
    assert jsonl.read_json(here / "out.json", Stage).facts["image_encoder_from"] == "base"


def rewritten(here, change, name="adapter/non_lora_trainables.bin") -> None:
    """Write what was trained without LoRA again, changed."""
    shapes = llava.projector_shapes(adapterkit.LLAVA)
    whole = {f"base_model.model.{n}": v for n, v in adapterkit.arrays(shapes, "F16", 4).items()}
    torchkit.write(here / name, change(whole))


FIRST = "base_model.model.model.mm_projector.0.weight"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: w | {"base_model.model.model.mm_projekt.0.weight": w[FIRST]}, "is in no LLaVA-1.5"),
        (lambda w: w | {FIRST: w[FIRST][:32]}, "has shape .32, 32., expected .64, 32."),
        (
            lambda w: w | {"base_model.model.lm_head.weight": np.zeros((101, 64), np.float16)},
            "expected .100, 64.",
        ),
        (
            lambda w: w | {FIRST: w[FIRST] * np.float16(np.nan)},
            "holds 2048 numbers that are infinite or none",
        ),
        (lambda w: w | {"model.model.mm_projector.0.weight": w[FIRST]}, "have one name"),
        (lambda w: {}, "0 of 0 tensors of the projector differ from the base's; expected at least one"),
        (
            lambda w: (
                w
                | {"base_model.model.model.layers.0.self_attn.q_proj.weight": np.zeros((64, 64), np.float16)}
            ),
            "trained whole and with LoRA",
        ),
    ],
)
def test_what_was_trained_without_lora_fits_or_is_refused(here, capsys, change, says):
    import re

    rewritten(here, change)
    assert call(here) == 2 and re.search(says, the_error(capsys))
    assert not (here / "out").exists() and not (here / "out.json").exists()


def test_a_projector_that_is_the_base_s_is_an_error_unless_it_is_said(here, capsys):
    base = adapterkit.llava_base(here / "again")
    whole = {f"base_model.model.{n}": base[n] for n in llava.projector_shapes(adapterkit.LLAVA)}
    rewritten(here, lambda _: whole)
    assert call(here) == 2 and "0 of 4 tensors of the projector differ" in the_error(capsys)
    assert call(here, trained_projector=False) == 0
    adapterkit.llava_adapter(here / "adapter")
    capsys.readouterr()
    assert call(here, trained_projector=False, out="other") == 2 and "expected none" in the_error(capsys)


def test_a_vocabulary_of_another_size_comes_with_its_rows_or_is_refused(here, capsys):
    adapterkit.write_json(here / "adapter" / "config.json", adapterkit.LLAVA | {"vocab_size": 103})
    assert call(here) == 2 and "its rows would be random numbers" in the_error(capsys)
    rows = {
        f"base_model.model.{n}": np.full((103, 64), k, np.float16)
        for k, n in enumerate((llava.EMBEDDING, llava.HEAD))
    }
    rewritten(here, lambda w: w | rows)
    assert call(here) == 2 and "100 tokens, the model has 103" in the_error(capsys)
    adapterkit.write_tokenizer(here / "base", 103)
    assert call(here) == 0
    assert weights(here / "out")["language_model.lm_head.weight"].shape == (128, 64)
    assert json.loads((here / "out" / "config.json").read_text())["image_token_index"] == 103


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("adapter/config.json", {"hidden_size": 4096}, "the adapter belongs to another base"),
        ("adapter/config.json", {"image_aspect_ratio": "anyres"}, "image_aspect_ratio 'anyres'; only 'pad'"),
        ("base/config.json", {"mm_projector_type": "linear"}, "belongs to another base"),
        ("base/config.json", {"num_hidden_layers": 3}, "belongs to another base"),
        ("clip/config.json", {"vision_config": {}}, "lacks hidden_size of the image encoder"),
        (
            "clip/config.json",
            {"vision_config": adapterkit.CLIP | {"patch_size": 28}},
            "the configuration says",
        ),
        (
            "base/pytorch_model.bin.index.json",
            {"weight_map": {"x": "../../etc/passwd"}},
            "which lies elsewhere",
        ),
        ("base/pytorch_model.bin.index.json", {"weight_map": {}}, "no weight_map"),
    ],
)
def test_configurations_that_do_not_belong_together_are_refused(here, capsys, name, change, says):
    path = here / name
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert call(here) == 2 and says in the_error(capsys)


def test_a_base_that_lacks_or_has_a_tensor_too_many_is_refused(here, capsys):
    second = here / "base" / "pytorch_model-00002-of-00002.bin"
    whole = {n: v for n, v in checkpoint_arrays(second).items() if n != "model.norm.weight"}
    torchkit.write(second, whole)
    assert call(here) == 2 and "tensor model.norm.weight and 0 more of" in the_error(capsys)
    torchkit.write(
        second,
        checkpoint_arrays(second)
        | {"model.norm.weight": np.ones(64, np.float16), "model.x": np.ones(2, np.float16)},
    )
    assert call(here) == 2 and "tensor model.x is in no LLaVA-1.5" in the_error(capsys)


def checkpoint_arrays(path) -> dict[str, np.ndarray]:
    found = checkpoint.Checkpoint([path])
    return {name: found.read(name) for name in found.specs}


def test_a_hostile_pickle_in_an_adapter_calls_nothing(here, capsys, monkeypatch):
    monkeypatch.chdir(here)

    class Hostile:
        def __reduce__(self):
            return os.system, ("touch harm",)

    torchkit.write_zip(here / "adapter" / "non_lora_trainables.bin", torchkit.pickled({"w": Hostile()}), {})
    assert call(here) == 2 and "asks for posix.system" in the_error(capsys)
    assert not (here / "harm").exists() and not (here / "out").exists()


def test_an_adapter_of_another_base_is_refused_by_its_shapes(here, capsys):
    wide = adapterkit.lora(
        {"model.layers.0.self_attn.q_proj": (128, 128), "model.layers.1.self_attn.q_proj": (128, 128)}
    )
    adapterkit.write_safetensors(here / "adapter" / "adapter_model.safetensors", wide)
    adapterkit.write_json(
        here / "adapter" / "adapter_config.json", adapterkit.CONFIG | {"target_modules": ["q_proj"]}
    )
    assert call(here) == 2
    assert "does not fit model.layers.0.self_attn.q_proj.weight of shape (64, 64)" in the_error(capsys)


def test_numbers_that_are_none_stop_an_adapter_and_are_counted_in_a_base(here, capsys):
    pairs, _ = adapterkit.llava_adapter(here / "adapter")
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
    pairs[name][3, 1] = np.inf
    adapterkit.write_safetensors(here / "adapter" / "adapter_model.safetensors", pairs)
    assert call(here) == 2 and f"tensor {name} holds 1 numbers that are infinite" in the_error(capsys)
    pairs[name][3, 1] = 6e6
    adapterkit.write_safetensors(here / "adapter" / "adapter_model.safetensors", pairs)
    assert call(here) == 2 and "too large for float16" in the_error(capsys)
    second = here / "base" / "pytorch_model-00002-of-00002.bin"
    whole = {n: np.array(v) for n, v in checkpoint_arrays(second).items()}
    whole["model.norm.weight"][5] = np.nan
    torchkit.write(second, whole)
    assert call(here, adapter=None) == 0
    assert "1 numbers of the base are infinite or none at all" in capsys.readouterr().err
    assert jsonl.read_json(here / "out.json", Stage).counts["base_numbers_that_are_not_finite"] == 1


def test_a_missing_projector_or_image_encoder_is_named(here, capsys):
    (here / "adapter" / "non_lora_trainables.bin").unlink()
    assert call(here) == 2 and "non_lora_trainables.bin is missing" in the_error(capsys)
    assert call(here, vision=None) == 2 and "--vision: is missing" in the_error(capsys)
    assert call(here, family="llava") == 2 and "expected one of llava15" in the_error(capsys)


# -- Qwen ----------------------------------------------------------------------------------------------------


@pytest.fixture
def qwen(tmp_path) -> Path:
    adapterkit.qwen_base(tmp_path / "base")
    modules = {f"model.language_model.layers.{n}.self_attn.q_proj": (64, 64) for n in (0, 1)}
    adapterkit.qwen_adapter(
        tmp_path / "adapter",
        adapterkit.lora(modules | {"model.visual.blocks.0.attn.qkv": (96, 32)}),
        target_modules=["q_proj", "qkv"],
    )
    return tmp_path


def test_a_qwen_is_merged_with_its_image_encoder_and_keeps_its_names_and_files(qwen):
    base = adapterkit.qwen_base(qwen / "again")
    assert call_qwen(qwen) == 0
    found = weights(qwen / "out")
    assert list(found) == list(base) and found["lm_head.weight"].dtype == ml_dtypes.bfloat16
    changed = [name for name in base if not (found[name] == base[name]).all()]
    assert changed == [
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.1.self_attn.q_proj.weight",
        "visual.blocks.0.attn.qkv.weight",
    ]
    for name in ("config.json", "tokenizer.json", "chat_template.json", "generation_config.json"):
        assert (qwen / "out" / name).read_bytes() == (qwen / "base" / name).read_bytes()
    record = jsonl.read_json(qwen / "out.json", Stage)
    assert record.facts["generation"] == {"repetition_penalty": 1.05}
    assert len(record.facts["chat_template_sha256"]) == 64


def test_a_qwen_without_adapter_takes_no_room(qwen):
    assert call_qwen(qwen, adapter=None) == 0
    assert os.path.samefile(qwen / "out" / "model.safetensors", qwen / "base" / "model.safetensors")
    assert jsonl.read_json(qwen / "out.json", Stage).counts["lora_pairs"] == 0


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("config.json", {"model_type": "qwen2_5_vl"}, "family qwen2-vl is qwen2_vl"),
        ("chat_template.json", {"chat_template": None}, "has no chat template"),
    ],
)
def test_a_qwen_of_another_kind_is_refused(qwen, capsys, name, change, says):
    path = qwen / "base" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert call_qwen(qwen) == 2 and says in the_error(capsys)


def test_a_head_that_is_the_embedding_cannot_be_changed(qwen, capsys):
    adapterkit.qwen_base(qwen / "base", {"tie_word_embeddings": True})
    head = {"base_model.model.lm_head.weight": np.ones((100, 64), np.float32)}
    adapterkit.qwen_adapter(qwen / "adapter", head, target_modules=[], modules_to_save=["lm_head"])
    assert call_qwen(qwen) == 2 and "which are one in this base" in the_error(capsys)


# -- Writing -------------------------------------------------------------------------------------------------


def test_what_is_there_is_not_written_over(here, capsys):
    (here / "out").mkdir()
    (here / "out" / "x").write_text("mine")
    assert call(here) == 2 and "is there already" in the_error(capsys)
    assert (here / "out" / "x").read_text() == "mine"


def test_a_disk_without_room_is_said_before_anything_is_written(here, capsys, monkeypatch):
    monkeypatch.setattr(folder.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    assert call(here) == 2 and "0.0 GB free, 0.5 GB needed" in the_error(capsys)
    assert not list((here / ".out.part").glob("*.safetensors"))


def test_finished_shards_are_not_written_again(tmp_path):
    specs = {name: folder.Spec("F32", (2, 2)) for name in "abcd"}
    values = {name: np.full((2, 2), k, np.float32) for k, name in enumerate(specs)}

    def blocks(name):
        asked.append(name)
        if name == stop:
            raise RemeasureError("stopped")
        yield values[name]

    asked, stop = [], "c"
    with pytest.raises(RemeasureError, match="stopped"):
        folder.Folder(tmp_path / "m", "key").write_weights(specs, blocks, shard_bytes=32)
    assert not (tmp_path / "m").exists()
    asked, stop = [], None
    again = folder.Folder(tmp_path / "m", "key")
    written = again.write_weights(specs, blocks, shard_bytes=32)
    assert asked == ["c", "d"] and list(written) == [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    assert again.finish(written) == {str(p): sha256_file(p) for p in sorted((tmp_path / "m").iterdir())}
    assert {name: v.tolist() for name, v in weights(tmp_path / "m").items()} == {
        n: v.tolist() for n, v in values.items()
    }
    assert not (tmp_path / ".m.part").exists()
    shutil.rmtree(tmp_path / "m")
    asked, stop = [], "c"
    with pytest.raises(RemeasureError):
        folder.Folder(tmp_path / "m", "key").write_weights(specs, blocks, shard_bytes=32)
    asked, stop = [], None
    folder.Folder(tmp_path / "m", "another").write_weights(specs, blocks, shard_bytes=32)
    assert asked == ["a", "b", "c", "d"]


def test_the_same_files_give_the_same_bytes(here):
    assert call(here) == 0 and call(here, out="twin") == 0
    one, other = ({p.name: p.read_bytes() for p in (here / name).iterdir()} for name in ("out", "twin"))
    assert one == other
