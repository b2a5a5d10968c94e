"""Every step behind a run's tables, with the place that it has in the matrix of the report."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import NamedTuple

from remeasure import lineage
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.plan import Plan
from remeasure.settings import Cell
from remeasure.status.rule_files import Made, RuleFiles
from remeasure.wiring import Wiring

JUDGES = "judges"
# Columns of the blocks of the report, and the rules whose jobs a column sums up.
SOURCES, MODELS, CORPORA, ENCODERS = "sources", "model", "corpus", "encoder"
DATASETS, ENVIRONMENTS = "dataset", "environment"
PHOTOS, TRAINED, GALLERIES = "photo set", "trained", "gallery"
CELLS, TABLES = "cell", "table"
BLOCKS: dict[str, dict[str, tuple[str, ...]]] = {
    MODELS: {"merged": ("merge_adapter",)},
    CORPORA: {
        "pages": ("select_pages", "select_pages_as_job"),
        "tiles": ("render_tiles", "render_part", "merge_tiles"),
        "ocr": ("read_tiles", "read_part", "merge_ocr"),
        "text": ("extract_text", "extract_part", "merge_passages"),
    },
    ENCODERS: {
        "training": ("train_adapter",),
        "vectors": ("embed", "embed_part", "merge_vectors"),
        "index": ("build_index",),
    },
    ENVIRONMENTS: {"installed": ("install_environment",)},
    DATASETS: {"loaded": ("load_dataset",), "database": ("ingest_documents",)},
    PHOTOS: {
        "shards": ("stream_photos", "order_photos"),
        "labels": ("import_labels", "plan_photos", "audit_photos"),
        "vectors": ("extract_cls", "project_cls", "project"),
        "locals": (
            "check_locals",
            "want_locals",
            "extract_locals",
            "project_locals",
            "remap_tokens",
        ),
    },
    TRAINED: {"trained": ("train_head", "train_reranker", "import_reranker")},
    GALLERIES: {
        "first": ("rank_first", "import_ranking"),
        "pairs": ("score_pairs",),
        "read-outs": ("read_out", "choose_read_out"),
    },
    CELLS: {
        "items": ("build_items", "build_items_as_job"),
        "ranking": ("search",),
        "requests": (
            "build_requests",
            "build_requests_as_job",
            "build_agreement_requests",
            "pick_answers",
            "build_calibration_requests",
        ),
        "answers": ("ask_shard", "ask", "ask_agreement", "ask_calibration", "place_photos"),
        "judge": ("build_judge_requests", "ask_judge"),
        "grade": ("grade",),
    },
    TABLES: {"table": ("make_table", "make_page", "make_agreement", "make_calibration")},
}
# The rules that ask, and the rules that write what they ask.
ASKING = ("ask", "ask_judge", "ask_agreement", "ask_calibration")
WRITING = (
    "build_requests",
    "build_requests_as_job",
    "build_judge_requests",
    "build_agreement_requests",
    "build_calibration_requests",
)
# A list of images belongs to all cells of its study, whose name is the rule's.
_LISTING = "index_"
# Wildcards that name a row of the other blocks.
_NAMES = ("corpus", "encoder", "adapted", "environment", "dataset", "database")
# Of these one is the row, whatever else tells a job apart: the first that it has.
_FIRST = {PHOTOS: ("photos",), TRAINED: ("head", "reranker"), GALLERIES: ("gallery", "backbone")}
_PLACE = ("study", "bench", "arm", "model")
_COLUMNS = {rule: (block, name) for block, names in BLOCKS.items() for name in names for rule in names[name]}


class Step(NamedTuple):
    """One job of the run and where it is shown."""

    made: Made
    block: str
    column: str
    rows: tuple[str, ...]
    """Rows of the block that it belongs to: the questions of a bench belong to all cells of the bench."""
    behind: tuple[str, ...] = ()
    """First outputs of what a table is made from; other steps say themselves what they read."""


class Wildcards(SimpleNamespace):
    """Wildcards as the rules' input functions take them."""

    def __getitem__(self, name: str) -> str:
        return getattr(self, name)

    def keys(self):
        """Return the names, so that ``**`` works."""
        return vars(self).keys()


def tables(plan: Plan, run: str) -> list[str]:
    """Return the tables that a run can make, the comparison of its judges last."""
    known = plan.run(run).studies
    found = [
        t for t in plan.tables() if all(c.study in known for c in plan.cells_of(t)) and plan.cells_of(t, run)
    ]
    checked = [f"{table}.{JUDGES}" for table in found if plan.is_calibrated(run, table)]
    return found + checked + ([JUDGES] if plan.run(run).judge_agreement else [])


