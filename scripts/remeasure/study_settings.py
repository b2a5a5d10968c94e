"""A study's protocol as it stands in ``config/studies/``, and the cells of the tables."""

import functools
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from remeasure.errors import RemeasureError
from remeasure.setting_checks import SLUG, check_known, check_pairs
from remeasure.yaml_files import Positive, Settings, convert, read_yaml

Axis = Literal["bench", "arm", "model", "metric"]


class Arm(Settings, kw_only=True):
    """One column of a table: what the reader is given as evidence."""

    title: str
    evidence: str
    retriever: str | None = None
    photo: bool = False
    images: bool = True
    """Whether the images of the questions themselves are shown."""
    options: dict[str, Any] = {}
    """What the study's messages are told about it."""


class Sampling(Settings, kw_only=True):
    """How a reader samples; a word that is null is not sent."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None


class Bench(Settings, kw_only=True):
    """One row of a table: how its questions are asked and graded."""

    title: str
    grader: str
    max_tokens: Positive
    thinking: bool | dict[str, bool]
    sampling: Sampling | None = None
    """Instead of the study's."""
    instruction: str | None = None
    layout: str | None = None
    gold: str = "first"
    """What a judge is told to be right: the first reference, or any_of all."""
    options: dict[str, Any] = {}
    """Settings of the grader itself."""
    files: dict[str, str] = {}
    """Files that the grader reads, by name."""
    task: dict[str, Any] | None = None
    """What a system is to do with a question (``systems.contract.DOES`` and what it needs); null: nothing."""
    index: str | None = None
    """The index file that its items are made from; null: the study's first."""
    answer_tokens: Positive | None = None
    """For estimates: how long an answer is, without thinking; null: as long as one of SimpleQA."""
    requests_per_case: Annotated[float, Meta(gt=0)] | None = None
    """For estimates: how many requests a system sends to its model for one question."""
    input_tokens: Positive | None = None
    """For estimates: how much such a request holds, what was found included."""
    judge_tokens: Positive | None = None
    """For estimates: how long a judge's reply is, without thinking; null: as long as such an answer too."""


class Retrieve(Settings, kw_only=True):
    """How many units are fetched, and how many of them the reader is shown."""

    n_docs: Positive
    n_shown: Positive


class Tables(Settings, kw_only=True):
    """Tables with images inside, and where they are looked for."""

    files: Annotated[dict[str, str], Meta(min_length=1)]
    """Index file to the table that it is made from, a place below the run's `source`."""
    images: str
    """Store that the images are put into."""
    environment: str
    """Where a run names no `source`: variable that names a folder with ..."""
    folder: str
    """... this folder in it. A folder that is not there is an error."""
    fetched: str
    """Where neither is given: folder that a rule brings the tables to."""


class Index(Settings, kw_only=True):
    """How a study lists the images of the run's `source`; the study's `options` are told to it too."""

    files: Annotated[list[str], Meta(min_length=1)]
    """What is written, the file that items are made from first."""
    tables: Tables | None = None
    """Null where the source is a folder or store of images."""
    options: dict[str, Any] = {}
    """Settings of the study's index module; a run may lay others on top."""


class Block(Settings, kw_only=True):
    """Some benches of a table under a title, with the metrics that are shown of them."""

    title: str
    benches: Annotated[list[str], Meta(min_length=1)]
    metrics: Annotated[list[str], Meta(min_length=1)]


class Layout(Settings, kw_only=True):
    """What stands where in the wide table; an unnamed axis with several values joins the rows."""

    rows: tuple[Axis, ...] = ("bench",)
    columns: tuple[Axis, ...] = ("arm",)
    metrics: tuple[str, ...] = ()
    """The metrics that it shows, in this order; none: all that the graders have. Other files have all."""
    blocks: tuple[Block, ...] = ()
    """Parts of the table with columns of their own; none: it is one."""
    anchors: str | None = None
    """File of others' numbers that stand below blocks as a reading aid, relative to the repository."""
    figure: Literal["conditions"] | None = None
    """What the picture shows: the arms of every bench and their differences, model by model. Null: bars by
    arm, or points by metric where metrics are columns."""


class Contrast(Settings, kw_only=True):
    """Two arms, or two benches with the same items, whose difference is shown: first minus second."""

    first: str
    second: str
    axis: Literal["arm", "bench"] = "arm"
    name: str | None = None
    """What the difference is called; null: it has no name."""
    title: str | None = None


