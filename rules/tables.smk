# The cells of a table side by side, with their differences, their intervals and where they come from.
#
# Needs: graded cells and the records of every stage.
# Makes: results/{run}/tables/{table}.*, results/{table}.* of the configured run.


rule make_table:
    """The published layout, one row per number, differences, breakdown, provenance and a figure."""
    input:
        scores=watching(workflow, lambda wildcards: FILES.cells(wildcards, "score.json")),
        graded=lambda wildcards: FILES.cells(wildcards, "graded.jsonl"),
        stages=FILES.stages,
    output:
        wide="results/{run}/tables/{table}.csv",
        cells="results/{run}/tables/{table}.cells.csv",
        contrasts="results/{run}/tables/{table}.contrasts.csv",
        breakdown="results/{run}/tables/{table}.breakdown.csv",
        drift="results/{run}/tables/{table}.drift.csv",
        spread="results/{run}/tables/{table}.spread.csv",
        failures="results/{run}/tables/{table}.failures.csv",
        markdown="results/{run}/tables/{table}.md",
        provenance="results/{run}/tables/{table}.json",
        figure="results/{run}/tables/{table}.svg",
    log:
        "results/{run}/tables/logs/{table}.log",
    benchmark:
        "results/{run}/tables/logs/{table}.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("make_table.py"),
        settings=as_json(PLAN.table, "run", "table"),
        published=lambda wildcards: PLAN.published_path(wildcards.table),
        published_sha256=lambda wildcards: PLAN.published_sha256(wildcards.table),
    shell:
        'python "$SCRIPTS"/make_table.py --settings {params.settings:q}'
        ' --published "${{SCRIPTS%/scripts}}"/{params.published:q}'
        " --scores {input.scores:q} --graded {input.graded:q} --stages {input.stages:q}"
        " --out-wide {output.wide:q} --out-cells {output.cells:q} --out-contrasts {output.contrasts:q}"
        " --out-breakdown {output.breakdown:q} --out-drift {output.drift:q} --out-spread {output.spread:q}"
        " --out-failures {output.failures:q}"
        " --out-markdown {output.markdown:q} --out-provenance {output.provenance:q} --out-figure {output.figure:q}"
        " 2> {log:q}"


rule make_page:
    """The units of a table one by one, with pictures, answers, what decided, and verdicts, as one HTML file."""
    input:
        questions=lambda wildcards: FILES.benches(wildcards, "items.jsonl"),
        images=FILES.pictured,
        graded=lambda wildcards: FILES.cells(wildcards, "graded.jsonl"),
        responses=lambda wildcards: FILES.cells(wildcards, "responses.jsonl"),
        requests=FILES.requests_shown,
        photos=FILES.ranked_photos,
        judged=FILES.judged,
        documents=FILES.documents,
        table="results/{run}/tables/{table}.json",
    output:
        page="results/{run}/tables/{table}.html",
    log:
        "results/{run}/tables/logs/{table}.html.log",
    benchmark:
        "results/{run}/tables/logs/{table}.html.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("make_page.py"),
        settings=as_json(PLAN.page, "run", "table"),
    shell:
        'python "$SCRIPTS"/make_page.py --settings {params.settings:q} --items {input.questions:q}'
        " --graded {input.graded:q} --responses {input.responses:q} --requests {input.requests:q}"
        " --judged {input.judged:q} --documents {input.documents:q} --photos {input.photos:q}"
        " --table {input.table:q} --out {output.page:q} 2> {log:q}"


rule publish_table:
    """Copies of the configured run's table, with a last column that names the run."""
    input:
        watching(workflow, lambda wildcards: FILES.published_parts(wildcards, config["run"])),
    output:
        wide="results/{table}.csv",
        cells="results/{table}.cells.csv",
        contrasts="results/{table}.contrasts.csv",
        breakdown="results/{table}.breakdown.csv",
        drift="results/{table}.drift.csv",
        spread="results/{table}.spread.csv",
        failures="results/{table}.failures.csv",
        markdown="results/{table}.md",
        provenance="results/{table}.json",
        figure="results/{table}.svg",
        page="results/{table}.html",
    log:
        "results/logs/{table}.log",
    benchmark:
        "results/logs/{table}.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("publish_table.py"),
        settings=lambda wildcards: config["run"],
    shell:
        'python "$SCRIPTS"/publish_table.py --run {params.settings} --inputs {input:q} --outputs {output:q} 2> {log:q}'


use rule publish_table as publish_judges with:
    input:
        f"results/{config['run']}/tables/judges.csv",
    output:
        "results/judges.csv",
    log:
        "results/logs/judges.log",
    benchmark:
        "results/logs/judges.benchmark.tsv"


use rule publish_table as publish_calibration with:
    input:
        f"results/{config['run']}/tables/{{table}}.judges.csv",
    output:
        "results/{table}.judges.csv",
    log:
        "results/logs/{table}.judges.log",
    benchmark:
        "results/logs/{table}.judges.benchmark.tsv"
