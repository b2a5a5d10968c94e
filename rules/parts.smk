# A corpus in parts: each part of its pages is a job of its own, and what they make becomes one again.
#
# Needs: pages.jsonl, an archive; corpora.<corpus>.parts above 1. Makes: results/{run}/corpora/{corpus}/parts/{part}/
# with the same files as the corpus has, and from all parts tiles/, passages/ and {encoder}/descriptors.h5.
# Small steps that read such a corpus whole are jobs as well (the last three rules).


use rule render_tiles as render_part with:
    output:
        manifest="results/{run}/corpora/{corpus}/parts/{part}/tiles/manifest.jsonl",
        tiles="results/{run}/corpora/{corpus}/parts/{part}/tiles/tiles.zip",
        record="results/{run}/corpora/{corpus}/parts/{part}/tiles/corpus.json",
    log:
        "results/{run}/corpora/{corpus}/parts/{part}/logs/render_part.log",
    benchmark:
        "results/{run}/corpora/{corpus}/parts/{part}/logs/render_part.benchmark.tsv"
    params:
        code=code_of("render_tiles.py"),
        settings=as_json(PLAN.render, "run", "corpus"),
        browser=lambda wildcards: BROWSER,
        part=lambda wildcards: ["--part", wildcards.part],


use rule read_tiles as read_part with:
    input:
        manifest="results/{run}/corpora/{corpus}/parts/{part}/tiles/manifest.jsonl",
        tiles="results/{run}/corpora/{corpus}/parts/{part}/tiles/tiles.zip",
    output:
        ocr="results/{run}/corpora/{corpus}/parts/{part}/tiles/ocr.jsonl",
        record="results/{run}/corpora/{corpus}/parts/{part}/tiles/ocr.json",
    log:
        "results/{run}/corpora/{corpus}/parts/{part}/logs/read_part.log",
    benchmark:
        "results/{run}/corpora/{corpus}/parts/{part}/logs/read_part.benchmark.tsv"
    params:
        code=code_of("read_tiles.py"),
        settings=as_json(PLAN.ocr, "run", "corpus"),
        part=lambda wildcards: ["--part", wildcards.part],


use rule extract_text as extract_part with:
    output:
        passages="results/{run}/corpora/{corpus}/parts/{part}/passages/passages.jsonl",
        extraction="results/{run}/corpora/{corpus}/parts/{part}/passages/extraction.jsonl",
        record="results/{run}/corpora/{corpus}/parts/{part}/passages/passages.json",
    log:
        "results/{run}/corpora/{corpus}/parts/{part}/logs/extract_part.log",
    benchmark:
        "results/{run}/corpora/{corpus}/parts/{part}/logs/extract_part.benchmark.tsv"
    params:
        code=code_of("extract_text.py"),
        settings=as_json(PLAN.text, "run", "corpus"),
        part=lambda wildcards: ["--part", wildcards.part],


use rule embed as embed_part with:
    input:
        unpack(FILES.embed_part),
    output:
        descriptors="results/{run}/corpora/{corpus}/parts/{part}/{encoder}/descriptors.h5",
        order="results/{run}/corpora/{corpus}/parts/{part}/{encoder}/order.txt",
        record="results/{run}/corpora/{corpus}/parts/{part}/{encoder}/descriptors.json",
    log:
        "results/{run}/corpora/{corpus}/parts/{part}/{encoder}/logs/embed_part.log",
    benchmark:
        "results/{run}/corpora/{corpus}/parts/{part}/{encoder}/logs/embed_part.benchmark.tsv"
    params:
        code=code_of("embed.py"),
        settings=as_json(PLAN.embed, "run", "encoder"),
        inputs=as_options(FILES.embed_part),
        part=lambda wildcards: ["--part", wildcards.part],


