"""The network of a head, for training it; a finished one is applied without torch (``projecting``)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from remeasure.instances import torch_module
from remeasure.instances.heads.model import COUNTER

if TYPE_CHECKING:
    from torch import nn


def build(width: int, hidden: int, dim: int) -> "nn.Sequential":
    """Return a head with torch's usual first weights, drawn from torch's generator."""
    nn = torch_module.load().nn
    return nn.Sequential(
        nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, dim, bias=False), nn.BatchNorm1d(dim)
    )


def tensors(head: "nn.Sequential") -> dict[str, np.ndarray]:
    """Return the tensors of a head, float32, by name."""
    state = head.state_dict()
    return {name: state[name].cpu().numpy().copy() for name in state if not name.endswith(COUNTER)}


def load(head: "nn.Sequential", found: Mapping[str, np.ndarray]) -> None:
    """Put tensors into a head."""
    torch = torch_module.load()
    counters = {name: value for name, value in head.state_dict().items() if name.endswith(COUNTER)}
    head.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in found.items()} | counters)
