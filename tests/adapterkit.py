"""Tiny models with random weights, in the layouts that published ones have, and adapters for them."""

import json
from pathlib import Path

import numpy as np

import torchkit
from remeasure import safetensors_file
from remeasure.adapters import llava
from remeasure.number_types import NUMBERS, Spec

TEXT = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "vocab_size": 100,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
LLAVA = TEXT | {
    "model_type": "llava",
    "mm_projector_type": "mlp2x_gelu",
    "mm_hidden_size": 32,
    "mm_vision_select_layer": -2,
    "mm_vision_select_feature": "patch",
    "mm_use_im_start_end": False,
    "mm_use_im_patch_token": False,
    "image_aspect_ratio": "pad",
}
CLIP = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "patch_size": 14,
    "image_size": 56,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
    "projection_dim": 16,
}
CONFIG = {
    "peft_type": "LORA",
    "r": 4,
    "lora_alpha": 8,
    "target_modules": ["q_proj", "down_proj"],
    "bias": "none",
    "fan_in_fan_out": False,
    "modules_to_save": None,
    "lora_dropout": 0.05,
    "task_type": "CAUSAL_LM",
    "base_model_name_or_path": "base",
}


def arrays(shapes: dict, kind: str, seed: int, size: float = 0.2) -> dict[str, np.ndarray]:
    """Return random arrays; those of one dimension are near one, as norms are."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(0, size, shape) + (len(shape) == 1)).astype(NUMBERS[kind])
        for name, shape in shapes.items()
    }


def write_json(path: Path, value) -> Path:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> Path:
    """Write a safetensors file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    specs = {name: Spec(torchkit.KINDS[v.dtype], v.shape) for name, v in tensors.items()}
    safetensors_file.write(path, specs, lambda name: [tensors[name]])
    return path


def write_tokenizer(folder: Path, n: int = 100) -> None:
    """Write a tokenizer with one token per character; ids 0 to 2 are special."""
    letters = ["<unk>", "<s>", "</s>", *(chr(32 + k) for k in range(n - 4)), "\n"]
    special = [{"id": k, "content": letters[k], "special": True} for k in range(3)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [token | flags for token in special],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": "[\\s\\S]"},
                "behavior": "Isolated",
                "invert": False,
            },
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {
                "type": "WordLevel",
                "vocab": {t: k for k, t in enumerate(letters)},
                "unk_token": "<unk>",
            },
        },
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    write_json(folder / "tokenizer_config.json", names | {"tokenizer_class": "PreTrainedTokenizerFast"})


def llava_base(folder: Path, kind: str = "F16") -> dict[str, np.ndarray]:
    """Write an original LLaVA-1.5 in two torch shards; return its tensors."""
    tensors = arrays(llava.language_shapes(LLAVA, 100) | llava.projector_shapes(LLAVA), kind, 1)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(8, np.float32)
    folder.mkdir(parents=True)
    names = list(tensors)
    places = {}
    for number, part in enumerate((names[:10], names[10:]), start=1):
        file = f"pytorch_model-{number:05d}-of-00002.bin"
        torchkit.write(folder / file, {name: tensors[name] for name in part})
        places |= dict.fromkeys(part, file)
    write_json(folder / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": places})
    write_json(folder / "config.json", LLAVA)
    write_tokenizer(folder)
    return tensors


def clip(folder: Path) -> dict[str, np.ndarray]:
    """Write CLIP with both of its halves; return its tensors."""
    tensors = arrays(llava.vision_shapes(CLIP), "F32", 2)
    tensors |= {"text_model.x": np.ones(3, np.float32), "logit_scale": np.float32(4).reshape(())}
    tensors["vision_model.embeddings.position_ids"] = np.arange(17, dtype=np.int64).reshape(1, 17)
    folder.mkdir(parents=True)
    torchkit.write(folder / "pytorch_model.bin", tensors)
    write_json(folder / "config.json", {"model_type": "clip", "vision_config": CLIP})
    return tensors


def lora(
    shapes: dict[str, tuple[int, int]], rank: int = 4, seed: int = 3, kind: str = "F32"
) -> dict[str, np.ndarray]:
    """Return LoRA tensors for modules by name and shape of their weight."""
    found = {}
    for name, (rows, columns) in shapes.items():
        found[f"base_model.model.{name}.lora_A.weight"] = (rank, columns)
        found[f"base_model.model.{name}.lora_B.weight"] = (rows, rank)
    return arrays(found, kind, seed)


def llava_modules() -> dict[str, tuple[int, int]]:
    """Return the modules of the tiny LLaVA that its adapter changes."""
    shapes = llava.language_shapes(LLAVA, 100)
    return {
        n.removesuffix(".weight"): s
        for n, s in shapes.items()
        if n.endswith(("q_proj.weight", "down_proj.weight"))
    }


def llava_adapter(
    folder: Path, config: dict | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Write an adapter of the tiny LLaVA; return its LoRA and what was trained without."""
    pairs = lora(llava_modules())
    write_safetensors(folder / "adapter_model.safetensors", pairs)
    write_json(folder / "adapter_config.json", CONFIG | (config or {}))
    write_json(folder / "config.json", LLAVA)
    whole = arrays(llava.projector_shapes(LLAVA), "BF16", 4)
    torchkit.write(folder / "non_lora_trainables.bin", {f"base_model.model.{n}": v for n, v in whole.items()})
    return pairs, whole


QWEN = {
    "model.embed_tokens.weight": (100, 64),
    "model.layers.0.self_attn.q_proj.weight": (64, 64),
    "model.layers.0.self_attn.q_proj.bias": (64,),
    "model.layers.1.self_attn.q_proj.weight": (64, 64),
    "model.layers.1.self_attn.q_proj.bias": (64,),
    "visual.blocks.0.attn.qkv.weight": (96, 32),
    "visual.patch_embed.proj.weight": (32, 3, 2, 14, 14),
    "lm_head.weight": (100, 64),
}


def qwen_base(folder: Path, config: dict | None = None) -> dict[str, np.ndarray]:
    """Write what looks like a Qwen2-VL; return its tensors."""
    tensors = arrays(QWEN, "BF16", 5)
    write_safetensors(folder / "model.safetensors", tensors)
    write_json(
        folder / "config.json", {"model_type": "qwen2_vl", "tie_word_embeddings": False} | (config or {})
    )
    write_json(folder / "preprocessor_config.json", {"image_processor_type": "Qwen2VLImageProcessor"})
    write_json(folder / "chat_template.json", {"chat_template": "{{ messages }}"})
    write_json(folder / "generation_config.json", {"repetition_penalty": 1.05})
    write_tokenizer(folder)
    return tensors


def qwen_adapter(folder: Path, tensors: dict[str, np.ndarray], **config) -> None:
    """Write an adapter with given tensors."""
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    write_json(folder / "adapter_config.json", CONFIG | {"target_modules": ["q_proj"]} | config)
