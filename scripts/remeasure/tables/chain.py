"""From a number back to the bytes that came from outside, by joining stage records."""

import os
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from remeasure import jsonl
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import sha256_file, sha256_of
from remeasure.records import Record, Stage
from remeasure.tables.block_text import BlockText
from remeasure.tables.limits import OverLimit


class Link(Record, kw_only=True):
    """A file, or a folder of sources, on the way from a number to its sources."""

    path: str
    sha256: str
    stage: str | None
    """Stage that wrote it; null for a source, which no stage of ours wrote."""
    record: str | None
    """The stage's record; null for a source."""


class Value(Record, kw_only=True):
    """A number of the table, published reading."""

    value: float | None
    """A share of 0 to 1; null where nothing was graded."""
    n: int
    """Units in the denominator."""
    printed: str | None


class CellChain(Record, kw_only=True):
    """A cell's numbers and the files that they follow from, nearest first."""

    bench: str
    arm: str
    model: str
    grader: str
    headline: str
    """The metric that is meant where none is named."""
    numbers: dict[str, Value]
    """By metric."""
    score: str
    chain: tuple[Link, ...]


class StageNote(Record, kw_only=True):
    """What a stage was told and made with; its files stand in the chains."""

    stage: str
    sha256: str
    """Of the record file."""
    settings: dict
    code: str
    packages: dict[str, str]
    counts: dict[str, int]
    facts: dict


class Provenance(Record, kw_only=True):
    """``table1.json``: everything that the numbers of a table rest on."""

    table: str
    run: str
    title: str
    run_title: str
    unit: str
    settings: dict
    code: str
    packages: dict[str, str]
    published: dict[str, str]
    """File of published values and its SHA-256."""
    outputs: dict[str, str]
    cells: tuple[CellChain, ...]
    stages: dict[str, StageNote]
    """Record path to note, for every stage that occurs in a chain."""
    over_limit: OverLimit | None = None
    """Cells with more failed answers than the study allows."""
    comparability: str = ""
    """Whether the table may be compared with the paper."""
    left_out: str = ""
    """Which readers this computer cannot run."""
    blocks: tuple[BlockText, ...] = ()
    """The table's blocks as its pages show them."""
    spread: tuple[BlockText, ...] = ()
    """How far numbers move over seeds, as its pages show it."""


class Made(NamedTuple):
    """Who wrote a file, and what it hashed to then."""

    sha256: str
    record_path: str
    stage: Stage


class Records(Struct, frozen=True):
    """All stage records of a table, joined by file."""

    stages: dict[str, Stage]
    """Record path to record."""
    record_hashes: dict[str, str]
    made: dict[str, Made]
    """File to the stage that wrote it; a record file counts as written by its own stage."""


def load_records(paths: Iterable[Path]) -> Records:
    """Read stage records.

    Raises:
        RemeasureError: two records claim to have written one file.
    """
    records = Records({}, {}, {})
    for path in sorted({str(path) for path in paths}):
        stage = jsonl.read_json(Path(path), Stage)
        digest = sha256_file(Path(path))
        records.stages[path] = stage
        records.record_hashes[path] = digest
        for output, sha256 in {**stage.outputs, path: digest}.items():
            other = records.made.get(output)
            if other is not None:
                raise RemeasureError(
                    f"{path}: says that it wrote {output}, and so does {other.record_path}; delete the "
                    "older of the two and rerun the target that writes it"
                )
            records.made[output] = Made(sha256, path, stage)
    return records


def is_ours(path: str) -> bool:
    """Say whether a stage must have written this file: all under ``results/`` but ``results/sources/``."""
    parts = Path(path).parts
    return any(
        here == "results" and after != "sources" for here, after in zip(parts, parts[1:], strict=False)
    )


