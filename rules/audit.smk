# How far judges agree with each other and with exact match, on answers that are there already.
#
# Needs: graded cells. Makes: results/{run}/judges/, results/{run}/tables/judges.csv.


rule build_agreement_requests:
    """The same stored answers as requests to one judge."""
    input:
        questions=FILES.audited_items,
        graded=lambda wildcards: FILES.audited(wildcards, "graded.jsonl"),
        responses=lambda wildcards: FILES.audited(wildcards, "responses.jsonl"),
        prompts=FILES.agreement_prompts,
    output:
        requests="results/{run}/judges/{judge}/requests.jsonl",
        picked="results/{run}/judges/{judge}/picked.jsonl",
        record="results/{run}/judges/{judge}/ask.json",
    log:
        "results/{run}/judges/{judge}/logs/build_agreement_requests.log",
    benchmark:
        "results/{run}/judges/{judge}/logs/build_agreement_requests.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=lambda wildcards: code_of(
            "build_agreement_requests.py", f"remeasure.studies.{FILES.audited_study(wildcards)}_messages"
        ),
        settings=as_json(PLAN.agreement, "run", "judge"),
    shell:
        'python "$SCRIPTS"/build_agreement_requests.py --settings {params.settings:q} --items {input.questions:q}'
        " --graded {input.graded:q} --responses {input.responses:q} --picked {output.picked:q}"
        " --out {output.requests:q} --record {output.record:q} 2> {log:q}"


use rule ask as ask_agreement with:
    input:
        requests="results/{run}/judges/{judge}/requests.jsonl",
        executor=lambda wildcards: FILES.executor(
            wildcards.run, FILES.audited_study(wildcards), wildcards.judge
        ),
        files=lambda wildcards: FILES.server_files(
            wildcards.run, FILES.audited_study(wildcards), wildcards.judge
        ),
        shards=[],
    output:
        responses="results/{run}/judges/{judge}/responses.jsonl",
        record="results/{run}/judges/{judge}/answers.json",
    log:
        "results/{run}/judges/{judge}/logs/ask.log",
    benchmark:
        "results/{run}/judges/{judge}/logs/ask.benchmark.tsv"
    conda:
        lambda wildcards: FILES.environment(wildcards.run, wildcards.judge)
    threads: NEEDS.threads(FILES.agreement_needs, 1)
    resources:
        **NEEDS.of(FILES.agreement_needs, mem_mb=2000, runtime=240),
    params:
        code=code_of("collect_responses.py"),
        settings=as_json(PLAN.ask, "run", "judge"),
        inputs=[],


use rule ask_agreement as ask_agreement_on_login with:
    wildcard_constraints:
        run=FILES.on_login("agreement"),
    localrule: True


ruleorder: ask_agreement_on_login > ask_agreement


rule make_agreement:
    """Agreement and kappa of every pair of judges."""
    input:
        picked=lambda wildcards: FILES.judges(wildcards, "picked.jsonl"),
        responses=lambda wildcards: FILES.judges(wildcards, "responses.jsonl"),
    output:
        table="results/{run}/tables/judges.csv",
        record="results/{run}/tables/judges.json",
    log:
        "results/{run}/tables/logs/make_agreement.log",
    benchmark:
        "results/{run}/tables/logs/make_agreement.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("make_agreement.py"),
        settings=as_json(PLAN.agreement_table, "run"),
    shell:
        'python "$SCRIPTS"/make_agreement.py --settings {params.settings:q} --picked {input.picked:q}'
        " --responses {input.responses:q} --out {output.table:q} --record {output.record:q} 2> {log:q}"
