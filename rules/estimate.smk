# What asking will cost, before anything is asked: tokens, dollars and seconds of what has no answer yet.
#
# Needs: reader's requests, questions. Makes: {bench}/{arm}/{model}/estimate.json and the same under judge/,
# results/{run}/tables/{table}.estimate.csv, results/estimate.csv of the configured run. Nothing is made from them.


rule estimate:
    """What the reader of a cell will cost; answers that are kept cost nothing more."""
    input:
        unpack(FILES.shown_images),
        requests="results/{run}/{study}/{bench}/{arm}/{model}/requests.jsonl",
        executor="results/{run}/{study}/executors/{model}.json",
    output:
        estimate="results/{run}/{study}/{bench}/{arm}/{model}/estimate.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/estimate.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/estimate.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("estimate_cost.py"),
        settings=as_json(PLAN.estimate_reader, "run", "study", "bench", "model"),
        kept=FILES.kept("results/{run}/{study}/{bench}/{arm}/{model}/journal"),
        database=FILES.database_option,
    shell:
        'python "$SCRIPTS"/estimate_cost.py --settings {params.settings:q} --requests {input.requests:q}'
        " {params.database:q} --executor {input.executor:q} --journal $(dirname {output.estimate:q})/journal"
        " --out {output.estimate:q} 2> {log:q}"


rule estimate_judge:
    """What judging a cell will cost: its requests do not exist yet, so every question counts as answered."""
    input:
        questions="results/{run}/{study}/{bench}/items.jsonl",
        prompts=FILES.judge_prompts,
        executor=lambda wildcards: FILES.executor(wildcards.run, wildcards.study, FILES.judge(wildcards)),
    output:
        estimate="results/{run}/{study}/{bench}/{arm}/{model}/judge/estimate.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/estimate.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/estimate.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=study_code("estimate_cost.py", "messages"),
        settings=as_json(PLAN.estimate_judge, "run", "study", "bench"),
        kept=FILES.kept("results/{run}/{study}/{bench}/{arm}/{model}/judge/journal"),
    shell:
        'python "$SCRIPTS"/estimate_cost.py --settings {params.settings:q} --study {wildcards.study:q}'
        " --items {input.questions:q} --executor {input.executor:q}"
        " --requests $(dirname {output.estimate:q})/requests.jsonl"
        " --journal $(dirname {output.estimate:q})/journal --out {output.estimate:q} 2> {log:q}"


rule estimate_agreement:
    """What one of the compared judges will cost."""
    input:
        questions=FILES.audited_items,
        executor=lambda wildcards: FILES.executor(
            wildcards.run, FILES.audited_study(wildcards), wildcards.judge
        ),
    output:
        estimate="results/{run}/judges/{judge}/estimate.json",
    log:
        "results/{run}/judges/{judge}/logs/estimate.log",
    benchmark:
        "results/{run}/judges/{judge}/logs/estimate.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=lambda wildcards: code_of(
            "estimate_cost.py", f"remeasure.studies.{FILES.audited_study(wildcards)}_messages"
        ),
        settings=as_json(PLAN.estimate_agreement, "run", "judge"),
        study=FILES.audited_study,
        kept=FILES.kept("results/{run}/judges/{judge}/journal"),
    shell:
        'python "$SCRIPTS"/estimate_cost.py --settings {params.settings:q} --study {params.study:q}'
        " --items {input.questions:q} --executor {input.executor:q}"
        " --requests $(dirname {output.estimate:q})/requests.jsonl"
        " --journal $(dirname {output.estimate:q})/journal --out {output.estimate:q} 2> {log:q}"


rule make_estimate:
    """A row for every cell and model of a table, and their sum."""
    input:
        estimates=lambda wildcards: list(FILES.estimated(wildcards.run, [wildcards.table])),
    output:
        table="results/{run}/tables/{table}.estimate.csv",
    log:
        "results/{run}/tables/logs/{table}.estimate.log",
    benchmark:
        "results/{run}/tables/logs/{table}.estimate.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("make_estimate.py"),
        settings=as_json(FILES.estimates, "run", "table"),
    shell:
        'python "$SCRIPTS"/make_estimate.py --settings {params.settings:q} --estimates {input.estimates:q}'
        " --out {output.table:q} 2> {log:q}"


use rule make_estimate as publish_estimate with:
    input:
        estimates=lambda wildcards: list(FILES.all_estimated(config["run"])),
    output:
        table="results/estimate.csv",
    log:
        "results/logs/estimate.log",
    benchmark:
        "results/logs/estimate.benchmark.tsv"
    params:
        code=code_of("make_estimate.py"),
        settings=lambda wildcards: json.dumps(
            {"run": config["run"], "places": list(FILES.all_estimated(config["run"]).values())}
        ),


rule estimate_photos:
    """A row for every step that brings, describes or reranks photographs, and the sums of two plans."""
    output:
        table="results/{run}/tables/{table}.estimate.csv",
    log:
        "results/{run}/tables/logs/{table}.estimate.log",
    benchmark:
        "results/{run}/tables/logs/{table}.estimate.benchmark.tsv"
    wildcard_constraints:
        run=FILES.ranking("estimates"),
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("estimate_photos.py"),
        settings=as_json(PLAN.photo_costs, "run", "table"),
    shell:
        'python "$SCRIPTS"/estimate_photos.py --settings {params.settings:q} --out {output.table:q} 2> {log:q}'


rule publish_table_estimate:
    """A copy of the configured run's estimate of one table; it names the run in its last column."""
    input:
        f"results/{config['run']}/tables/{{table}}.estimate.csv",
    output:
        "results/{table}.estimate.csv",
    log:
        "results/logs/{table}.estimate.log",
    benchmark:
        "results/logs/{table}.estimate.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "cp {input:q} {output:q} 2> {log:q}"


ruleorder: estimate_photos > make_estimate
