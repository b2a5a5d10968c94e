"""Heads over their seeds: rows, mean and spread, and differences between heads seed by seed.

Source:
    Landmarks card, section 1.6.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from msgspec import Struct

from remeasure import stats
from remeasure.errors import RemeasureError

ALONE = "backbone"
"""Numbers of a report that are of the backbone without a head: no seed and no protocol changes them."""


class Report(Struct, frozen=True, kw_only=True):
    """What is read of a head's report; the rest is passed over."""

    head: str
    seed: int
    decontaminated: bool
    deterministic: bool
    galleries: dict[str, dict[str, dict[str, float | None]]]
    """Gallery, how the epoch was chosen (or ``backbone``), difficulty: mAP, 0 to 1."""
    best_epoch: dict[str, int] = {}
    rows: int | None = None
    classes: int | None = None

    def value(self, way: str, gallery: str, difficulty: str) -> float | None:
        """Return a number; None where there is none."""
        return self.galleries.get(gallery, {}).get(way, {}).get(difficulty)


def by_head(reports: Iterable[tuple[Path, Report]]) -> dict[str, dict[int, Report]]:
    """Return reports by head and seed.

    Raises:
        RemeasureError: two of one head and seed.
    """
    found: dict[str, dict[int, Report]] = {}
    for path, report in reports:
        if report.seed in found.setdefault(report.head, {}):
            raise RemeasureError(
                f"{path}: head {report.head} of seed {report.seed} was given already; give it once"
            )
        found[report.head][report.seed] = report
    return found


def rows(heads: dict[str, dict[int, Report]]) -> list[dict[str, Any]]:
    """Return a row for every head, seed and choice of the epoch."""
    return [
        {
            "head": head,
            "seed": seed,
            "selection": way,
            "best_epoch": report.best_epoch.get(way),
            "map": {gallery: ways.get(way) for gallery, ways in report.galleries.items()},
            "rows": report.rows,
            "classes": report.classes,
            "deterministic": report.deterministic,
        }
        for head, seeds in heads.items()
        for seed, report in sorted(seeds.items())
        for way in _ways([report])
        if way != ALONE
    ]


def _ways(reports: Sequence[Report]) -> list[str]:
    return list(dict.fromkeys(way for one in reports for ways in one.galleries.values() for way in ways))


def _numbers(reports: Sequence[Report]) -> Iterator[tuple[str, str, str]]:
    """Yield choice, gallery and difficulty of every number that the first of some reports has."""
    for way in _ways(reports):
        for gallery, ways in reports[0].galleries.items():
            for difficulty in ways.get(way, {}):
                yield way, gallery, difficulty


def _described(values: Sequence[float]) -> dict[str, Any]:
    found = stats.spread(values)
    if found is None:
        return {"n": 0, "mean": None, "sd": None, "min": None, "max": None}
    return {"n": found.n, "mean": found.mean, "sd": found.sd, "min": found.lowest, "max": found.highest}


def spreads(heads: dict[str, dict[int, Report]]) -> list[dict[str, Any]]:
    """Return mean, sample standard deviation, least and greatest over seeds of every number of every head."""
    found = []
    for head, seeds in heads.items():
        ordered = [seeds[seed] for seed in sorted(seeds)]
        for way, gallery, difficulty in _numbers(ordered):
            values = [one.value(way, gallery, difficulty) for one in ordered]
            named = {"head": head, "selection": way, "gallery": gallery, "difficulty": difficulty}
            found.append(named | _described([value for value in values if value is not None]))
    return found


def differences(heads: dict[str, dict[int, Report]]) -> list[dict[str, Any]]:
    """Return first minus second of every two heads, seed by seed; a decontaminated one is second."""
    found = []
    for first, second in combinations(_plain_first(heads), 2):
        shared = sorted(heads[first].keys() & heads[second].keys())
        if not shared:
            continue
        for way, gallery, difficulty in _numbers([heads[first][seed] for seed in shared]):
            if way == ALONE:
                continue
            values = {}
            for seed in shared:
                sides = [heads[name][seed].value(way, gallery, difficulty) for name in (first, second)]
                if sides[0] is not None and sides[1] is not None:
                    values[seed] = sides[0] - sides[1]
            named = {"first": first, "second": second, "selection": way, "gallery": gallery}
            told = {"seeds": list(values), "values": list(values.values())}
            found.append(named | {"difficulty": difficulty} | told | _described(told["values"]))
    return found


def _plain_first(heads: dict[str, dict[int, Report]]) -> list[str]:
    return sorted(heads, key=lambda name: next(iter(heads[name].values())).decontaminated)
