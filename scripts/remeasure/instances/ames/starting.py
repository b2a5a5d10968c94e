"""Weights that a small reranker begins its training with: random ones, and a plain matcher written over them.

From random weights it takes very many steps until attention finds that like descriptors belong together. A
hundred are enough where it begins with that: in the first layer's cross-attention each descriptor looks for
its nearest in the other photograph and writes it beside itself, the feed-forward layer adds up how far the
two agree, and in the second layer the matching token takes the mean of that. All weights are then trained.
"""

import numpy as np

from remeasure.instances.ames.weights import Shape

_SHARPNESS = 20.0
"""A cosine of 1 is so many more than one of 0 before the softmax."""
_GAIN = 0.1
"""Of the sum that says how far two descriptors agree."""
_NOISE = 0.03
"""Share of the random numbers that stays where the matcher writes."""
Tensors = dict[str, np.ndarray]


def random(shape: Shape, seed: int) -> Tensors:
    """Return random weights: small normal numbers, norms that change nothing.

    Source:
        The published module: normal numbers of deviation 0.02, biases 0, uniform numbers of Glorot in the
        maps to queries, keys and values.
    """
    draw = np.random.default_rng(seed)
    found = {}
    for name, size in shape.tensors().items():
        if name.endswith("in_proj_weight"):
            bound = float(np.sqrt(6 / sum(size)))
            made = draw.uniform(-bound, bound, size)
        elif len(size) == 1 and name.endswith("weight"):
            made = np.ones(size)
        elif name.endswith("bias"):
            made = np.zeros(size)
        else:
            made = draw.normal(0, 0.02, size)
        found[name] = made.astype(np.float32)
    return found


def axes(descriptors: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of descriptors, [dim], and their n main axes, [n, dim]; float32, signs are fixed."""
    mean = descriptors.mean(axis=0, dtype=np.float64)
    centred = descriptors.astype(np.float64) - mean
    _, vectors = np.linalg.eigh(centred.T @ centred)
    found = vectors[:, ::-1][:, :n].T
    signs = np.sign(found[np.arange(len(found)), np.abs(found).argmax(axis=1)])
    return mean.astype(np.float32), (found * signs[:, None]).astype(np.float32)


def n_content(shape: Shape) -> int:
    """Return how many numbers of a token hold its descriptor; 0 where there is no room for a matcher."""
    if shape.layers < 2 or shape.heads < 2:
        return 0
    return max(0, min(shape.width // shape.heads - 2, shape.ffn // 4, shape.dim))


def matcher(shape: Shape, descriptors: np.ndarray, seed: int) -> Tensors:
    """Return weights that compare every descriptor with the nearest of the other photograph.

    Args:
        shape: sizes; where they are too small for it (one layer, one head), weights are random.
        descriptors: of photographs to train on, [m, dim], length 1.
        seed: of the random part.
    """
    tensors, n = random(shape, seed), n_content(shape)
    if not n:
        return tensors
    head = shape.width // shape.heads
    content, copy, evidence, marker = np.arange(n), head + np.arange(n), head - 1, 2 * head - 1
    mean, main = axes(descriptors, n)
    for name in tensors:
        if name.endswith(("out_proj.weight", "linear2.weight", "remap_local.0.weight", "mtc_token")):
            _quiet(tensors, name)
    tensors["remap_local.0.weight"][content] = main * np.sqrt(shape.dim)
    tensors["remap_local.0.bias"][content] = -(main @ mean) * np.sqrt(shape.dim)
    tensors["mtc_token"][marker] = 1
    _nearest(tensors, shape, content, copy)
    _agreement(tensors, content, copy, evidence)
    _mean_of(tensors, shape, evidence)
    _quiet(tensors, "classifier.weight")
    tensors["classifier.weight"][0, evidence] = 1
    return tensors


def _quiet(tensors: Tensors, name: str) -> None:
    tensors[name] *= np.float32(_NOISE)


def _nearest(tensors: Tensors, shape: Shape, content: np.ndarray, copy: np.ndarray) -> None:
    """First layer: what is nearest in the other photograph is written beside a descriptor."""
    name, width, head = "decoder.layers.0.cross_attn", shape.width, shape.width // shape.heads
    _quiet(tensors, f"{name}.in_proj_weight")
    # A token has the length sqrt(width), and a head divides by sqrt(head).
    scale = np.sqrt(_SHARPNESS * np.sqrt(head) / width)
    weight = tensors[f"{name}.in_proj_weight"].reshape(3, width, width)
    weight[0, content, content] = weight[1, content, content] = scale
    weight[2, content, content] = 1
    tensors[f"{name}.out_proj.weight"][copy, content] = 1


def _agreement(tensors: Tensors, content: np.ndarray, copy: np.ndarray, evidence: int) -> None:
    """First layer: sum over |a + b| - |a - b|, which is large where both agree in sign and size."""
    up, down = tensors["decoder.layers.0.linear1.weight"], tensors["decoder.layers.0.linear2.weight"]
    up *= np.float32(_NOISE)
    for block, (one, other) in enumerate(((1, 1), (-1, -1), (1, -1), (-1, 1))):
        rows = block * len(content) + np.arange(len(content))
        up[rows, content], up[rows, copy] = one, other
        down[evidence, rows] = _GAIN if one == other else -_GAIN


def _mean_of(tensors: Tensors, shape: Shape, evidence: int) -> None:
    """Second layer: the matching token takes the mean of the agreements."""
    name, width = "decoder.layers.1.self_attn", shape.width
    _quiet(tensors, f"{name}.in_proj_weight")
    tensors[f"{name}.in_proj_weight"].reshape(3, width, width)[2, 0, evidence] = 1
    tensors[f"{name}.out_proj.weight"][evidence, 0] = 1


def calibrated(scores: np.ndarray, same: np.ndarray) -> tuple[float, float]:
    """Return factor and offset that make scores logits of being of one class: logistic regression.

    Args:
        scores: [m].
        same: [m], 0 or 1.

    Edges:
        Scores that are all the same give a factor of 1 and no offset.
    """
    spread = float(scores.std())
    if not spread > 0:
        return 1.0, 0.0
    x = np.stack([(scores - scores.mean()) / spread, np.ones(len(scores))], 1)
    found = np.zeros(2)
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ found))
        curve = (x * (p * (1 - p))[:, None]).T @ x + np.eye(2) * 1e-3 * len(scores)
        found += np.linalg.solve(curve, x.T @ (same - p) - 1e-3 * len(scores) * found)
    factor = float(found[0]) / spread
    return factor, float(found[1]) - factor * float(scores.mean())
