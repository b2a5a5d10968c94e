# Rankings of galleries: the first stage, scores of query and photograph by their tokens, read-outs, and where the
# labelled photographs end up.
#
# Needs: labels, descriptors, tokens. Makes: results/{run}/galleries/{gallery}/, photos/{photos}/wanted.parquet, and the
# responses.jsonl of readers that rank.


rule rank_first:
    """The whole gallery by one descriptor per photograph: exact ranks of labelled photographs, and a shortlist."""
    input:
        unpack(FILES.ranked_first),
    output:
        out="results/{run}/galleries/{gallery}/first/{projection}.h5",
        record="results/{run}/galleries/{gallery}/first/{projection}.json",
    log:
        "results/{run}/galleries/{gallery}/first/logs/{projection}.log",
    benchmark:
        "results/{run}/galleries/{gallery}/first/logs/{projection}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        code=code_of("rank_first.py"),
        settings=as_json(PLAN.rank_first, "run", "gallery", "projection"),
        inputs=as_words(FILES.ranked_first),
    shell:
        'python "$SCRIPTS"/rank_first.py --settings {params.settings:q}'
        " {params.inputs:q} --threads {threads} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule import_ranking:
    """A published ranking of a gallery, read instead of a first stage of ours."""
    input:
        unpack(FILES.given_first),
    output:
        out="results/{run}/galleries/{gallery}/first/given-{reader}.h5",
        record="results/{run}/galleries/{gallery}/first/given-{reader}.json",
    log:
        "results/{run}/galleries/{gallery}/first/logs/given-{reader}.log",
    benchmark:
        "results/{run}/galleries/{gallery}/first/logs/given-{reader}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("import_ranking.py"),
        settings=as_json(PLAN.given_first, "run", "gallery"),
    shell:
        'python "$SCRIPTS"/import_ranking.py --settings {params.settings:q}'
        " --ranking {input.ranking:q} --labels {input.labels:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule want_locals:
    """Of which distractors local descriptors are wanted: those that some query shortlists."""
    input:
        unpack(FILES.wanted),
    output:
        out="results/{run}/photos/{photos}/wanted.parquet",
        record="results/{run}/photos/{photos}/wanted.json",
    log:
        "results/{run}/photos/{photos}/logs/want_locals.log",
    benchmark:
        "results/{run}/photos/{photos}/logs/want_locals.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("want_locals.py"),
        settings=as_json(PLAN.want_locals, "run", "photos"),
    shell:
        'python "$SCRIPTS"/want_locals.py --settings {params.settings:q}'
        " --order {input.order:q} --first {input.first:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule score_pairs:
    """A logit for every shortlisted pair, once for Medium and Hard and for every head; a killed job goes on."""
    input:
        unpack(FILES.pairs),
    output:
        out="results/{run}/galleries/{gallery}/pairs/{reranker}.parquet",
        record="results/{run}/galleries/{gallery}/pairs/{reranker}.json",
    log:
        "results/{run}/galleries/{gallery}/pairs/logs/{reranker}.log",
    benchmark:
        "results/{run}/galleries/{gallery}/pairs/logs/{reranker}.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    threads: NEEDS.threads(FILES.section_needs("rerankers", "reranker"), 2)
    resources:
        **NEEDS.of(FILES.section_needs("rerankers", "reranker"), mem_mb=8000, runtime=480),
    params:
        code=code_of("score_pairs.py"),
        settings=as_json(PLAN.score_pairs, "run", "gallery", "reranker"),
        inputs=as_words(FILES.pairs),
    shell:
        'python "$SCRIPTS"/score_pairs.py --settings {params.settings:q}'
        " {params.inputs:q} --threads {threads} --blocks $(dirname {output.out:q})/{wildcards.reranker:q}.blocks --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule read_out:
    """The gallery by every read-out of an encoder's stored vectors."""
    input:
        unpack(FILES.read_out),
    output:
        out="results/{run}/galleries/{gallery}/read_outs/{backbone}.h5",
        record="results/{run}/galleries/{gallery}/read_outs/{backbone}.json",
    log:
        "results/{run}/galleries/{gallery}/read_outs/logs/{backbone}.log",
    benchmark:
        "results/{run}/galleries/{gallery}/read_outs/logs/{backbone}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        code=code_of("read_out.py"),
        settings=as_json(PLAN.read_out, "run", "gallery", "backbone"),
        inputs=as_words(FILES.read_out),
    shell:
        'python "$SCRIPTS"/read_out.py --settings {params.settings:q}'
        " {params.inputs:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule choose_read_out:
    """The read-out that the table shows, by the published rule, and the whole grid."""
    input:
        read_outs=FILES.read_outs,
    output:
        out="results/{run}/read_outs/{backbone}.json",
        record="results/{run}/read_outs/{backbone}.record.json",
    log:
        "results/{run}/read_outs/logs/{backbone}.log",
    benchmark:
        "results/{run}/read_outs/logs/{backbone}.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("choose_read_out.py"),
        settings=as_json(PLAN.choose_read_out, "run", "backbone"),
    shell:
        'python "$SCRIPTS"/choose_read_out.py --settings {params.settings:q}'
        " --read-outs {input.read_outs:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule place_photos:
    """For every query where its labelled photographs stand in the final ranking."""
    input:
        unpack(FILES.placed),
        questions="results/{run}/{study}/{bench}/items.jsonl",
    output:
        responses="results/{run}/{study}/{bench}/{arm}/{model}/responses.jsonl",
        grid="results/{run}/{study}/{bench}/{arm}/{model}/grid.json",
        record="results/{run}/{study}/{bench}/{arm}/{model}/answers.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/place_photos.log",
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/{model}/logs/place_photos.benchmark.tsv"
    wildcard_constraints:
        run=FILES.ranking("answers"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("place_photos.py"),
        settings=as_json(PLAN.place, "run", "study", "bench", "arm", "model"),
        inputs=as_words(FILES.placed),
    shell:
        'python "$SCRIPTS"/place_photos.py --settings {params.settings:q}'
        " --items {input.questions:q} {params.inputs:q} --responses {output.responses:q} --grid {output.grid:q} --record {output.record:q}"
        " 2> {log:q}"


# Such a reader is not asked, whatever else could answer for it.
ruleorder: place_photos > ask_on_login > ask
