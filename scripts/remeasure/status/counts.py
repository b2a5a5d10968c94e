"""How many of a cell's questions have a final answer."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from remeasure import gaps, journal
from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.records import Status
from remeasure.status import stage_files
from remeasure.status.states import Seen
from remeasure.status.steps import ASKING, WRITING, Step

# A journal may hold answers to questions that were changed since; asking says how many.
_OTHERS = re.compile(rb"(\d+) further outcomes belong to no request of this file")


class Count(NamedTuple):
    """Answers of a cell."""

    n: int
    """Questions with an outcome that is not asked again."""
    total: int | None
    """Questions; null before they are built."""


class _Entry(msgspec.Struct):
    key: str
    status: Status


def answers(seen: Iterable[Seen], work_dir: Path) -> dict[str, Count]:
    """Return the count of every step that asks, by its first output.

    Finished steps have counted themselves. Of others the journal is read, all parts of a cell together.
    """
    seen = list(seen)
    asked = {
        one.step.made.outputs[0].rpartition("/")[0]: _asked(one.step, work_dir)
        for one in seen
        if one.step.made.rule in WRITING and one.state == "done"
    }
    found: dict[str, Count] = {}
    for one in seen:
        made = one.step.made
        if made.rule not in ASKING:
            continue
        total = asked.get(made.outputs[0].rpartition("/")[0])
        if one.state == "done":
            counted = stage_files.read(work_dir / made.outputs[-1]).counts
            n = sum(counted.get(status, 0) for status in journal.FINAL)
            total = sum(counted.values()) if counted else total
        else:
            n = _in_journal(work_dir / made.outputs[0], work_dir / made.log)
            n = n if total is None else min(n, total)
        found[made.outputs[0]] = Count(n, total)
    return found


def _asked(step: Step, work_dir: Path) -> int | None:
    counted = stage_files.read(work_dir / step.made.outputs[-1]).counts
    return counted.get("requests", counted.get("answers"))


def _in_journal(responses: Path, log: Path) -> int:
    """Return how many requests of a cell have a final outcome in its journals."""
    final: set[str] = set()
    for path in sorted(gaps.journal_of(responses).glob("*.jsonl")):
        try:
            for _, _, entry in journal.entries(path, _Entry):
                if entry.status in journal.FINAL:
                    final.add(entry.key)
        except RemeasureError:  # asking will say what is wrong with it
            continue
    return max(0, len(final) - _others(log)) if final else 0


def _others(log: Path) -> int:
    try:
        with open_regular(log) as stream:
            found = _OTHERS.search(stream.read(4096))
    except OSError:
        return 0
    return int(found[1]) if found else 0
