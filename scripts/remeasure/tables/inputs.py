"""Every cell's numbers with the graded units that they follow from."""

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.grading import scores_of
from remeasure.records import Failed, Graded, Number, Score
from remeasure.tables.settings import CellKey, TableSettings

PUBLISHED, STRICT = "published", "strict"
NAN = math.nan


@dataclass(frozen=True)
class Strata:
    """One division of a cell's units."""

    levels: tuple[str, ...]
    """The parts, in order of first sight."""
    codes: np.ndarray
    """Shape (n,), int32: the place in ``levels`` of each unit's part, -1 where it has none."""


class Lost(NamedTuple):
    """An answer that there is not, or not in full, and the unit that it belongs to."""

    unit_id: str
    failed: Failed


@dataclass(frozen=True)
class Cell:
    """A cell's numbers and its units, in item order."""

    score: Score
    score_path: Path
    graded_path: Path
    units_sha256: str
    """Of the ids and groups of all units: equal where two cells have the same units."""
    lost: tuple["Lost", ...]
    """Answers of readers and judges that there are not, or not in full."""
    groups: np.ndarray
    """Shape (n,), int32: number of each unit's group."""
    scores: dict[str, dict[str, np.ndarray]]
    """By metric and reading, shape (n,), float64; NaN where the unit is not in the denominator."""
    strata: dict[str, Strata]
    weights: dict[str, dict[str, np.ndarray]]
    """By metric and reading, where a score may count more than once: shape (n,), float64."""
    left_out: dict[str, int]
    """Units that are not in the strict denominator of the headline, by the grader's reason."""

    def weights_of(self, metric: str, reading: str) -> np.ndarray | None:
        """Return how often each unit's score counts; None for once."""
        return self.weights.get(metric, {}).get(reading)

    @property
    def key(self) -> CellKey:
        """Where it stands in the table."""
        return CellKey(self.score.bench, self.score.arm, self.score.model)


