"""What kept outcomes teach of costs: read from a cell's journals without locking or repairing them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from remeasure.journal import FINAL, entries
from remeasure.records import Status


class Outcome(msgspec.Struct):
    """The part of a journal line that costs are counted from."""

    key: str
    status: Status
    seconds: float
    usage: dict[str, Any] | None = None
    wasted: dict[str, Any] | None = None


def outcomes(path: Path) -> Iterator[Outcome]:
    """Yield the outcomes of one journal file; errors as in ``journal.entries``."""
    return (outcome for _, _, outcome in entries(path, Outcome))


@dataclass
class History:
    """What the kept outcomes of a cell teach."""

    final: set[str] = field(default_factory=set)
    """Keys that are not asked again."""
    output_tokens: float | None = None
    """Mean of a final outcome; null where none says it."""
    input_tokens: float | None = None
    """The same of what was read for it."""
    median_s: float | None = None
    """Of a final outcome, waits included; null where there is none."""


def read_history(folder: Path | None) -> History:
    """Read all journals of a cell; no folder is no history.

    Raises:
        RemeasureError: as in ``outcomes``.
    """
    found: dict[str, Outcome] = {}
    for path in sorted(folder.glob("*.jsonl")) if folder is not None else ():
        found |= {outcome.key: outcome for outcome in outcomes(path) if outcome.status in FINAL}
    return History(
        final=set(found),
        output_tokens=_mean(found.values(), "completion_tokens"),
        input_tokens=_mean(found.values(), "prompt_tokens"),
        median_s=median(one.seconds for one in found.values()) if found else None,
    )


def _mean(outcomes: Iterable[Outcome], name: str) -> float | None:
    told = [n for one in outcomes if type(n := (one.usage or {}).get(name)) is int]
    return sum(told) / len(told) if told else None
