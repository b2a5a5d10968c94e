"""How cases are composed: ``config/cases.yaml``."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from remeasure.errors import RemeasureError

Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[int, Meta(ge=1)]
Layout = Literal["bars", "figure", "card"]
Drawing = Literal["body", "brain", "head", "eye", "heart", "trunk", "cells", "hand", "waves"]
# Categories of evidence points about a finding, as the published table spells them.
Category = Literal["Macroscopic pattern", "Region or Field", "Microstructural pattern", "Laboratory value"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections."""


class Kind(Settings, kw_only=True):
    """A kind of examination: what its pictures are called, look like and may show."""

    title: str
    """Heading of the picture, such as "Skeletal survey"."""
    layout: Layout
    drawing: Drawing | None = None
    """What a picture of layout ``figure`` points at."""
    below: list[str]
    """It shows phenotypes below these terms."""
    without: list[str] = []
    """But none below these."""
    category: Category
    normal: list[str] = []
    """Names of values of which a picture of layout ``bars`` shows one within its reference range."""
    first: bool = False
    """Whether it is looked at before the others: few diseases show anything there."""


class Range(Settings, kw_only=True):
    """A closed range."""

    least: float
    most: float

    def holds(self, value: float) -> bool:
        """Return whether a value lies in it."""
        return self.least <= value <= self.most


class CaseSettings(Settings, kw_only=True):
    """One set of cases."""

    seed: str
    half: Annotated[int, Meta(ge=0, le=1)]
    """Which half of all diseases, parted by a hash of their ids, the set draws from."""
    n_diagnosis: Positive
    n_evidence: Positive
    size_px: tuple[Annotated[int, Meta(ge=200, le=2000)], Annotated[int, Meta(ge=150, le=2000)]]
    images: tuple[Positive, Positive]
    findings: tuple[Positive, Positive]
    """How many findings a picture shows."""
    label_letters: Positive
    """Longest label that fits into a picture in one line."""
    finding_shares: Range
    """Share of all diseases that have a finding of the pictures."""
    told: tuple[Positive, Positive]
    """How many phenotypes the text tells."""
    told_shares: Range
    synonym_share: Share
    """Share of the findings that a picture calls by an exact synonym."""
    incidental_share: Share
    """Share of the diagnosis cases in which a picture shows a finding that is not part of the disease."""
    distractor_share: Share
    """Share of the evidence cases with a picture that has nothing to do with the disease."""
    age_years: tuple[Positive, Positive]
    never: list[str]
    """Nothing below these terms is shown or told."""
    never_named: list[str]
    """Parts of names of diseases of which no case is made: one sex only."""
    high: list[str]
    """Parts of labels that say that something is above its range; only such are shown as bars."""
    low: list[str]
    kinds: dict[str, Kind]


def read(text: str) -> CaseSettings:
    """Read settings from JSON and check what their fields say together.

    Raises:
        RemeasureError: a field is missing, unknown or out of range, or two contradict each other.
    """
    try:
        found = msgspec.json.decode(text, type=CaseSettings, strict=False)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RemeasureError(f"settings of cases: {error}; correct config/cases.yaml") from None
    ranges = {
        "images": found.images,
        "findings": found.findings,
        "told": found.told,
        "age_years": found.age_years,
        "finding_shares": (found.finding_shares.least, found.finding_shares.most),
        "told_shares": (found.told_shares.least, found.told_shares.most),
    }
    problems = [f"{name}: {low} is more than {high}" for name, (low, high) in ranges.items() if low > high]
    problems += [
        f"kinds: {name}: layout figure needs a drawing, others have none"
        for name, kind in found.kinds.items()
        if (kind.layout == "figure") != (kind.drawing is not None)
    ]
    problems += [
        f"kinds: {name}: `normal` is for layout bars, which needs it"
        for name, kind in found.kinds.items()
        if (kind.layout == "bars") != bool(kind.normal)
    ]
    if len(found.kinds) <= found.images[1]:
        problems.append(f"kinds: {len(found.kinds)}, more than `images` allows for are needed")
    if problems:
        raise RemeasureError(f"settings of cases: {'; '.join(problems)}; correct config/cases.yaml")
    return found
