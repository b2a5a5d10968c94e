"""How models of torch are opened: where they compute, with which numbers, and from which files."""

from pathlib import Path
from typing import Any

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module


def device_of() -> str:
    """Return "cuda" where there is a GPU, else "cpu"."""
    return "cuda" if torch_module.load().cuda.is_available() else "cpu"


def type_on(device: str, precision: str) -> Any:
    """Return the type that a model computes with: as is said on a GPU, 32 bits on a CPU."""
    return getattr(torch_module.load(), precision if device == "cuda" else "float32")


def begin(threads: int) -> Any:
    """Return torch, told to use so many threads and to give the same numbers every time."""
    torch = torch_module.load()
    torch.set_num_threads(max(1, threads))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def check_folder(model: Path) -> None:
    """Check that a folder holds a model of transformers with weights that run no code.

    Raises:
        RemeasureError: it lacks ``config.json`` or ``.safetensors``.
    """
    lacking = [] if (model / "config.json").is_file() else ["config.json"]
    lacking += [] if any(model.glob("*.safetensors")) else ["weights (.safetensors)"]
    if lacking:
        raise RemeasureError(
            f"{model}: has no {lacking[0]}; give the folder of a model as transformers saves it"
        )
