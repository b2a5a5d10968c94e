"""Recall with gates: a point about the diagnosis counts only where all that it rests on was told.

Source:
    MRareBench card, section 8.
"""

from collections.abc import Sequence

from msgspec import Struct

from remeasure.rubrics.points import LEVELS, WEIGHTS


class Hierarchy(Struct, frozen=True):
    """What the required points of one answer come to."""

    recall: float
    """0 to 1: weights of the points that count, over all weights."""
    visual_gate: float
    """1 where every point of level 1 is hit, or there is none; else 0."""
    cross_gate: float
    """The same of level 2, before gating."""
    raw: tuple[float | None, float | None, float | None]
    """By level the share of its points that are hit; null where it has none."""
    gated: tuple[float | None, float | None, float | None]
    """By level the share of its points that are hit and count."""

    def gate(self, bucket: str) -> float:
        """Return whether a hit in a bucket counts."""
        return _gates(self.visual_gate, self.cross_gate)[LEVELS[bucket] - 1]


def hierarchy_of(hits: Sequence[int], buckets: Sequence[str]) -> Hierarchy | None:
    """Return the recall of an answer with its parts.

    Args:
        hits: shape (n,), 0 or 1 for each required point.
        buckets: shape (n,), their buckets.

    Edges:
        Null without required points, or where the two do not belong together. A level without points is
        passed.
    """
    if not hits or len(hits) != len(buckets):
        return None
    levels = [LEVELS[bucket] for bucket in buckets]
    weights = [WEIGHTS[bucket] for bucket in buckets]
    visual, cross = (_all_hit(hits, levels, level) for level in (1, 2))
    gates = [_gates(visual, cross)[level - 1] for level in levels]
    counted = [hit * gate for hit, gate in zip(hits, gates, strict=True)]
    return Hierarchy(
        recall=sum(c * w for c, w in zip(counted, weights, strict=True)) / sum(weights),
        visual_gate=visual,
        cross_gate=cross,
        raw=_by_level(hits, levels),
        gated=_by_level(counted, levels),
    )


def _gates(visual: float, cross: float) -> tuple[float, float, float]:
    return 1.0, visual, visual * cross


def _all_hit(hits: Sequence[int], levels: Sequence[int], level: int) -> float:
    return float(all(hit for hit, own in zip(hits, levels, strict=True) if own == level))


def _by_level(
    values: Sequence[float], levels: Sequence[int]
) -> tuple[float | None, float | None, float | None]:
    one, two, three = (
        [value for value, own in zip(values, levels, strict=True) if own == level] for level in (1, 2, 3)
    )
    return _mean(one), _mean(two), _mean(three)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
