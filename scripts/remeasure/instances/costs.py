"""What describing and reranking a gallery will take: hours, dollars and bytes, from counts and rates.

Rates are those that a run gives (``img_per_s``, ``pairs_per_s``, ``projection``).

Source:
    Landmarks card, sections 3.4, 3.5 and 6.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

HALF = 2
"""Bytes of a number of 16 bits."""
META_COLUMNS = 5
"""Columns that the published flat layout of local descriptors has before each of them."""
EASY_PER_QUERY = 60
"""Photographs that come on top of a shortlist, since Hard sets easy ones aside and Medium does not (card,
section 6: about 1,660 per query at a shortlist of 1,600)."""


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of an estimate."""

    step: str
    what: str
    """What it is done to: a photo set or a gallery, and with what."""
    unit: Literal["photographs", "pairs", "bytes"]
    n: int
    per_s: float | None = None
    """Null where nothing says how fast it is."""
    usd_per_hour: float = 0.0
    stored_bytes: int | None = None
    way: Literal["ours", "published", "both"] = "ours"
    """Whose plan has it: in ours only shortlisted distractors get local descriptors, in the published one
    all of them."""
    note: str = ""
    large: bool = False
    """Whether it is done because of distractors."""

    @property
    def hours(self) -> float | None:
        """Hours on one machine."""
        return None if self.per_s is None else self.n / (self.per_s * 3600)

    @property
    def usd(self) -> float | None:
        """What these hours cost."""
        return None if self.hours is None else self.hours * self.usd_per_hour


def flat_bytes(n: int, tokens: int, dim: int) -> int:
    """Return the size of local descriptors in the published flat layout, 16 bits a number.

    Args:
        n: photographs.
        tokens: descriptors of each.
        dim: numbers of a descriptor.
    """
    return n * tokens * (META_COLUMNS + dim) * HALF


def compound_bytes(n: int, tokens: int, dim: int) -> int:
    """Return the size in the published compound layout: the first columns in 32 bits, the rest in 16."""
    return n * tokens * (META_COLUMNS * 4 + dim * HALF)


def token_bytes(n: int, tokens: int, width: int) -> int:
    """Return the size of what a reranker keeps of them."""
    return n * tokens * width * HALF


def shortlisted(n_queries: int, shortlist: int) -> int:
    """Return how many photographs at most the shortlists of one head hold, Medium and Hard together."""
    return n_queries * (shortlist + EASY_PER_QUERY)


def rows(steps: Iterable[Step], table: str, run: str) -> list[dict[str, Any]]:
    """Return the lines of the estimate and two sums: of our plan and of the published one."""
    found = list(steps)
    lines = [_row(step, table, run) for step in found]
    plans = {
        "total, ours": [step for step in found if step.way != "published"],
        "total, published": [step for step in found if step.way != "ours"],
        "total, published, distractors alone": [step for step in found if step.large and step.way != "ours"],
    }
    lines += [_sum(name, steps, table, run) for name, steps in plans.items()]
    return lines


def _sum(name: str, steps: Sequence[Step], table: str, run: str) -> dict[str, Any]:
    unknown = dict.fromkeys(step.step for step in steps if step.hours is None)
    known = {
        "table": table,
        "step": name,
        "hours": _round(math.fsum(step.hours or 0.0 for step in steps), 2),
        "usd": _round(math.fsum(step.usd or 0.0 for step in steps), 2),
        "stored_bytes": sum(step.stored_bytes or 0 for step in steps),
        "note": f"without {', '.join(unknown)}: no rate is known" if unknown else "",
        "run": run,
    }
    return dict.fromkeys(_COLUMNS) | known


_COLUMNS = (
    "table",
    "step",
    "what",
    "unit",
    "n",
    "per_s",
    "hours",
    "usd_per_hour",
    "usd",
    "stored_bytes",
    "way",
    "note",
    "run",
)


def _row(step: Step, table: str, run: str) -> dict[str, Any]:
    values = {
        "table": table,
        "step": step.step,
        "what": step.what,
        "unit": step.unit,
        "n": step.n,
        "per_s": step.per_s,
        "hours": _round(step.hours, 2),
        "usd_per_hour": step.usd_per_hour,
        "usd": _round(step.usd, 2),
        "stored_bytes": step.stored_bytes,
        "way": step.way,
        "note": step.note,
        "run": run,
    }
    return {name: values[name] for name in _COLUMNS}


def _round(value: float | None, places: int) -> str | None:
    return None if value is None else f"{value:.{places}f}"