class Judging(Settings, kw_only=True):
    """How a judge is asked."""

    max_tokens: Positive = 1000
    temperature: float | None = 0.0
    """Null: it is not sent."""
    thinking: bool | None = None
    """Null: nothing is said."""
    further: bool = False
    """Whether it is asked further questions about an answer, each with a prompt `judge_<name>` of its own."""
    response_format: dict[str, Any] | None = None
    """Shape that a verdict must have, in the form of the chat protocol."""


class Study(Settings, kw_only=True):
    """``config/studies/<study>.yaml``: the published protocol."""

    title: str
    published: str
    unit: str
    decimals: Annotated[int, Meta(ge=0, le=6)] = 1
    """How many the table prints."""
    bootstrap_samples: Annotated[int, Meta(ge=100, le=1_000_000)] = 2000
    """Of every interval that is not Wilson's."""
    notes: list[str] = []
    """What a reader of the table must know beside its numbers, one sentence or more each."""
    layout: Layout = Layout()
    datasets: bool = False
    """Whether its questions come from datasets."""
    galleries: bool = False
    """Whether its questions are photographs, for which galleries are ranked."""
    retrieve: Retrieve | None = None
    """Null where no arm retrieves."""
    index: Index | None = None
    options: dict[str, Any] = {}
    """What listing images and grading must know alike."""
    sampling: Sampling
    arms: dict[str, Arm]
    contrasts: list[tuple[str, str] | Contrast] = []
    """Pairs of arms whose difference is shown: first minus second."""
    judging: Judging = Judging()
    max_failed_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of a cell's answers that may have failed before its table is not published; null: no limit, and
    the models' own stop a cell before it is graded."""
    max_judge_failed_share: Annotated[float, Meta(ge=0, le=1)] = 0.01
    """Share of the judge's replies that may be missing before a cell is refused: they leave the denominator,
    or are zeros, and would flatter or empty it (pitfall P3)."""
    training_sets: list[str] = []
    benches: dict[str, Bench]

    @property
    def compared(self) -> list[Contrast]:
        """The pairs of arms whose difference is shown, each with what it is called."""
        return [
            pair if isinstance(pair, Contrast) else Contrast(first=pair[0], second=pair[1])
            for pair in self.contrasts
        ]


class Cell(Settings, kw_only=True):
    """One line of ``config/cells.tsv``."""

    study: str
    bench: str
    arm: str
    table: str


EVIDENCE = ("none", "text", "tiles")
LAYOUTS = ("choice",)
GOLDS = ("first", "any_of")
INDEX_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.jsonl?\Z")
STORE_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.zip\Z")


def check_bench(bench: Bench, study: Study, place: str) -> None:
    """Check the names that a bench's settings use.

    Raises:
        RemeasureError: an unknown grader, layout or gold, or a thinking switch that leaves an arm open.
    """
    from remeasure import graders

    check_known("grader", bench.grader, graders.GRADERS, f"{place}.grader")
    check_known("gold", bench.gold, GOLDS, f"{place}.gold")
    if bench.layout is not None:
        check_known("layout", bench.layout, LAYOUTS, f"{place}.layout")
    if isinstance(bench.thinking, dict) and set(bench.thinking) != set(study.arms):
        raise RemeasureError(
            f"{place}.thinking: names {', '.join(bench.thinking)}; give true or false for each of "
            f"{', '.join(study.arms)}"
        )


@functools.cache
def load_study(folder: Path, name: str) -> Study:
    """Load ``studies/<name>.yaml`` below the configuration folder."""
    path = folder / "studies" / f"{name}.yaml"
    study = convert(read_yaml(path), Study, path)
    for arm_name, arm in study.arms.items():
        check_known("evidence", arm.evidence, EVIDENCE, f"{path}: arms.{arm_name}.evidence")
        if (arm.evidence == "none") != (arm.retriever is None):
            raise RemeasureError(
                f"{path}: arms.{arm_name}: evidence {arm.evidence!r} and retriever contradict"
            )
        if arm.retriever is not None and study.retrieve is None:
            raise RemeasureError(f"{path}: retrieve: is missing, and arm {arm_name!r} retrieves; add it")
    if study.index:
        _check_index(study, study.index, path)
    doubled = [axis for axis in study.layout.rows if axis in study.layout.columns]
    if doubled or len({*study.layout.rows}) != len(study.layout.rows):
        raise RemeasureError(f"{path}: layout: an axis stands twice; name each once")
    if study.layout.metrics or study.layout.blocks:
        _check_shown(study, path)
    if study.layout.blocks:
        _check_blocks(study, path)
    for bench_name, bench in study.benches.items():
        check_bench(bench, study, f"{path}: benches.{bench_name}")
    for pair in study.compared:
        known = study.arms if pair.axis == "arm" else study.benches
        check_known(pair.axis, pair.first, known, f"{path}: contrasts")
        check_known(pair.axis, pair.second, known, f"{path}: contrasts")
    check_pairs([(pair.first, pair.second) for pair in study.compared], f"{path}: contrasts")
    named = [pair.name for pair in study.compared if pair.name is not None]
    if doubled := [name for name in dict.fromkeys(named) if named.count(name) > 1]:
        raise RemeasureError(f"{path}: contrasts: name {doubled[0]!r} stands twice; rename one")
    return study


