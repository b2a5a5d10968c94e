"""How models of torch are opened: where they compute, with which numbers, and from which files."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from remeasure import safetensors_file, torch_file
from remeasure.errors import RemeasureError
from remeasure.instances import torch_module


def device_of() -> str:
    """Return "cuda" where there is a GPU, else "cpu"."""
    return "cuda" if torch_module.load().cuda.is_available() else "cpu"


def type_on(device: str, precision: str) -> Any:
    """Return the type that a model computes with: as is said on a GPU, 32 bits on a CPU."""
    return getattr(torch_module.load(), precision if device == "cuda" else "float32")


def begin(threads: int) -> Any:
    """Return torch, told to use so many threads, and no shortened numbers where 32 bits are said."""
    torch = torch_module.load()
    torch.set_num_threads(max(1, threads))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing bars in a log."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def load_model(kind: str, folder: Path, dtype: Any, device: str) -> Any:
    """Load a model of transformers from a folder; nothing is fetched, and no code of the folder is run.

    Args:
        kind: its class in transformers, such as ``Dinov2Model``.
        folder: ``config.json`` and ``.safetensors``.
        dtype: that it computes with.
        device: where.

    Raises:
        RemeasureError: the folder is none, or its weights are not those of such a model: what is missing
            would be drawn at random.
    """
    check_folder(folder)
    import transformers

    try:
        with quiet():
            model, found = getattr(transformers, kind).from_pretrained(
                str(folder),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=dtype,
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RemeasureError(f"{folder}: not a usable {kind}: {reason[:200]}; fetch it again") from None
    lacking = sorted({*found["missing_keys"], *map(str, found["mismatched_keys"])})
    if lacking:
        raise RemeasureError(
            f"{folder}: lacks {len(lacking)} tensors of a {kind}, the first is {lacking[0]}; give the folder "
            "of such a model"
        )
    return model.to(device).eval()


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


def read_tensors(path: Path, under: str | None = None) -> dict[str, np.ndarray]:
    """Read the tensors of a weight file of either form; a torch file's pickle is not run.

    Args:
        path: the file.
        under: the key that a checkpoint has its weights under, if it has it.

    Raises:
        RemeasureError: neither of the two, or damaged.
    """
    if path.suffix == ".safetensors":
        store = safetensors_file.SafetensorsFile(path)
        return {name: store.read(name) for name in store.specs}
    return torch_file.read(path, under)


def fill(module: Any, tensors: Mapping[str, np.ndarray], place: Path) -> None:
    """Put tensors into a module, all of them and no others.

    Raises:
        RemeasureError: one is missing, too many, of another shape, or not finite.
    """
    torch = torch_module.load()
    wanted = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    wrong = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    if wrong:
        name = wrong[0]
        raise RemeasureError(
            f"{place}: {len(wrong)} tensors do not fit, the first is {name}: found {found.get(name)}, "
            f"expected {wanted.get(name)}; give the weights of this model"
        )
    bad = [
        name for name, value in tensors.items() if value.dtype.kind == "f" and not np.isfinite(value).all()
    ]
    if bad:
        raise RemeasureError(f"{place}: {bad[0]} is not finite; fetch it again")
    module.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in tensors.items()})
