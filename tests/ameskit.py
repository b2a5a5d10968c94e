"""Rerankers with random weights, a dense second opinion on them, and files of local descriptors and tokens."""

import json

import numpy as np

from remeasure.instances import vectors_file
from remeasure.instances.ames.weights import Shape

PUBLISHED = Shape(dim=768, width=128, heads=2, layers=5, ffn=1024)
SMALL = Shape(dim=16, width=32, heads=2, layers=3, ffn=48)


def random_weights(shape: Shape, seed: int, binarises: bool = False) -> dict[str, np.ndarray]:
    """Draw weights; numpy's frozen generator gives the same numbers in every version.

    Tensors are drawn in the order of their sorted names: norms' weights 1 + 0.1 z, biases 0.05 z, the token 0.5 z,
    the others z / sqrt(last axis).
    """
    draw, found = np.random.RandomState(seed), {}
    for name, size in sorted(shape.tensors(binarises).items()):
        z = draw.standard_normal(size)
        if name == "mtc_token":
            made = 0.5 * z
        elif name.endswith("bias"):
            made = 0.05 * z
        elif len(size) == 1:
            made = 1 + 0.1 * z
        else:
            made = z / np.sqrt(size[-1])
        found[name] = made.astype(np.float32)
    return found


def random_descriptors(n: int, length: int, dim: int, seed: int) -> np.ndarray:
    """Draw local descriptors of length 1, [n, length, dim] float32."""
    z = np.random.RandomState(seed).standard_normal((n, length, dim))
    return (z / np.linalg.norm(z, axis=-1, keepdims=True)).astype(np.float32)


def dense_logits(tensors, shape: Shape, one, n_one, other, n_other) -> np.ndarray:
    """Score pairs as the paper draws it: all tokens in one sequence, masks of what may see what, torch's attention.

    Args:
        tensors: weights.
        shape: sizes.
        one, other: descriptors of both sides, [n, Q, dim] and [n, T, dim].
        n_one, n_other: how many of them are none of padding, [n].

    Returns:
        [n] float32.
    """
    import torch
    from torch.nn import functional

    at = {name: torch.from_numpy(value) for name, value in tensors.items()}

    def norm(x, name):
        return functional.layer_norm(x, x.shape[-1:], at[f"{name}.weight"], at[f"{name}.bias"])

    def remap(x):
        x = functional.normalize(torch.from_numpy(x), dim=-1)
        if "remap_local.0.W" in at:
            x = torch.sign(x @ at["remap_local.0.W"])
            return norm(
                functional.linear(x, at["remap_local.1.weight"], at["remap_local.1.bias"]), "remap_local.2"
            )
        return norm(
            functional.linear(x, at["remap_local.0.weight"], at["remap_local.0.bias"]), "remap_local.1"
        )

    q, t = one.shape[1], other.shape[1]
    tokens = remap(other)
    if "remap_local.0.W" not in at:
        tokens = tokens.half().float()
    x = torch.cat([at["mtc_token"].expand(len(one), 1, -1), remap(one), tokens], 1)
    padded = torch.zeros(len(one), 1 + q + t, dtype=torch.bool)
    for row, (a, b) in enumerate(zip(n_one, n_other, strict=True)):
        padded[row, 1 + a : 1 + q] = True
        padded[row, 1 + q + b :] = True
    side = torch.tensor([0] + [1] * q + [2] * t)
    differs = (side[:, None] != side) & (side[:, None] > 0) & (side > 0)
    same = (side[:, None] == side) & (side > 0)
    with torch.no_grad():
        for layer in range(shape.layers):
            name = f"decoder.layers.{layer}."
            for block, hidden, normed in (("self_attn", differs, "norm1"), ("cross_attn", same, "norm2")):
                attention = torch.nn.MultiheadAttention(shape.width, shape.heads, batch_first=True)
                attention.load_state_dict(
                    {
                        key.removeprefix(name + block + "."): value
                        for key, value in at.items()
                        if key.startswith(name + block)
                    }
                )
                x = norm(x + attention(x, x, x, key_padding_mask=padded, attn_mask=hidden)[0], name + normed)
            inner = torch.relu(functional.linear(x, at[f"{name}linear1.weight"], at[f"{name}linear1.bias"]))
            x = norm(
                x + functional.linear(inner, at[f"{name}linear2.weight"], at[f"{name}linear2.bias"]),
                name + "norm3",
            )
        return functional.linear(x[:, 0], at["classifier.weight"], at["classifier.bias"])[:, 0].numpy()
