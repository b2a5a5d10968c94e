"""DINOv2 with registers: from a folder of transformers, or from the file that torch.hub fetches."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torches

KIND = "Dinov2WithRegistersModel"
HEAD_DIM = 64
"""Numbers per head of attention in every DINOv2; its file does not say how many heads there are."""
_PLAIN = {
    "cls_token": "embeddings.cls_token",
    "pos_embed": "embeddings.position_embeddings",
    "register_tokens": "embeddings.register_tokens",
    "mask_token": "embeddings.mask_token",
    "patch_embed.proj": "embeddings.patch_embeddings.projection",
    "norm": "layernorm",
}
_IN_BLOCK = {
    "norm1": "norm1",
    "norm2": "norm2",
    "attn.proj": "attention.o_proj",
    "ls1.gamma": "layer_scale1.lambda1",
    "ls2.gamma": "layer_scale2.lambda1",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}


def renamed(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return tensors under the names that transformers has for them; queries, keys and values apart.

    Args:
        tensors: by the names of torch.hub's file: ``blocks.0.attn.qkv.weight`` and so on.

    Edges:
        A name that is not known stays as it is, and is refused where the model is filled.
    """
    found: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        block = re.fullmatch(r"blocks\.(\d+)\.(.+?)(\.weight|\.bias)?", name)
        plain = re.fullmatch(r"(.+?)(\.weight|\.bias)?", name)
        if block and block[2] == "attn.qkv":
            for part, piece in zip("qkv", np.split(value, 3), strict=True):
                found[f"encoder.layer.{block[1]}.attention.{part}_proj{block[3]}"] = piece
        elif block and block[2] in _IN_BLOCK:
            found[f"encoder.layer.{block[1]}.{_IN_BLOCK[block[2]]}{block[3] or ''}"] = value
        elif plain and plain[1] in _PLAIN:
            found[f"{_PLAIN[plain[1]]}{plain[2] or ''}"] = value
        else:
            found[name] = value
    return found


def load(source: Path, device: str) -> Any:
    """Load the model, float32.

    Args:
        source: folder of transformers, or torch.hub's ``.pth``, whose sizes are read from its tensors.
        device: where it computes.

    Raises:
        RemeasureError: it is neither, or its tensors are not those of the model.
    """
    from remeasure.instances import torch_module

    torch = torch_module.load()
    if source.is_dir():
        return torches.load_model(KIND, source, torch.float32, device)
    tensors = renamed(torches.read_tensors(source))
    import transformers

    try:
        position = tensors["embeddings.position_embeddings"]
        patch = tensors["embeddings.patch_embeddings.projection.weight"].shape[-1]
        width, side = position.shape[2], round((position.shape[1] - 1) ** 0.5)
        config = transformers.Dinov2WithRegistersConfig(
            hidden_size=width,
            num_attention_heads=max(1, width // HEAD_DIM),
            num_hidden_layers=len(
                {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
            ),
            mlp_ratio=tensors["encoder.layer.0.mlp.fc1.weight"].shape[0] // width,
            image_size=side * patch,
            patch_size=patch,
            num_register_tokens=tensors["embeddings.register_tokens"].shape[1],
        )
    except (KeyError, IndexError) as error:
        raise RemeasureError(
            f"{source}: no DINOv2 with registers: {error} is missing; give its weights"
        ) from None
    model = getattr(transformers, KIND)(config)
    torches.fill(model, tensors, source)
    return model.to(device).eval()
