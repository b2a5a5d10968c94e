"""What a site has, as ``slurm/partitions.yaml`` says: partitions, their limits, and how GPUs are asked for.

The same file is read by Snakemake's SLURM executor, which takes ``partitions:`` and ignores the rest; the
choice of a partition here is its choice (scoring of snakemake-executor-plugin-slurm 2.8.0; a test compares).
"""

import functools
import math
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.needs import Needs
from remeasure.yaml_files import Settings, convert, read_yaml

_UNITS_MIN = {"d": 1440.0, "h": 60.0, "m": 1.0, "s": 1 / 60}
_SECTIONS = ("partitions", "gpus")
# The executor takes any of these words for the same thing.
_CLUSTER_KEYS = ("cluster", "clusters", "slurm_cluster")
_Limit = Annotated[float, Meta(gt=0)] | None


class Partition(Settings, kw_only=True):
    """Limits of one partition, as the executor reads them; null: none."""

    max_runtime: int | float | str | None = None
    """Minutes, or 12h, 2d, 1-12:00:00."""
    max_mem_mb: _Limit = None
    max_mem_mb_per_cpu: _Limit = None
    max_cpus_per_task: _Limit = None
    max_threads: _Limit = None
    max_nodes: _Limit = None
    max_tasks: _Limit = None
    max_tasks_per_node: _Limit = None
    max_gpu: Annotated[int, Meta(ge=0)] = 0
    available_gpu_models: list[str] | None = None
    """Spelled as ``sinfo -o %G`` spells them; null: any."""
    max_cpus_per_gpu: _Limit = None
    supports_mpi: bool = True
    max_mpi_tasks: _Limit = None
    available_constraints: list[str] | None = None
    cluster: str | None = None
    clusters: str | None = None
    slurm_cluster: str | None = None

    def max_runtime_min(self) -> float:
        """Return the longest time of a job in minutes."""
        return math.inf if self.max_runtime is None else minutes(self.max_runtime)

    def score(self, needs: Needs) -> float | None:
        """Return how closely a need fills this partition; null where it does not fit. The highest wins."""
        if any(getattr(self, key) is not None for key in _CLUSTER_KEYS):
            return None  # a partition of another cluster; our jobs name none
        score = 0.0
        threads = max(needs.threads or 1, 1)
        asked = (
            (needs.mem_mb or 0, self.max_mem_mb),
            (needs.runtime_min or 0, self.max_runtime_min()),
            # The executor counts threads once as such and once as processors of a task.
            (threads, self.max_threads),
            (threads, self.max_threads),
            (threads, self.max_cpus_per_task),
        )
        for value, limit in asked:
            if limit is None or math.isinf(limit) or value <= 0:
                continue
            if value > limit:
                return None
            score += value / limit
        n_gpus = needs.gpu or 0
        if n_gpus == 0:
            return score - 1 if self.max_gpu > 0 else score
        if n_gpus > self.max_gpu:
            return None
        if needs.gpu_model and self.available_gpu_models and needs.gpu_model not in self.available_gpu_models:
            return None
        return score + n_gpus / self.max_gpu


class Gpus(Settings, kw_only=True):
    """How GPUs are asked for."""

    typed: bool = True
    """Whether the scheduler knows models (``gpu:h100:2``); without, partitions and constraints decide."""
    features: dict[str, str] = {}
    """Constraint that leads to nodes with a model, for a site whose GPUs have no type."""
    instead: dict[str, str] = {}
    """What the site has, or how it spells it, in place of a model that steps name."""


class Site:
    """A site: its partitions in the file's order, and how its GPUs are asked for."""

    def __init__(self, partitions: dict[str, Partition], gpus: Gpus | None = None) -> None:
        self.partitions = partitions
        self.gpus = gpus or Gpus()

    def here(self, needs: Needs) -> Needs:
        """Return a need with the model of GPU that this site has for the one that is named."""
        model = self.gpus.instead.get(needs.gpu_model or "")
        return msgspec.structs.replace(needs, gpu_model=model) if model else needs

    def fits(self, needs: Needs) -> str | None:
        """Return the partition that the executor chooses for a need; null where none can hold it."""
        best, best_score = None, -math.inf
        for name, partition in self.partitions.items():
            score = partition.score(needs)
            if score is not None and score > best_score:
                best, best_score = name, score
        return best

    def cap(self, needs: Needs, mem_mb: float, runtime_min: float) -> tuple[int, int]:
        """Return what a repeated job asks for: grown as wished, never beyond what one partition can give.

        Args:
            needs: what the first attempt asks for.
            mem_mb: memory that the repeated job would like, MiB.
            runtime_min: time that it would like, minutes.

        Returns:
            Memory and time that some partition holds that holds ``needs``; both as wished where none does
            (the first attempt has been refused then).
        """
        wished = (int(mem_mb), int(runtime_min))
        best, best_share = wished, -1.0
        for partition in self.partitions.values():
            if partition.score(needs) is None:
                continue
            limit = math.inf if partition.max_mem_mb is None else partition.max_mem_mb
            given = (int(min(mem_mb, limit)), int(min(runtime_min, partition.max_runtime_min())))
            share = math.prod(g / w if w > 0 else 1.0 for g, w in zip(given, wished, strict=True))
            if share > best_share:
                best, best_share = given, share
        return best

    def extra_resources(self, needs: Needs) -> dict[str, str | None]:
        """Return what a job must say beside its needs where the scheduler does not know models of GPUs.

        Returns:
            ``slurm_partition`` and ``constraint``, both null where the executor decides by itself.
        """
        if self.gpus.typed or not needs.gpu:
            return {"slurm_partition": None, "constraint": None}
        return {
            "slurm_partition": self.fits(needs),
            "constraint": self.gpus.features.get(needs.gpu_model or ""),
        }

    def sent_model(self, needs: Needs) -> str | None:
        """Return the model of GPU that is sent to the scheduler; null for any, or where it knows none."""
        return needs.gpu_model if self.gpus.typed and needs.gpu else None


