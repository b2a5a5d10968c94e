# Settings, wildcards and names that all rule files use; the functions themselves are in scripts/remeasure/.
#
# Needs: config/**; makes nothing.

import json
import os
import shlex
import sys
import time
from pathlib import Path

SCRIPTS = Path(workflow.basedir) / "scripts"
sys.path.insert(0, str(SCRIPTS))

from remeasure import obstacles, planning, scratch, timing
from remeasure.cluster import driver, site
from remeasure.errors import RemeasureError
from remeasure.fingerprint import code_of, study_code
from remeasure.needs import Needs, RuleResources
from remeasure.plan import Plan
from remeasure.preamble import browser_options, check_config
from remeasure.wiring import Wiring, as_json, as_options, as_pairs, as_words, watching, without

STARTED = time.time()
planning.set_aside()
planning.remember_signatures()

try:
    PLAN = Plan(SCRIPTS.parent / "config")
    check_config(config, PLAN)
    BROWSER = browser_options(config)
    SITE = site.find(SCRIPTS.parent / "slurm" / "partitions.yaml")
    # What the profile says under `default-resources: scratch:`; nested processes get it handed down.
    SCRATCH = scratch.export(scratch.named_in(workflow.resource_settings.default_resources))
except RemeasureError as error:
    # One line instead of a traceback; nested processes of a cluster job say it in their own log.
    print(f"error: {error}", file=sys.stderr, flush=True)
    os._exit(2)

driver.end_promptly()
FILES = Wiring(PLAN)
NEEDS = RuleResources(SITE, driver.usual(workflow.resource_settings.default_resources))
driver.note_on_killed()

# Rules say `python $SCRIPTS/x.py`: to run a printed command by hand, `export SCRIPTS=scripts` first. Without
# conda the python that runs Snakemake runs the scripts; with it the environment's own. A cluster tells every
# process of a job to end: the shell waits for the script then, or the script would be killed at once.
shell.prefix(
    f"trap : TERM; export SCRIPTS={shlex.quote(str(SCRIPTS))}; "
    + SCRATCH.replace("{", "{{").replace("}", "}}")
    + (
        ""
        if workflow.deployment_settings.deployment_method
        else f"PATH={shlex.quote(os.path.dirname(sys.executable))}:$PATH; "
    )
)


wildcard_constraints:
    run="|".join(PLAN.runs()),
    study="|".join(PLAN.studies()),
    bench="|".join(PLAN.question_sets()),
    arm="|".join(sorted({cell.arm for cell in PLAN.cells})),
    table="|".join(PLAN.tables()),
    corpus="[a-z0-9][a-z0-9_-]*",
    dataset="[a-z0-9][a-z0-9_-]*",
    database="(?!dataset[.])[a-z0-9][a-z0-9_-]*",
    environment="[a-z0-9][a-z0-9_-]*",
    adapted="(?!logs/)[a-z0-9][a-z0-9_-]*",
    encoder="(?!tiles/|passages/|parts/)[a-z0-9][a-z0-9_-]*",
    model="[a-z0-9][a-z0-9_-]*(@[1-9][0-9]*)?",
    judge="[a-z0-9][a-z0-9_-]*",
    photos="[a-z0-9][a-z0-9_-]*",
    backbone="[a-z0-9][a-z0-9_-]*",
    local="[a-z0-9][a-z0-9_-]*",
    head="[a-z0-9][a-z0-9_-]*",
    seed="[0-9]+",
    reranker="[a-z0-9][a-z0-9_-]*",
    gallery="[a-z0-9][a-z0-9_-]*",
    projection="(?!given-)[a-z0-9][a-z0-9_-]*",
    reader="[a-z0-9][a-z0-9_-]*",
    piece="[1-9][0-9]*of[1-9][0-9]*|queries|whole|instructed",
    shard="[1-9][0-9]*of[1-9][0-9]*",
    part="[1-9][0-9]*of[1-9][0-9]*",
