"""What an answer has in common with the evidence points, without a judge (``det_*``).

Source:
    MRareBench card, section 9.
"""

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from remeasure.rubrics.hierarchy import hierarchy_of
from remeasure.rubrics.points import BUCKETS, Rubric
from remeasure.rubrics.similarity import Similar
from remeasure.text import SENTENCE_ENDS

THRESHOLDS = (0.3, 0.35, 0.4, 0.5, 0.6)
HEADLINE_THRESHOLD = 0.5
MAX_SENTENCES = 2000
"""Sentences of an answer that are compared; those behind them are counted. The original has no limit."""
_BULLETS = re.compile(r"^[\s\-*#>•\d.)]+")
_SHORTEST = 3


class Overlap(Struct, frozen=True):
    """Cosines, 0 to 1 (of vectors: from -1)."""

    required: tuple[float, ...]
    """For each required point its best sentence; empty without points or sentences."""
    optional: tuple[float, ...]
    grounded: tuple[float, ...]
    """For each sentence its best point or sentence of the rationale; empty without sentences or such."""
    by_image: tuple[float, ...]
    """For each required point about an image its best sentence that names the image; 0 where none does."""
    best: tuple[int, ...]
    """For each required point the place of its best sentence."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without bullets and numbers in front.

    Split behind ``.``, ``!`` and ``?`` with white space, and at ends of lines. As in the original "3 cm
    nodule" becomes "cm nodule", "Fig. 3 shows" becomes two, and a label on its own line is a sentence.
    """
    found = (_BULLETS.sub("", part).strip() for part in SENTENCE_ENDS.split(text))
    return [part for part in found if len(part) >= _SHORTEST]


def overlap(said: Sequence[str], rubric: Rubric, rationale: Sequence[str], similar: Similar) -> Overlap:
    """Compare an answer with the points of its case.

    Args:
        said: sentences of the answer.
        rubric: the points.
        rationale: sentences of the reference rationale.
        similar: how alike texts are; asked for each part alone, as in the original.
    """
    required, optional = ([point.text for point in part] for part in (rubric.required, rubric.optional))
    ours = similar(required, said) if required and said else np.zeros((0, 0))
    gold = [*required, *optional, *rationale]
    return Overlap(
        required=_best(ours),
        optional=_best(similar(optional, said) if optional and said else np.zeros((0, 0))),
        grounded=_best(similar(said, gold) if said and gold else np.zeros((0, 0))),
        by_image=tuple(_by_image(said, rubric, similar)),
        best=tuple(int(place) for place in ours.argmax(axis=1)) if ours.size else (),
    )


def silent(rubric: Rubric) -> Overlap:
    """Return the overlap of an answer that has no sentences but is one: no point is told."""
    n = len(rubric.required)
    labelled = [point for point in rubric.required if point.image is not None]
    return Overlap(
        required=(0.0,) * n,
        optional=(0.0,) * len(rubric.optional),
        grounded=(),
        by_image=(0.0,) * len(labelled),
        best=(),
    )


def scores(found: Overlap, buckets: Sequence[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Return the scores that are defined, by name, and how many points those of a bucket rest on.

    Args:
        found: cosines of one answer.
        buckets: of the required points.
    """
    rates: dict[str, float] = {}
    weights: dict[str, int] = {}
    _add(rates, "det_required_meanmaxsim", "det_required_recall", found.required)
    _add(rates, "det_optional_meanmaxsim", "det_optional_recall", found.optional)
    _add(rates, "det_mean_sent_groundedness", "det_grounded_ratio", found.grounded)
    _add(rates, "det_image_grounded_meanmaxsim", "det_image_grounded_recall", found.by_image)
    if found.required:
        gated = hierarchy_of([int(one >= HEADLINE_THRESHOLD) for one in found.required], buckets)
        assert gated is not None, buckets
        rates["det_hierarchical_required_recall"] = gated.recall
        rates["det_hierarchical_required_recall_drop"] = (
            rates[f"det_required_recall@{HEADLINE_THRESHOLD}"] - gated.recall
        )
        for bucket in BUCKETS:
            own = [one for one, name in zip(found.required, buckets, strict=True) if name == bucket]
            part: dict[str, float] = {}
            _add(part, f"det_required_{bucket}_meanmaxsim", f"det_required_{bucket}_recall", own)
            rates |= part
            weights |= dict.fromkeys(part, len(own))
    return rates, weights


def _add(rates: dict[str, float], mean: str, recall: str, cosines: Sequence[float]) -> None:
    if not cosines:
        return
    rates[mean] = float(np.mean(cosines))
    for threshold in THRESHOLDS:
        rates[f"{recall}@{threshold}"] = sum(one >= threshold for one in cosines) / len(cosines)


def _best(cosines: np.ndarray) -> tuple[float, ...]:
    return tuple(float(one) for one in cosines.max(axis=1)) if cosines.size else ()


def _by_image(said: Sequence[str], rubric: Rubric, similar: Similar) -> list[float]:
    naming: dict[int, list[str]] = {}
    found = []
    for point in rubric.required:
        if point.image is None:
            continue
        if point.image not in naming:
            name = re.compile(rf"\bimage\s*{point.image}\b", re.IGNORECASE)
            naming[point.image] = [one for one in said if name.search(one)]
        there = naming[point.image]
        found.append(float(similar([point.text], there).max()) if there else 0.0)
    return found
