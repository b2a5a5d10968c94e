"""Which stage records stand behind a table: the list that its provenance is joined from."""

from pathlib import Path

from remeasure.plan import Plan
from remeasure.settings import Arm


def stage_records(plan: Plan, run: str, table: str) -> list[str]:
    """Return the paths of the records of every stage behind a table, each once, in table order."""
    records: dict[str, None] = {}
    for cell in plan.cells_of(table):
        here = plan.study_run(run, cell.study)
        arm = plan.study(cell.study).arms[cell.arm]
        bench = f"results/{run}/{cell.study}/{cell.bench}"
        reader = f"{bench}/{cell.arm}/{here.reader}"
        found = [f"{reader}/{name}.json" for name in ("grade", "answers", "ask")] + [f"{bench}/items.json"]
        if plan.has_judge(run, cell.study, cell.bench):
            found += [f"{reader}/judge/answers.json", f"{reader}/judge/ask.json"]
        if arm.retriever:
            found.append(f"{bench}/{cell.arm}/retrieval.json")
        records.update(dict.fromkeys(found + _corpus_records(plan, run, cell.study, arm)))
    return list(records)


def _corpus_records(plan: Plan, run: str, study: str, arm: Arm) -> list[str]:
    """Return the records of the corpus files that one arm of a study reads."""
    name = plan.study_run(run, study).corpus
    corpus, here = plan.corpus(run, name), f"results/{run}/corpora/{name}"
    found = [f"{here}/pages.json"]
    reader = plan.model(run, plan.study_run(run, study).reader)
    if reader.corpus_files:  # the reader's own server reads files of the corpus, whatever the arm
        served = [record_of(name) for name in reader.corpus_files.values()]
        found += [f"{here}/{name}" for name in (*served, "tiles/corpus.json", "passages/passages.json")]
    found += [record_of(path) for path in (corpus.archive, corpus.pictures) if path and is_made(path)]
    if arm.retriever is None:
        return found
    found += [f"{here}/{part}.json" for part in ("tiles/corpus", "tiles/ocr", "passages/passages")]
    for role in (arm.retriever, "photo") if arm.photo else (arm.retriever,):
        found += _encoder_records(plan, run, here, plan.encoder_of(run, study, role))
    return found


def _encoder_records(plan: Plan, run: str, here: str, encoder: str) -> list[str]:
    """Return the records behind one encoder's index, with those of its training."""
    found = [f"{here}/{encoder}/descriptors.json", f"{here}/{encoder}/index.json"]
    training = plan.encoder(run, encoder).training
    if training:
        sets = plan.study(training.study).training_sets
        found += [f"{here}/{encoder}/adapter.json", f"{here}/{training.base}/descriptors.json"]
        found += [f"results/{run}/{training.study}/{name}/items.json" for name in sets]
    return found


def record_of(path: str) -> str:
    """Return the stage record of a built source: ``x.zim`` is described by ``x.json``."""
    return str(Path(path).with_suffix(".json"))


def is_made(path: str) -> bool:
    """Return whether a path of the configuration is made by a rule, not given by the user."""
    return path.startswith("results/")
