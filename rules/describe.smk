# Photographs become vectors: one per scale, local descriptors, and the tokens that a reranker keeps of these.
#
# Needs: photographs of a set, weights. Makes: results/{run}/photos/{photos}/cls/, locals/, tokens/, descriptors/.


rule extract_cls:
    """A vector per scale of every photograph of a piece, in order."""
    input:
        unpack(FILES.cls),
    output:
        out="results/{run}/photos/{photos}/cls/{backbone}/{piece}.h5",
        record="results/{run}/photos/{photos}/cls/{backbone}/{piece}.json",
    log:
        "results/{run}/photos/{photos}/cls/{backbone}/logs/{piece}.log",
    benchmark:
        "results/{run}/photos/{photos}/cls/{backbone}/logs/{piece}.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    threads: NEEDS.threads(FILES.section_needs("backbones", "backbone"), 1)
    resources:
        **NEEDS.of(FILES.section_needs("backbones", "backbone"), mem_mb=4000, runtime=480),
    params:
        code=code_of("extract_cls.py"),
        settings=as_json(PLAN.extract_cls, "run", "backbone"),
        inputs=as_options(without(FILES.cls, "projection")),
    shell:
        'python "$SCRIPTS"/extract_cls.py --settings {params.settings:q}'
        " --piece {wildcards.piece:q} {params.inputs:q} --threads {threads} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule project_cls:
    """What describing a large set will take, by its first part; too much of it stops the run."""
    input:
        first=FILES.first_piece("cls"),
        record=FILES.first_piece("cls", "json"),
    output:
        out="results/{run}/photos/{photos}/cls/{backbone}/projection.json",
        record="results/{run}/photos/{photos}/cls/{backbone}/projection.record.json",
    log:
        "results/{run}/photos/{photos}/cls/{backbone}/logs/projection.log",
    benchmark:
        "results/{run}/photos/{photos}/cls/{backbone}/logs/projection.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("project_costs.py"),
        settings=as_json(PLAN.project_cls, "run", "photos", "backbone"),
        times=FILES.first_piece("cls", "benchmark.tsv"),
    shell:
        'python "$SCRIPTS"/project_costs.py --settings {params.settings:q} --first {input.first:q}'
        " --first-record {input.record:q} --times {params.times:q} --out {output.out:q}"
        " --record {output.record:q} 2> {log:q}"


rule check_locals:
    """Whether our local descriptors agree with published ones, before any long run."""
    input:
        unpack(FILES.local_check),
    output:
        out="results/{run}/photos/{photos}/locals/{local}/check.json",
        record="results/{run}/photos/{photos}/locals/{local}/check.record.json",
    log:
        "results/{run}/photos/{photos}/locals/{local}/logs/check.log",
    benchmark:
        "results/{run}/photos/{photos}/locals/{local}/logs/check.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    threads: NEEDS.threads(FILES.section_needs("local_features", "local"), 1)
    resources:
        **NEEDS.of(FILES.section_needs("local_features", "local"), mem_mb=8000, runtime=60),
    params:
        code=code_of("check_locals.py"),
        settings=as_json(PLAN.extract_locals, "run", "local"),
        inputs=as_options(FILES.local_check),
    shell:
        'python "$SCRIPTS"/check_locals.py --settings {params.settings:q}'
        " {params.inputs:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule extract_locals:
    """The strongest local descriptors of every photograph of a piece, or of those that are wanted."""
    input:
        unpack(FILES.locals),
    output:
        out="results/{run}/photos/{photos}/locals/{local}/{piece}.h5",
        record="results/{run}/photos/{photos}/locals/{local}/{piece}.json",
    log:
        "results/{run}/photos/{photos}/locals/{local}/logs/{piece}.log",
    benchmark:
        "results/{run}/photos/{photos}/locals/{local}/logs/{piece}.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    threads: NEEDS.threads(FILES.section_needs("local_features", "local"), 1)
    resources:
        **NEEDS.of(FILES.section_needs("local_features", "local"), mem_mb=4000, runtime=480),
    params:
        code=code_of("extract_locals.py"),
        settings=as_json(PLAN.extract_locals, "run", "local"),
        inputs=as_options(without(FILES.locals, "checked", "projection")),
    shell:
        'python "$SCRIPTS"/extract_locals.py --settings {params.settings:q}'
        " --piece {wildcards.piece:q} {params.inputs:q} --threads {threads} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule project_locals:
    """As project_cls, of local descriptors."""
    input:
        first=FILES.first_piece("locals"),
        record=FILES.first_piece("locals", "json"),
    output:
        out="results/{run}/photos/{photos}/locals/{local}/projection.json",
        record="results/{run}/photos/{photos}/locals/{local}/projection.record.json",
    log:
        "results/{run}/photos/{photos}/locals/{local}/logs/projection.log",
    benchmark:
        "results/{run}/photos/{photos}/locals/{local}/logs/projection.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("project_costs.py"),
        settings=as_json(PLAN.project_locals, "run", "photos", "local"),
        times=FILES.first_piece("locals", "benchmark.tsv"),
    shell:
        'python "$SCRIPTS"/project_costs.py --settings {params.settings:q} --first {input.first:q}'
        " --first-record {input.record:q} --times {params.times:q} --out {output.out:q}"
        " --record {output.record:q} 2> {log:q}"


rule remap_tokens:
    """What a reranker keeps of local descriptors, stored once for all its pairs."""
    input:
        unpack(FILES.tokens),
    output:
        out="results/{run}/photos/{photos}/tokens/{reranker}/{piece}.h5",
        record="results/{run}/photos/{photos}/tokens/{reranker}/{piece}.json",
    log:
        "results/{run}/photos/{photos}/tokens/{reranker}/logs/{piece}.log",
    benchmark:
        "results/{run}/photos/{photos}/tokens/{reranker}/logs/{piece}.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        code=code_of("remap_tokens.py"),
        settings=as_json(PLAN.remap_tokens, "run", "reranker"),
    shell:
        'python "$SCRIPTS"/remap_tokens.py --settings {params.settings:q}'
        " --piece {wildcards.piece:q} --locals {input.locals:q} --checkpoint {input.checkpoint:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule project:
    """Descriptors of a piece by a head, as retrieval uses them."""
    input:
        unpack(FILES.projected),
    output:
        out="results/{run}/photos/{photos}/descriptors/{projection}/{piece}.h5",
        record="results/{run}/photos/{photos}/descriptors/{projection}/{piece}.json",
    log:
        "results/{run}/photos/{photos}/descriptors/{projection}/logs/{piece}.log",
    benchmark:
        "results/{run}/photos/{photos}/descriptors/{projection}/logs/{piece}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        code=code_of("project.py"),
        settings=as_json(PLAN.project, "run", "projection"),
    shell:
        'python "$SCRIPTS"/project.py --settings {params.settings:q}'
        " --head {input.head:q} --cls {input.cls:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"
