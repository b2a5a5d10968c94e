"""Lines of the TOSC index files.

Source:
    TOSC card, section 1.2.
"""

from remeasure.mentions.objects import Overlap
from remeasure.mentions.triplets import STATES
from remeasure.records import Record
from remeasure.studies.tosc_names import State

__all__ = ["STATES", "Insertion", "Triplet"]


class Triplet(Record, kw_only=True):
    """One line of ``TOSC_dataset.jsonl``.

    Only the policy ``available`` has lines without a state, and without a replacing object where that is the
    image that is missing.
    """

    index: int
    original_object: str
    """Canonical name."""
    replacement_object: str | None
    original_raw: str
    """Spelling in the file name."""
    replacement_raw: str | None
    images: dict[State, str]
    """Paths below the folder, or in the store."""
    sha256: dict[State, str]
    size: dict[State, tuple[int, int]]
    """Width and height in pixels."""
    o_class: str | None
    """Class of the lexicon; null for an object outside of it."""
    r_class: str | None
    overlap: Overlap


class Insertion(Record, kw_only=True):
    """One line of ``insertions.jsonl``: an image in which an object was replaced."""

    index: int
    original_object: str
    replacement_object: str
    image: str
    sha256: str
    complete: bool
    """Whether its triplet has all three images and no conflict."""
