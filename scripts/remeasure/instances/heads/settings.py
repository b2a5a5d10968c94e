"""What the training of a head is told."""

from typing import Literal

from msgspec import Struct


class Vectors(Struct, frozen=True, kw_only=True):
    """The backbone, as far as a head depends on it; the rest of its settings is passed over."""

    name: str
    dim: int


class HeadSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``train_head``; the fields are described at ``instances.settings.Head``."""

    name: str
    seed: int
    training: str
    has_leaks: bool
    backbone: Vectors
    decontaminated: bool
    hidden: int
    dim: int
    margin: float
    scale: float
    label_smoothing: float
    learning_rate: float
    weight_decay: float
    epochs: int
    batch: int
    patience: int
    min_class: int
    train_scale: Literal["mean", "random"]
    select_on: str
    holdout_share: float
    report_on: tuple[str, ...]
    photos_of: tuple[tuple[str, str], ...]
    """Every gallery that is named above and its photo set; sets are given in this order, each once."""

    @property
    def sets(self) -> list[str]:
        """The photo sets that vectors are given of, in order."""
        return list(dict.fromkeys(name for _, name in self.photos_of))
