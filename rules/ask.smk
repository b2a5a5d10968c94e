# Requests, and one outcome for every request: the reader's answers, and the judge's verdicts on them.
#
# Needs: questions, ranked lists, tiles or passages. Makes: {bench}/{arm}/{model}/requests.jsonl,
# responses.jsonl and the same under judge/. Answers are kept in journal/, which no rule declares, so that
# nothing that was paid for is removed.


def evidence_inputs(wildcards):
    """What the reader is shown, by option name."""
    arm = PLAN.study(wildcards.study).arms[wildcards.arm]
    if arm.evidence == "none":
        return {}
    ranking = {"ranking": "results/{run}/{study}/{bench}/{arm}/ranking.jsonl".format(**wildcards)}
    if arm.evidence == "text":
        return ranking | {"passages": corpus_of(wildcards, "passages/passages.jsonl")}
    return ranking | {
        "manifest": corpus_of(wildcards, "tiles/manifest.jsonl"),
        "tiles": corpus_of(wildcards, "tiles/tiles.zip"),
    }


def reader_files(wildcards):
    """Files that the reader's own server needs; a hosted reader needs none."""
    corpus = PLAN.study_run(wildcards.run, wildcards.study).corpus
    return executor_files(wildcards.run, wildcards.model, corpus)


def judge_files(wildcards):
    """Files that the judge's own server needs; a hosted judge needs none."""
    return executor_files(wildcards.run, PLAN.study_run(wildcards.run, wildcards.study).judge, None)


def judge_executor(wildcards):
    """How the study's judge is reached."""
    judge = PLAN.study_run(wildcards.run, wildcards.study).judge
    return ancient(f"results/{wildcards.run}/{wildcards.study}/executors/{judge}.json")


def executor_files(run, model, corpus):
    """Files of a model's server: weights are verified by hash and therefore ancient."""
    files = PLAN.executor(run, model, corpus).get("files", {})
    return [ancient(path) if path.startswith("results/sources/") else path for path in files.values()]


rule describe_executor:
    """How a study reaches a model; a change of address, concurrency or time limit asks nothing again."""
    output:
        executor="results/{run}/{study}/executors/{model}.json",
    log:
        "results/{run}/{study}/executors/logs/{model}.log",
    params:
        settings=as_json(PLAN.study_executor, "run", "study", "model"),
    conda:
        "../envs/core.yaml"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "printf '%s\\n' {params.settings:q} > {output.executor} 2> {log}"


rule build_requests:
    """One request per question, images as references."""
    input:
        unpack(evidence_inputs),
        questions="results/{run}/{study}/{bench}/items.jsonl",
        images="results/{run}/{study}/{bench}/images.zip",
    output:
        requests="results/{run}/{study}/{bench}/{arm}/{model}/requests.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/ask.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/build_requests.log",
    params:
        code=lambda wildcards: code_of("build_requests.py", f"remeasure.studies.{wildcards.study}"),
        settings=as_json(PLAN.request, "run", "study", "bench", "arm"),
        inputs=as_options(evidence_inputs),
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/build_requests.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/build_requests.py --study {wildcards.study} --settings {params.settings:q}"
        " --items {input.questions} {params.inputs:q} --out {output.requests} --record {output.record} 2> {log}"


rule ask:
    """One outcome for every request; finished answers survive in the journal whatever happens."""
    input:
        requests="results/{run}/{study}/{bench}/{arm}/{model}/requests.jsonl",
        executor=ancient("results/{run}/{study}/executors/{model}.json"),
        files=reader_files,
    output:
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/answers.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/ask.log",
    params:
        code=code_of("collect_responses.py"),
        settings=as_json(PLAN.ask, "run", "model"),
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/ask.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
    shell:
        "{PYTHON} {SCRIPTS}/collect_responses.py --settings {params.settings:q} --requests {input.requests}"
        " --executor {input.executor} --journal $(dirname {output.responses:q})/journal"
        " --out {output.responses} --record {output.record} 2> {log}"


rule build_judge_requests:
    """One request per answer that a judge can read."""
    input:
        questions="results/{run}/{study}/{bench}/items.jsonl",
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
    output:
        requests="results/{run}/{study}/{bench}/{arm}/{model}/judge/requests.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/judge/ask.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/build_judge_requests.log",
    params:
        code=lambda wildcards: code_of("build_judge_requests.py", f"remeasure.studies.{wildcards.study}"),
        settings=as_json(PLAN.judge_request, "run", "study", "bench"),
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/build_judge_requests.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/build_judge_requests.py --study {wildcards.study} --settings {params.settings:q}"
        " --items {input.questions} --responses {input.responses} --out {output.requests}"
        " --record {output.record} 2> {log}"


use rule ask as ask_judge with:
    input:
        requests="results/{run}/{study}/{bench}/{arm}/{model}/judge/requests.jsonl",
        executor=judge_executor,
        files=judge_files,
    output:
        responses="results/{run}/{study}/{bench}/{arm}/{model}/judge/responses.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/{model}/judge/answers.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/ask.log",
    params:
        code=code_of("collect_responses.py"),
        settings=lambda wildcards: json.dumps(
            PLAN.ask(wildcards.run, PLAN.study_run(wildcards.run, wildcards.study).judge), sort_keys=True
        ),
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/judge/logs/ask.benchmark.tsv"