rule merge_tiles:
    """Every page's tiles as if they had been rendered in one job; the tiles stay where they are."""
    input:
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
        records=FILES.part_files("tiles/corpus.json"),
        manifests=FILES.part_files("tiles/manifest.jsonl"),
        stores=FILES.part_files("tiles/tiles.zip"),
    output:
        manifest="results/{run}/corpora/{corpus}/tiles/manifest.jsonl",
        tiles="results/{run}/corpora/{corpus}/tiles/tiles.zip",
        record="results/{run}/corpora/{corpus}/tiles/corpus.json",
    log:
        "results/{run}/corpora/{corpus}/logs/merge_tiles.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/merge_tiles.benchmark.tsv"
    wildcard_constraints:
        run=FILES.parted("tiles"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        code=code_of("merge_parts.py"),
    shell:
        'python "$SCRIPTS"/merge_parts.py --what tiles --pages {input.pages:q} --records {input.records:q}'
        " --outs {output.manifest:q} {output.tiles:q} --record {output.record:q} 2> {log:q}"


rule merge_ocr:
    """What OCR read in all parts, in page order."""
    input:
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
        records=FILES.part_files("tiles/ocr.json"),
        read=FILES.part_files("tiles/ocr.jsonl"),
    output:
        ocr="results/{run}/corpora/{corpus}/tiles/ocr.jsonl",
        record="results/{run}/corpora/{corpus}/tiles/ocr.json",
    log:
        "results/{run}/corpora/{corpus}/logs/merge_ocr.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/merge_ocr.benchmark.tsv"
    wildcard_constraints:
        run=FILES.parted("tiles"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        code=code_of("merge_parts.py"),
    shell:
        'python "$SCRIPTS"/merge_parts.py --what ocr --pages {input.pages:q} --records {input.records:q}'
        " --outs {output.ocr:q} --record {output.record:q} 2> {log:q}"


rule merge_passages:
    """The passages of all parts, in page order."""
    input:
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
        records=FILES.part_files("passages/passages.json"),
        passages=FILES.part_files("passages/passages.jsonl"),
        extractions=FILES.part_files("passages/extraction.jsonl"),
    output:
        passages="results/{run}/corpora/{corpus}/passages/passages.jsonl",
        extraction="results/{run}/corpora/{corpus}/passages/extraction.jsonl",
        record="results/{run}/corpora/{corpus}/passages/passages.json",
    log:
        "results/{run}/corpora/{corpus}/logs/merge_passages.log",
    benchmark:
        "results/{run}/corpora/{corpus}/logs/merge_passages.benchmark.tsv"
    wildcard_constraints:
        run=FILES.parted("passages"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        code=code_of("merge_parts.py"),
    shell:
        'python "$SCRIPTS"/merge_parts.py --what passages --pages {input.pages:q} --records {input.records:q}'
        " --outs {output.passages:q} {output.extraction:q} --record {output.record:q} 2> {log:q}"


rule merge_vectors:
    """One vector per unit of all parts, in the order of order.txt."""
    input:
        pages="results/{run}/corpora/{corpus}/pages.jsonl",
        records=FILES.part_files("{encoder}/descriptors.json"),
        descriptors=FILES.part_files("{encoder}/descriptors.h5"),
        orders=FILES.part_files("{encoder}/order.txt"),
    output:
        descriptors="results/{run}/corpora/{corpus}/{encoder}/descriptors.h5",
        order="results/{run}/corpora/{corpus}/{encoder}/order.txt",
        record="results/{run}/corpora/{corpus}/{encoder}/descriptors.json",
    log:
        "results/{run}/corpora/{corpus}/{encoder}/logs/merge_vectors.log",
    benchmark:
        "results/{run}/corpora/{corpus}/{encoder}/logs/merge_vectors.benchmark.tsv"
    wildcard_constraints:
        run=FILES.parted("vectors"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=8000,
        runtime=240,
    params:
        code=code_of("merge_parts.py"),
    shell:
        'python "$SCRIPTS"/merge_parts.py --what vectors --pages {input.pages:q} --records {input.records:q}'
        " --outs {output.descriptors:q} {output.order:q} --record {output.record:q} 2> {log:q}"


ruleorder: merge_tiles > render_tiles
ruleorder: merge_ocr > read_tiles
ruleorder: merge_passages > extract_text
ruleorder: merge_vectors > embed


# A corpus that is worth parts is too large for the login node: the same steps as jobs. Memory was measured with
# 700,000 pages; time is for the Wikipedia of `paper` (archive 111 GB, passages 65 GB) at 100 MB/s.


use rule select_pages as select_pages_as_job with:
    wildcard_constraints:
        run=FILES.large("pages"),
    localrule: False
    # 0.5 kB a page: 3.7 GB for 7.1 million, and the archive reader's cache. The archive is read twice, for its own
    # checksum and for its hash: 37 minutes; then every entry is looked at.
    resources:
        **NEEDS.of(lambda wildcards: Needs(), mem_mb=12000, runtime=240),


use rule build_items as build_items_as_job with:
    wildcard_constraints:
        run=FILES.large("items"),
    localrule: False
    # 0.7 kB a page: 4.8 GB for 7.1 million. Minutes.
    resources:
        **NEEDS.of(lambda wildcards: Needs(), mem_mb=10000, runtime=60),


use rule build_requests as build_requests_as_job with:
    wildcard_constraints:
        run=FILES.large("requests"),
    localrule: False
    # Holds only what is shown. The passages are read twice, once for their hash: 22 minutes.
    resources:
        **NEEDS.of(lambda wildcards: Needs(), mem_mb=4000, runtime=120),


ruleorder: select_pages_as_job > select_pages
ruleorder: build_items_as_job > build_items
ruleorder: build_requests_as_job > build_requests
