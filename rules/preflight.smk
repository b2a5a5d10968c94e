# What must hold before the first call: data, disk, keys, endpoints, requests. Runs when it is asked for by name.
#
# Needs: nothing that has to be built. Makes: nothing.


localrules:
    preflight,


# All problems of the configured run in one list; exit code 2 where there are any. It belongs on the terminal, not in
# a log: Snakemake hands standard error over. The profile's retries are for jobs: a list is asked for once.
rule preflight:
    retries: 0
    handover: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=config["run"],
        cluster=lambda wildcards, resources: driver.preflight_options(workflow, resources),
    shell:
        'python "$SCRIPTS"/preflight.py --run {params.settings:q} {params.cluster}'


onerror:
    from remeasure.status import failures

    failures.said_at_end(workflow.scheduler.failed, STARTED, not workflow.local_exec)
    # Snakemake's own code is 1 whatever failed. SystemExit unwinds it as an error does: locks are given back.
    if any(job.name == "preflight" for job in workflow.scheduler.failed):
        print("error: preflight found problems; they are named above", file=sys.stderr)
        sys.exit(2)
