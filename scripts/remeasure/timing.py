"""Where each second of a run went, from the benchmark files that the rules wrote."""

import csv
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """What all jobs of one rule cost together."""

    rule: str
    n_jobs: int
    wall_s: float
    cpu_s: float
    max_rss_mb: float


def _rows(folder: Path, since: float) -> Iterator[tuple[str, float, float, float]]:
    for path in folder.rglob("logs/*.benchmark.tsv"):
        if path.stat().st_mtime < since:
            continue
        with open(path, encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream, delimiter="\t"):
                numbers = (row["s"], row["cpu_time"], row["max_rss"])
                # Snakemake writes NA or 0 for jobs that end before its first look.
                wall, cpu, rss = (float(n) if re.fullmatch(r"[0-9.]+", n or "") else 0.0 for n in numbers)
                yield path.name.removesuffix(".benchmark.tsv"), wall, cpu, rss


def costs(folder: Path, since: float) -> list[Cost]:
    """Return the cost per rule of the jobs that ended after ``since`` (seconds since 1970), dearest first."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for rule, *numbers in _rows(Path(folder), since):
        found.setdefault(rule, []).append(tuple(numbers))
    summed = [
        Cost(rule, len(rows), sum(r[0] for r in rows), sum(r[1] for r in rows), max(r[2] for r in rows))
        for rule, rows in found.items()
    ]
    return sorted(summed, key=lambda cost: (-cost.wall_s, cost.rule))


def report(folder: str, started: float) -> None:
    """Print the table of costs to standard error; nothing when no job ran."""
    found = costs(Path(folder), started)
    if not found:
        return
    print(f"\nWhere the time went ({time.time() - started:.0f} s in all):", file=sys.stderr)
    print(f"{'rule':<28}{'jobs':>6}{'wall s':>9}{'cpu s':>9}{'MB':>7}", file=sys.stderr)
    for cost in found:
        numbers = f"{cost.n_jobs:>6}{cost.wall_s:>9.1f}{cost.cpu_s:>9.1f}{cost.max_rss_mb:>7.0f}"
        print(f"{cost.rule:<28}{numbers}", file=sys.stderr)


def note_on_sources(folder: str, started: float) -> None:
    """Say that a second call is due where sources were made again beside results that were kept.

    Sources are fixed by their hash, so that a download that is made again reruns nothing; but Snakemake looks
    at no job behind one that runs for another reason (a changed script, say) in that call.
    """
    again = any(p.stat().st_mtime >= started for p in Path(folder).glob("sources/logs/*.benchmark.tsv"))
    kept = any(p.stat().st_mtime < started for p in Path(folder).glob("*/tables/*.csv"))
    if again and kept:
        print(
            "note: sources were made again, and nothing behind them was looked at: run the command once more",
            file=sys.stderr,
        )
