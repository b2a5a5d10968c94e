"""Lines of the MRareBench index files: one case each, with its images.

Source:
    MRareBench card, section 2.1 (columns).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from remeasure import roundtrip
from remeasure.files import sha256_bytes
from remeasure.held_images import Held
from remeasure.items import ITEM_ID
from remeasure.records import Record
from remeasure.rubrics.points import rubric_of


class DiagnosisCase(Record, kw_only=True, tag_field="track", tag="diagnosis"):
    """One line of ``diagnosis.jsonl`` (T1)."""

    index: str
    item_id: str
    """The index, or a slug of it (``item_id``)."""
    group: str
    """Rows of one group are not independent: they are about one case."""
    question: str
    context: str
    """The case without its imaging findings."""
    findings: str | None
    """The imaging findings as they are appended to the context; null where the table has no such column."""
    answer: str
    aliases: tuple[str, ...]
    """Other accepted names, stripped."""
    images: tuple[Held, ...]
    """In slot order."""


class EvidencePoint(Record, kw_only=True):
    """A thing that an answer should say."""

    point: str
    image: str
    """As the table words it, such as ``Image 2``; empty where it is about none."""
    credit: Literal["required", "optional"]
    category: str
    """As the table words it."""


class EvidenceCase(Record, kw_only=True, tag_field="track", tag="evidence"):
    """One line of ``evidence.jsonl`` (T2)."""

    index: str
    item_id: str
    group: str
    question: str
    context: str
    """Begins with the sentence about the established diagnosis."""
    diagnosis: str
    rationale: str
    points: tuple[EvidencePoint, ...]
    """In cell order; those without text are gone."""
    images: tuple[Held, ...]
    """In slot order, each with its label."""
    decisive: tuple[int, ...]
    """Slots, ascending."""
    supporting: tuple[int, ...]
    task_type: str | None
    joined: dict[str, str | None]
    """Further columns that the table has, for joining and for subgroups; null where a cell is empty."""


JOIN_COLUMNS = (
    *("image_path", "row_key", "pmcid", "doc_id", "case_id", "orpha_code", "overlap_with_T1", "t1_index"),
    *("t1_ver2_paired_subset", "t1_ver2_match_key_pmcid", "t1_ver2_matched_index"),
    *("evidence_modality", "image_dependency", "diagnostic_relevance", "cross_image_relation"),
    *("source_support", "text_only_solvability", "mcq_quality"),
)
"""Optional columns of T2 that are carried along."""
GROUP_COLUMNS = ("pmcid", "doc_id", "case_id")
"""What says that rows are about one case, best first."""

_SLUG_CHARACTERS = 48


def item_id(index: str) -> str:
    """Return the item id of a row: its index, or a slug with a piece of a hash where that is no id."""
    if ITEM_ID.match(index):
        return index
    slug = re.sub("[^A-Za-z0-9_-]", "-", index)[:_SLUG_CHARACTERS]
    return f"{slug}-{sha256_bytes(index.encode())[:8]}"


def group(index: str, cells: Mapping[str, str]) -> str:
    """Return what rows about one case have in common.

    Args:
        index: the row's id, which stands for a case of its own.
        cells: the row; words for no value (``roundtrip.MISSING``) do not make strangers one case.
    """
    found = (cells.get(name, "").strip() for name in GROUP_COLUMNS)
    return next((value for value in found if value not in roundtrip.MISSING), index)


def has_word(name: str) -> bool:
    """Return whether a name has a letter or a digit."""
    return any(one.isalnum() for one in name)


def wrong_image(found: Iterable[Mapping[str, Any]], n_images: int) -> str | None:
    """Return which required point is about an image that there is not; null where none is."""
    for point in rubric_of(found).required:
        if point.image is not None and not 1 <= point.image <= n_images:
            return f"has a required point about image {point.image}, there are images 1 to {n_images}"
    return None