def follow(starts: Iterable[str], records: Records) -> tuple[Link, ...]:
    """Return every file that the given ones follow from, nearest first, each once, records included.

    Raises:
        RemeasureError: a file of ours has no record, or a stage read other bytes than were written.
    """
    links: list[Link] = []
    seen: dict[str, str] = {}
    queue: deque[tuple[str, str, str]] = deque()

    def meet(path: str, sha256: str, reader: str) -> None:
        if path not in seen:
            seen[path] = sha256
            queue.append((path, sha256, reader))
        elif seen[path] != sha256:
            raise _stale(path, sha256, seen[path], reader)

    for start in starts:
        meet(
            start,
            records.made[start].sha256 if start in records.made else sha256_of(Path(start)),
            "the table",
        )
    while queue:
        path, sha256, reader = queue.popleft()
        made = records.made.get(path)
        if made is None:
            if is_ours(path):
                raise RemeasureError(
                    f"{path}: read by {reader}, but no stage record says who wrote it; give its record to "
                    "--stages, or delete the file and rerun"
                )
            links.append(Link(path=path, sha256=sha256, stage=None, record=None))
            continue
        if made.sha256 != sha256:
            raise _stale(path, sha256, made.sha256, reader)
        links.append(Link(path=path, sha256=sha256, stage=made.stage.stage, record=made.record_path))
        meet(made.record_path, records.record_hashes[made.record_path], made.record_path)
        for name in sorted(made.stage.inputs):
            meet(name, made.stage.inputs[name], made.record_path)
    return tuple(links)


def _stale(path: str, read: str, written: str, reader: str) -> RemeasureError:
    return RemeasureError(
        f"{path}: {reader} read SHA-256 {read[:12]}…, but it was written as {written[:12]}…; delete what "
        f"{reader} describes and rerun"
    )


def notes(chains: Iterable[CellChain], records: Records) -> dict[str, StageNote]:
    """Return a note for every stage that occurs in a chain."""
    used = sorted({link.record for cell in chains for link in cell.chain if link.record})
    return {path: _note(records.stages[path], records.record_hashes[path]) for path in used}


def _note(stage: Stage, sha256: str) -> StageNote:
    return StageNote(
        stage=stage.stage,
        sha256=sha256,
        settings=stage.settings,
        code=stage.code,
        packages=stage.packages,
        counts=stage.counts,
        facts=stage.facts,
    )


def find(
    provenance: Provenance, bench: str, arm: str, model: str | None = None, metric: str | None = None
) -> tuple[CellChain, str]:
    """Return the chain of one cell and the metric that is meant.

    Args:
        provenance: of a table.
        bench: of the cell.
        arm: of the cell.
        model: may be left out where all cells are of one.
        metric: the headline metric where it is left out.

    Raises:
        RemeasureError: the table has no such number, or several.
    """
    known = {
        name: list(dict.fromkeys(getattr(cell, name) for cell in provenance.cells))
        for name in ("bench", "arm", "model")
    }
    found = [
        cell
        for cell in provenance.cells
        if (cell.bench, cell.arm) == (bench, arm) and model in (None, cell.model)
    ]
    if not found:
        raise RemeasureError(
            f"{provenance.table} has no cell {' '.join(filter(None, (bench, arm, model)))}; benches are "
            f"{', '.join(known['bench'])}, arms {', '.join(known['arm'])}, models {', '.join(known['model'])}"
        )
    if len(found) > 1:
        raise RemeasureError(
            f"{provenance.table} {bench} {arm} has {len(found)} models; name one: "
            f"{', '.join(cell.model for cell in found)}"
        )
    name = metric or found[0].headline
    if name not in found[0].numbers:
        raise RemeasureError(
            f"{provenance.table} {bench} {arm} {found[0].model} has no metric {name!r}"
            f"{did_you_mean(name, found[0].numbers)}; metrics are {', '.join(found[0].numbers)}"
        )
    return found[0], name


def hash_now(path: str) -> str | None:
    """Return what a file or folder hashes to now; null where there is none."""
    return sha256_of(Path(path)) if os.path.exists(path) else None


def check(chain: Iterable[Link], hashes: Mapping[str, str | None]) -> None:
    """Compare a chain with what the files hash to now.

    Args:
        chain: the links, nearest first.
        hashes: path to SHA-256 found, null for what is missing.

    Raises:
        RemeasureError: names the first file that is missing or has other bytes.
    """
    for link in chain:
        found = hashes[link.path]
        if found == link.sha256:
            continue
        what = "is missing" if found is None else f"has SHA-256 {found[:12]}…"
        raise RemeasureError(
            f"{link.path} {what}, expected {link.sha256[:12]}… as {link.record or 'the source'} was used; "
            f"{_repair(link)}"
        )


def _repair(link: Link) -> str:
    """Return what to do where a file is not the one that was used."""
    if link.record is not None:
        return "rerun the table, or restore the file"
    if link.path.startswith("results/"):
        return "restore it, or delete it and rerun the table"  # fixed by hash: brought again, never reread
    return "restore it, or rerun the table, which is made from it as it is now"