def _check_index(study: Study, index: Index, path: Path) -> None:
    """Check the names of index files, and that benches and tables name such."""
    for name in index.files:
        if not INDEX_FILE.match(name):
            raise RemeasureError(
                f"{path}: index.files: {name!r}; expected a plain file name that ends in .json or .jsonl"
            )
    for name in index.tables.files if index.tables else ():
        check_known("file", name, index.files, f"{path}: index.tables.files")
    if index.tables and not STORE_FILE.match(index.tables.images):
        raise RemeasureError(
            f"{path}: index.tables.images: {index.tables.images!r}; expected a plain file name that ends in "
            ".zip"
        )
    for name, bench in study.benches.items():
        if bench.index is not None:
            check_known("file", bench.index, index.files, f"{path}: benches.{name}.index")


def _check_shown(study: Study, path: Path) -> None:
    """Check the names of the metrics that the wide table and its blocks show."""
    from remeasure import graders

    used = [
        graders.GRADERS[bench.grader] for bench in study.benches.values() if bench.grader in graders.GRADERS
    ]
    known = dict.fromkeys(metric.name for grader in used for metric in grader.metrics)
    lists = {"layout.metrics": study.layout.metrics}
    lists |= {f"layout.blocks: {block.title}": block.metrics for block in study.layout.blocks}
    for place, metrics in lists.items():
        for number, name in enumerate(metrics):
            check_known("metric", name, known, f"{path}: {place}")
            if name in metrics[:number]:
                raise RemeasureError(f"{path}: {place}: {name!r} stands twice; remove one")


def _check_blocks(study: Study, path: Path) -> None:
    """Check that every bench stands in one block, and that blocks fit the layout."""
    place = f"{path}: layout.blocks"
    if "bench" not in study.layout.rows or study.layout.columns != ("metric",):
        raise RemeasureError(
            f"{place}: blocks have benches as rows and metrics as columns; correct the layout"
        )
    seen: list[str] = []
    for block in study.layout.blocks:
        for bench in block.benches:
            check_known("bench", bench, study.benches, place)
            if bench in seen:
                raise RemeasureError(f"{place}: bench {bench!r} stands twice; remove one")
            seen.append(bench)
    lost = [name for name in study.benches if name not in seen]
    if lost:
        raise RemeasureError(f"{place}: bench {lost[0]!r} stands in none; add it to one")


def load_cells(folder: Path) -> list[Cell]:
    """Load ``cells.tsv``: one line per cell, in table order.

    Raises:
        RemeasureError: wrong header, wrong number of columns, or a cell that stands twice.
    """
    path = folder / "cells.tsv"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RemeasureError(f"{path}: cannot be read as UTF-8 text ({error}); restore it") from None
    header = list(Cell.__struct_fields__)
    if not lines or lines[0].split("\t") != header:
        raise RemeasureError(f"{path} line 1: expected the tab-separated columns {', '.join(header)}")
    cells: dict[Cell, int] = {}
    owners: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        values = line.split("\t")
        if len(values) != len(header):
            raise RemeasureError(f"{path} line {number}: {len(values)} columns, expected {len(header)}")
        cell = Cell(**dict(zip(header, values, strict=True)))
        if cell in cells:
            raise RemeasureError(
                f"{path} line {number}: the cell stands already in line {cells[cell]}; remove it"
            )
        cells[cell] = number
        if not SLUG.match(cell.table):
            raise RemeasureError(
                f"{path} line {number}: table {cell.table!r} may hold only a-z, 0-9, _ and -; rename it"
            )
        owner = owners.setdefault(cell.table, cell.study)
        if owner != cell.study:
            raise RemeasureError(
                f"{path} line {number}: table {cell.table!r} is one of study {owner!r}, and a table has one "
                f"study; name another table for {cell.study!r}"
            )
        study = load_study(folder, cell.study)
        check_known("bench", cell.bench, study.benches, f"{path} line {number}")
        check_known("arm", cell.arm, study.arms, f"{path} line {number}")
    if not cells:
        raise RemeasureError(f"{path}: holds no cell; restore it")
    return list(cells)
