"""What lies beside the weights of a converted LLaVA-1.5: configuration, tokenizer, processors, template."""

import json
from pathlib import Path
from typing import Any

from remeasure.adapters import pieces
from remeasure.adapters.checkpoint import read_config
from remeasure.adapters.llava import ARCHITECTURE, NEW_TOKENS
from remeasure.errors import RemeasureError

# Mean and deviation of CLIP's training images; the mean is also the colour of the border.
_MEAN = [0.48145466, 0.4578275, 0.40821073]
_DEVIATION = [0.26862954, 0.26130258, 0.27577711]
_KINDS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32"}
# Fields of the original configuration that mean the same in the language model's.
_LANGUAGE = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *(
        "rms_norm_eps",
        "hidden_act",
        "max_position_embeddings",
        "rope_theta",
        "rope_scaling",
        "attention_bias",
    ),
    *("bos_token_id", "eos_token_id"),
)
_VISION = (
    *(
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "patch_size",
        "image_size",
    ),
    *("hidden_act", "layer_norm_eps", "projection_dim"),
)
# What the converted model has no word for, with the only value that it stands for.
_FIXED = {
    "mm_projector_type": ("mlp2x_gelu",),
    "mm_use_im_start_end": (False, None),
    "mm_use_im_patch_token": (False, None),
    "mm_patch_merge_type": ("flat", None),
    "image_aspect_ratio": ("pad",),
    "mm_resampler_type": (None,),
    "tie_word_embeddings": (False, None),
    "attention_bias": (False, None),
    "mm_vision_select_feature": ("patch", "cls_patch"),
}
# Beginning, then per turn the image before the text, as the original puts it; no blank after the last colon.
# The mark of the beginning stands here because chat endpoints add none.
_TEMPLATE = r"""{{- bos_token -}}
{%- if messages[0]['role'] != 'system' -%}{{- SYSTEM -}}{%- endif -%}
{%- for message in messages -%}
{%- set ends = eos_token if message['role'] == 'assistant' else ' ' -%}
{%- if message['role'] == 'assistant' -%}{{- 'ASSISTANT: ' -}}
{%- elif message['role'] != 'system' -%}{{- 'USER: ' -}}{%- endif -%}
{%- if message['content'] is string -%}{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] if part['type'] in ('image', 'image_url') -%}{{- '<image>\n' -}}{%- endfor
-%} {%- for part in message['content'] if part['type'] == 'text' -%}{{- part['text'] -}}{%- endfor -%}
{%- endif -%}
{{- ends -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}
"""


def template(system: str | None) -> str:
    """Return the chat template.

    Args:
        system: sentence before the first turn, where a conversation has none of its own; null: none.
    """
    return _TEMPLATE.replace("SYSTEM", json.dumps(f"{system} " if system else ""))


def settled(base: dict[str, Any], adapter: dict[str, Any] | None, place: str) -> dict[str, Any]:
    """Return the configuration that counts: the adapter's, where it has one, over the base's.

    Raises:
        RemeasureError: they describe two models, or one that cannot be converted.
    """
    for name in ARCHITECTURE:
        if adapter and name in adapter and adapter[name] != base.get(name, adapter[name]):
            raise RemeasureError(
                f"{place}: config.json says {name} {adapter[name]!r}, that of the base {base[name]!r}; the "
                "adapter belongs to another base"
            )
    config = base | (adapter or {})
    for name, allowed in _FIXED.items():
        if config.get(name) not in allowed:
            raise RemeasureError(
                f"{place}: config.json says {name} {str(config.get(name))[:60]!r}; only {allowed[0]!r} is "
                "known here"
            )
    needed = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
    for name in (
        *needed,
        "mm_hidden_size",
        "mm_vision_select_layer",
        "rms_norm_eps",
        "max_position_embeddings",
    ):
        if not isinstance(config.get(name), int | float):
            raise RemeasureError(f"{place}: config.json lacks {name}; it is none of LLaVA-1.5")
    return config


