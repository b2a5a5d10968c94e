# An encoder's adapter, trained on pages that no table asks about.
#
# Needs: question sets for training and development, the base encoder's vectors.
# Makes: results/{run}/corpora/{corpus}/{encoder}/adapter.h5, training.json.


def training_inputs(wildcards):
    """Questions, vectors and weights that training reads, by option name."""
    training = PLAN.encoder(wildcards.run, wildcards.encoder).training
    sets = PLAN.study(training.study).training_sets
    base = f"results/{wildcards.run}/corpora/{wildcards.corpus}/{training.base}"
    return (
        {name: f"results/{wildcards.run}/{training.study}/{name}/items.jsonl" for name in sets}
        | {"descriptors": f"{base}/descriptors.h5", "order": f"{base}/order.txt"}
        | encoder_files(wildcards.run, training.base)
    )


rule train_adapter:
    """The best adapter by the development pages, and what every training step did."""
    input:
        unpack(training_inputs),
    output:
        adapter="results/{run}/corpora/{corpus}/{encoder}/adapter.h5",
        report="results/{run}/corpora/{corpus}/{encoder}/training.json",
        record="results/{run}/corpora/{corpus}/{encoder}/adapter.json",
    log:
        "results/{run}/corpora/{corpus}/{encoder}/logs/train_adapter.log",
    params:
        code=code_of("train_adapter.py"),
        settings=as_json(PLAN.train, "run", "encoder"),
        inputs=as_options(training_inputs),
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/train_adapter.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "{PYTHON} {SCRIPTS}/train_adapter.py --settings {params.settings:q} {params.inputs:q}"
        " --out {output.adapter} --report {output.report}"
        " --record {output.record} 2> {log}"
