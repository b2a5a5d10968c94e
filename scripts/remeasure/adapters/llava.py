"""LLaVA-1.5: names and shapes of the original checkpoint, and the same model in the converted layout.

The original keeps language model and projector; its image encoder is CLIP's, loaded beside it. The converted
layout (``llava-hf``) is what vLLM and transformers read.
"""

import re
from typing import Any

from remeasure.adapters.checkpoint import Checkpoint
from remeasure.adapters.merging import Place
from remeasure.errors import RemeasureError
from remeasure.number_types import Spec

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
PROJECTOR = "model.mm_projector."
VISION = "model.vision_tower.vision_tower."
VISION_PROBE = VISION + "vision_model.embeddings.class_embedding"
# Rows of embedding and head come in multiples of this, with two tokens more than the original has.
ROWS, NEW_TOKENS = 64, ("<image>", "<pad>")
# Computed from the configuration, no weights.
_BUFFERS = re.compile(r".*\.rotary_emb\.inv_freq\Z|.*\.embeddings\.position_ids\Z")
# The other half of CLIP.
_TEXT_SIDE = re.compile(r"(?:text_model\.|text_projection\.|visual_projection\.|logit_scale\Z)")
# What decides the shapes: base and adapter must agree.
ARCHITECTURE = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("rms_norm_eps", "hidden_act", "mm_hidden_size", "mm_projector_type", "mm_vision_select_layer"),
)


def language_shapes(config: dict[str, Any], n_tokens: int) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every weight of the language model.

    Args:
        config: the original configuration.
        n_tokens: rows of embedding and head.
    """
    wide, inner = config["hidden_size"], config["intermediate_size"]
    heads = config["num_attention_heads"]
    keys = wide // heads * config.get("num_key_value_heads", heads)
    layer = {
        "self_attn.q_proj": (wide, wide),
        "self_attn.k_proj": (keys, wide),
        "self_attn.v_proj": (keys, wide),
        "self_attn.o_proj": (wide, wide),
        "mlp.gate_proj": (inner, wide),
        "mlp.up_proj": (inner, wide),
        "mlp.down_proj": (wide, inner),
        "input_layernorm": (wide,),
        "post_attention_layernorm": (wide,),
    }
    found: dict[str, tuple[int, ...]] = {EMBEDDING: (n_tokens, wide)}
    for number in range(config["num_hidden_layers"]):
        found |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    return found | {"model.norm.weight": (wide,), HEAD: (n_tokens, wide)}


def projector_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return name and shape of the two layers between image encoder and language model."""
    wide, seen = config["hidden_size"], config["mm_hidden_size"]
    return {
        f"{PROJECTOR}0.weight": (wide, seen),
        f"{PROJECTOR}0.bias": (wide,),
        f"{PROJECTOR}2.weight": (wide, wide),
        f"{PROJECTOR}2.bias": (wide,),
    }


