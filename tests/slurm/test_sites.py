"""Sites that differ: GPUs without a type, a working sacct, and the whole embedded run (slow)."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from slurmkit import TABLE, clone, known_jobs
from stage import Stage, set_stage
from test_stories import scancel_by_hand
from test_table import EXPECTED

TYPED = "gpus: {typed: true}"
ONE_EACH = "gpus: {typed: false}"
MIXED = "gpus: {typed: false, features: {h100: h100, a10g: a10g}}"
MIXED_PARTITION = (
    "  gpu: {max_runtime: 12h, max_mem_mb: 64000, max_threads: 16, max_gpu: 2, "
    "available_gpu_models: [h100, a10g]}\n"
)


def asked_from(stage: Stage, gpus: str, model: str) -> tuple[str, str, str]:
    """Ask one cell on a site without typed GPUs; return partition, kind of node and GPUs asked for."""
    if gpus == MIXED:
        text = stage.made.path("slurm/partitions.yaml").read_text().splitlines(keepends=True)
        kept = [line for line in text if not line.startswith(("  h100:", "  a10g:"))]
        at = next(number for number, line in enumerate(kept) if line.startswith("  cpu:"))
        kept.insert(at + 1, MIXED_PARTITION)
        stage.made.path("slurm/partitions.yaml").write_text("".join(kept))
    stage.made.change("slurm/partitions.yaml", f"\n{TYPED}", f"\n{gpus}")
    stage.made.change("config/runs/ci.yaml", "gpu_model: h100", f"gpu_model: {model}")
    stage.ends_well(stage.start())
    (job,) = stage.jobs()
    return job.partition, job.node.partition("-")[0], job.gpus


@pytest.mark.timeout(240)
def test_without_gpu_types_jobs_still_reach_their_model(bring_up, undisturbed, tmp_path):
    cluster = bring_up(typed_gpus=False)
    cases = [(ONE_EACH, "h100"), (ONE_EACH, "a10g"), (MIXED, "h100"), (MIXED, "a10g")]
    with ThreadPoolExecutor(len(cases)) as pool:
        futures = [
            pool.submit(asked_from, set_stage(cluster, undisturbed, tmp_path / str(number)), *case)
            for number, case in enumerate(cases)
        ]
    assert [future.result() for future in futures] == [
        ("h100", "h100", "1"),
        ("a10g", "a10g", "1"),
        ("gpu", "h100", "1"),
        ("gpu", "a10g", "1"),
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cancelled_job_is_noticed_where_sacct_works(bring_up, undisturbed, tmp_path):
    cluster = bring_up(accounting=True)
    stage = set_stage(cluster, undisturbed, tmp_path / "project")
    scancel_by_hand(stage)
    assert "CANCELLED by " in cluster.accounted(stage.jobs()[0].job_id)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_embedded_run_goes_where_the_papers_models_will(bring_up, tmp_path):
    cluster = bring_up()
    made = clone(tmp_path / "project")
    driver = made.start(run="embedded")
    assert driver.wait(3500) == 0, driver.said()[-3000:]
    assert made.path(TABLE).read_text().splitlines()[1].endswith(",embedded")
    completed = [job for job in known_jobs(cluster, made.folder) if job.state == "COMPLETED"]
    assert Counter((job.rule, job.partition, job.gpus) for job in completed) == EXPECTED
