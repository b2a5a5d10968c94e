"""What a PEFT folder wants changed, by tensor: everything in it is used once, or refused with a reason."""

import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from remeasure.adapters.checkpoint import Checkpoint, read_config
from remeasure.errors import RemeasureError
from remeasure.number_types import FLOATS, Spec

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
# Read here, or of no weight: who trained it, how, and for what.
_HARMLESS = {
    *(
        "auto_mapping",
        "base_model_name_or_path",
        "inference_mode",
        "lora_dropout",
        "peft_version",
        "revision",
    ),
    *(
        "task_type",
        "qalora_group_size",
        "runtime_config",
        "ephemeral_gpu_offload",
        "peft_type",
        "r",
        "lora_alpha",
    ),
    *(
        "target_modules",
        "exclude_modules",
        "modules_to_save",
        "rank_pattern",
        "alpha_pattern",
        "use_rslora",
        "bias",
    ),
    *("layers_to_transform", "layers_pattern", "init_lora_weights", "megatron_core", "ensure_weight_tying"),
}
# Ways to begin that change the base's weights as well: only with these is the base what it was.
_BEGINNINGS = (True, False, "gaussian", "orthogonal", "eva", None)
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<part>A|B)(?:\.default)?\.weight\Z")
_EMBEDDING = re.compile(r"(?P<module>.+)\.lora_embedding_(?P<part>A|B)(?:\.default)?\Z")
_WHOLE = re.compile(
    r"(?P<module>.+?)(?:\.modules_to_save)?(?:\.default)?(?:\.base_layer)?\.(?P<kind>weight|bias)\Z"
)
_PREFIX = "base_model.model."


class Pair(NamedTuple):
    """A low-rank change of one weight: ``scale · up · down`` is added, for embeddings its transpose."""

    down: str
    """Tensor of shape (rank, columns)."""
    up: str
    """Tensor of shape (rows, rank)."""
    rank: int
    scale: float
    is_embedding: bool
    module: str
    """Name of the module as the adapter says it."""


class Changes(NamedTuple):
    """What an adapter does to the weights of its base, by the base's tensor names."""

    pairs: dict[str, Pair]
    replaced: dict[str, str]
    """Tensors that were trained whole: name in the base to name in the adapter."""


def open_folder(folder: Path) -> tuple[dict[str, Any], Checkpoint]:
    """Open an adapter's configuration and weights.

    Raises:
        RemeasureError: one of them is missing or damaged.
    """
    config = read_config(folder / CONFIG)
    there = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    if not there:
        raise RemeasureError(f"{folder}: holds no {' or '.join(WEIGHTS)}; put the adapter's files there")
    return config, Checkpoint(there[:1])


def check_config(config: dict[str, Any], place: str) -> None:
    """Refuse what would have to be ignored.

    Raises:
        RemeasureError: another kind of adapter, DoRA, a setting that is not known, or numbers that are none.
    """

    def refuse(what: str) -> None:
        raise RemeasureError(f"{place}: {what}; this adapter cannot be merged here")

    if config.get("peft_type") != "LORA":
        refuse(f"peft_type is {str(config.get('peft_type'))[:40]!r}, expected LORA")
    if config.get("use_dora"):
        refuse("use_dora: the lengths that DoRA trains are no sum of base and product")
    if config.get("fan_in_fan_out"):
        refuse("fan_in_fan_out: weights that lie transposed are in none of these models")
    beginning = config.get("init_lora_weights", True)
    if not isinstance(beginning, bool | str | None) or beginning not in _BEGINNINGS:
        refuse(f"init_lora_weights is {str(beginning)[:40]!r}, which changes the base's weights as well")
    if config.get("bias", "none") not in ("none", "all", "lora_only"):
        refuse(f"bias is {str(config.get('bias'))[:40]!r}, expected none, all or lora_only")
    unknown = [
        name for name, value in config.items() if name not in _HARMLESS and value not in (None, False, [], {})
    ]
    if unknown:
        refuse(f"{str(unknown[0])[:40]} is set, and what it means for the weights is not known")
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        refuse(f"r is {rank!r}, expected a whole number from 1 on")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not math.isfinite(alpha) or not alpha:
        refuse(f"lora_alpha is {alpha!r}, expected a number other than 0")
    for name, kind in (("rank_pattern", int), ("alpha_pattern", int | float)):
        found = config.get(name) or {}
        if not isinstance(found, dict) or not all(isinstance(n, kind) and n > 0 for n in found.values()):
            refuse(f"{name}: expected names of modules with numbers above 0")


def _by_pattern(patterns: dict[str, Any], module: str, usual: Any, place: str) -> Any:
    """Return the value of the first pattern that a module's name ends with.

    Source:
        PEFT 0.17, ``get_pattern_key``.
    """
    try:
        return next((v for key, v in patterns.items() if re.match(rf"(.*\.)?({key})$", module)), usual)
    except re.error as error:
        raise RemeasureError(f"{place}: a pattern is no regular expression ({error}); correct it") from None


