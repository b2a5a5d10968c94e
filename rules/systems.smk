# Datasets from outside, databases that systems make of their documents, environments of such systems.
#
# Needs: files of a dataset. Makes: results/{run}/datasets/{dataset}/ with documents.jsonl and questions.jsonl,
# results/{run}/datasets/{dataset}/{database}/, results/environments/. Systems answer by the rules of ask.smk.


rule load_dataset:
    """Documents and questions of a dataset in one form, with the counts that must come out."""
    input:
        unpack(FILES.dataset_files),
    output:
        documents="results/{run}/datasets/{dataset}/documents.jsonl",
        questions="results/{run}/datasets/{dataset}/questions.jsonl",
        record="results/{run}/datasets/{dataset}/dataset.json",
    log:
        "results/{run}/datasets/{dataset}/logs/load_dataset.log",
    benchmark:
        "results/{run}/datasets/{dataset}/logs/load_dataset.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        code=code_of("load_dataset.py"),
        settings=as_json(PLAN.load_dataset, "run", "dataset"),
        state=FILES.dataset_state,
        inputs=as_pairs(FILES.dataset_words),
    shell:
        'python "$SCRIPTS"/load_dataset.py --settings {params.settings:q} --files {params.inputs:q}'
        " --documents {output.documents:q} --questions {output.questions:q} --record {output.record:q} 2> {log:q}"


rule install_environment:
    """The Python environment of a system that cannot share ours."""
    output:
        record="results/environments/{environment}.json",
    log:
        "results/environments/logs/{environment}.log",
    benchmark:
        "results/environments/logs/{environment}.benchmark.tsv"
    localrule: True
    conda:
        "../envs/haiku.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        code=code_of("install_environment.py"),
        settings=lambda wildcards: PLAN.environment_json(wildcards.environment),
    shell:
        'python "$SCRIPTS"/install_environment.py --settings {params.settings:q} --record {output.record:q} 2> {log:q}'


rule ingest_documents:
    """A database of a dataset's documents, complete and checked; what a killed attempt has made is used."""
    input:
        unpack(FILES.ingested),
    output:
        record="results/{run}/datasets/{dataset}/{database}.json",
    log:
        "results/{run}/datasets/{dataset}/logs/ingest_{database}.log",
    benchmark:
        "results/{run}/datasets/{dataset}/logs/ingest_{database}.benchmark.tsv"
    conda:
        lambda wildcards: FILES.environment(
            wildcards.run, PLAN.database(wildcards.run, wildcards.database).embedder
        )
    threads: NEEDS.threads(FILES.database_needs, 2)
    resources:
        **NEEDS.of(FILES.database_needs, mem_mb=4000, runtime=240),
    params:
        code=code_of("ingest_documents.py"),
        settings=as_json(PLAN.ingest, "run", "dataset", "database"),
        way=as_json(PLAN.ingest_way, "run", "database"),
        inputs=as_options(FILES.ingest_options),
    shell:
        'python "$SCRIPTS"/ingest_documents.py --settings {params.settings:q} --way {params.way:q} {params.inputs:q}'
        " --folder $(dirname {output.record:q})/{wildcards.database:q} --record {output.record:q} 2> {log:q}"
