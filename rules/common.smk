# Settings, wildcards and the functions that rules share. Rule files hold rules only.
#
# Needs: config/**; makes nothing.

import functools
import json
import os
import shlex
import sys
import time
from pathlib import Path

ROOT = Path(workflow.basedir)
SCRIPTS = str(ROOT / "scripts")
sys.path.insert(0, SCRIPTS)

from remeasure import fingerprint, gaps, lineage, timing
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.preamble import check_config

STARTED = time.time()
# With conda the environment's own python runs the scripts; without it the one that runs Snakemake.
PYTHON = "python" if workflow.deployment_settings.deployment_method else shlex.quote(sys.executable)

try:
    PLAN = Plan(ROOT / "config")
    check_config(config, PLAN)
except RemeasureError as error:
    # One line instead of a traceback; nested processes of a cluster job say it in their own log.
    print(f"error: {error}", file=sys.stderr)
    os._exit(2)

BROWSER = shlex.join(
    (["--browser", config["browser"]] if config["browser"] else [])
    + ["--sandbox", str(config["browser_sandbox"]).lower()]
)


wildcard_constraints:
    run="|".join(PLAN.runs()),
    study="|".join(PLAN.studies()),
    bench="|".join(PLAN.question_sets()),
    arm="|".join(sorted({cell.arm for cell in PLAN.cells})),
    table="|".join(PLAN.tables()),
    corpus="[a-z0-9][a-z0-9_-]*",
    encoder="(?!tiles/|passages/)[a-z0-9][a-z0-9_-]*",
    model="[a-z0-9][a-z0-9_-]*",
    judge="[a-z0-9][a-z0-9_-]*",


def code_of(script, *modules):
    """Fingerprint of a script and of the library modules that it uses, and of those named."""
    return fingerprint.of_script(script, also=modules)


def as_json(function, *names):
    """Return a function of wildcards that gives a stage's settings as one JSON text."""

    def resolved(wildcards):
        return json.dumps(function(*(wildcards[name] for name in names)), sort_keys=True, ensure_ascii=False)

    return resolved


def as_options(function):
    """Return a function of wildcards that gives named inputs as command-line options."""

    def resolved(wildcards):
        named = function(wildcards)
        return [word for name in named for word in (f"--{name.replace('_', '-')}", named[name])]

    return resolved


def corpus_of(wildcards, name):
    """Path of one file of the corpus that a study uses in a run."""
    corpus = PLAN.study_run(wildcards.run, wildcards.study).corpus
    return f"results/{wildcards.run}/corpora/{corpus}/{name}"


def watch_gaps():
    """Let a deleted file under results/ be noticed although what was made from it still exists."""
    if workflow.is_main_process:
        gaps.watch(workflow.dag)
