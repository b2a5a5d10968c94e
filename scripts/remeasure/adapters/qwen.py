"""Qwen2-VL and Qwen2.5-VL: bases have vLLM's layout already; adapters spell their names in two ways."""

from pathlib import Path
from typing import Any

from remeasure.adapters.checkpoint import Checkpoint, read_config
from remeasure.adapters.merging import Place
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes

_KINDS = {"qwen2-vl": "qwen2_vl", "qwen2-5-vl": "qwen2_5_vl"}
# Since transformers 4.52 the parts of the model lie deeper; files of bases keep the older names.
_DEEPER = {"model.language_model.": "model.", "model.visual.": "visual."}
_NEEDED = ("config.json", "preprocessor_config.json", "tokenizer_config.json")
# All that tokenizers, processors and defaults of sampling are read from.
FILES = (
    *_NEEDED,
    *(
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "generation_config.json",
        "merges.txt",
    ),
    *("processor_config.json", "special_tokens_map.json", "tokenizer.json", "video_preprocessor_config.json"),
    "vocab.json",
)


def canonical(name: str) -> str:
    """Return the older spelling of a tensor's name."""
    for deeper, older in _DEEPER.items():
        if name.startswith(deeper):
            return older + name.removeprefix(deeper)
    return name


def places(base: Checkpoint, folder: str) -> dict[str, Place]:
    """Return where the base's numbers are, by canonical name, in the order of its files.

    Raises:
        RemeasureError: two tensors of one canonical name.
    """
    found: dict[str, Place] = {}
    for name in base.specs:
        if found.setdefault(canonical(name), Place(base, name)).name != name:
            raise RemeasureError(
                f"{folder}: tensors {found[canonical(name)].name} and {name} are one; fetch it again"
            )
    return found


def check(folder: Path, family: str) -> dict[str, Any]:
    """Return the base's configuration.

    Raises:
        RemeasureError: a file is missing, or it is a model of another family.
    """
    missing = [name for name in _NEEDED if not (folder / name).is_file()]
    if missing:
        raise RemeasureError(f"{folder}: {missing[0]} is missing; put all files of the model there")
    config = read_config(folder / "config.json")
    if config.get("model_type") != _KINDS[family]:
        raise RemeasureError(
            f"{folder}: config.json says model_type {str(config.get('model_type'))[:40]!r}, family {family} "
            f"is {_KINDS[family]}; correct `family` or `base`"
        )
    return config


def template_sha256(folder: Path) -> str:
    """Return the hash of the chat template that is used of a model's folder: of its own file, or a setting.

    Raises:
        RemeasureError: there is none.
    """
    if (folder / "chat_template.jinja").is_file():
        return sha256_bytes((folder / "chat_template.jinja").read_bytes())
    for name in ("chat_template.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            found = read_config(folder / name).get("chat_template")
            if isinstance(found, str):
                return sha256_bytes(found.encode())
    raise RemeasureError(f"{folder}: has no chat template; fetch chat_template.json of the model")