def vision_shapes(clip: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every weight of the image encoder, by CLIP's names."""
    wide, inner, patch = clip["hidden_size"], clip["intermediate_size"], clip["patch_size"]
    square = {f"self_attn.{name}_proj": (wide, wide) for name in ("k", "v", "q", "out")}
    layer = square | {"mlp.fc1": (inner, wide), "mlp.fc2": (wide, inner)}
    norms = ("layer_norm1", "layer_norm2")
    found: dict[str, tuple[int, ...]] = {
        "embeddings.class_embedding": (wide,),
        "embeddings.patch_embedding.weight": (wide, 3, patch, patch),
        "embeddings.position_embedding.weight": ((clip["image_size"] // patch) ** 2 + 1, wide),
    }
    for number in range(clip["num_hidden_layers"]):
        here = f"encoder.layers.{number}"
        for name, shape in layer.items():
            found |= {f"{here}.{name}.weight": shape, f"{here}.{name}.bias": shape[:1]}
        found |= {f"{here}.{name}.{part}": (wide,) for name in norms for part in ("weight", "bias")}
    ends = {f"{n}.{p}": (wide,) for n in ("pre_layrnorm", "post_layernorm") for p in ("weight", "bias")}
    return {f"vision_model.{name}": shape for name, shape in (found | ends).items()}


def places(
    base: Checkpoint, vision: Checkpoint, config: dict[str, Any], clip: dict[str, Any], folder: str
) -> dict[str, Place]:
    """Return where the numbers of the whole original model are, by its own names.

    Args:
        base: the original checkpoint.
        vision: CLIP, whose image encoder is used where the checkpoint has none of its own.
        config: of the checkpoint.
        clip: ``vision_config`` of CLIP.
        folder: the checkpoint's, for messages.

    Raises:
        RemeasureError: a tensor that is not known, is missing or has another shape.
    """
    if EMBEDDING not in base.specs:
        raise RemeasureError(f"{folder}: tensor {EMBEDDING} is missing; these are not the files of LLaVA-1.5")
    seen = vision_shapes(clip)
    shapes = language_shapes(config, base.specs[EMBEDDING].shape[0]) | projector_shapes(config)
    named = {name: Place(base, name) for name in base.specs if not _BUFFERS.match(name)}
    if not any(name.startswith(VISION) for name in named):
        ours = [n for n in vision.specs if not _BUFFERS.match(n) and not _TEXT_SIDE.match(n)]
        named |= {VISION + name: Place(vision, name) for name in ours}
    shapes |= {VISION + name: shape for name, shape in seen.items()}
    for name, place in named.items():
        if name not in shapes:
            raise RemeasureError(f"{place.file.where(place.name)}: tensor {place.name} is in no LLaVA-1.5")
        if place.spec.shape != shapes[name]:
            raise RemeasureError(
                f"{place.file.where(place.name)}: tensor {place.name} has shape {place.spec.shape}, the "
                f"configuration says {shapes[name]}; fetch both again"
            )
    missing = [name for name in shapes if name not in named]
    if missing:
        raise RemeasureError(
            f"{folder}: tensor {missing[0]} and {len(missing) - 1} more are missing; fetch it again"
        )
    return {name: named[name] for name in shapes}


def renamed(names: list[str]) -> dict[str, str]:
    """Return how the original loader renames tensors that were trained without LoRA: new name to old.

    Source:
        TOSC card, section 5.1: a leading ``base_model.`` is dropped; where any key then begins with
        ``model.model.``, one leading ``model.`` is dropped from those that begin with ``model.``.
    """
    short = [name.removeprefix("base_model.") for name in names]
    if any(name.startswith("model.model.") for name in short):
        short = [name.removeprefix("model.") for name in short]
    return dict(zip(short, names, strict=True))


def trained_whole(trained: Checkpoint, base: dict[str, Spec], n_tokens: int, folder: str) -> dict[str, str]:
    """Return which tensors of the model ``non_lora_trainables.bin`` replaces: name there by name here.

    Args:
        trained: that file.
        base: type and shape of the model's tensors.
        n_tokens: rows of embedding and head in the adapter's configuration.
        folder: the adapter's, for messages.

    Raises:
        RemeasureError: two tensors of one name, one that the model lacks, another shape, or a vocabulary of
            another size whose rows are not among them.
    """
    found = renamed(list(trained.specs))
    if len(found) != len(trained.specs):
        raise RemeasureError(
            f"{folder}: two tensors that were trained without LoRA have one name; do not use it"
        )
    for name, old in found.items():
        if name not in base:
            raise RemeasureError(
                f"{folder}: tensor {old} ({name}) is in no LLaVA-1.5; it belongs to another model"
            )
        shape, wanted = trained.specs[old].shape, base[name].shape
        if name in (EMBEDDING, HEAD):
            wanted = (n_tokens, *wanted[1:])
        if shape != wanted:
            raise RemeasureError(
                f"{folder}: tensor {old} has shape {shape}, expected {wanted}; it belongs to another base"
            )
    for name in (EMBEDDING, HEAD):
        if base[name].shape[0] != n_tokens and name not in found:
            raise RemeasureError(
                f"{folder}: config.json says {n_tokens} tokens, the base has {base[name].shape[0]}, and the "
                f"adapter brings no {name}: its rows would be random numbers"
            )
    return found


def converted(name: str) -> str:
    """Return the name that a tensor has in the converted layout.

    Source:
        transformers, ``models/llava/convert_llava_weights_to_hf.py``.
    """
    if name.startswith(VISION):
        return "vision_tower." + name.removeprefix(VISION)
    if name.startswith(PROJECTOR):
        layer, _, part = name.removeprefix(PROJECTOR).partition(".")
        return f"multi_modal_projector.linear_{int(layer) // 2 + 1}.{part}"
    return f"language_model.{name}"


def n_rows(n_tokens: int) -> int:
    """Return how many rows embedding and head have in the converted layout: 32,064 for 32,000 tokens."""
    return -(-(n_tokens + len(NEW_TOKENS)) // ROWS) * ROWS