class _Codes:
    """Numbers for words, in order of first sight, of one word per unit."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.codes = array("i")

    def add(self, word: str, n_before: int) -> None:
        """Add the word of the unit that stands behind ``n_before`` others; units between have none."""
        self.pad(n_before)
        self.codes.append(self.places.setdefault(word, len(self.places)))

    def pad(self, n: int) -> None:
        """Note that the units up to the n-th have no word."""
        self.codes.extend([-1] * (n - len(self.codes)))

    @property
    def array(self) -> np.ndarray:
        """Shape (n,), int32."""
        return np.array(self.codes, dtype=np.int32)


@dataclass
class _Columns:
    """What is kept of a file of graded units: some bytes per unit, metric and reading."""

    n: int = 0
    scores: dict[tuple[str, str], array] = field(default_factory=dict)
    weights: dict[tuple[str, str], array] = field(default_factory=dict)
    groups: _Codes = field(default_factory=_Codes)
    strata: dict[str, _Codes] = field(default_factory=dict)
    differ: Counter = field(default_factory=Counter)
    counts: Counter = field(default_factory=Counter)
    left_out: Counter = field(default_factory=Counter)
    lost: list[Lost] = field(default_factory=list)
    graders: set[str] = field(default_factory=set)
    units: Any = field(default_factory=hashlib.sha256)

    def add(self, line: Graded, headline: str) -> None:
        """Take in one unit."""
        self.units.update(f"{line.item_id}\0{line.group}\n".encode())
        self.groups.add(line.group, self.n)
        for name, level in line.strata.items():
            self.strata.setdefault(name, _Codes()).add(level, self.n)
        for reading, found in {PUBLISHED: line.published, STRICT: line.strict, **line.also}.items():
            for metric, value in scores_of(found, headline).items():
                column = self.scores.setdefault((metric, reading), array("d"))
                column.extend([NAN] * (self.n - len(column)))
                column.append(NAN if value is None else value)
            for metric, weight in found.weights.items():
                column = self.weights.setdefault((metric, reading), array("d"))
                column.extend([1.0] * (self.n - len(column)))
                column.append(weight)
        strict = scores_of(line.strict, headline)
        for metric, value in scores_of(line.published, headline).items():
            self.differ[metric] += value != strict.get(metric)
        self.counts.update(line.counts)
        if line.strict.score is None:
            self.left_out[line.strict.reason] += 1
        self.lost += [Lost(line.item_id, one) for one in line.failed]
        self.graders.add(line.grader)
        self.n += 1

    def of(self, metric: str, reading: str) -> np.ndarray | None:
        """Return the scores of a metric under a reading; None where the file has none."""
        column = self.scores.get((metric, reading))
        if column is None:
            return None
        column.extend([NAN] * (self.n - len(column)))
        return np.array(column, dtype=np.float64)

    def weights_of(self, metric: str, reading: str) -> np.ndarray | None:
        """Return how often each score counts; None where the file does not say."""
        column = self.weights.get((metric, reading))
        if column is None:
            return None
        column.extend([1.0] * (self.n - len(column)))
        return np.array(column, dtype=np.float64)


Found = dict[str, dict[str, np.ndarray]]


def load_cell(
    score_path: Path,
    graded_path: Path,
    if_none: Mapping[str, float | None] | None = None,
    per_group: Collection[str] = (),
) -> Cell:
    """Read a cell and check that each of its numbers is the mean of its graded units.

    Args:
        score_path: ``score.json``.
        graded_path: ``graded.jsonl``.
        if_none: by metric what the original says where nothing is in the denominator.
        per_group: metrics that are means of the groups' means.

    Raises:
        RemeasureError: the two files do not belong together.
    """
    score = jsonl.read_json(score_path, Score)
    columns = _Columns()
    for line in jsonl.read(graded_path, Graded):
        columns.add(line, score.headline)
    scores: Found = {}
    weights: Found = {}
    problem = _problem(score, columns, if_none or {}, per_group, scores, weights)
    if problem:
        raise RemeasureError(
            f"{score_path}: {problem}: it does not follow from {graded_path}; delete both and rerun, they "
            "are graded again"
        )
    for codes in columns.strata.values():
        codes.pad(columns.n)
    return Cell(
        score=score,
        score_path=score_path,
        graded_path=graded_path,
        units_sha256=columns.units.hexdigest(),
        lost=tuple(columns.lost),
        groups=columns.groups.array,
        scores=scores,
        weights=weights,
        left_out=dict(columns.left_out),
        strata={
            name: Strata(tuple(codes.places), codes.array) for name, codes in sorted(columns.strata.items())
        },
    )


def _problem(
    score: Score,
    columns: _Columns,
    if_none: Mapping[str, float | None],
    per_group: Collection[str],
    scores: Found,
    weights: Found,
) -> str:
    """Say what in a score does not follow from the graded units, or nothing; fill in scores and weights."""
    if columns.n != score.n:
        return f"{score.n} units, found {columns.n}"
    if columns.graders - {score.grader}:
        return f"grader {score.grader}, found {', '.join(sorted(columns.graders))}"
    if score.headline not in score.metrics:
        return f"headline {score.headline}, metrics {', '.join(score.metrics)}"
    if columns.counts != Counter(score.counts):
        return f"counts {score.counts}, found {dict(columns.counts)}"
    for role, told in (("reader", score.failed), ("judge", score.judge_failed)):
        found = Counter(one.failed.kind for one in columns.lost if one.failed.role == role)
        if found != Counter(told):
            return f"failures of the {role} {told}, found {dict(found)}"
    named = set()
    for name, metric in score.metrics.items():
        if metric.n_differ != columns.differ[name]:
            return f"{name}: {metric.n_differ} units differ, found {columns.differ[name]}"
        for reading, number in {PUBLISHED: metric.published, STRICT: metric.strict, **metric.also}.items():
            named.add((name, reading))
            values = columns.of(name, reading)
            own = columns.weights_of(name, reading)
            empty = if_none.get(name) if reading == PUBLISHED else None
            groups = columns.groups.array if name in per_group else None
            wrong = "no scores" if values is None else _differs(number, values, own, groups, empty)
            if wrong:
                return f"{name}, {reading}: value {number.value} of {number.n}, found {wrong}"
            scores.setdefault(name, {})[reading] = values
            if own is not None:
                weights.setdefault(name, {})[reading] = own
    more = sorted(columns.scores.keys() - named)
    return f"{more[0][0]}, {more[0][1]}: not there, found {columns.n} units" if more else ""


def _differs(
    number: Number,
    values: np.ndarray,
    weights: np.ndarray | None,
    groups: np.ndarray | None,
    if_none: float | None,
) -> str:
    """Say what the scores, or the means of their groups, give where it is not the number, or nothing."""
    if groups is not None:
        values, weights = group_means(values, groups)[0], None
    known = ~np.isnan(values)
    scores = values[known]
    own = np.ones(len(scores)) if weights is None else weights[known]
    if not (own > 0).all():
        return "weights that are not above 0"
    n = int(own.sum())
    mean = math.fsum(scores * own) / n if n else if_none
    same = mean is number.value if None in (mean, number.value) else abs(mean - number.value) <= 1e-9
    return "" if same and number.n == n else f"{mean} of {n}"


def group_means(values: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean score of each group that has one.

    Args:
        values: shape (n,), NaN where there is no score.
        groups: shape (n,), number of each score's group.

    Returns:
        Means, shape (k,), and the groups that they are of, ascending, shape (k,).
    """
    known = ~np.isnan(values)
    found, places = np.unique(groups[known], return_inverse=True)
    sums = np.bincount(places, weights=values[known], minlength=len(found))
    return sums / np.bincount(places, minlength=len(found)), found


