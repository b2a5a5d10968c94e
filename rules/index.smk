# Units of a corpus become vectors in a fixed order, and vectors become a search index.
#
# Needs: tiles/, passages/. Makes: results/{run}/corpora/{corpus}/{encoder}/.


rule embed:
    """One unit vector per unit of the corpus, in the order of order.txt."""
    input:
        unpack(FILES.embed),
    output:
        descriptors="results/{run}/corpora/{corpus}/{encoder}/descriptors.h5",
        order="results/{run}/corpora/{corpus}/{encoder}/order.txt",
        record="results/{run}/corpora/{corpus}/{encoder}/descriptors.json",
    log:
        "results/{run}/corpora/{corpus}/{encoder}/logs/embed.log",
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/embed.benchmark.tsv"
    priority: 40
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(lambda wildcards: FILES.encoder_needs(wildcards).embed, 1)
    resources:
        **NEEDS.of(lambda wildcards: FILES.encoder_needs(wildcards).embed, mem_mb=2000, runtime=60),
    params:
        code=code_of("embed.py"),
        settings=as_json(PLAN.embed, "run", "encoder"),
        inputs=as_options(FILES.embed),
        part=[],
    shell:
        'python "$SCRIPTS"/embed.py --settings {params.settings:q} {params.inputs:q} {params.part:q}'
        " --threads {threads} --out {output.descriptors:q} --order {output.order:q} --record {output.record:q} 2> {log:q}"


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
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/build_index.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(lambda wildcards: FILES.encoder_needs(wildcards).index, 1)
    resources:
        **NEEDS.of(lambda wildcards: FILES.encoder_needs(wildcards).index, mem_mb=2000, runtime=60),
    params:
        code=code_of("build_index.py"),
        settings=as_json(PLAN.search_index, "run", "encoder"),
    shell:
        'python "$SCRIPTS"/build_index.py --settings {params.settings:q} --descriptors {input.descriptors:q}'
        " --order {input.order:q} --out {output.index:q} --record {output.record:q} 2> {log:q}"
