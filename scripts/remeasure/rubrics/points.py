"""Evidence points of a case: their texts, which are required, and the level of evidence that they belong to.

Source:
    MRareBench card, section 7.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

OTHER = "other"
_BUCKET_OF = {
    "abstract_modality": "modality",
    "modality": "modality",
    "macroscopic_pattern": "macro_pattern",
    "region_or_field": "macro_pattern",
    "macro_pattern": "macro_pattern",
    "microstructural_pattern": "micro_pattern",
    "micro_pattern": "micro_pattern",
    "cross_image_integration": "cross_image_integration",
    "diagnostic_attribution": "diagnostic_attribution",
}
LEVELS = {
    "modality": 1,
    "macro_pattern": 1,
    "micro_pattern": 1,
    OTHER: 1,
    "cross_image_integration": 2,
    "diagnostic_attribution": 3,
}
"""By bucket: 1 what is seen, 2 how images fit together, 3 what that says about the diagnosis."""
WEIGHTS = {
    "modality": 0.5,
    "macro_pattern": 1.0,
    "micro_pattern": 1.2,
    OTHER: 1.0,
    "cross_image_integration": 2.0,
    "diagnostic_attribution": 0.75,
}
"""By bucket: what a point counts in the hierarchical recall."""
BUCKETS = tuple(LEVELS)
_NO_WORD = re.compile(r"[^a-z0-9]+")
_LABEL = re.compile(r"\s*\[\s*image\s*(\d+)", re.IGNORECASE)
MOST_DIGITS = 4300
"""Longer numbers are none to Python: the original ends with an error there."""


class Point(Struct, frozen=True):
    """One point."""

    text: str
    """With the image that it is about in front: "[Image 2] a thick wall"."""
    bucket: str
    """One of ``BUCKETS``."""

    @property
    def level(self) -> int:
        """1 to 3."""
        return LEVELS[self.bucket]

    @property
    def weight(self) -> float:
        """Above 0."""
        return WEIGHTS[self.bucket]

    @property
    def image(self) -> int | None:
        """Number of the image that it is about; null where its label does not begin with "[Image k".

        "[Image 1, Image 2]" is about image 1; "[Images 1 and 2]", "[1]" and "[Image #3]" are about none.
        """
        found = _LABEL.match(self.text)
        return int(found[1]) if found and len(found[1]) <= MOST_DIGITS else None


class Rubric(Struct, frozen=True):
    """The points of a case, each part in the order of its cell."""

    required: tuple[Point, ...]
    optional: tuple[Point, ...]

    @property
    def buckets(self) -> list[str]:
        """Of the required points."""
        return [point.bucket for point in self.required]

    @property
    def n_lines(self) -> int:
        """Lines that a judge writes: is every point stated, then is each required one denied."""
        return 2 * len(self.required) + len(self.optional)


def bucket_of(category: Any) -> str:
    """Return the bucket of a category, however it is spelled: "Region or Field" is a macroscopic pattern."""
    word = _NO_WORD.sub("_", _text(category).lower()).strip("_")
    return _BUCKET_OF.get(word, OTHER)


def rubric_of(given: Iterable[Any]) -> Rubric:
    """Return the rubric of a case.

    Args:
        given: the entries of its cell: ``point``, ``image``, ``credit``, ``category``.

    Edges:
        Entries that are no objects, or whose point is empty, are left out. A credit other than "required"
        makes a point optional; a category that is not known goes to the bucket ``other``.
    """
    required, optional = [], []
    for entry in given:
        if not isinstance(entry, Mapping) or not (text := _text(entry.get("point"))):
            continue
        image = _text(entry.get("image"))
        point = Point(text=f"[{image}] {text}" if image else text, bucket=bucket_of(entry.get("category")))
        (required if _text(entry.get("credit")).lower() == "required" else optional).append(point)
    return Rubric(required=tuple(required), optional=tuple(optional))


def _text(value: Any) -> str:
    return str(value or "").strip()
