"""What the cells of a run reach: of all that its file defines, what is read, asked or brought for them.

A run may inherit corpora, encoders and models of studies that it leaves out; nobody should bring these.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from remeasure import lineage_instances, repeats
from remeasure.records import Record
from remeasure.settings import Cell

if TYPE_CHECKING:
    from remeasure.plan import Plan


class Reach(Record, kw_only=True):
    """Names of what a run reaches, each once; those of its own file in the order of the file."""

    cells: tuple[Cell, ...]
    """Of the studies that the run has, in table order."""
    studies: tuple[str, ...]
    """Those of the cells, and those that its encoders are trained for."""
    corpora: tuple[str, ...]
    encoders: tuple[str, ...]
    models: tuple[str, ...]
    """Readers, judges, and the judges that are compared."""
    adapted: tuple[tuple[str, str], ...]
    """Run and name of the adapted models that its models are."""
    photo_sets: tuple[str, ...] = ()
    described: dict[str, tuple[str, ...]] = {}
    """What describes, projects and reranks photographs: section of the run (backbones, heads …) to names."""


def of(plan: "Plan", run: str) -> Reach:
    """Return what the cells of a run, its comparison of judges and its trained encoders reach."""
    here = plan.run(run)
    cells = tuple(plan.cells_in(run))
    studies = tuple(dict.fromkeys(cell.study for cell in cells))
    models = set(_models(plan, run, cells))
    encoders = {name for study in studies for name in here.studies[study].encoders.values()}
    # A reader's server may read vectors: `lines-bge/descriptors.h5`.
    read = [Path(path).parts[0] for name in models for path in here.models[name].corpus_files.values()]
    encoders |= {name for name in read if name in here.encoders}
    trained = [training for name in encoders if (training := here.encoders[name].training)]
    encoders |= {training.base for training in trained}
    sets = [
        (training.study, name)
        for training in trained
        for name in plan.study(training.study).training_sets
        if training.study in here.studies
    ]
    corpora = {plan.corpus_name(run, cell.study, cell.bench) for cell in cells}
    corpora |= {plan.corpus_name(run, study, name) for study, name in sets}
    folders = [path for name in here.models if name in models for path in here.models[name].files.values()]
    adapted = [found for path in folders if (found := plan.adapted_at(path))]
    parts: dict[str, set[str]] = {}
    for cell in cells:
        gallery = plan.gallery_of(run, cell.study, cell.bench)
        for reader in plan.readers(run, cell.study, cell.bench, cell.arm) if gallery else ():
            for section, names in lineage_instances.parts_of(plan, run, gallery, reader).items():
                parts.setdefault(section, set()).update(names)
    return Reach(
        cells=cells,
        studies=tuple(dict.fromkeys([*studies, *(study for study, _ in sets)])),
        corpora=tuple(name for name in here.corpora if name in corpora),
        encoders=tuple(name for name in here.encoders if name in encoders),
        models=tuple(name for name in here.models if name in models),
        adapted=tuple(dict.fromkeys(adapted)),
        photo_sets=tuple(name for name in here.photo_sets if name in parts.get("photo_sets", ())),
        described={
            section: tuple(name for name in getattr(here, section) if name in names)
            for section, names in parts.items()
            if section != "photo_sets" and names
        },
    )


def _models(plan: "Plan", run: str, cells: tuple[Cell, ...]) -> Iterator[str]:
    """Yield every model that is asked, some more than once."""
    for cell in cells:
        for reader in plan.readers(run, cell.study, cell.bench, cell.arm):
            if plan.ranker(run, reader) is not None:
                continue  # nobody is asked
            yield from dict.fromkeys([repeats.model_of(reader), *plan.system_models(run, reader)])
        if plan.has_judge(run, cell.study, cell.bench):
            yield plan.judge(run, cell.study)
    audit = plan.run(run).judge_agreement
    yield from audit.judges if audit else ()
    for table in dict.fromkeys(cell.table for cell in cells):
        yield from plan.calibration(run, table).judges if plan.is_calibrated(run, table) else ()


def paths(plan: "Plan", run: str) -> Iterator[str]:
    """Yield every path that the settings of a run name and that its cells reach, some more than once."""
    found, here = of(plan, run), plan.run(run)
    for name in found.corpora:
        corpus = here.corpora[name]
        yield from (path for path in (corpus.archive, corpus.facts, corpus.pictures) if path)
    for name in found.encoders:
        yield from plan.weights(run, name).values()
    yield from (here.corpora[name].tokenizer for name in found.corpora)
    for name in found.models:
        yield from here.models[name].files.values()
    for owner, name in found.adapted:
        yield from plan.adapted_files(owner, name).values()
    for cell in found.cells:
        yield from _of_cell(plan, run, cell)
    yield from _training_questions(plan, run, found)


def _of_cell(plan: "Plan", run: str, cell: Cell) -> Iterator[str]:
    """Yield a cell's own questions or what its index is made from, what its grader reads, its wording."""
    here = plan.study_run(run, cell.study)
    if here.items:
        yield f"{here.items}/{cell.bench}.jsonl"
    gallery = plan.gallery_of(run, cell.study, cell.bench)
    for reader in plan.readers(run, cell.study, cell.bench, cell.arm) if gallery else ():
        yield from lineage_instances.sources(plan, run, gallery, reader)
    dataset = plan.dataset_of(run, cell.study, cell.bench)
    if dataset:
        yield from plan.dataset(run, dataset).files.values()
        readers = plan.readers(run, cell.study, cell.bench, cell.arm)
        systems = [system for reader in readers if (system := plan.system(run, reader))]
        for name in dict.fromkeys(system.database for system in systems):
            yield from plan.database_sources(run, dataset, name)
    if plan.reads_index(run, cell.study):
        yield from plan.tables_of(run, cell.study).values() or [plan.source(run, cell.study)]
    yield from plan.grader_files(run, cell.study, cell.bench).values()
    yield from plan.prompts_elsewhere(run, cell.study)


def _training_questions(plan: "Plan", run: str, found: Reach) -> Iterator[str]:
    """Yield your own questions that encoders are trained on."""
    for name in found.encoders:
        training = plan.encoder(run, name).training
        folder = plan.study_run(run, training.study).items if training else None
        for question_set in plan.study(training.study).training_sets if training and folder else ():
            yield f"{folder}/{question_set}.jsonl"
