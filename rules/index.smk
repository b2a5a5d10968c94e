# Units of a corpus become vectors in a fixed order, and vectors become a search index.
#
# Needs: tiles/, passages/. Makes: results/{run}/corpora/{corpus}/{encoder}/.

UNIT_FILES = {
    "tiles": {"manifest": "tiles/manifest.jsonl", "ocr": "tiles/ocr.jsonl"},
    "passages": {"passages": "passages/passages.jsonl"},
    "pictures": {"manifest": "tiles/manifest.jsonl", "tiles": "tiles/tiles.zip", "ocr": "tiles/ocr.jsonl"},
    "lines": {"ocr": "tiles/ocr.jsonl", "passages": "passages/passages.jsonl"},
}


def encoder_files(run, encoder):
    """Weights of an encoder, by option name."""
    spec = PLAN.encoder(run, encoder)
    files = {"model": ancient(f"results/sources/{spec.model}.onnx")}
    if spec.max_tokens is not None:
        files["tokenizer"] = ancient(f"results/sources/{spec.model}.tokenizer.json")
    return files


def embed_inputs(wildcards):
    """What an encoder reads: its weights, its unit's files and its adapter, by option name."""
    spec = PLAN.encoder(wildcards.run, wildcards.encoder)
    here = f"results/{wildcards.run}/corpora/{wildcards.corpus}"
    files = {name: f"{here}/{path}" for name, path in UNIT_FILES[spec.unit].items()}
    adapter = {"adapter": f"{here}/{wildcards.encoder}/adapter.h5"} if spec.training else {}
    return encoder_files(wildcards.run, wildcards.encoder) | files | adapter


rule embed:
    """One unit vector per unit of the corpus, in the order of order.txt."""
    input:
        unpack(embed_inputs),
    output:
        descriptors="results/{run}/corpora/{corpus}/{encoder}/descriptors.h5",
        order="results/{run}/corpora/{corpus}/{encoder}/order.txt",
        record="results/{run}/corpora/{corpus}/{encoder}/descriptors.json",
    log:
        "results/{run}/corpora/{corpus}/{encoder}/logs/embed.log",
    params:
        code=code_of("embed.py"),
        settings=as_json(PLAN.embed, "run", "encoder"),
        inputs=as_options(embed_inputs),
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/embed.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "{PYTHON} {SCRIPTS}/embed.py --settings {params.settings:q} {params.inputs:q} --threads {threads}"
        " --out {output.descriptors} --order {output.order} --record {output.record} 2> {log}"


rule build_index:
    """A FAISS index over the vectors of one encoder."""
    input:
        descriptors="results/{run}/corpora/{corpus}/{encoder}/descriptors.h5",
        order="results/{run}/corpora/{corpus}/{encoder}/order.txt",
    output:
        index="results/{run}/corpora/{corpus}/{encoder}/index.faiss",
        record="results/{run}/corpora/{corpus}/{encoder}/index.json",
    log:
        "results/{run}/corpora/{corpus}/{encoder}/logs/build_index.log",
    params:
        code=code_of("build_index.py"),
        settings=as_json(PLAN.index, "run", "encoder"),
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/build_index.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "{PYTHON} {SCRIPTS}/build_index.py --settings {params.settings:q} --descriptors {input.descriptors}"
        " --order {input.order} --out {output.index} --record {output.record} 2> {log}"
