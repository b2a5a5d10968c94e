# How far the judge of a table can be trusted: a sample of its verdicts, judges asked anew, labels of people.
#
# Needs: graded cells. Makes: results/{run}/calibration/{table}/ (with sheet.csv, which people label) and
# results/{run}/tables/{table}.judges.csv, results/{table}.judges.csv of the configured run.


rule pick_answers:
    """Half of the sample passed and half failed in the table; the sheet tells nobody which."""
    input:
        questions=FILES.calibrated_items,
        graded=lambda wildcards: FILES.calibrated(wildcards, "graded.jsonl"),
        responses=lambda wildcards: FILES.calibrated(wildcards, "responses.jsonl"),
    output:
        picked="results/{run}/calibration/{table}/picked.jsonl",
        sheet="results/{run}/calibration/{table}/sheet.csv",
        record="results/{run}/calibration/{table}/sample.json",
    log:
        "results/{run}/calibration/{table}/logs/pick_answers.log",
    benchmark:
        "results/{run}/calibration/{table}/logs/pick_answers.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("pick_answers.py"),
        settings=as_json(PLAN.pick_answers, "run", "table"),
    shell:
        'python "$SCRIPTS"/pick_answers.py --settings {params.settings:q} --items {input.questions:q}'
        " --graded {input.graded:q} --responses {input.responses:q} --picked {output.picked:q}"
        " --sheet {output.sheet:q} --record {output.record:q} 2> {log:q}"


rule build_calibration_requests:
    """The answers of the sample as requests to one judge."""
    input:
        picked="results/{run}/calibration/{table}/picked.jsonl",
        prompts=FILES.calibration_prompts,
    output:
        requests="results/{run}/calibration/{table}/{judge}/requests.jsonl",
        record="results/{run}/calibration/{table}/{judge}/ask.json",
    log:
        "results/{run}/calibration/{table}/{judge}/logs/build_calibration_requests.log",
    benchmark:
        "results/{run}/calibration/{table}/{judge}/logs/build_calibration_requests.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=lambda wildcards: code_of(
            "build_calibration_requests.py",
            f"remeasure.studies.{FILES.calibrated_study(wildcards)}_messages",
        ),
        settings=as_json(PLAN.calibration_request, "run", "table", "judge"),
        study=FILES.calibrated_study,
    shell:
        'python "$SCRIPTS"/build_calibration_requests.py --study {params.study:q} --settings {params.settings:q}'
        " --picked {input.picked:q} --out {output.requests:q} --record {output.record:q} 2> {log:q}"


use rule ask_agreement as ask_calibration with:
    input:
        requests="results/{run}/calibration/{table}/{judge}/requests.jsonl",
        executor=lambda wildcards: FILES.executor(
            wildcards.run, FILES.calibrated_study(wildcards), wildcards.judge
        ),
        files=lambda wildcards: FILES.server_files(
            wildcards.run, FILES.calibrated_study(wildcards), wildcards.judge
        ),
        shards=[],
    output:
        responses="results/{run}/calibration/{table}/{judge}/responses.jsonl",
        record="results/{run}/calibration/{table}/{judge}/answers.json",
    log:
        "results/{run}/calibration/{table}/{judge}/logs/ask.log",
    benchmark:
        "results/{run}/calibration/{table}/{judge}/logs/ask.benchmark.tsv"


use rule ask_calibration as ask_calibration_on_login with:
    wildcard_constraints:
        run=FILES.on_login("calibration"),
    localrule: True


ruleorder: ask_calibration_on_login > ask_calibration


rule make_calibration:
    """Agreement, kappa and self-preference: verdicts in the table, judges asked anew, labels."""
    input:
        unpack(FILES.labels),
        picked="results/{run}/calibration/{table}/picked.jsonl",
        sample="results/{run}/calibration/{table}/sample.json",
        responses=lambda wildcards: FILES.calibrating(wildcards, "responses.jsonl"),
    output:
        table="results/{run}/tables/{table}.judges.csv",
        record="results/{run}/tables/{table}.judges.json",
    log:
        "results/{run}/tables/logs/{table}.judges.log",
    benchmark:
        "results/{run}/tables/logs/{table}.judges.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("make_calibration.py"),
        settings=as_json(PLAN.make_calibration, "run", "table"),
        labels=as_options(FILES.labels),
    shell:
        'python "$SCRIPTS"/make_calibration.py --settings {params.settings:q} --picked {input.picked:q}'
        " --sample {input.sample:q} --responses {input.responses:q} {params.labels:q}"
        " --out {output.table:q} --record {output.record:q} 2> {log:q}"


use rule estimate_agreement as estimate_calibration with:
    input:
        questions=lambda wildcards: FILES.calibrated_items(wildcards)[0],
        executor=lambda wildcards: FILES.executor(
            wildcards.run, FILES.calibrated_study(wildcards), wildcards.judge
        ),
    output:
        estimate="results/{run}/calibration/{table}/{judge}/estimate.json",
    log:
        "results/{run}/calibration/{table}/{judge}/logs/estimate.log",
    benchmark:
        "results/{run}/calibration/{table}/{judge}/logs/estimate.benchmark.tsv"
    params:
        code=lambda wildcards: code_of(
            "estimate_cost.py", f"remeasure.studies.{FILES.calibrated_study(wildcards)}_messages"
        ),
        settings=as_json(PLAN.estimate_calibration, "run", "table", "judge"),
        study=FILES.calibrated_study,
        kept=FILES.kept("results/{run}/calibration/{table}/{judge}/journal"),
