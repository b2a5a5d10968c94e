# How far judges agree with each other and with exact match, on answers that are there already.
#
# Needs: graded cells. Makes: results/{run}/judges/, results/{run}/tables/judges.csv.


def agreement_cells(wildcards):
    """Folders of the cells whose answers the judges are compared on."""
    audit = PLAN.audit(wildcards.run)
    reader = PLAN.study_run(wildcards.run, audit.study).reader
    arms = dict.fromkeys(c.arm for c in PLAN.cells if (c.study, c.bench) == (audit.study, audit.bench))
    return [f"results/{wildcards.run}/{audit.study}/{audit.bench}/{arm}/{reader}" for arm in arms]


def agreement_executor(wildcards):
    """How a compared judge is reached."""
    study = PLAN.audit(wildcards.run).study
    return ancient(f"results/{wildcards.run}/{study}/executors/{wildcards.judge}.json")


rule build_agreement_requests:
    """The same stored answers as requests to one judge."""
    input:
        questions=lambda wildcards: "results/{0}/{1.study}/{1.bench}/items.jsonl".format(wildcards.run, PLAN.audit(wildcards.run)),
        graded=lambda wildcards: [f"{cell}/graded.jsonl" for cell in agreement_cells(wildcards)],
        responses=lambda wildcards: [f"{cell}/responses.jsonl" for cell in agreement_cells(wildcards)],
    output:
        requests="results/{run}/judges/{judge}/requests.jsonl",
        record="results/{run}/judges/{judge}/ask.json",
    log:
        "results/{run}/judges/{judge}/logs/build_agreement_requests.log",
    params:
        code=lambda wildcards: code_of("build_agreement_requests.py", f"remeasure.studies.{PLAN.audit(wildcards.run).study}"),
        settings=as_json(PLAN.agreement, "run", "judge"),
    benchmark:
        "results/{run}/judges/{judge}/logs/build_agreement_requests.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/build_agreement_requests.py --settings {params.settings:q} --items {input.questions}"
        " --graded {input.graded} --responses {input.responses} --out {output.requests}"
        " --record {output.record} 2> {log}"


use rule ask as ask_agreement with:
    input:
        requests="results/{run}/judges/{judge}/requests.jsonl",
        executor=agreement_executor,
        files=lambda wildcards: executor_files(wildcards.run, wildcards.judge, None),
    output:
        responses="results/{run}/judges/{judge}/responses.jsonl",
        record="results/{run}/judges/{judge}/answers.json",
    log:
        "results/{run}/judges/{judge}/logs/ask.log",
    params:
        code=code_of("collect_responses.py"),
        settings=as_json(PLAN.ask, "run", "judge"),
    benchmark:
        "results/{run}/judges/{judge}/logs/ask.benchmark.tsv"


def agreement_files(wildcards, name):
    """One file of every compared judge."""
    judges = PLAN.audit(wildcards.run).judges
    return [f"results/{wildcards.run}/judges/{judge}/{name}" for judge in judges]


rule make_agreement:
    """Agreement and kappa of every pair of judges."""
    input:
        requests=lambda wildcards: agreement_files(wildcards, "requests.jsonl"),
        responses=lambda wildcards: agreement_files(wildcards, "responses.jsonl"),
    output:
        table="results/{run}/tables/judges.csv",
        record="results/{run}/tables/judges.json",
    log:
        "results/{run}/tables/logs/make_agreement.log",
    params:
        code=code_of("make_agreement.py"),
        settings=as_json(PLAN.agreement_table, "run"),
    benchmark:
        "results/{run}/tables/logs/make_agreement.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/make_agreement.py --settings {params.settings:q} --requests {input.requests}"
        " --responses {input.responses} --out {output.table} --record {output.record} 2> {log}"
