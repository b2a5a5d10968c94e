# Questions, and the ranked list that each arm finds for them.
#
# Needs: facts, an index of images or your own questions; search indexes. Makes: {bench}/items.jsonl, {bench}/{arm}/ranking.jsonl.


rule build_items:
    """The questions of one bench with their answers and pictures."""
    input:
        unpack(FILES.items),
    output:
        questions="results/{run}/{study}/{bench}/items.jsonl",
        images="results/{run}/{study}/{bench}/images.zip",
        record="results/{run}/{study}/{bench}/items.json",
    log:
        "results/{run}/{study}/{bench}/logs/build_items.log",
    benchmark:
        "results/{run}/{study}/{bench}/logs/build_items.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=study_code("build_items.py", "items"),
        settings=as_json(PLAN.items, "run", "study", "bench"),
        inputs=as_options(FILES.items),
    shell:
        'python "$SCRIPTS"/build_items.py --study {wildcards.study:q} --bench {wildcards.bench:q}'
        " --settings {params.settings:q} {params.inputs:q} --out {output.questions:q}"
        " --images-out {output.images:q} --record {output.record:q} 2> {log:q}"


rule search:
    """The ranked units of the corpus for every question of one arm."""
    input:
        unpack(FILES.search),
        questions="results/{run}/{study}/{bench}/items.jsonl",
    output:
        ranking="results/{run}/{study}/{bench}/{arm}/ranking.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/retrieval.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/logs/search.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/logs/search.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(FILES.search_needs, 1)
    resources:
        **NEEDS.of(FILES.search_needs, mem_mb=2000, runtime=60),
    params:
        code=code_of("search.py"),
        settings=as_json(PLAN.retrieval, "run", "study", "arm"),
        inputs=as_options(FILES.search),
    shell:
        'python "$SCRIPTS"/search.py --settings {params.settings:q} {params.inputs:q}'
        " --items {input.questions:q} --out {output.ranking:q} --record {output.record:q} 2> {log:q}"
