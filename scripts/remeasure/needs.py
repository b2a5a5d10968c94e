"""What a step asks of a machine, and how that becomes the resources of a rule.

A run says it beside the model, encoder or corpus that needs it (``needs:``); what it leaves open is what the
rule says. Rules never say where something runs: which partition has such machines stands in ``slurm/``.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from remeasure.errors import RemeasureError
from remeasure.yaml_files import Count, Positive, Settings

if TYPE_CHECKING:
    from remeasure.cluster.site import Site

# As SLURM writes the type of a GPU; compared letter by letter.
GpuModel = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.]+\Z")]


class Needs(Settings, kw_only=True):
    """What one step asks of a machine; null: what its rule says."""

    gpu: Count = 0
    """Number of GPUs."""
    gpu_model: GpuModel | None = None
    """Type of GPU as the cluster calls it; null: any."""
    threads: Positive | None = None
    mem_mb: Positive | None = None
    """Main memory of the first attempt; each further attempt asks for as much again."""
    runtime_min: Positive | None = None
    """Time limit of the first attempt, minutes; each further attempt asks for as much again."""


class CorpusNeeds(Settings, kw_only=True):
    """What the stages of a corpus ask for."""

    render: Needs = Needs()
    ocr: Needs = Needs()
    text: Needs = Needs()


class EncoderNeeds(Settings, kw_only=True):
    """What the stages of an encoder ask for."""

    embed: Needs = Needs()
    index: Needs = Needs()
    search: Needs = Needs()
    train: Needs = Needs()


def check_needs(needs: Settings, place: str) -> None:
    """Check what the fields of a step's needs say together.

    Args:
        needs: of one step, or of several by name.
        place: where they stand, for the error text.

    Raises:
        RemeasureError: a model of GPU for a step that asks for none.
    """
    if not isinstance(needs, Needs):
        for name in needs.__struct_fields__:
            check_needs(getattr(needs, name), f"{place}.{name}")
    elif needs.gpu_model is not None and not needs.gpu:
        raise RemeasureError(f"{place}: gpu_model {needs.gpu_model!r} but gpu: 0; say how many, `gpu: 1`")


class RuleResources:
    """Turns what steps need into what rules say under ``threads:`` and ``resources:``.

    Args:
        site: the cluster that jobs may be sent to (``cluster.site.Site``); null: none is described.
        usual: what the profile says for every job, by resource: what a rule says would beat it.
    """

    def __init__(self, site: "Site | None" = None, usual: Mapping[str, Any] | None = None) -> None:
        self._site = site
        self._usual = usual or {}

    def threads(self, find: Callable[[Any], Needs], usual: int) -> Callable[[Any], int]:
        """Return a function of wildcards for ``threads:``.

        Args:
            find: the step's needs by wildcards.
            usual: where they say nothing.
        """
        return lambda wildcards: find(wildcards).threads or usual

    def of(self, find: Callable[[Any], Needs], mem_mb: int, runtime: int) -> dict[str, Callable[..., Any]]:
        """Return the named functions of wildcards for ``resources:``.

        Memory and time grow with each attempt. A retry is the profile's to grant: a step that was killed for
        want of either gets more, and one that was interrupted goes on.

        Args:
            find: the step's needs by wildcards.
            mem_mb: main memory where they say nothing, MB.
            runtime: time limit where they say nothing, minutes.
        """

        def first(wildcards) -> Needs:
            found = self._site.here(find(wildcards)) if self._site else find(wildcards)
            return msgspec.structs.replace(
                found, mem_mb=found.mem_mb or mem_mb, runtime_min=found.runtime_min or runtime
            )

        def grown(wildcards, attempt: int) -> tuple[int, int]:
            needs = first(wildcards)
            wished = needs.mem_mb * attempt, needs.runtime_min * attempt
            return self._site.cap(needs, *wished) if self._site else wished

        def gpu_model(wildcards) -> str | None:
            return self._site.sent_model(first(wildcards)) if self._site else first(wildcards).gpu_model

        named: dict[str, Callable[..., Any]] = {
            "gpu": lambda wildcards: first(wildcards).gpu,
            "gpu_model": gpu_model,
            "mem_mb": lambda wildcards, attempt: grown(wildcards, attempt)[0],
            "runtime": lambda wildcards, attempt: grown(wildcards, attempt)[1],
        }
        # Only where they decide something: what a rule says beats what the profile says for every job.
        if self._site and not self._site.gpus.typed:
            named["slurm_partition"] = lambda wildcards: self._partition(first(wildcards))
            named["constraint"] = lambda wildcards: self._constraint(first(wildcards))
        return named

    def _partition(self, needs: Needs) -> str | None:
        found = self._site.extra_resources(needs)["slurm_partition"]
        return found or self._usual.get("slurm_partition")

    def _constraint(self, needs: Needs) -> str | None:
        """Return the feature that leads to the GPU, and what the profile wants of every node."""
        found = [self._usual.get("constraint"), self._site.extra_resources(needs)["constraint"]]
        words = [f"({word})" if "|" in word else word for word in found if word]
        return "&".join(words) or None
