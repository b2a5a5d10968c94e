"""The report beside the TOSC index: everything that was found, and why some of it is not used.

Source:
    TOSC card, sections 1.2 and 1.3.
"""

from typing import Any

import msgspec

from remeasure.mentions.objects import Overlap
from remeasure.records import Record
from remeasure.studies.tosc_names import State


class Doubled(Record, kw_only=True):
    """An image that is there more than once."""

    index: int
    state: State
    images: list[str]


class Contradiction(Record, kw_only=True):
    """A triplet whose names do not fit together."""

    index: int
    problem: str
    images: list[str]


class Incomplete(Record, kw_only=True):
    """A triplet that lacks images."""

    index: int
    missing: list[State]


class Excluded(Record, kw_only=True):
    """A triplet that the settings exclude."""

    index: int
    reason: str
    known: bool
    """Whether there is such a triplet."""


class Problem(Record, kw_only=True):
    """A file that is not used, and why."""

    image: str
    problem: str


class Composited(Record, kw_only=True):
    """An image that is not plain RGB or grey."""

    image: str
    mode: str
    """As Pillow names it."""
    transparent: bool
    """Whether a pixel is not opaque: models are shown such an image on white (``build_items``)."""


class Odd(Record, kw_only=True):
    """An image that servers may read differently."""

    image: str
    facts: list[str]


class OpenObject(Record, kw_only=True):
    """An object outside the lexicon, which is looked for by its own name."""

    name: str
    parent: str | None
    """Class of its last word, where that has one."""
    n: int
    """Indexed triplets that it is in."""


class IndexReport(Record, kw_only=True):
    """``index_report.json``: everything that was found, and what became of it."""

    images: dict[State, int]
    """Readable images with a name of the benchmark, by state."""
    expected: int | None
    expected_met: bool | None
    """Whether there are as many complete triplets as expected; null where no number is."""
    policy: str
    n_triplets: int
    """Complete, incomplete and conflicting ones."""
    n_complete: int
    n_indexed: int
    n_excluded: int
    n_conflicting: int
    n_incomplete: int
    n_errors: int
    n_ignored: int
    n_refused: int
    n_unreadable: int
    size_mismatch: int
    """Complete triplets whose images differ in size."""
    overlap: dict[Overlap, int]
    """Indexed triplets by how their two objects are related."""
    lexicon: dict[str, str]
    excluded: list[Excluded]
    incomplete: list[Incomplete]
    duplicates: list[Doubled]
    name_conflicts: list[Contradiction]
    errors: list[Problem]
    """Names that are broken, and images in the folder of another state."""
    ignored: list[Problem]
    """Hidden files, other names, other folders."""
    refused: list[Problem]
    """What is never taken from a folder or store (``image_tree``)."""
    unreadable: list[Problem]
    composited: list[Composited]
    odd: list[Odd]
    open_objects: list[OpenObject]


def counts(report: IndexReport) -> dict[str, int]:
    """Return what the stage record says."""
    plain: dict[str, Any] = msgspec.structs.asdict(report)
    found = {name.removeprefix("n_"): plain[name] for name in plain if name.startswith("n_")}
    if report.expected is not None:
        found["expected"] = report.expected
    return found | {"size_mismatch": report.size_mismatch, "composited": len(report.composited)}


def lines(report: IndexReport) -> list[str]:
    """Return one line for everything that keeps a triplet from being used, or that should be looked at."""
    found = [f"triplet {one.index}: {one.problem} ({', '.join(one.images)})" for one in report.name_conflicts]
    found += [
        f"triplet {one.index}: state {one.state} has {len(one.images)} images ({', '.join(one.images)})"
        for one in report.duplicates
    ]
    for kind in (report.errors, report.refused, report.unreadable):
        found += [f"{one.image} {one.problem}" for one in kind]
    found += [f"triplet {one.index}: lacks {', '.join(one.missing)}" for one in report.incomplete]
    found += [
        f"triplet {one.index}: is excluded, but there is none" for one in report.excluded if not one.known
    ]
    if report.expected_met is False:
        found.append(f"{report.n_complete} complete triplets, {report.expected} were expected")
    return found


def summary(report: IndexReport) -> str:
    """Return the last line of the log."""
    expected = {None: "no number expected", True: "as expected", False: f"{report.expected} expected"}
    return (
        f"{report.n_indexed} triplets indexed (policy {report.policy}), {report.n_complete} complete "
        f"({expected[report.expected_met]}), {report.n_incomplete} incomplete, {report.n_conflicting} "
        f"conflicting; files: {report.n_unreadable} unreadable, {report.n_errors} errors, "
        f"{report.n_refused} refused, {report.n_ignored} ignored; sizes differ in {report.size_mismatch}"
    )
