# The cells of a table side by side, with their differences, their intervals and where they come from.
#
# Needs: graded cells and the records of every stage.
# Makes: results/{run}/tables/{table}.*, results/{table}.* of the configured run.


def cell_files(wildcards, *names):
    """Files of every cell of a table."""
    watch_gaps()
    return [
        f"results/{wildcards.run}/{cell.study}/{cell.bench}/{cell.arm}/"
        f"{PLAN.study_run(wildcards.run, cell.study).reader}/{name}"
        for cell in PLAN.cells_of(wildcards.table)
        for name in names
    ]


rule make_table:
    """The published layout, one row per cell, differences, provenance and a figure."""
    input:
        scores=lambda wildcards: cell_files(wildcards, "score.json"),
        graded=lambda wildcards: cell_files(wildcards, "graded.jsonl"),
        stages=lambda wildcards: lineage.stage_records(PLAN, wildcards.run, wildcards.table),
    output:
        wide="results/{run}/tables/{table}.csv",
        cells="results/{run}/tables/{table}.cells.csv",
        contrasts="results/{run}/tables/{table}.contrasts.csv",
        markdown="results/{run}/tables/{table}.md",
        provenance="results/{run}/tables/{table}.json",
        figure="results/{run}/tables/{table}.svg",
    log:
        "results/{run}/tables/logs/{table}.log",
    params:
        code=code_of("make_table.py"),
        settings=as_json(PLAN.table, "run", "table"),
        published=lambda wildcards: PLAN.published_path(wildcards.table),
        published_sha256=lambda wildcards: PLAN.published_sha256(wildcards.table),
    benchmark:
        "results/{run}/tables/logs/{table}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/make_table.py --settings {params.settings:q} --published {ROOT}/{params.published}"
        " --scores {input.scores} --graded {input.graded} --stages {input.stages}"
        " --out-wide {output.wide} --out-cells {output.cells} --out-contrasts {output.contrasts}"
        " --out-markdown {output.markdown} --out-provenance {output.provenance} --out-figure {output.figure}"
        " 2> {log}"


def published_parts(wildcards):
    """The configured run's version of every part of a table."""
    watch_gaps()
    parts = ("csv", "cells.csv", "contrasts.csv", "md", "json", "svg")
    return [f"results/{config['run']}/tables/{wildcards.table}.{part}" for part in parts]


rule publish_table:
    """Copies of the configured run's table, with a last column that names the run."""
    input:
        published_parts,
    output:
        wide="results/{table}.csv",
        cells="results/{table}.cells.csv",
        contrasts="results/{table}.contrasts.csv",
        markdown="results/{table}.md",
        provenance="results/{table}.json",
        figure="results/{table}.svg",
    log:
        "results/logs/{table}.log",
    params:
        code=code_of("publish_table.py"),
        settings=config["run"],
    benchmark:
        "results/logs/{table}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/publish_table.py --run {params.settings} --inputs {input} --outputs {output} 2> {log}"


use rule publish_table as publish_judges with:
    input:
        lambda wildcards: f"results/{config['run']}/tables/judges.csv",
    output:
        "results/judges.csv",
    log:
        "results/logs/judges.log",
    benchmark:
        "results/logs/judges.benchmark.tsv"
