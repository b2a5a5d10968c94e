"""ArcFace: a class is told by the angle to its vector, and the right one must win by a margin.

Source:
    Landmarks card, section 1.5: margin 0.3, scale 32, label smoothing 0.1. Beyond ``π - margin``, where a
    larger angle would no longer mean a smaller logit, the line that usually goes on from there.
"""

import math
from typing import TYPE_CHECKING

from remeasure.instances import torch_module

if TYPE_CHECKING:
    from torch import Tensor

_SMALLEST = 1e-12
"""Under the square root, whose slope at 0 is infinite."""


def with_margin(cosine: "Tensor", margin: float) -> "Tensor":
    """Return ``cos(angle + margin)`` of cosines, float32 of any shape.

    Edges:
        From the angle ``π - margin`` on: ``cosine - margin · sin(margin)``, so that it goes on falling.
    """
    torch = torch_module.load()
    sine = (1.0 - cosine * cosine).clamp(min=_SMALLEST).sqrt()
    turned = cosine * math.cos(margin) - sine * math.sin(margin)
    beyond = cosine - margin * math.sin(margin)
    return torch.where(cosine > math.cos(math.pi - margin), turned, beyond)


def logits(
    descriptors: "Tensor", classes: "Tensor", labels: "Tensor", margin: float, scale: float
) -> "Tensor":
    """Return the logits of every class, with the margin on the right one.

    Args:
        descriptors: [n, dim], of any length.
        classes: [c, dim], a vector per class, of any length.
        labels: int64 [n], the right class of each descriptor.
        margin: added to the angle of the right class, radians.
        scale: what cosines are multiplied by.

    Returns:
        float32 [n, c]. Cosines and margin are taken in float32, whatever the arguments are.
    """
    normalise = torch_module.load().nn.functional.normalize
    # One number of each row is replaced, and the scale goes in before the product: with 81,313 classes every
    # further matrix of this size takes 1.3 GB.
    found = (scale * normalise(descriptors.float(), dim=1)) @ normalise(classes.float(), dim=1).T
    right = found.gather(1, labels[:, None]) / scale
    return found.scatter(1, labels[:, None], scale * with_margin(right, margin))


def loss(
    descriptors: "Tensor",
    classes: "Tensor",
    labels: "Tensor",
    *,
    margin: float,
    scale: float,
    label_smoothing: float,
) -> "Tensor":
    """Return the mean cross-entropy of ``logits``, with smoothed labels; arguments as there."""
    found = logits(descriptors, classes, labels, margin, scale)
    right = found.gather(1, labels[:, None])[:, 0]
    # Torch's own cross-entropy does not promise the same numbers every time on a GPU.
    smoothed = (1 - label_smoothing) * right + label_smoothing * found.mean(dim=1)
    return (found.logsumexp(dim=1) - smoothed).mean()
