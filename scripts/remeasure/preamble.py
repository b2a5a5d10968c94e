"""What is checked in the first second of every call, before any job is planned."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remeasure import graders, lineage_instances, reach, studies, tokens
from remeasure.adapters import misleading
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.plan import Plan
from remeasure.settings import Cell, Encoder, StudyRun
from remeasure.yaml_files import convert

KEYS = ("run", "browser", "browser_sandbox")


def check_config(config: dict[str, Any], plan: Plan) -> None:
    """Check the top-level configuration and everything that the configured run points to.

    Raises:
        RemeasureError: unknown key, value of the wrong kind, unknown run, or a file that the run names
            and that is not there.
    """
    place = f"{plan.folder}/config.yaml or --config"
    for key in config:
        if key not in KEYS:
            raise RemeasureError(
                f"{place}: unknown key {key!r}{did_you_mean(key, KEYS)}; known: {', '.join(KEYS)}"
            )
    for key in KEYS:
        if key not in config:
            raise RemeasureError(f"{place}: key {key!r} is missing; add it")
    if config["browser"] is not None and not isinstance(config["browser"], str):
        raise RemeasureError(f"{place}: browser: {config['browser']!r}; expected a path or null")
    if config["browser_sandbox"] not in ("auto", True, False):
        raise RemeasureError(
            f"{place}: browser_sandbox: {config['browser_sandbox']!r}; expected auto, true or false"
        )
    if not isinstance(config["run"], str) or config["run"] not in plan.runs():
        raise RemeasureError(
            f"{place}: run {config['run']!r} has no file config/runs/{config['run']}.yaml"
            f"{did_you_mean(str(config['run']), plan.runs())}; there are: {', '.join(plan.runs())}"
        )
    check_run(config["run"], plan)


def browser_options(config: dict[str, Any]) -> str:
    """Return the options that say which browser renders, ready for a shell."""
    named = ["--browser", config["browser"]] if config["browser"] else []
    return shlex.join([*named, "--sandbox", str(config["browser_sandbox"]).lower()])


def check_run(run: str, plan: Plan) -> None:
    """Resolve every setting that a run's tables need, so that a mistake shows before the first job.

    Raises:
        RemeasureError: the first mistake, with its place.
    """
    place = f"{plan.folder}/runs/{run}.yaml"
    made = {f"results/sources/{name}" for name in (*plan.catalogue.hashes(), *plan.catalogue.built())}
    made |= plan.catalogue.by_hand().keys() | plan.catalogue.by_url().keys()
    _check_models(run, plan, made, place)
    _check_adapted(run, plan, made, place)
    _check_corpora(run, plan, made, place)
    for study in plan.studies():
        if study in plan.run(run).studies:  # a run may leave out whole studies
            plan.check_contrasts(study)
            _check_arms(run, plan, study)
    for cell in plan.cells_in(run):
        _check_cell(run, plan, cell, made, place)


def _check_arms(run: str, plan: Plan, study: str) -> None:
    """Let a study whose messages take options of arms look at them (``check_arm``)."""
    if plan.study(study).galleries:  # nothing is asked
        return
    check = getattr(studies.load(study, "messages"), "check_arm", None)
    for cell in plan.cells if check else ():
        if cell.study == study:
            file = plan.index_file(study, cell.bench) if plan.study(study).index else ""
            grader = plan.bench(run, study, cell.bench).grader
            try:
                check(plan.study(study).arms[cell.arm].options, file, grader)
            except RemeasureError as error:
                raise RemeasureError(
                    f"{plan.folder}/studies/{study}.yaml: arms.{cell.arm} in benches.{cell.bench}: {error}"
                ) from None


def _check_models(run: str, plan: Plan, made: set[str], place: str) -> None:
    for name, model in plan.run(run).models.items():
        plan.ask(run, name)
        plan.money(run, name)
        if model.image_tokens is not None:
            tokens.check_formula(model.image_tokens, f"{place}: models.{name}")
        for option, path in model.files.items():
            if path.startswith("results/sources/") and path not in made:
                hint = did_you_mean(path, made)
                raise RemeasureError(f"{place}: models.{name}.files.{option}: no source {path}{hint}")
    reached = reach.of(plan, run).encoders
    for name, encoder in plan.run(run).encoders.items():
        for option, path in encoder.files.items():
            if path not in made and (path.startswith("results/") or not Path(path).exists()):
                hint = did_you_mean(path, made)
                raise RemeasureError(
                    f"{place}: encoders.{name}.files.{option}: {path} is not there and no source{hint}; "
                    "correct the path"
                )
        path = f"results/sources/{encoder.model}.onnx"
        if path not in made and not encoder.files:
            known = sorted(Path(other).stem for other in made if other.endswith(".onnx"))
            hint = did_you_mean(encoder.model, known)
            raise RemeasureError(f"{place}: encoders.{name}.model: no source {path}{hint}; correct it")
        if encoder.training and name in reached:
            plan.study_run(run, encoder.training.study)
            plan.train(run, name)


def _check_adapted(run: str, plan: Plan, made: set[str], place: str) -> None:
    """Check where the files of adapted models come from; a name that misleads is said, and nothing more."""
    for name in plan.run(run).adapted:
        for option, path in plan.adapted_files(run, name).items():
            if path not in made and (path.startswith("results/") or not Path(path).exists()):
                hint = did_you_mean(path, made)
                raise RemeasureError(
                    f"{place}: adapted.{name}.{option}: {path} is not there and no source{hint}; correct the "
                    "path"
                )
        family = plan.adapted(run, name).family
        called = [name, *(Path(path).name for path in plan.adapted_files(run, name).values())]
        for word in dict.fromkeys([*called, *_titles(run, plan, name)]):
            warning = misleading(word, family)
            if warning:
                print(f"warning: {place}: adapted.{name}: {warning}", file=sys.stderr)


def _titles(run: str, plan: Plan, name: str) -> list[str]:
    """Return the titles of the models that an adapted model's folder answers as."""
    models = plan.run(run).models.values()
    return [m.title for m in models if (run, name) in map(plan.adapted_at, m.files.values())]