def vision_config(clip: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the image encoder's part of CLIP's configuration.

    Raises:
        RemeasureError: it is none, or lacks a size.
    """
    here = clip.get("vision_config", clip)
    missing = [name for name in _VISION[:6] if not isinstance(here.get(name), int) or here[name] < 1]
    if missing:
        raise RemeasureError(
            f"{place}: config.json lacks {missing[0]} of the image encoder; it is none of CLIP"
        )
    return {name: here[name] for name in _VISION if name in here} | {"model_type": "clip_vision_model"}


def config(
    original: dict[str, Any], clip: dict[str, Any], n_rows: int, n_tokens: int, kind: str
) -> dict[str, Any]:
    """Return ``config.json`` of the converted model.

    Args:
        original: the configuration of the original.
        clip: of its image encoder.
        n_rows: rows of embedding and head.
        n_tokens: tokens of the original; those of image and padding follow.
        kind: number type.
    """
    text = {name: original[name] for name in _LANGUAGE if original.get(name) is not None}
    text |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": n_rows}
    text |= {"torch_dtype": _KINDS[kind], "tie_word_embeddings": False, "pad_token_id": n_tokens + 1}
    feature = original.get("mm_vision_select_feature", "patch")
    return {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "ignore_index": -100,
        "image_token_index": n_tokens,
        "pad_token_id": n_tokens + 1,
        "projector_hidden_act": "gelu",
        "vision_feature_layer": original["mm_vision_select_layer"],
        "vision_feature_select_strategy": {"patch": "default", "cls_patch": "full"}[feature],
        "image_seq_length": (clip["image_size"] // clip["patch_size"]) ** 2 + (feature != "patch"),
        "text_config": text,
        "vision_config": clip,
        "tie_word_embeddings": False,
        "torch_dtype": _KINDS[kind],
    }


def processors(converted: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the files that say how an image becomes pixels and tokens.

    An image is padded to a square with the mean colour, as the original does; without ``do_pad`` the sides of
    a wide one are cut off.
    """
    size = converted["vision_config"]["image_size"]
    image = {
        "image_processor_type": "LlavaImageProcessor",
        "processor_class": "LlavaProcessor",
        "do_convert_rgb": True,
        "do_pad": True,
        "do_resize": True,
        "size": {"shortest_edge": size},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": size, "width": size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": _MEAN,
        "image_std": _DEVIATION,
    }
    whole = {
        "processor_class": "LlavaProcessor",
        "image_token": NEW_TOKENS[0],
        "num_additional_image_tokens": 1,
        "patch_size": converted["vision_config"]["patch_size"],
        "vision_feature_select_strategy": converted["vision_feature_select_strategy"],
    }
    return {"preprocessor_config.json": image, "processor_config.json": whole}


def write_tokenizer(base: Path, out: Path, n_tokens: int) -> list[Path]:
    """Write the tokenizer with the two added tokens; return what was read.

    Raises:
        RemeasureError: no tokenizer, or one whose tokens are not the rows of the embedding.
    """
    tokens, read = _tokens(base)
    n_found = len({*tokens["model"]["vocab"].values(), *(token["id"] for token in tokens["added_tokens"])})
    if n_found != n_tokens:
        raise RemeasureError(
            f"{read[0]}: {n_found} tokens, the model has {n_tokens}: the added ones would be taken for others"
        )
    added = {token: n_tokens + number for number, token in enumerate(NEW_TOKENS)}
    tokens["added_tokens"] += [pieces.special(token) | {"id": number} for token, number in added.items()]
    settings = read_config(base / "tokenizer_config.json")
    names = {}
    for role, usual in (("bos_token", "<s>"), ("eos_token", "</s>"), ("unk_token", "<unk>")):
        given = settings.get(role) or usual
        names[role] = given["content"] if isinstance(given, dict) else given
    names |= {"pad_token": NEW_TOKENS[1]}
    kept = {k: settings[k] for k in ("add_bos_token", "add_eos_token", "model_max_length") if k in settings}
    kept |= {"tokenizer_class": settings.get("tokenizer_class", "LlamaTokenizer"), "legacy": True}
    more = {"image_token": NEW_TOKENS[0], "processor_class": "LlavaProcessor", "padding_side": "left"}
    more |= {"clean_up_tokenization_spaces": False, "extra_special_tokens": {"image_token": NEW_TOKENS[0]}}
    decoder = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in tokens["added_tokens"]}
    write(out / "tokenizer.json", tokens)
    write(out / "special_tokens_map.json", names)
    write(out / "tokenizer_config.json", kept | names | more | {"added_tokens_decoder": decoder})
    return [*read, base / "tokenizer_config.json"]


def _tokens(base: Path) -> tuple[dict[str, Any], list[Path]]:
    """Return ``tokenizer.json``, and what it was made from."""
    if (base / "tokenizer.model").is_file():
        return pieces.tokenizer(pieces.read(base / "tokenizer.model")), [base / "tokenizer.model"]
    if (base / "tokenizer.json").is_file():
        return read_config(base / "tokenizer.json"), [base / "tokenizer.json"]
    raise RemeasureError(f"{base}: holds neither tokenizer.model nor tokenizer.json; fetch them")


def write(path: Path, value: Any) -> None:
    """Write one JSON file."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
