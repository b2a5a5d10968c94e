# Images of a collection, or tables with images inside, are listed and checked before anything is asked about them.
#
# Needs: a folder or store of images, or tables. Makes: results/{run}/<study>/index/, with the files that the study names.


for name, files in PLAN.indexes().items():

    rule:
        name:
            f"index_{name}"
        input:
            source=lambda wildcards, study=name: FILES.source(wildcards.run, study),
        output:
            record=f"results/{{run}}/{name}/index/index_images.json",
            files=[f"results/{{run}}/{name}/index/{file}" for file in files],
        log:
            f"results/{{run}}/{name}/index/logs/index_images.log",
        benchmark:
            f"results/{{run}}/{name}/index/logs/index_images.benchmark.tsv"
        localrule: True
        conda:
            "../envs/core.yaml"
        threads: 4
        resources:
            mem_mb=1000,
            runtime=30,
        params:
            code=code_of("index_images.py", f"remeasure.studies.{name}_index"),
            settings=lambda wildcards, study=name: json.dumps(
                PLAN.index(wildcards.run, study), sort_keys=True
            ),
            images=lambda wildcards, study=name: FILES.source_state(wildcards.run, study),
            study=name,
        shell:
            'python "$SCRIPTS"/index_images.py --study {params.study:q} --settings {params.settings:q}'
            " --source {input.source:q} --threads {threads} --journal $(dirname {output.record:q})/journal"
            " --out {output.files:q} --record {output.record:q} 2> {log:q}"


for name, files in PLAN.table_indexes().items():

    rule:
        name:
            f"index_{name}"
        input:
            tables=lambda wildcards, study=name: FILES.tables(wildcards.run, study),
        output:
            record=f"results/{{run}}/{name}/index/index_tables.json",
            files=[f"results/{{run}}/{name}/index/{file}" for file in files],
        log:
            f"results/{{run}}/{name}/index/logs/index_tables.log",
        benchmark:
            f"results/{{run}}/{name}/index/logs/index_tables.benchmark.tsv"
        localrule: True
        conda:
            "../envs/core.yaml"
        resources:
            mem_mb=2000,
            runtime=60,
        params:
            code=code_of("index_tables.py", f"remeasure.studies.{name}_index"),
            settings=lambda wildcards, study=name: json.dumps(
                PLAN.index(wildcards.run, study), sort_keys=True
            ),
            study=name,
        shell:
            'python "$SCRIPTS"/index_tables.py --study {params.study:q} --settings {params.settings:q}'
            " --tables {input.tables:q} --out {output.files:q} --record {output.record:q} 2> {log:q}"