def _check_corpora(run: str, plan: Plan, made: set[str], place: str) -> None:
    for name, corpus in plan.run(run).corpora.items():
        plan.pages(run, name)
        named = {"archive": corpus.archive, "facts": corpus.facts, "pictures": corpus.pictures}
        named["tokenizer"] = corpus.tokenizer
        for key, path in named.items():
            if path is None or path in made:
                continue
            if path.startswith("results/"):
                hint = did_you_mean(path, made)
                raise RemeasureError(f"{place}: corpora.{name}.{key}: no rule makes {path}{hint}; correct it")
            if not Path(path).is_file():
                raise RemeasureError(f"{place}: corpora.{name}.{key}: {path} is not a file; correct the path")


def _encoders(plan: Plan, run: str, here: StudyRun) -> list[Encoder]:
    return [plan.encoder(run, name) for name in here.encoders.values()]


def _check_options(check: Callable[[dict], Any], options: dict, place: str, cell: Cell) -> None:
    """Check options now and not after everything was asked; only graders and indexes know theirs."""
    try:
        check(options)
    except RemeasureError as error:
        raise RemeasureError(f"{place} or config/studies/{cell.study}.yaml: {error}") from None


def _check_index(study: str, given: dict, told: dict[str, Any]) -> None:
    """Check options of an index, and those of one that is made from tables against its files."""
    module = studies.load(study, "index")
    options = convert(given, module.Settings, Path("options of index"))
    if "tables" in told:
        module.check(options, told["tables"])


def _check_dataset(plan: Plan, run: str, dataset: str, made: set[str], place: str) -> None:
    """Check where the files of a dataset come from, and that its loader reads them."""
    plan.load_dataset(run, dataset)
    for name, path in plan.dataset_files(run, dataset).items():
        if path not in made and (path.startswith("results/") or not Path(path).exists()):
            raise RemeasureError(
                f"{place}: datasets.{dataset}.files.{name}: {path} is not there and no source"
                f"{did_you_mean(path, made)}; correct the path"
            )


