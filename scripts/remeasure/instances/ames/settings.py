"""What the stages of a reranker are told."""

from remeasure.instances.ames.scoring import Numeric
from remeasure.instances.ames.weights import Shape


class Remapping(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``remap_tokens`` and ``import_reranker``."""

    name: str
    n: int
    """Tokens that are stored of a photograph, at most."""


class Scoring(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``score_pairs``."""

    gallery: str
    name: str
    tokens_query: int
    tokens_gallery: int
    shortlist: int
    numeric: Numeric


class Training(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``train_reranker``."""

    name: str
    n: int
    photos: str
    steps: int
    batch: int
    learning_rate: float
    seed: int
