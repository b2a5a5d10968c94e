"""Which stage records stand behind a table: the list that its provenance is joined from."""

from pathlib import Path

from remeasure import lineage_instances, parts
from remeasure.catalogue import FOLDER
from remeasure.encoders import BACKENDS
from remeasure.plan import Plan
from remeasure.plan_systems import database_folder, environment_record
from remeasure.settings import Arm, Cell


def stage_records(plan: Plan, run: str, table: str) -> list[str]:
    """Return the paths of the records of every stage behind a table, each once, in table order."""
    records: dict[str, None] = {}
    for cell in plan.cells_of(table, run):
        here = plan.study_run(run, cell.study)
        arm = plan.study(cell.study).arms[cell.arm]
        bench = f"results/{run}/{cell.study}/{cell.bench}"
        found = [f"{bench}/items.json"]
        for name in plan.readers(run, cell.study, cell.bench, cell.arm):
            reader = f"{bench}/{cell.arm}/{name}"
            ranker = plan.ranker(run, name)
            found += [f"{reader}/{record}.json" for record in ("grade", "answers")]
            found += _ranking_records(plan, run, cell, name) if ranker else [f"{reader}/ask.json"]
            for asked in plan.system_models(run, name):
                found += _model_records(plan, run, asked)
            found += _system_records(plan, run, cell, name)
            if plan.has_judge(run, cell.study, cell.bench):
                found += [f"{reader}/judge/answers.json", f"{reader}/judge/ask.json"]
        if plan.has_judge(run, cell.study, cell.bench):
            found += _model_records(plan, run, plan.judge(run, cell.study))
        if arm.retriever:
            found.append(f"{bench}/{cell.arm}/retrieval.json")
        dataset = plan.dataset_of(run, cell.study, cell.bench)
        if dataset:
            found.append(f"results/{run}/datasets/{dataset}/dataset.json")
            files = plan.dataset(run, dataset).files.values()
            found += [built_record(plan, path) for path in files if is_made(plan, path)]
        index = plan.study(cell.study).index
        if index and not here.items:
            source = plan.source(run, cell.study)
            name = "index_tables" if index.tables else "index_images"
            found.append(f"results/{run}/{cell.study}/index/{name}.json")
            tables = plan.tables_of(run, cell.study).values()
            found += [built_record(plan, path) for path in tables or [source] if is_made(plan, path)]
        records.update(dict.fromkeys(found + _corpus_records(plan, run, cell, arm)))
    return list(records)


def _ranking_records(plan: Plan, run: str, cell: Cell, reader: str) -> list[str]:
    """Return the records of photographs, descriptors, heads and rankings behind a reader that ranks."""
    gallery = plan.gallery_of(run, cell.study, cell.bench)
    assert gallery is not None, cell  # a bench without one has no cell
    rerank = bool(plan.study(cell.study).arms[cell.arm].options.get("rerank"))
    found = lineage_instances.records(plan, run, gallery, reader, rerank=rerank)
    made = lineage_instances.sources(plan, run, gallery, reader)
    return found + [built_record(plan, path) for path in made if is_made(plan, path)]


def _system_records(plan: Plan, run: str, cell: Cell, reader: str) -> list[str]:
    """Return the records of the database and the environment of a system."""
    system, dataset = plan.system(run, reader), plan.dataset_of(run, cell.study, cell.bench)
    if system is None or dataset is None:
        return []
    environment = plan.database(run, system.database).environment
    found = [f"{database_folder(run, dataset, system.database)}.json"]
    return found + ([environment_record(environment)] if environment else [])


def _model_records(plan: Plan, run: str, model: str) -> list[str]:
    """Return the records of the folders and sources that a step has put together for a model."""
    files = plan.model(run, model).files.values()
    merged = [f"{path}.json" for path in files if plan.adapted_at(path)]
    return [*merged, *(built_record(plan, path) for path in files if is_made(plan, path))]


def _corpus_records(plan: Plan, run: str, cell: Cell, arm: Arm) -> list[str]:
    """Return the records of the corpus files that a cell reads."""
    study, name = cell.study, plan.corpus_name(run, cell.study, cell.bench)
    if name is None:
        return []
    corpus, here = plan.corpus(run, name), f"results/{run}/corpora/{name}"
    found = [f"{here}/pages.json"]
    for reader in plan.study_run(run, study).readers:
        files = plan.model(run, reader).corpus_files
        if files:  # the reader's own server reads files of the corpus, whatever the arm
            served = [record_of(name) for name in files.values()]
            found += [f"{here}/{name}" for name in (*served, "tiles/corpus.json", "passages/passages.json")]
    made = [path for path in (corpus.archive, corpus.pictures) if path and is_made(plan, path)]
    found += [built_record(plan, path) for path in made]
    photo = plan.photo_encoder(run, study, cell.arm)
    for encoder in (plan.encoder_of(run, study, arm.retriever), photo) if arm.retriever else ():
        found += _encoder_records(plan, run, here, encoder) if encoder else []
    return found + _part_records(plan, run, name, found)


def _part_records(plan: Plan, run: str, corpus: str, found: list[str]) -> list[str]:
    """Return the records of the parts that merged files of a corpus were put together from."""
    here, n_parts = f"results/{run}/corpora/{corpus}", plan.corpus(run, corpus).parts
    merged = {"tiles/corpus.json", "tiles/ocr.json", "passages/passages.json"} | {
        f"{name}/descriptors.json" for name, spec in plan.run(run).encoders.items() if spec.unit != "lines"
    }
    ours = [path.removeprefix(f"{here}/") for path in found]
    names = parts.names(n_parts) if n_parts > 1 else []
    return [f"{here}/parts/{part}/{path}" for path in ours if path in merged for part in names]


def _encoder_records(plan: Plan, run: str, here: str, encoder: str) -> list[str]:
    """Return the records behind one encoder's index, with those of its units and of its training."""
    spec = plan.encoder(run, encoder)
    found = [] if spec.unit == "passages" else [f"{here}/tiles/corpus.json"]
    if spec.unit == "lines" or (spec.unit == "tiles" and not BACKENDS[spec.backend].sees_pixels):
        found.append(f"{here}/tiles/ocr.json")
    if spec.unit in ("passages", "lines"):
        found.append(f"{here}/passages/passages.json")
    found += [f"{here}/{encoder}/descriptors.json", f"{here}/{encoder}/index.json"]
    training = spec.training
    if training:
        sets = plan.study(training.study).training_sets
        found += [f"{here}/{encoder}/adapter.json", f"{here}/{training.base}/descriptors.json"]
        found += [f"results/{run}/{training.study}/{name}/items.json" for name in sets]
    return found


def record_of(path: str) -> str:
    """Return the stage record of a built source: ``x.zim`` is described by ``x.json``."""
    return str(Path(path).with_suffix(".json"))


def _name_of(path: str) -> str:
    return path.removeprefix(f"{FOLDER}/") if path.startswith(f"{FOLDER}/") else ""


def is_made(plan: Plan, path: str) -> bool:
    """Return whether a path of the configuration is built by a rule of ours, not fetched or given."""
    return _name_of(path) in plan.catalogue.built()


def built_record(plan: Plan, path: str) -> str:
    """Return the stage record of a source that a rule of ours builds."""
    return f"{FOLDER}/{plan.catalogue.built()[_name_of(path)].record}"