def load(
    settings: TableSettings, score_paths: Sequence[Path], graded_paths: Sequence[Path]
) -> dict[CellKey, Cell]:
    """Read all cells of a table; score and graded units of a cell lie in one folder.

    Returns:
        Cells in the order of the settings.

    Raises:
        RemeasureError: cells are missing, doubled or belong to no place of the table; names all of them.
    """
    settings.check()
    graded = {path.parent: path for path in graded_paths}
    lost = sorted({path.parent for path in score_paths} ^ set(graded))
    if lost:
        raise RemeasureError(
            f"{lost[0]}: score.json and graded.jsonl of a cell must both be given; give both"
        )
    found: dict[CellKey, Cell] = {}
    if_none = {metric.name: metric.if_none for metric in settings.metrics}
    per_group = {metric.name for metric in settings.metrics if metric.per_group}
    for path in score_paths:
        cell = load_cell(path, graded[path.parent], if_none, per_group)
        if cell.key in found:
            raise RemeasureError(
                f"{path}: cell {settings.name(cell.key)} was given already: {found[cell.key].score_path}; "
                "give it once"
            )
        found[cell.key] = cell
    missing = [settings.name(key) for key in settings.cells if key not in found]
    surplus = [settings.name(key) for key in found if key not in settings.cells]
    if missing or surplus:
        raise RemeasureError(
            f"{settings.table} has {len(settings.cells)} cells; missing: {', '.join(missing) or 'none'}; "
            f"without a place: {', '.join(surplus) or 'none'}; correct cells.tsv or grade what is missing"
        )
    _check_metrics(found, settings)
    cells = {key: found[key] for key in settings.cells}
    check_same(cells)
    return cells


def check_same(cells: Mapping[CellKey, Cell]) -> None:
    """Check that the cells of a bench may stand beside each other.

    Raises:
        RemeasureError: other units or another grader; numbers of different graders are never compared.
    """
    first_of: dict[str, Cell] = {}
    for cell in cells.values():
        first = first_of.setdefault(cell.score.bench, cell)
        place = f"{first.score_path} and {cell.score_path}"
        if first.score.grader != cell.score.grader:
            raise RemeasureError(
                f"{place}: graded by {first.score.grader} and {cell.score.grader}; only the same grader "
                "can be compared: grade both anew"
            )
        if first.units_sha256 != cell.units_sha256:
            raise RemeasureError(
                f"{place}: the cells have different items; delete both graded.jsonl and rerun"
            )


def _check_metrics(cells: Mapping[CellKey, Cell], settings: TableSettings) -> None:
    known = {metric.name for metric in settings.metrics}
    for cell in cells.values():
        more = [name for name in cell.score.metrics if name not in known]
        if more:
            raise RemeasureError(
                f"{cell.score_path}: metric {more[0]!r} is none of the table's ({', '.join(sorted(known))}); "
                "delete the file and rerun, the cell is graded again"
            )
