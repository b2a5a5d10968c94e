# An encoder's adapter, trained on pages that no table asks about.
#
# Needs: question sets for training and development, the base encoder's vectors.
# Makes: results/{run}/corpora/{corpus}/{encoder}/adapter.h5, training.json.


rule train_adapter:
    """The best adapter by the development pages, and what every training step did."""
    input:
        unpack(FILES.training),
    output:
        adapter="results/{run}/corpora/{corpus}/{encoder}/adapter.h5",
        report="results/{run}/corpora/{corpus}/{encoder}/training.json",
        record="results/{run}/corpora/{corpus}/{encoder}/adapter.json",
    log:
        "results/{run}/corpora/{corpus}/{encoder}/logs/train_adapter.log",
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/train_adapter.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(lambda wildcards: FILES.encoder_needs(wildcards).train, 1)
    resources:
        **NEEDS.of(lambda wildcards: FILES.encoder_needs(wildcards).train, mem_mb=2000, runtime=60),
    params:
        code=code_of("train_adapter.py"),
        settings=as_json(PLAN.train, "run", "encoder"),
        inputs=as_options(FILES.training),
    shell:
        'python "$SCRIPTS"/train_adapter.py --settings {params.settings:q} {params.inputs:q}'
        " --out {output.adapter:q} --report {output.report:q}"
        " --record {output.record:q} 2> {log:q}"
