"""Where a training stands after an epoch: one that is killed goes on from there with the same numbers.

A folder holds the numbers of the last epoch (safetensors) and, written after them, a record that names them.
It is no declared output; a training that ends removes it.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from remeasure import jsonl, safetensors_file
from remeasure.errors import RemeasureError
from remeasure.number_types import Spec

RECORD = "state.json"


class Epoch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an epoch went."""

    epoch: int
    """From 0, as published numbers count; 0 is the first pass over the photographs."""
    rate: float
    loss: float
    value: float
    """mAP that chooses the epoch, 0 to 1."""


class State(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a training has done."""

    key: str
    """SHA-256 of its settings and of what it is trained on."""
    numbers: str
    """File name of its tensors."""
    history: tuple[Epoch, ...]
    finished: bool = False


class Folder:
    """The checkpoint of one training.

    Args:
        path: the folder.
        key: of the training; a checkpoint of another one is passed over.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self._key = path, key

    def read(self) -> tuple[State, dict[str, np.ndarray]] | None:
        """Return the last state and its tensors; None where there is none of this training."""
        try:
            state = jsonl.read_json(self.path / RECORD, State)
            if state.key != self._key or Path(state.numbers).name != state.numbers:
                return None
            opened = safetensors_file.SafetensorsFile(self.path / state.numbers)
        except RemeasureError:
            return None
        return state, {name: opened.read(name) for name in opened.specs}

    def write(
        self, history: tuple[Epoch, ...], tensors: Mapping[str, np.ndarray], *, finished: bool = False
    ) -> None:
        """Keep the state after an epoch; that of the epoch before is removed afterwards."""
        name = f"{len(history)}.safetensors"
        specs = {key: Spec("F32", value.shape) for key, value in tensors.items()}
        safetensors_file.write(self.path / name, specs, lambda key: [tensors[key]])
        state = State(key=self._key, numbers=name, history=history, finished=finished)
        jsonl.write_json(self.path / RECORD, state)
        for other in self.path.glob("*.safetensors"):
            if other.name != name:
                other.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a folder of checkpoints, if there is one."""
    shutil.rmtree(path, ignore_errors=True)


def of(parts: Path | None, name: str, key: str) -> Folder | None:
    """Return the checkpoint of a training below a folder; None without one."""
    return None if parts is None else Folder(parts / name, key)


def builtins(history: tuple[Epoch, ...]) -> list[dict[str, Any]]:
    """Return epochs as they stand in a report."""
    return [{"epoch": one.epoch, "rate": one.rate, "loss": one.loss, "value": one.value} for one in history]
