"""Published adapters of vision-language models: merged into their base, in the layout that vLLM reads.

An adapter is merged whole, or the step fails: vLLM's own way to load one leaves out, with a warning at most,
what it cannot apply (LoRA on some modules, tensors that were trained without LoRA).
"""

import re
from typing import Literal

from remeasure.errors import RemeasureError
from remeasure.needs import Needs
from remeasure.yaml_files import Settings

Family = Literal["llava15", "qwen2-vl", "qwen2-5-vl"]
FOLDER = re.compile(r"results/([a-z0-9][a-z0-9_-]*)/adapted/([a-z0-9][a-z0-9_-]*)\Z")
"""Where the folder of a run's adapted model lies."""


class Adapted(Settings, kw_only=True):
    """A base model, as published or with an adapter merged into it, in the layout that vLLM reads."""

    family: Family
    """What the files are: never guessed from a name."""
    base: str
    """Folder of the base: original LLaVA-1.5 files, or Qwen as on the hub."""
    adapter: str | None = None
    """Folder of the adapter: PEFT files, for LLaVA with its trained projector; null: the base alone."""
    vision: str | None = None
    """LLaVA: folder of the CLIP model whose image encoder the original code loads beside the checkpoint."""
    system: str | None = None
    """LLaVA: sentence before the first turn; null: none. Qwen's stands in its own template."""
    trained_projector: bool = True
    """LLaVA: whether the adapter's projector differs from the base's; the other case is an error."""
    needs: Needs = Needs()
    """What merging asks of a machine: memory and a disk, no GPU."""


def check_adapted(adapted: Adapted, place: str) -> None:
    """Check what the fields say together.

    Raises:
        RemeasureError: a field that the family does not know or lacks, or a GPU, which merging does not use.
    """
    is_llava = adapted.family == "llava15"
    if is_llava and adapted.vision is None:
        raise RemeasureError(
            f"{place}.vision: is missing; LLaVA-1.5 needs the folder of the CLIP model that its image "
            "encoder comes from"
        )
    given = [name for name in ("vision", "system") if getattr(adapted, name) is not None]
    given += [] if adapted.trained_projector else ["trained_projector"]
    if not is_llava and given:
        raise RemeasureError(f"{place}.{given[0]}: belongs to family llava15; take it out")
    if adapted.needs.gpu:
        raise RemeasureError(f"{place}.needs.gpu: merging uses no GPU; take it out")


def misleading(name: str, family: Family) -> str | None:
    """Return a warning where a name suggests another family than the files are.

    Source:
        TOSC card, section 5: the published code takes the LLaVA loader where a name has ``llava`` and
        ``1.5``, and names of the same models spell it ``v1_5``; both spellings are seen here.
    """
    plain = re.sub("[^a-z0-9]+", ".", name.lower())
    suggests = "llava" in plain and "1.5" in plain
    if suggests == (family == "llava15") or ("llava" not in plain and "qwen" not in plain):
        return None
    kind = "LLaVA-1.5" if suggests else "another family than LLaVA-1.5"
    return f"{name!r} sounds like {kind}, but its family is {family}; the family decides"
