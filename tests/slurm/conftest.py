"""A virtual cluster for the session, and runs that were not disturbed to compare with."""

import shutil
from pathlib import Path

import pytest
from cluster_files import Options
from slurmkit import ROOT, Clone, clone
from virtual_cluster import FIRST_PORT, FOLDER, VirtualCluster, obstacle

# The queue remembers every job of the session: tests ask what memory and GPUs each one wanted.
MEMORY_S = 7200
SMALL_CELLS = ("nq\tnaive", "nq\tbase")
STAND_IN = """
models:
  stand-in:
    title: "Stand-in"
    server: serve_standin.py
    options: {threads: 1}
    concurrency: 1
    timeout_s: 300
    needs: {gpu: 1, gpu_model: h100, mem_mb: 1500, runtime_min: 5}
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options for a cluster beside another one."""
    parser.addoption("--cluster-folder", type=Path, default=FOLDER, help="state of the virtual cluster")
    parser.addoption("--cluster-port", type=int, default=FIRST_PORT, help="first of its 15 TCP ports")


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line why nothing was tested, where that is so."""
    if reason := obstacle():
        terminalreporter.write_line(f"tests/slurm skipped: {reason}")


@pytest.fixture(scope="session")
def bring_up(request):
    """Return a function that brings up a clean cluster with its own options; the last goes at the end."""
    if reason := obstacle():
        pytest.skip(reason)
    running: list[VirtualCluster] = []

    def up(**options) -> VirtualCluster:
        # Where all tests are collected, this file is read too late to add options.
        folder = request.config.getoption("cluster_folder", FOLDER)
        port = request.config.getoption("cluster_port", FIRST_PORT)
        cluster = VirtualCluster(folder, port, Options(**({"min_job_age_s": MEMORY_S} | options)))
        running[:] = [cluster]
        cluster.up()
        return cluster

    yield up
    for cluster in running:
        cluster.down()
        assert not cluster.job_processes()


@pytest.fixture(scope="module")
def cluster(bring_up) -> VirtualCluster:
    """The five nodes, as most sites have them: typed GPUs, no accounting."""
    return bring_up()


@pytest.fixture(scope="session")
def local_run() -> Path:
    """The root of this checkout, where the run `ci` was made without a cluster."""
    if not (ROOT / "results/ci/tables/table1.csv").exists():
        pytest.fail("the small run is not there; run: make ci")
    return ROOT


@pytest.fixture(scope="session")
def undisturbed(local_run, tmp_path_factory) -> Clone:
    """A finished run of two cells whose reader is a stand-in, made without a cluster; do not change it."""
    made = clone(tmp_path_factory.mktemp("undisturbed") / "project")
    shutil.copytree(local_run / "results/ci", made.path("results/ci"))
    shutil.copytree(local_run / ".snakemake/metadata", made.path(".snakemake/metadata"))
    shutil.copy(Path(__file__).with_name("serve_standin.py"), made.path("scripts"))
    rows = ["study\tbench\tarm\ttable", *(f"pixelrag\t{cell}\ttable1" for cell in SMALL_CELLS)]
    made.path("config/cells.tsv").write_text("\n".join(rows) + "\n")
    made.change("config/studies/pixelrag.yaml", "\ncontrasts: [", "\ncontrasts: [[base, naive]] # [")
    made.change("config/runs/ci.yaml", "items_per_bench: 4", "items_per_bench: 4, reader: stand-in")
    with open(made.path("config/runs/ci.yaml"), "a") as run:
        run.write(STAND_IN)
    driver = made.program(["snakemake", "--cores", "2", "results/table1.csv", "--config", "run=ci"])
    assert driver.wait(120) == 0, driver.said()
    assert made.planned() == {}, "the small run is older than the code; run: make ci"
    return made