def _check_photographs(plan: Plan, run: str, cell: Cell, reader: str, made: set[str], place: str) -> None:
    """Check where everything comes from that a ranking is made from."""
    gallery = plan.gallery_of(run, cell.study, cell.bench)
    assert gallery is not None, cell  # a bench without one has no cell
    for path in lineage_instances.sources(plan, run, gallery, reader):
        shipped = plan.folder.parent / path
        if path not in made and (
            path.startswith("results/") or not (Path(path).exists() or shipped.exists())
        ):
            raise RemeasureError(
                f"{place}: models.{reader} in gallery {gallery!r}: {path} is not there and no source"
                f"{did_you_mean(path, made)}; correct the path"
            )


def _check_cell(run: str, plan: Plan, cell: Cell, made: set[str], place: str) -> None:
    here, study = plan.study_run(run, cell.study), plan.study(cell.study)
    corpus = plan.corpus_name(run, cell.study, cell.bench)
    dataset = plan.dataset_of(run, cell.study, cell.bench)
    if dataset is not None:
        _check_dataset(plan, run, dataset, made, place)
    elif here.items is None and study.index:
        told = plan.index(run, cell.study)
        _check_options(lambda given: _check_index(cell.study, given, told), told["options"], place, cell)
        tables = plan.tables_of(run, cell.study).values()
        for source in tables or [plan.source(run, cell.study)]:
            if source not in made and not Path(source).exists():
                raise RemeasureError(
                    f"{place}: studies.{cell.study}.source: {source} is not there; put "
                    f"{'it' if tables else 'the images'} there or correct the path"
                )
    elif study.galleries:
        pass  # its questions are photographs
    elif corpus is None and (here.items is None or study.arms[cell.arm].retriever):
        raise RemeasureError(f"{place}: studies.{cell.study}.corpus: is missing; name one")
    elif here.items is None and plan.corpus(run, corpus).facts is None:
        raise RemeasureError(
            f"{place}: studies.{cell.study}: corpus {corpus!r} has no facts to make questions from; "
            "give `items`, a folder with your own questions"
        )
    trained = any(spec.training and spec.training.study == cell.study for spec in _encoders(plan, run, here))
    for name in (cell.bench, *(study.training_sets if trained else ())) if here.items else ():
        path = f"{here.items}/{name}.jsonl"
        if path not in made and not Path(path).is_file():
            raise RemeasureError(f"{place}: studies.{cell.study}.items: {path} is not a file; add it")
    for reader in plan.readers(run, cell.study, cell.bench, cell.arm):
        if plan.ranker(run, reader):
            plan.place(run, cell.study, cell.bench, cell.arm, reader)
            _check_photographs(plan, run, cell, reader, made, place)
        else:
            plan.request(run, cell.study, cell.bench, cell.arm, reader)
        plan.shards(run, cell.study, cell.bench, cell.arm, reader)
        told = plan.grade(run, cell.study, cell.bench, cell.arm, reader)
        _check_options(graders.by_name(told["grader"]).method, told["options"], place, cell)
    plan.items(run, cell.study, cell.bench)
    for path in plan.prompts_elsewhere(run, cell.study):
        if path not in made:
            raise RemeasureError(
                f"{place}: studies.{cell.study}.prompts: no source {path}{did_you_mean(path, made)}; add it "
                "to config/sources_by_hand.tsv, or correct elsewhere.yaml of the profile"
            )
    for name, path in plan.grader_files(run, cell.study, cell.bench).items():
        if path not in made and (path.startswith("results/") or not Path(path).is_file()):
            raise RemeasureError(
                f"{place}: studies.{cell.study}: benches.{cell.bench}.files.{name}: {path} is not there and "
                f"no source{did_you_mean(path, made)}; correct the path"
            )
    plan.published_sha256(cell.table)
    if plan.has_judge(run, cell.study, cell.bench):
        plan.judge_request(run, cell.study, cell.bench)
    if study.arms[cell.arm].retriever:
        plan.retrieval(run, cell.study, cell.arm)
