# Pages of an archive become tiles (what a reader sees) and passages (what an extractor keeps).
#
# Needs: an archive. Makes: results/{run}/corpora/{corpus}/pages.jsonl, tiles/, passages/.


rule select_pages:
    """Which pages of the archive belong to which disjoint set."""
    input:
        unpack(FILES.archive_and_facts),
    output:
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
        record="results/{run}/corpora/{corpus}/pages.json",
    log:
        "results/{run}/corpora/{corpus}/logs/select_pages.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/select_pages.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        code=code_of("select_pages.py"),
        settings=as_json(PLAN.pages, "run", "corpus"),
        inputs=as_options(FILES.archive_and_facts),
    shell:
        'python "$SCRIPTS"/select_pages.py --settings {params.settings:q} {params.inputs:q}'
        " --out {output.pages:q} --record {output.record:q} 2> {log:q}"


rule render_tiles:
    """Every page as tiles, complete or recorded as failed."""
    input:
        archive=FILES.archive,
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
    output:
        manifest="results/{run}/corpora/{corpus}/tiles/manifest.jsonl",
        tiles="results/{run}/corpora/{corpus}/tiles/tiles.zip",
        record="results/{run}/corpora/{corpus}/tiles/corpus.json",
    log:
        "results/{run}/corpora/{corpus}/logs/render_tiles.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/render_tiles.benchmark.tsv"
    # It takes all cores and everything waits for it: small jobs that are ready too must not go first.
    priority: 50
    conda:
        "../envs/render.yaml"
    threads: NEEDS.threads(lambda wildcards: FILES.corpus_needs(wildcards).render, 2)
    resources:
        **NEEDS.of(lambda wildcards: FILES.corpus_needs(wildcards).render, mem_mb=3000, runtime=120),
    params:
        code=code_of("render_tiles.py"),
        settings=as_json(PLAN.render, "run", "corpus"),
        browser=lambda wildcards: BROWSER,
        part=[],
    shell:
        'python "$SCRIPTS"/render_tiles.py --settings {params.settings:q} --archive {input.archive:q}'
        " --pages {input.pages:q} {params.part:q} --browsers {threads} {params.browser}"
        " --earlier results/{wildcards.run:q}/corpora/{wildcards.corpus:q}"
        " --spool results/{wildcards.run:q}/corpora/{wildcards.corpus:q}/tiles/spool"
        " --manifest-out {output.manifest:q} --tiles-out {output.tiles:q} --record {output.record:q} 2> {log:q}"


rule read_tiles:
    """What OCR reads in every tile that is searched, once per tile."""
    input:
        manifest="results/{run}/corpora/{corpus}/tiles/manifest.jsonl",
        tiles="results/{run}/corpora/{corpus}/tiles/tiles.zip",
    output:
        ocr="results/{run}/corpora/{corpus}/tiles/ocr.jsonl",
        record="results/{run}/corpora/{corpus}/tiles/ocr.json",
    log:
        "results/{run}/corpora/{corpus}/logs/read_tiles.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/read_tiles.benchmark.tsv"
    # It takes all cores and everything waits for it: small jobs that are ready too must not go first.
    priority: 50
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(lambda wildcards: FILES.corpus_needs(wildcards).ocr, 2)
    resources:
        **NEEDS.of(lambda wildcards: FILES.corpus_needs(wildcards).ocr, mem_mb=3000, runtime=120),
    params:
        code=code_of("read_tiles.py"),
        settings=as_json(PLAN.ocr, "run", "corpus"),
        part=[],
    shell:
        'python "$SCRIPTS"/read_tiles.py --settings {params.settings:q} --manifest {input.manifest:q}'
        " --tiles {input.tiles:q} {params.part:q} --processes {threads}"
        " --journal results/{wildcards.run:q}/corpora/{wildcards.corpus:q}/tiles/journal"
        " --out {output.ocr:q} --record {output.record:q} 2> {log:q}"


rule extract_text:
    """The text of every page in passages; a page without text is recorded."""
    input:
        archive=FILES.archive,
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
        tokenizer=FILES.tokenizer,
    output:
        passages="results/{run}/corpora/{corpus}/passages/passages.jsonl",
        extraction="results/{run}/corpora/{corpus}/passages/extraction.jsonl",
        record="results/{run}/corpora/{corpus}/passages/passages.json",
    log:
        "results/{run}/corpora/{corpus}/logs/extract_text.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/extract_text.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(lambda wildcards: FILES.corpus_needs(wildcards).text, 1)
    resources:
        **NEEDS.of(lambda wildcards: FILES.corpus_needs(wildcards).text, mem_mb=1000, runtime=60),
    params:
        code=code_of("extract_text.py"),
        settings=as_json(PLAN.text, "run", "corpus"),
        part=[],
    shell:
        'python "$SCRIPTS"/extract_text.py --settings {params.settings:q} --archive {input.archive:q}'
        " --pages {input.pages:q} {params.part:q} --tokenizer {input.tokenizer:q}"
        " --passages-out {output.passages:q} --extraction-out {output.extraction:q}"
        " --record {output.record:q} 2> {log:q}"
