# A verdict for every item under both readings, and the cell's number.
#
# Needs: questions, responses, where a judge is used its responses.
# Makes: {bench}/{arm}/{model}/graded.jsonl, grade.json, score.json.


def verdict_inputs(wildcards):
    """What else decides a verdict: the judge's replies and the ranked list, by option name."""
    here = "results/{run}/{study}/{bench}/{arm}".format(**wildcards)
    named = {}
    if PLAN.has_judge(wildcards.run, wildcards.study, wildcards.bench):
        named["judge_responses"] = f"{here}/{wildcards.model}/judge/responses.jsonl"
    if PLAN.study(wildcards.study).arms[wildcards.arm].retriever:
        named["ranking"] = f"{here}/ranking.jsonl"
    return named


rule grade:
    """One verdict per item under the published and the strict reading; the cell's number with its counts."""
    input:
        unpack(verdict_inputs),
        questions="results/{run}/{study}/{bench}/items.jsonl",
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
    output:
        graded="results/{run}/{study}/{bench}/{arm}/{model}/graded.jsonl",
        score="results/{run}/{study}/{bench}/{arm}/{model}/score.json",
        record="results/{run}/{study}/{bench}/{arm}/{model}/grade.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/grade.log",
    params:
        code=lambda wildcards: code_of("grade.py", f"remeasure.studies.{wildcards.study}"),
        settings=as_json(PLAN.grade, "run", "study", "bench", "arm"),
        inputs=as_options(verdict_inputs),
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/grade.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/grade.py --study {wildcards.study} --settings {params.settings:q}"
        " --items {input.questions} --responses {input.responses} {params.inputs:q}"
        " --out {output.graded} --score {output.score} --record {output.record} 2> {log}"