def steps(plan: Plan, rules: RuleFiles, run: str, only: str | None = None) -> list[Step]:
    """Return every step behind a run's tables, each once, in the order of the report.

    Args:
        plan: all settings.
        rules: what the rules make.
        run: name of the run.
        only: one table; null: all.

    Raises:
        RemeasureError: the run has no such table.
    """
    known = tables(plan, run)
    if only is not None and only not in known:
        raise RemeasureError(
            f"--table {only!r}: run {run!r} makes no such table{did_you_mean(only, known)}; it makes "
            f"{', '.join(known) or 'none'}"
        )
    chosen = [only] if only else known
    files = {path: None for path in plan.sources(run) if path not in _brought(plan)}
    behind: dict[str, tuple[str, ...]] = {}
    for table in chosen:
        name, _, of_judges = table.partition(".")
        if table == JUDGES:
            maker, paths = "make_agreement", _judges(plan, rules, run)
        elif of_judges:
            maker, paths = "make_calibration", _calibration(plan, rules, run, name)
        else:
            maker, paths = "make_table", _table(plan, run, table)
        last = rules[maker].made(run=run, table=name).outputs[0]
        files |= dict.fromkeys([*paths, last])
        behind[last] = tuple(rules.maker(path)[1].outputs[0] for path in paths)
    cells = [cell for table in chosen for cell in plan.cells_of(table.partition(".")[0], run)]
    rows = _rows(plan, run, cells)
    found: dict[str, Step] = {}
    sources: dict[str, None] = {}
    for path in files:
        rule, made = rules.maker(path)
        found.setdefault(made.outputs[0], _step(made, rows, behind.get(made.outputs[0], ())))
        sources.update(dict.fromkeys(rule.sources))
    return [*_brought_for(plan, run, sources), *found.values()]


def _table(plan: Plan, run: str, table: str) -> list[str]:
    """Return the files that stand for the steps behind a table: stage records, and those of shards."""
    paths = lineage.stage_records(plan, run, table)
    for cell in plan.cells_of(table, run):
        for reader in plan.readers(run, cell.study, cell.bench, cell.arm):
            place = Wildcards(run=run, study=cell.study, bench=cell.bench, arm=cell.arm, model=reader)
            paths += Wiring(plan).shards(place)
    return paths


def _rows(plan: Plan, run: str, cells: list[Cell]) -> dict[tuple[str, str, str, str], str]:
    """Return the row of every cell by study, bench, arm and model; of one reader the model is not named."""
    found = {}
    for cell in cells:
        readers = plan.study_run(run, cell.study).readers
        for reader in plan.readers(run, cell.study, cell.bench, cell.arm):
            name = f"{cell.study}/{cell.bench}/{cell.arm}"
            row = name if len(readers) == 1 else f"{name}/{reader}"
            found[cell.study, cell.bench, cell.arm, reader] = row
    return found


def _judges(plan: Plan, rules: RuleFiles, run: str) -> list[str]:
    return [
        rules[rule].made(run=run, judge=judge).outputs[0]
        for judge in plan.audit(run).judges
        for rule in ("build_agreement_requests", "ask_agreement")
    ]


def _calibration(plan: Plan, rules: RuleFiles, run: str, table: str) -> list[str]:
    picked = rules["pick_answers"].made(run=run, table=table).outputs[0]
    return [picked] + [
        rules[rule].made(run=run, table=table, judge=judge).outputs[0]
        for judge in plan.calibration(run, table).judges
        for rule in ("build_calibration_requests", "ask_calibration")
    ]


def _brought(plan: Plan) -> dict[str, Step]:
    """Return by path what is fetched or put in place by hand; other sources are made from these."""
    found = {}
    for package, paths in plan.catalogue.packages().items():
        rule = f"fetch_{package.replace('-', '_')}"
        made = Made(rule, {}, tuple(paths), plan.catalogue.fetch_log(package))
        found |= dict.fromkeys(paths, Step(made, SOURCES, "files", (package,)))
    for path, source in plan.catalogue.by_url().items():
        found[path] = Step(Made(source.rule, {}, (path,), source.log), SOURCES, "files", (source.name,))
    for path, source in plan.catalogue.by_hand().items():
        found[path] = Step(Made(source.rule, {}, (path,), source.log), SOURCES, "by hand", (source.name,))
    return found


def _brought_for(plan: Plan, run: str, named: dict[str, None]) -> list[Step]:
    """Return what must be brought for a run: what its settings name, and what its steps name themselves."""
    brought = _brought(plan)
    wanted = [brought[path] for path in [*plan.sources(run), *named] if path in brought]
    return list({step.made.rule: step for step in wanted}.values())


def _step(made: Made, cells: dict[tuple[str, str, str, str], str], behind: tuple[str, ...]) -> Step:
    block, column = _COLUMNS.get(made.rule, (SOURCES, "files"))
    at = made.wildcards
    if made.rule.startswith(_LISTING):
        block, column, at = CELLS, "items", at | {"study": made.rule.removeprefix(_LISTING)}
    if block == CELLS and "table" in at:  # of a calibration
        rows = ["/".join([JUDGES, at["table"], *([at["judge"]] if "judge" in at else [])])]
    elif block == CELLS and "judge" in at:
        rows = [f"{JUDGES}/{at['judge']}"]
    elif block == CELLS:
        rows = [row for place, row in cells.items() if _belongs(at, place)]
        # Questions of a training set belong to no cell.
        rows = rows or [f"{at['study']}/{at['bench']}"]
    elif block == TABLES:
        rows = [at.get("table", JUDGES) + (f".{JUDGES}" if made.rule == "make_calibration" else "")]
    elif block == SOURCES:
        rows = [made.rule]
    elif block in _FIRST:
        rows = [next(at[name] for name in _FIRST[block] if name in at)]
    else:
        rows = ["/".join(at[name] for name in _NAMES if name in at)]
    return Step(made, block, column, tuple(rows), behind)


def _belongs(at: Mapping[str, str], place: tuple[str, str, str, str]) -> bool:
    """Return whether a step is one of a cell: what its wildcards leave open belongs to all."""
    return all(at.get(name, value) == value for name, value in zip(_PLACE, place, strict=True))
