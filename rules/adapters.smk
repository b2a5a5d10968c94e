# Models that are put together: a base, or a base with an adapter merged into it, in the layout that vLLM reads.
#
# Needs: folders of base, adapter and image encoder. Makes: results/{run}/adapted/{adapted}/ and its record beside it.
# Merging and converting are one step: between them would lie another copy of the weights, 13 to 26 GB.


rule merge_adapter:
    """A folder that vLLM serves; nothing of an adapter is left out, or the step fails."""
    input:
        unpack(FILES.merged),
    output:
        folder=directory("results/{run}/adapted/{adapted}"),
        record="results/{run}/adapted/{adapted}.json",
    log:
        "results/{run}/adapted/logs/{adapted}.log",
    benchmark:
        "results/{run}/adapted/logs/{adapted}.benchmark.tsv"
    conda:
        "../envs/core.yaml"
    threads: NEEDS.threads(FILES.merge_needs, 2)
    resources:
        **NEEDS.of(FILES.merge_needs, mem_mb=4000, runtime=60),
    params:
        code=code_of("merge_adapter.py"),
        settings=as_json(PLAN.merge_settings, "run", "adapted"),
        inputs=as_options(FILES.merged),
    shell:
        'python "$SCRIPTS"/merge_adapter.py --settings {params.settings:q} {params.inputs:q}'
        " --out {output.folder:q} --record {output.record:q} 2> {log:q}"
