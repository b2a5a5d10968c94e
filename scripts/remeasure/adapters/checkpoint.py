"""Weights of a folder, in one file or in shards, safetensors or torch's: one set of named tensors."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.number_types import Spec
from remeasure.safetensors_file import SafetensorsFile
from remeasure.torch_file import TorchFile

# In the order in which they are looked for.
_NAMES = ("model.safetensors", "pytorch_model.bin")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_TENSOR = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
# Numbers that are held at a time: of them 4 bytes each, and of their product with an adapter as many.
_BLOCK = 8_000_000


class Checkpoint:
    """Named tensors of one or several files.

    Args:
        paths: files that all belong together.

    Raises:
        RemeasureError: a tensor that stands in two files, or is named as none is.
    """

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.specs: dict[str, Spec] = {}
        self._files: dict[str, SafetensorsFile | TorchFile] = {}
        for path in paths:
            opened = open_weights(path)
            for name, spec in opened.specs.items():
                if not _TENSOR.match(name):
                    raise RemeasureError(
                        f"{path}: a tensor is named {name[:80]!r}; expected letters, digits, dots and "
                        "dashes: do not use the file"
                    )
                if name in self._files:
                    raise RemeasureError(
                        f"{path}: tensor {name} stands in {self._files[name].path.name} too; fetch both again"
                    )
                self.specs[name], self._files[name] = spec, opened

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return a tensor or some of its rows."""
        return self._files[name].read(name, start, stop)

    def blocks(self, name: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield a tensor's rows a few at a time, each piece with the number of its first row."""
        spec = self.specs[name]
        n_rows = max(1, _BLOCK // max(1, spec.width))
        for start in range(0, spec.shape[0] if spec.shape else 1, n_rows):
            yield start, self.read(name, start, start + n_rows)

    def where(self, name: str) -> str:
        """Return the file that a tensor stands in, for messages."""
        return str(self._files[name].path)


def open_weights(path: Path) -> SafetensorsFile | TorchFile:
    """Open a weight file by the ending of its name."""
    return SafetensorsFile(path) if path.suffix == ".safetensors" else TorchFile(path)


def of_folder(folder: Path) -> Checkpoint:
    """Open the weights of a model's folder.

    Raises:
        RemeasureError: no weights, an index with a file that is missing or lies elsewhere, or a tensor that
            the index names and no file has.
    """
    for name in _NAMES:
        index = folder / f"{name}.index.json"
        if index.is_file():
            return _of_index(folder, index)
        if (folder / name).is_file():
            return Checkpoint([folder / name])
    raise RemeasureError(
        f"{folder}: holds neither {' nor '.join(_NAMES)}, whole or with an index; put the model's files there"
    )


def _of_index(folder: Path, index: Path) -> Checkpoint:
    places: Any = read_config(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise RemeasureError(f"{index}: has no weight_map; fetch it again")
    for file in places.values():
        if not isinstance(file, str) or not _PLAIN.match(file):
            raise RemeasureError(
                f"{index}: names the file {str(file)[:80]!r}, which lies elsewhere; do not use it"
            )
    found = Checkpoint([folder / file for file in sorted(set(places.values()))])
    missing = sorted(places.keys() - found.specs.keys())
    if missing:
        raise RemeasureError(
            f"{folder}: tensor {missing[0][:80]} and {len(missing) - 1} more of {index.name} are in no file; "
            "fetch the files again"
        )
    return found


def read_config(path: Path) -> dict[str, Any]:
    """Read a JSON object; errors as of ``jsonl.read_json``."""
    return jsonl.read_json(path, dict)
