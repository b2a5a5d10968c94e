# What is trained: heads that project vectors, and rerankers where no published checkpoint can be had.
#
# Needs: vectors and classes of a training set, labels of the galleries that choose. Makes: results/{run}/heads/,
# results/{run}/rerankers/.


rule train_head:
    """A head by the published choice of its epoch and by classes that were held out, and how it went."""
    input:
        unpack(FILES.head_training),
    output:
        out="results/{run}/heads/{head}/{seed}.safetensors",
        holdout="results/{run}/heads/{head}/{seed}.holdout.safetensors",
        report="results/{run}/heads/{head}/{seed}.report.json",
        record="results/{run}/heads/{head}/{seed}.json",
    log:
        "results/{run}/heads/{head}/logs/{seed}.log",
    benchmark:
        "results/{run}/heads/{head}/logs/{seed}.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    threads: NEEDS.threads(FILES.section_needs("heads", "head"), 1)
    resources:
        **NEEDS.of(FILES.section_needs("heads", "head"), mem_mb=8000, runtime=480),
    params:
        code=code_of("train_head.py"),
        settings=as_json(PLAN.train_head, "run", "head", "seed"),
        inputs=as_words(FILES.head_training),
    shell:
        'python "$SCRIPTS"/train_head.py --settings {params.settings:q}'
        " {params.inputs:q} --threads {threads} --checkpoints $(dirname {output.out:q})/{wildcards.seed}.checkpoints"
        " --out {output.out:q} --holdout {output.holdout:q} --report {output.report:q} --record {output.record:q}"
        " 2> {log:q}"


rule summarise_heads:
    """Mean and spread over seeds of every head that the run uses."""
    input:
        reports=lambda wildcards: FILES.heads(wildcards.run),
    output:
        out="results/{run}/heads/summary.json",
        record="results/{run}/heads/summary.record.json",
    log:
        "results/{run}/heads/logs/summary.log",
    benchmark:
        "results/{run}/heads/logs/summary.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("summarise_heads.py"),
        settings=lambda wildcards: "{}",
    shell:
        'python "$SCRIPTS"/summarise_heads.py --settings {params.settings:q}'
        " --reports {input.reports:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule train_reranker:
    """A small reranker, trained on classes that no table asks about."""
    input:
        unpack(FILES.reranker_training),
    output:
        out="results/{run}/rerankers/{reranker}.safetensors",
        report="results/{run}/rerankers/{reranker}.report.json",
        record="results/{run}/rerankers/{reranker}.json",
    log:
        "results/{run}/rerankers/logs/{reranker}.log",
    benchmark:
        "results/{run}/rerankers/logs/{reranker}.benchmark.tsv"
    wildcard_constraints:
        run=FILES.ranking("trained"),
    conda:
        "../envs/photos.yaml"
    threads: NEEDS.threads(FILES.section_needs("rerankers", "reranker"), 1)
    resources:
        **NEEDS.of(FILES.section_needs("rerankers", "reranker"), mem_mb=8000, runtime=240),
    params:
        code=code_of("train_reranker.py"),
        settings=as_json(PLAN.train_reranker, "run", "reranker"),
    shell:
        'python "$SCRIPTS"/train_reranker.py --settings {params.settings:q}'
        " --plan {input.plan:q} --locals {input.locals:q} --out {output.out:q} --report {output.report:q} --record {output.record:q}"
        " 2> {log:q}"


rule import_reranker:
    """The published weights of a reranker in one open form, checked."""
    input:
        checkpoint=FILES.checkpoint_source,
    output:
        out="results/{run}/rerankers/{reranker}.safetensors",
        report="results/{run}/rerankers/{reranker}.report.json",
        record="results/{run}/rerankers/{reranker}.json",
    log:
        "results/{run}/rerankers/logs/{reranker}.log",
    benchmark:
        "results/{run}/rerankers/logs/{reranker}.benchmark.tsv"
    wildcard_constraints:
        run=FILES.ranking("imported"),
    conda:
        "../envs/photos.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("import_reranker.py"),
        settings=as_json(PLAN.remap_tokens, "run", "reranker"),
    shell:
        'python "$SCRIPTS"/import_reranker.py --settings {params.settings:q}'
        " --checkpoint {input.checkpoint:q} --out {output.out:q} --report {output.report:q} --record {output.record:q}"
        " 2> {log:q}"
