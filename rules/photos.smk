# Sets of photographs: ground truth of benchmarks, plan and shards of large sets, the audit before anything is ranked.
#
# Needs: published ground truth, archives of photographs. Makes: results/{run}/photos/{photos}/ with labels.json,
# audit.json, plan.parquet, leaks.json, shards/, order.json.


rule import_labels:
    """The ground truth of a benchmark in one open form, checked."""
    input:
        labels=FILES.labels_source,
    output:
        out="results/{run}/photos/{photos}/labels.json",
        record="results/{run}/photos/{photos}/labels.record.json",
    log:
        "results/{run}/photos/{photos}/logs/import_labels.log",
    benchmark:
        "results/{run}/photos/{photos}/logs/import_labels.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("import_labels.py"),
        settings=as_json(PLAN.import_labels, "run", "photos"),
    shell:
        'python "$SCRIPTS"/import_labels.py --settings {params.settings:q}'
        " --labels {input.labels:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule plan_photos:
    """A row for every photograph of a training set, with its class and whether the class leaks."""
    input:
        unpack(FILES.classes),
    output:
        out="results/{run}/photos/{photos}/plan.parquet",
        counts="results/{run}/photos/{photos}/plan.json",
        leaks="results/{run}/photos/{photos}/leaks.json",
        record="results/{run}/photos/{photos}/plan.record.json",
    log:
        "results/{run}/photos/{photos}/logs/plan_photos.log",
    benchmark:
        "results/{run}/photos/{photos}/logs/plan_photos.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(FILES.photo_needs("plan"), 1)
    resources:
        **NEEDS.of(FILES.photo_needs("plan"), mem_mb=8000, runtime=60),
    params:
        code=code_of("plan_photos.py"),
        settings=as_json(PLAN.plan_photos, "run", "photos"),
        inputs=as_options(FILES.classes),
    shell:
        'python "$SCRIPTS"/plan_photos.py --settings {params.settings:q}'
        " {params.inputs:q} --out {output.out:q} --counts {output.counts:q} --leaks {output.leaks:q} --record {output.record:q}"
        " 2> {log:q}"


rule stream_photos:
    """The photographs of some archives that are wanted, as they came, one file with an index."""
    input:
        unpack(FILES.streamed),
    output:
        shard="results/{run}/photos/{photos}/shards/{piece}.tar",
        index="results/{run}/photos/{photos}/shards/{piece}.index.parquet",
        record="results/{run}/photos/{photos}/shards/{piece}.json",
    log:
        "results/{run}/photos/{photos}/shards/logs/{piece}.log",
    benchmark:
        "results/{run}/photos/{photos}/shards/logs/{piece}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(FILES.photo_needs("stream"), 1)
    resources:
        **NEEDS.of(FILES.photo_needs("stream"), mem_mb=2000, runtime=480),
        photo_downloads=1,
    params:
        code=code_of("stream_photos.py"),
        settings=as_json(PLAN.stream_photos, "run", "photos", "piece"),
        inputs=as_words(FILES.streamed),
    shell:
        'python "$SCRIPTS"/stream_photos.py --settings {params.settings:q}'
        " {params.inputs:q} --shard {output.shard:q} --index {output.index:q} --record {output.record:q}"
        " 2> {log:q}"


rule order_photos:
    """The canonical order of a set over its parts, compared with the published list name by name."""
    input:
        unpack(FILES.order),
    output:
        out="results/{run}/photos/{photos}/order.json",
        record="results/{run}/photos/{photos}/order.record.json",
    log:
        "results/{run}/photos/{photos}/logs/order_photos.log",
    benchmark:
        "results/{run}/photos/{photos}/logs/order_photos.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        code=code_of("order_photos.py"),
        settings=as_json(PLAN.order_photos, "run", "photos"),
        listed=lambda wildcards, input: ["--list", input.list] if "list" in input.keys() else [],
    shell:
        'python "$SCRIPTS"/order_photos.py --settings {params.settings:q}'
        " --indexes {input.indexes:q} {params.listed:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"


rule audit_photos:
    """Whether a benchmark is what the protocol says; a failed check stops everything behind it."""
    input:
        unpack(FILES.audited_photos),
    output:
        out="results/{run}/photos/{photos}/audit.json",
        record="results/{run}/photos/{photos}/audit.record.json",
    log:
        "results/{run}/photos/{photos}/logs/audit_photos.log",
    benchmark:
        "results/{run}/photos/{photos}/logs/audit_photos.benchmark.tsv"
    conda:
        "../envs/photos.yaml"
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        code=code_of("audit_photos.py"),
        settings=as_json(PLAN.audit_photos, "run", "photos"),
        inputs=as_options(FILES.audited_photos),
    shell:
        'python "$SCRIPTS"/audit_photos.py --settings {params.settings:q}'
        " {params.inputs:q} --out {output.out:q} --record {output.record:q}"
        " 2> {log:q}"
