"""Remeasure: raw inputs → tiles → indexes → ranked lists → responses → graded JSONL → published tables."""

from snakemake.utils import min_version

min_version("9.18")


configfile: f"{workflow.basedir}/config/config.yaml"


include: "rules/common.smk"
include: "rules/preflight.smk"
include: "rules/sources.smk"
include: "rules/corpus.smk"
include: "rules/collections.smk"
include: "rules/index.smk"
include: "rules/train.smk"
include: "rules/retrieve.smk"
include: "rules/adapters.smk"
include: "rules/ask.smk"
include: "rules/systems.smk"
include: "rules/parts.smk"
include: "rules/photos.smk"
include: "rules/describe.smk"
include: "rules/heads.smk"
include: "rules/rank.smk"
include: "rules/estimate.smk"
include: "rules/grade.smk"
include: "rules/audit.smk"
include: "rules/calibrate.smk"
include: "rules/tables.smk"


rule all:
    """Every published table of the configured run."""
    default_target: True
    input:
        tables=[f"results/{table}.csv" for table in PLAN.tables()],
        judges=["results/judges.csv"] if PLAN.run(config["run"]).judge_agreement else [],
        calibrations=lambda _: [
            f"results/{table}.judges.csv"
            for table in PLAN.tables()
            if PLAN.is_calibrated(config["run"], table)
        ],


onstart:
    obstacles.stop(workflow, PLAN)
    driver.attach(workflow)


onsuccess:
    timing.report("results", STARTED)
    timing.note_on_sources("results", STARTED)
