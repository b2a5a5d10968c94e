# Requests, and one outcome for every request: the reader's answers, and the judge's verdicts on them.
#
# Needs: questions, ranked lists, tiles or passages. Makes: {bench}/{arm}/{model}/requests.jsonl,
# responses.jsonl and the same under judge/. Answers are kept in journal/, which no rule declares, so that
# nothing that was paid for is removed.


rule describe_executor:
    """How a study reaches a model; a change of address, concurrency or time limit asks nothing again."""
    output:
        executor="results/{run}/{study}/executors/{model}.json",
    log:
        "results/{run}/{study}/executors/logs/{model}.log",
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=as_json(PLAN.study_executor, "run", "study", "model"),
    shell:
        "printf '%s\\n' {params.settings:q} > {output.executor:q} 2> {log:q}"


rule build_requests:
    """One request per question, images as references."""
    input:
        unpack(FILES.evidence),
        questions="results/{run}/{study}/{bench}/items.jsonl",
        images="results/{run}/{study}/{bench}/images.zip",
        prompts=FILES.prompts,
    output:
        requests="results/{run}/{study}/{bench}/{arm}/{model}/requests.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/ask.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/build_requests.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/build_requests.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=study_code("build_requests.py", "messages"),
        settings=as_json(PLAN.request, "run", "study", "bench", "arm", "model"),
        inputs=as_options(FILES.evidence),
    shell:
        'python "$SCRIPTS"/build_requests.py --study {wildcards.study:q} --settings {params.settings:q}'
        " --items {input.questions:q} {params.inputs:q} --out {output.requests:q} --record {output.record:q} 2> {log:q}"


rule ask_shard:
    """A part of a cell's requests, asked by a job of its own; how many parts there are changes no answer."""
    input:
        unpack(lambda wildcards: FILES.behind(wildcards, wildcards.model)),
        requests="results/{run}/{study}/{bench}/{arm}/{model}/requests.jsonl",
        executor="results/{run}/{study}/executors/{model}.json",
        files=lambda wildcards: FILES.server_files(wildcards.run, wildcards.study, wildcards.model),
    output:
        record="results/{run}/{study}/{bench}/{arm}/{model}/shards/{shard}.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/ask_{shard}.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/ask_{shard}.benchmark.tsv"
    conda:
        lambda wildcards: FILES.environment(wildcards.run, wildcards.model)
    threads: NEEDS.threads(FILES.shard_needs, 1)
    resources:
        **NEEDS.of(FILES.shard_needs, mem_mb=2000, runtime=240),
    params:
        code=code_of("collect_responses.py"),
        settings=as_json(PLAN.ask_reader, "run", "study", "model"),
        inputs=as_options(lambda wildcards: FILES.behind(wildcards, wildcards.model)),
    shell:
        'python "$SCRIPTS"/collect_responses.py --settings {params.settings:q} --requests {input.requests:q}'
        " {params.inputs:q} --executor {input.executor:q} --journal $(dirname {output.record:q})/../journal"
        " --shard {wildcards.shard:q} --record {output.record:q} 2> {log:q}"


rule ask:
    """One outcome for every request; finished answers survive in the journal whatever happens."""
    input:
        unpack(lambda wildcards: FILES.behind(wildcards, wildcards.model)),
        requests="results/{run}/{study}/{bench}/{arm}/{model}/requests.jsonl",
        executor="results/{run}/{study}/executors/{model}.json",
        files=lambda wildcards: FILES.server_files(wildcards.run, wildcards.study, wildcards.model),
        shards=FILES.shards,
    output:
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/answers.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/ask.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/ask.benchmark.tsv"
    conda:
        lambda wildcards: FILES.environment(wildcards.run, wildcards.model)
    threads: NEEDS.threads(FILES.ask_needs, 1)
    resources:
        **NEEDS.of(FILES.ask_needs, mem_mb=2000, runtime=240),
    params:
        code=code_of("collect_responses.py"),
        settings=as_json(PLAN.ask_reader, "run", "study", "model"),
        inputs=as_options(lambda wildcards: FILES.behind(wildcards, wildcards.model)),
    shell:
        'python "$SCRIPTS"/collect_responses.py --settings {params.settings:q} --requests {input.requests:q}'
        " {params.inputs:q} --executor {input.executor:q} --journal $(dirname {output.responses:q})/journal"
        " --shards {input.shards:q} --out {output.responses:q} --record {output.record:q} 2> {log:q}"


rule build_judge_requests:
    """One request per answer that a judge can read."""
    input:
        questions="results/{run}/{study}/{bench}/items.jsonl",
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
        prompts=FILES.judge_prompts,
    output:
        requests="results/{run}/{study}/{bench}/{arm}/{model}/judge/requests.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/judge/ask.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/build_judge_requests.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/build_judge_requests.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=study_code("build_judge_requests.py", "messages"),
        settings=as_json(PLAN.judge_request, "run", "study", "bench"),
    shell:
        'python "$SCRIPTS"/build_judge_requests.py --study {wildcards.study:q} --settings {params.settings:q}'
        " --items {input.questions:q} --responses {input.responses:q} --out {output.requests:q}"
        " --record {output.record:q} 2> {log:q}"


use rule ask as ask_judge with:
    input:
        unpack(lambda wildcards: FILES.behind(wildcards, FILES.judge(wildcards))),
        requests="results/{run}/{study}/{bench}/{arm}/{model}/judge/requests.jsonl",
        executor=lambda wildcards: FILES.executor(wildcards.run, wildcards.study, FILES.judge(wildcards)),
        files=lambda wildcards: FILES.server_files(wildcards.run, wildcards.study, FILES.judge(wildcards)),
        shards=[],
    output:
        responses="results/{run}/{study}/{bench}/{arm}/{model}/judge/responses.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/judge/answers.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/ask.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/ask.benchmark.tsv"
    conda:
        lambda wildcards: FILES.environment(wildcards.run, FILES.judge(wildcards))
    threads: NEEDS.threads(FILES.judge_needs, 1)
    resources:
        **NEEDS.of(FILES.judge_needs, mem_mb=2000, runtime=240),
    params:
        code=code_of("collect_responses.py"),
        settings=as_json(PLAN.ask_judge, "run", "study"),
        inputs=as_options(lambda wildcards: FILES.behind(wildcards, FILES.judge(wildcards))),


# The same steps for a model that is asked beside the Snakemake that plans: nodes often have no network.


use rule ask as ask_on_login with:
    wildcard_constraints:
        run=FILES.on_login("reader"),
    localrule: True


use rule ask_shard as ask_shard_on_login with:
    wildcard_constraints:
        run=FILES.on_login("reader"),
    localrule: True


use rule ask_judge as ask_judge_on_login with:
    wildcard_constraints:
        run=FILES.on_login("judge"),
    localrule: True


ruleorder: ask_on_login > ask
ruleorder: ask_shard_on_login > ask_shard
ruleorder: ask_judge_on_login > ask_judge
