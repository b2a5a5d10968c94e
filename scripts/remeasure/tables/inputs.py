"""What a table is made of: its settings, and every cell's number with its graded items."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.grading import Bootstrap
from remeasure.records import Graded, Score

FACTORS = {"percent": 100.0, "share": 1.0}
"""Units of a table: what a share is multiplied with."""


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the paper's layout."""

    bench: str
    title: str


class Column(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of the paper's layout."""

    arm: str
    title: str


class TableSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a table depends on beside its cells."""

    table: str
    run: str
    title: str
    run_title: str
    unit: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    contrasts: tuple[tuple[str, str], ...]
    """Pairs of arms whose difference is shown: first minus second."""
    not_comparable: tuple[str, ...]
    """Protocol fields in which the whole run differs from the paper."""
    bootstrap: Bootstrap
    protocol: dict[str, tuple[str, str]] = {}
    """Further protocol fields: ours and the published; those that differ are named."""

    @property
    def factor(self) -> float:
        """Multiplier from shares to the table's unit.

        Raises:
            RemeasureError: the unit is not known.
        """
        if self.unit not in FACTORS:
            raise RemeasureError(
                f"unit {self.unit!r} of {self.table} is not one of {', '.join(FACTORS)}; correct it"
            )
        return FACTORS[self.unit]


@dataclass(frozen=True)
class Cell:
    """A cell's number and its items, in item order."""

    score: Score
    score_path: Path
    graded_path: Path
    item_ids: tuple[str, ...]
    groups: tuple[str, ...]
    scores: tuple[float | None, ...]
    """Published reading, null where the item is not in the denominator."""
    n_empty: int
    """Answered with nothing."""


def load_cell(score_path: Path, graded_path: Path) -> Cell:
    """Read a cell and check that its number is the mean of its graded items.

    Raises:
        RemeasureError: the two files do not belong together.
    """
    score = jsonl.read_json(score_path, Score)
    item_ids: list[str] = []
    groups: list[str] = []
    scores: list[float | None] = []
    graders: set[str] = set()
    n_empty = 0
    for line in jsonl.read(graded_path, Graded):
        item_ids.append(line.item_id)
        groups.append(line.group)
        scores.append(line.published.score)
        graders.add(line.grader)
        n_empty += line.status == "answered" and not (line.answer or "").strip()
    known = [value for value in scores if value is not None]
    mean = sum(known) / len(known) if known else None
    if (
        mean is None
        or score.value is None
        or abs(mean - score.value) > 1e-9
        or len(scores) != score.n
        or graders - {score.grader}
    ):
        raise RemeasureError(
            f"{score_path}: value {score.value} of {score.n} items by {score.grader} does not follow from "
            f"{graded_path} ({mean} of {len(scores)} items); delete both and rerun, they are graded again"
        )
    return Cell(
        score=score,
        score_path=score_path,
        graded_path=graded_path,
        item_ids=tuple(item_ids),
        groups=tuple(groups),
        scores=tuple(scores),
        n_empty=n_empty,
    )


def load(
    settings: TableSettings, score_paths: Sequence[Path], graded_paths: Sequence[Path]
) -> dict[tuple[str, str], Cell]:
    """Read all cells of a table; score and graded items of a cell lie in one folder.

    Returns:
        (bench, arm) to cell, row by row in the order of the settings.

    Raises:
        RemeasureError: cells are missing, doubled or belong to no place of the table; names all of them.
    """
    graded = {path.parent: path for path in graded_paths}
    lost = sorted({path.parent for path in score_paths} ^ set(graded))
    if lost:
        raise RemeasureError(
            f"{lost[0]}: score.json and graded.jsonl of a cell must both be given; give both"
        )
    found: dict[tuple[str, str], Cell] = {}
    for path in score_paths:
        cell = load_cell(path, graded[path.parent])
        key = (cell.score.bench, cell.score.arm)
        if key in found:
            raise RemeasureError(f"{path}: cell {key[0]} {key[1]} was given already: {found[key].score_path}")
        found[key] = cell
    wanted = [(row.bench, column.arm) for row in settings.rows for column in settings.columns]
    missing = [" ".join(key) for key in wanted if key not in found]
    surplus = [" ".join(key) for key in found if key not in wanted]
    if missing or surplus:
        raise RemeasureError(
            f"{settings.table} has {len(wanted)} cells; missing: {', '.join(missing) or 'none'}; "
            f"without a place: {', '.join(surplus) or 'none'}; correct cells.tsv or grade what is missing"
        )
    return {key: found[key] for key in wanted}