def load(path: Path) -> Site:
    """Read a site's file.

    Raises:
        RemeasureError: no such file, unknown key, a limit that is no number or time, or names that
            contradict.
    """
    raw = read_yaml(path)
    # YAML 1.1 reads 4:00:00 as 14400, and the executor takes that for minutes.
    base_60 = re.search(
        r"max_runtime:\s*(\d+(?::\d+)+)\s*(?:[,}#]|$)", path.read_text(encoding="utf-8"), re.M
    )
    if base_60:
        raise RemeasureError(
            f"{path}: max_runtime: {base_60[1]} is read to base 60 by YAML; put it in quotes, or write 4h"
        )
    for key in raw:
        if key not in _SECTIONS:
            hint = did_you_mean(key, _SECTIONS)
            raise RemeasureError(
                f"{path}: unknown key {str(key)[:80]!r}{hint}; known: {', '.join(_SECTIONS)}"
            )
    partitions = {
        name: _section(value, Partition, f"{path}: partitions.{name}")
        for name, value in _partitions(raw, path).items()
    }
    gpus = _section(raw.get("gpus", {}), Gpus, f"{path}: gpus")
    for name, partition in partitions.items():
        place = f"{path}: partitions.{name}"
        try:
            partition.max_runtime_min()
        except ValueError as error:
            raise RemeasureError(f"{place}.max_runtime: {error}; write 720, 12h or 1-12:00:00") from None
        if partition.available_gpu_models and not partition.max_gpu:
            raise RemeasureError(f"{place}: lists GPU models but no max_gpu; say how many one job may have")
    for model in [*gpus.features, *gpus.instead.values()]:
        offered = {m for p in partitions.values() for m in p.available_gpu_models or ()}
        if model not in offered:
            hint = did_you_mean(model, offered)
            raise RemeasureError(f"{path}: gpus: {model!r}: no partition lists that model{hint}")
    for name, partition in partitions.items():
        unmarked = [model for model in partition.available_gpu_models or () if model not in gpus.features]
        if not gpus.typed and unmarked and len(partition.available_gpu_models) > 1:
            models = ", ".join(partition.available_gpu_models)
            raise RemeasureError(
                f"{path}: partitions.{name}: has {models}, but without types nothing leads a job to "
                f"{unmarked[0]}; name the node feature that stands for it, "
                f"`gpus: {{features: {{{unmarked[0]}: …}}}}`"
            )
    return Site(partitions, gpus)


def find(path: Path) -> Site | None:
    """Read the file of the site that this checkout is set up for; null where there is none."""
    return load(path) if path.exists() else None


def _partitions(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the section of partitions, each with a name; YAML turns some words into something else."""
    found = raw.get("partitions")
    if not isinstance(found, dict) or not found:
        raise RemeasureError(f"{path}: names no partitions; add `partitions:` with a line for each")
    for name in found:
        if not isinstance(name, str) or not name.strip():
            raise RemeasureError(f'{path}: partitions: {name!r} is no name; put it in quotes, like "gpu"')
        if name.startswith("-") or not name.isprintable() or name != name.strip():
            raise RemeasureError(
                f"{path}: partitions: {name[:80]!r} is the name of no partition; `sinfo -o %R` shows them"
            )
        if found[name] is None:
            raise RemeasureError(
                f"{path}: partitions.{name}: says nothing; write {{}} where it has no limits"
            )
    return found


def _section(value: Any, kind: type, place: str) -> Any:
    try:
        return convert(value, kind, Path(place))
    except RemeasureError as error:
        raise RemeasureError(str(error).replace(f"{place}: top level: ", f"{place}: ")) from None


@functools.lru_cache(maxsize=None, typed=True)
def minutes(value: int | float | str) -> float:
    """Return a time limit in whole minutes, rounded half up, read as the executor reads it.

    Raises:
        ValueError: it is no time.
    """
    said = str(value).strip().lower()
    number = re.fullmatch(r"\d{1,9}(\.\d{1,9})?", said, re.ASCII)
    slurm = re.fullmatch(r"(?:(\d{1,5})-)?(\d{1,7})(?::(\d{1,4}))?(?::(\d{1,4}))?", said, re.ASCII)
    if number:
        found = float(said)
    elif slurm:
        days, hours, rest, seconds = (int(part or 0) for part in slurm.groups())
        found = days * 1440 + hours * 60 + rest + seconds / 60
    elif re.fullmatch(r"(\d{1,9}(\.\d{1,9})?\s*[dhms]\s*)+", said, re.ASCII):
        found = sum(float(n) * _UNITS_MIN[unit] for n, unit in re.findall(r"([\d.]+)\s*([dhms])", said))
    else:
        raise ValueError(f"{str(value)[:40]!r} is no time")
    rounded = math.floor(found + 0.5)
    if rounded < 1:
        raise ValueError(f"{str(value)[:40]!r} is no time of a minute or more")
    return rounded
