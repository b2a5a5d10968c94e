"""What is checked in the first second of every call, before any job is planned."""

import shlex
from pathlib import Path
from typing import Any

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.plan import Plan

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
    """Resolve every setting that a run's tables need, so that a mistake shows before the first job."""
    place = f"{plan.folder}/runs/{run}.yaml"
    for name, corpus in plan.run(run).corpora.items():
        for key, path in (
            ("archive", corpus.archive),
            ("facts", corpus.facts),
            ("pictures", corpus.pictures),
        ):
            if path and not path.startswith("results/") and not Path(path).is_file():
                raise RemeasureError(f"{place}: corpora.{name}.{key}: {path} is not a file; correct the path")
    for cell in plan.cells:
        if cell.study not in plan.run(run).studies:
            continue  # a run may leave out whole studies; asking for their tables says so
        here = plan.study_run(run, cell.study)
        corpus = plan.corpus(run, here.corpus)
        if here.items is None and corpus.facts is None:
            raise RemeasureError(
                f"{place}: studies.{cell.study}: corpus {here.corpus!r} has no facts to make questions from; "
                "give `items`, a folder with your own questions"
            )
        if here.items is not None and not (Path(here.items) / f"{cell.bench}.jsonl").is_file():
            raise RemeasureError(
                f"{place}: studies.{cell.study}.items: {here.items}/{cell.bench}.jsonl is not a file; add it"
            )
        plan.request(run, cell.study, cell.bench, cell.arm)
        plan.grade(run, cell.study, cell.bench, cell.arm)
        if plan.study(cell.study).arms[cell.arm].retriever:
            plan.retrieval(run, cell.study, cell.arm)
