# Questions, and the ranked list that each arm finds for them.
#
# Needs: facts or your own questions, indexes. Makes: {bench}/items.jsonl, {bench}/{arm}/ranking.jsonl.


def item_inputs(wildcards):
    """What the questions of a bench are made from, by option name."""
    here = PLAN.study_run(wildcards.run, wildcards.study)
    corpus = PLAN.corpus(wildcards.run, here.corpus)
    named = {"pages": corpus_of(wildcards, "pages.jsonl")}
    if here.items:
        return named | {"own": f"{here.items}/{wildcards.bench}.jsonl"}
    if corpus.pictures:
        named["pictures"] = corpus.pictures
    return named | {"facts": corpus.facts}


rule build_items:
    """The questions of one bench with their answers and pictures."""
    input:
        unpack(item_inputs),
    output:
        questions="results/{run}/{study}/{bench}/items.jsonl",
        images="results/{run}/{study}/{bench}/images.zip",
        record="results/{run}/{study}/{bench}/items.json",
    log:
        "results/{run}/{study}/{bench}/logs/build_items.log",
    params:
        code=lambda wildcards: code_of("build_items.py", f"remeasure.studies.{wildcards.study}"),
        settings=as_json(PLAN.items, "run", "study", "bench"),
        inputs=as_options(item_inputs),
    benchmark:
        "results/{run}/{study}/{bench}/logs/build_items.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    shell:
        "{PYTHON} {SCRIPTS}/build_items.py --study {wildcards.study} --bench {wildcards.bench}"
        " --settings {params.settings:q} {params.inputs:q} --out {output.questions}"
        " --images-out {output.images} --record {output.record} 2> {log}"


def search_inputs(wildcards):
    """Indexes and query encoders of an arm, by option name."""
    arm = PLAN.study(wildcards.study).arms[wildcards.arm]
    encoder = PLAN.encoder_of(wildcards.run, wildcards.study, arm.retriever)
    named = {
        "text_index": corpus_of(wildcards, f"{encoder}/index.faiss"),
        "text_record": corpus_of(wildcards, f"{encoder}/index.json"),
        "text_order": corpus_of(wildcards, f"{encoder}/order.txt"),
    } | encoder_files(wildcards.run, encoder)
    if PLAN.encoder(wildcards.run, encoder).training:
        named["adapter"] = corpus_of(wildcards, f"{encoder}/adapter.h5")
    if arm.photo:
        photo = PLAN.encoder_of(wildcards.run, wildcards.study, "photo")
        named |= {
            "photo_index": corpus_of(wildcards, f"{photo}/index.faiss"),
            "photo_record": corpus_of(wildcards, f"{photo}/index.json"),
            "photo_order": corpus_of(wildcards, f"{photo}/order.txt"),
            "photo_model": encoder_files(wildcards.run, photo)["model"],
            "manifest": corpus_of(wildcards, "tiles/manifest.jsonl"),
            "images": "results/{run}/{study}/{bench}/images.zip".format(**wildcards),
        }
    return named


rule search:
    """The ranked units of the corpus for every question of one arm."""
    input:
        unpack(search_inputs),
        questions="results/{run}/{study}/{bench}/items.jsonl",
    output:
        ranking="results/{run}/{study}/{bench}/{arm}/ranking.jsonl",
        record="results/{run}/{study}/{bench}/{arm}/retrieval.json",
    log:
        "results/{run}/{study}/{bench}/{arm}/logs/search.log",
    params:
        code=code_of("search.py"),
        settings=as_json(PLAN.retrieval, "run", "study", "arm"),
        inputs=as_options(search_inputs),
    benchmark:
        "results/{run}/{study}/{bench}/{arm}/logs/search.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "{PYTHON} {SCRIPTS}/search.py --settings {params.settings:q} {params.inputs:q}"
        " --items {input.questions} --out {output.ranking} --record {output.record} 2> {log}"
