"""Rerankers with random weights, a dense second opinion on them, and the files of a small gallery."""

import json
from pathlib import Path

import numpy as np

import remap_tokens
from remeasure.instances import first_file, vectors_file
from remeasure.instances.ames import weights
from remeasure.instances.ames.weights import Shape
from remeasure.instances.score_row import Ranks

PUBLISHED = Shape(dim=768, width=128, heads=2, layers=5, ffn=1024)
SMALL = Shape(dim=16, width=32, heads=2, layers=3, ffn=48)


def random_weights(shape: Shape, seed: int, binarises: bool = False) -> dict[str, np.ndarray]:
    """Draw weights; numpy's frozen generator gives the same numbers in every version.

    Tensors are drawn in the order of their sorted names: norms' weights 1 + 0.1 z, biases 0.05 z, the token
    0.5 z, the others z / sqrt(last axis).
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
    """Score pairs as the paper draws it: one sequence of all tokens, masks, torch's attention.

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

    torch.set_num_threads(1)  # two wait for each other where tests run side by side

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


SIZES = {"dim": 16, "width": 32, "heads": 2, "layers": 3, "ffn": 48}
"""Of ``SMALL``, for settings."""
N_QUERIES, N_BENCHMARK, N_DISTRACTORS, N_TOKENS = 3, 20, (6, 5), 40


def remapped(folder: Path, piece: str, source: Path, out: Path) -> int:
    """Run ``remap_tokens`` on one file; return its exit status."""
    settings = json.dumps({"name": "small", "n": N_TOKENS} | SIZES)
    return remap_tokens.main(
        ["--settings", settings, "--piece", piece, "--locals", str(source)]
        + ["--checkpoint", str(folder / "weights.safetensors"), "--out", str(out)]
        + ["--record", str(out.with_suffix(".json"))]
    )


def write_locals(
    path: Path, names: list[str], n_valid: list[int], seed: int, rows=None, extractor="e"
) -> Path:
    """Write random local descriptors as ``extract_locals`` does."""
    x = random_descriptors(len(names), N_TOKENS, SMALL.dim, seed)
    x[np.arange(N_TOKENS) >= np.array(n_valid)[:, None]] = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    vectors_file.write(
        path,
        names,
        about={"extractor": extractor},
        descriptor=x.astype(np.float16),
        n_valid=np.array(n_valid, np.uint16),
        row=np.arange(len(names)) if rows is None else np.array(rows, np.int64),
    )
    return path


def write_first(path: Path, n_gallery: int, seed: int) -> Path:
    """Write a random ranking of a whole gallery."""
    draw = np.random.RandomState(seed)
    top = np.array([draw.permutation(n_gallery) for _ in range(N_QUERIES)], np.int64)
    score = np.tile(np.linspace(1, 0, n_gallery, dtype=np.float32), (N_QUERIES, 1))
    none = np.empty(0, np.int64)
    ranks = tuple(Ranks(none, none, none, none.astype(np.float32), 0) for _ in range(N_QUERIES))
    first_file.write(path, {"": first_file.First(n_gallery, top, score, ranks)}, {})
    return path


def small_gallery(folder: Path) -> Path:
    """Write everything that ``score_pairs`` reads of a benchmark of 20 photographs and 11 distractors."""
    folder.mkdir(parents=True, exist_ok=True)
    weights.write(folder / "weights.safetensors", random_weights(SMALL, 5))
    names = {"queries": [f"q{i}" for i in range(N_QUERIES)], "1of1": [f"g{i}" for i in range(N_BENCHMARK)]}
    truths = [
        {"bbx": [0, 0, 9, 9], "easy": [q], "hard": [q + 3], "junk": [q + 6, q + 9]} for q in range(N_QUERIES)
    ]
    labels = {"schema": 1, "dataset": "tiny", "source_sha256": "0" * 64, "gnd": truths}
    labels |= {"imlist": names["1of1"], "qimlist": names["queries"]}
    (folder / "labels.json").write_text(json.dumps(labels))
    shards, start = [], 0
    for number, n in enumerate(N_DISTRACTORS, 1):
        piece = f"{number}of2"
        names[piece] = [f"d{number}/{i}.jpg" for i in range(n)]
        shards.append({"name": piece, "rows": n, "start": start, "list_sha256": ""})
        start += n
    (folder / "order.json").write_text(json.dumps({"n": start, "shards": shards}))
    for seed, (piece, found) in enumerate(names.items()):
        counts = [N_TOKENS if i % 4 else 7 + i for i in range(len(found))]
        source = write_locals(folder / "locals" / f"{piece}.h5", found, counts, seed)
        assert remapped(folder, piece, source, folder / "tokens" / f"{piece}.h5") == 0
    write_first(folder / "plain.h5", N_BENCHMARK, 1)
    write_first(folder / "other.h5", N_BENCHMARK, 2)
    write_first(folder / "large.h5", N_BENCHMARK + start, 3)
    return folder
