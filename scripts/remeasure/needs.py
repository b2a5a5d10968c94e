"""What a step asks of a machine, and how that becomes the resources of a rule.

A run says it beside the model, encoder or corpus that needs it (``needs:``); what it leaves open is what the
rule says. Rules never say where something runs: which partition has such machines stands in ``slurm/``.
"""

from collections.abc import Callable
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from remeasure.errors import RemeasureError
from remeasure.yaml_files import Count, Positive, Settings

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


class Site(Protocol):
    """What is known of the cluster that jobs are sent to (``cluster.site``)."""

    def cap(self, needs: Needs) -> Needs:
        """Return needs that have grown with attempts, never beyond what a partition allows."""

    def extra_resources(self) -> dict[str, Callable[[Needs], Any]]:
        """Return further resources that the site wants, each as a function of the needs."""


class RuleResources:
    """Turns what steps need into what rules say under ``threads:`` and ``resources:``.

    Args:
        site: the cluster that jobs are sent to; null: this machine.
    """

    def __init__(self, site: Site | None = None) -> None:
        self._site = site

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

        def needs(wildcards, attempt: int = 1) -> Needs:
            plain = find(wildcards)
            grown = msgspec.structs.replace(
                plain,
                mem_mb=(plain.mem_mb or mem_mb) * attempt,
                runtime_min=(plain.runtime_min or runtime) * attempt,
            )
            return self._site.cap(grown) if self._site else grown

        def gpu_model(wildcards) -> str | None:
            return needs(wildcards).gpu_model

        named: dict[str, Callable[..., Any]] = {
            "gpu": lambda wildcards: needs(wildcards).gpu,
            "gpu_model": gpu_model,
            "mem_mb": lambda wildcards, attempt: needs(wildcards, attempt).mem_mb,
            "runtime": lambda wildcards, attempt: needs(wildcards, attempt).runtime_min,
        }
        for name, function in (self._site.extra_resources() if self._site else {}).items():
            # Bound now: a loop variable would be the last one for all.
            named[name] = lambda wildcards, function=function: function(needs(wildcards))
        return named