def scale_of(config: dict[str, Any], module: str, place: str) -> tuple[int, float]:
    """Return rank and scale of a module: alpha / r, or alpha / sqrt(r) with ``use_rslora``."""
    rank = _by_pattern(config.get("rank_pattern") or {}, module, config["r"], f"{place}: rank_pattern")
    alpha = _by_pattern(
        config.get("alpha_pattern") or {}, module, config["lora_alpha"], f"{place}: alpha_pattern"
    )
    return rank, alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def changes(
    config: dict[str, Any],
    adapter: Checkpoint,
    base: dict[str, Spec],
    canonical: Callable[[str], str],
    place: str,
) -> Changes:
    """Assign every tensor of an adapter to the tensor of the base that it changes.

    Args:
        config: ``adapter_config.json``.
        adapter: its weights.
        base: tensors of the base by canonical name.
        canonical: how a name that the adapter uses is spelt in ``base``.
        place: the adapter's folder, for messages.

    Raises:
        RemeasureError: a tensor without a target, of another shape or type, without its other half, twice for
            one target, or one that the configuration names and the file lacks.
    """
    check_config(config, f"{place}/{CONFIG}")
    halves: dict[tuple[str, bool], dict[str, str]] = defaultdict(dict)
    found = Changes({}, {})
    for name in adapter.specs:
        if not name.startswith(_PREFIX):
            raise RemeasureError(
                f"{place}: tensor {name} does not begin with {_PREFIX}; it is no PEFT adapter"
            )
        rest = name.removeprefix(_PREFIX)
        if match := _PAIR.match(rest) or _EMBEDDING.match(rest):
            half = halves[match["module"], "lora_embedding_" in rest]
            if half.setdefault(match["part"], name) != name:
                raise RemeasureError(
                    f"{place}: tensors {half[match['part']]} and {name} are one; fetch it again"
                )
        elif (match := _WHOLE.match(rest)) and "lora_" not in rest:
            _take_whole(found, name, match, config, canonical, place)
        else:
            raise RemeasureError(
                f"{place}: tensor {name} is of a kind that cannot be merged (DoRA, LoRA bias, …)"
            )
    for (module, is_embedding), half in halves.items():
        _take_pair(found, module, is_embedding, half, config, canonical, place)
    _check_shapes(found, adapter, base, place)
    _check_modules(found, config, base, canonical, place)
    return found


def _take_whole(found: Changes, name: str, match, config, canonical, place: str) -> None:
    module, kind = match["module"], match["kind"]
    listed = config.get("modules_to_save") or []
    is_saved = any(re.match(rf"(^|.*\.){re.escape(str(m))}($|\..*)", module) for m in listed)
    if not is_saved and not (kind == "bias" and config.get("bias", "none") != "none"):
        raise RemeasureError(
            f"{place}: tensor {name} is whole, but {CONFIG} names it neither under modules_to_save nor as a "
            "bias; it may belong to another adapter"
        )
    target = canonical(f"{module}.{kind}")
    if found.replaced.setdefault(target, name) != name:
        raise RemeasureError(f"{place}: tensors {found.replaced[target]} and {name} both replace {target}")


def _take_pair(found: Changes, module: str, is_embedding: bool, half, config, canonical, place: str) -> None:
    missing = {"A", "B"} - half.keys()
    if missing:
        raise RemeasureError(
            f"{place}: LoRA of {module} lacks its half {missing.pop()}; fetch the adapter again"
        )
    rank, scale = scale_of(config, module, f"{place}/{CONFIG}")
    target = canonical(f"{module}.weight")
    if target in found.pairs or target in found.replaced:
        raise RemeasureError(f"{place}: two changes of {target}; it is not one adapter")
    found.pairs[target] = Pair(half["A"], half["B"], rank, scale, is_embedding, module)


def _check_shapes(found: Changes, adapter: Checkpoint, base: dict[str, Spec], place: str) -> None:
    for target, name in (
        *found.replaced.items(),
        *((target, pair.down) for target, pair in found.pairs.items()),
    ):
        if target not in base:
            raise RemeasureError(
                f"{place}: tensor {name} changes {target}, which the base lacks; it belongs to another base"
            )
    for target, name in found.replaced.items():
        if adapter.specs[name].shape != base[target].shape:
            _refuse_shape(place, name, adapter.specs[name].shape, target, base[target].shape)
    for target, pair in found.pairs.items():
        shape = base[target].shape
        if len(shape) != 2:
            raise RemeasureError(
                f"{place}: LoRA of {target}, a tensor of shape {shape}; only matrices can be merged"
            )
        rows, columns = reversed(shape) if pair.is_embedding else shape
        for name, wanted in ((pair.down, (pair.rank, columns)), (pair.up, (rows, pair.rank))):
            if adapter.specs[name].shape != wanted:
                _refuse_shape(place, name, adapter.specs[name].shape, target, shape, f", rank {pair.rank}")
    for name, spec in adapter.specs.items():
        if spec.kind not in FLOATS:
            raise RemeasureError(f"{place}: tensor {name} holds {spec.kind}, no numbers to merge")


def _refuse_shape(place: str, name: str, found, target: str, wanted, also: str = "") -> None:
    raise RemeasureError(
        f"{place}: tensor {name} has shape {found}, which does not fit {target} of shape {wanted}{also}; it "
        "belongs to another base or is damaged"
    )


def _check_modules(found: Changes, config, base: dict[str, Spec], canonical, place: str) -> None:
    """Check that all modules are there that the configuration names, in all layers that have one."""
    listed, modules = config.get("target_modules"), [pair.module for pair in found.pairs.values()]
    if not modules and not found.replaced:
        raise RemeasureError(f"{place}: holds no tensor; put the adapter's files there")
    if not isinstance(listed, list) or config.get("layers_to_transform") is not None:
        return  # an expression, or some layers: what it leaves out cannot be told from what is missing
    for word in map(str, listed):
        if not any(module == word or module.endswith(f".{word}") for module in modules):
            raise RemeasureError(f"{place}: {CONFIG} names the module {word[:80]}, but no tensor is for it")
    if any(re.search(r"\d", str(word)) for word in listed) or config.get("exclude_modules"):
        return
    kinds = {re.sub(r"\.\d+\.", ".#.", target) for target in found.pairs}
    for target in base:
        if re.sub(r"\.\d+\.", ".#.", target) in kinds and target not in found.pairs:
            raise RemeasureError(
                f"{place}: there is no LoRA of {target}, but of other layers; fetch it again"
            )
