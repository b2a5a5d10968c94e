# A verdict for every item under both readings, and the cell's number.
#
# Needs: questions, responses, where a judge is used its responses.
# Makes: {bench}/{arm}/{model}/graded.jsonl, grade.json, score.json.


rule grade:
    """One verdict per item under the published and the strict reading; the cell's number with its counts."""
    input:
        unpack(FILES.verdict),
        questions="results/{run}/{study}/{bench}/items.jsonl",
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
        files=FILES.grader_files,
    output:
        graded="results/{run}/{study}/{bench}/{arm}/{model}/graded.jsonl",
        score="results/{run}/{study}/{bench}/{arm}/{model}/score.json",
        record="results/{run}/{study}/{bench}/{arm}/{model}/grade.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/grade.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/grade.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("grade.py"),
        settings=as_json(PLAN.grade, "run", "study", "bench", "arm", "model"),
        inputs=as_options(FILES.verdict),
    shell:
        'python "$SCRIPTS"/grade.py --study {wildcards.study:q} --settings {params.settings:q}'
        " --items {input.questions:q} --responses {input.responses:q} {params.inputs:q}"
        " --out {output.graded:q} --score {output.score:q} --record {output.record:q} 2> {log:q}"
