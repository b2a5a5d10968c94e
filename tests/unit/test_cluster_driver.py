"""What may not stand in our sources and profiles on a cluster, what is refused, and what is said of it."""

import json
import os
from types import SimpleNamespace

import pytest

from clusterkit import job_line, on_path, program, squeue
from remeasure.cluster import driver, hazards, site
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.leases import Lease

ROOT = SCRIPTS.parent


def test_our_default_profile_decides_nothing():
    [path] = hazards.default_profiles(ROOT)  # an empty folder would fail every call
    assert path == ROOT / "profiles" / "default" / "config.yaml" and hazards.taken_over(path) == []


def test_what_takes_over_is_found_in_both_spellings(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("default_resources: {mem_mb: 1}\nrerun-incomplete: true\ncores: 4\n")
    assert hazards.taken_over(path) == ["cores", "default-resources"]
    path.write_text("# nothing\n")
    assert hazards.taken_over(path) == []
    path.write_text("")
    assert hazards.taken_over(path) == []


def test_a_need_in_words():
    def said(gpu, model, threads, mem_mb, runtime_min):
        return hazards.described(
            SimpleNamespace(gpu=gpu, gpu_model=model, threads=threads, mem_mb=mem_mb, runtime_min=runtime_min)
        )

    assert said(2, "h100", 8, 64000, 120) == "2 GPUs h100, 8 threads, 64,000 MB, 120 min"
    assert said(1, None, None, None, None) == "1 GPU, 1 thread"


# -- what the scheduler would not take ---------------------------------------------------------------------

HERE = site.Site(
    {
        "cpu": site.Partition(max_mem_mb=64000, max_runtime="1d"),
        "h100": site.Partition(max_gpu=4, available_gpu_models=["h100"]),
    }
)


def one(rule="ask", threads=1, **resources):
    return SimpleNamespace(rule=SimpleNamespace(name=rule), threads=threads, resources=resources)


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """Return a function that makes an sbatch with a complaint ("": none); it notes what it is asked."""
    on_path(monkeypatch, tmp_path / "bin")

    def make(complaint=""):
        status = 1 if complaint else 0
        program(
            tmp_path / "bin",
            "sbatch",
            f"echo \"$*\" >> {tmp_path}/asked; echo '{complaint}' >&2; exit {status}",
        )
        return lambda: (tmp_path / "asked").read_text().splitlines()

    return make


def test_each_kind_of_job_is_shown_to_the_scheduler_once_with_all_that_decides(sbatch):
    asked = sbatch()
    words = {"slurm_account": "lab", "qos": "long", "constraint": "80g"}
    gpu = {"gpu": 2, "gpu_model": "h100", "mem_mb": 96000, "runtime": 120}
    hazards.check_refused([one(mem_mb=500), one(mem_mb=500), one("read", 8, **gpu, **words)], HERE)
    assert asked() == [
        "--test-only --partition=cpu --cpus-per-task=1 --mem=500 --wrap=true",
        "--test-only --partition=h100 --account=lab --qos=long --constraint=80g --cpus-per-task=8 "
        "--mem=96000 --time=120 --gpus=h100:2 --wrap=true",
    ]


def test_a_partition_that_is_named_is_kept(sbatch):
    asked = sbatch()
    hazards.check_refused([one(slurm_partition="mine", gpu=1)], HERE)
    assert asked() == ["--test-only --partition=mine --cpus-per-task=1 --gpus=1 --wrap=true"]


@pytest.mark.parametrize(
    "complaint",
    [
        "allocation failure: Invalid account or account/partition combination specified",
        "allocation failure: Invalid qos specification",
        "allocation failure: Requested time limit is invalid (missing or exceeds some limit)",
        "Batch job submission failed: no such account: downtown",
    ],
)
def test_what_the_scheduler_would_not_take_is_named_with_its_words(sbatch, complaint):
    sbatch(f"sbatch: error: {complaint}")
    with pytest.raises(RemeasureError) as caught:
        hazards.check_refused([one("embed", slurm_account="lab")], HERE)
    assert str(caught.value) == (
        f"rule embed: the scheduler would refuse it: sbatch: error: {complaint} (sbatch --partition=cpu "
        "--account=lab --cpus-per-task=1); correct slurm/config.yaml or slurm/partitions.yaml, `snakemake "
        "preflight --profile slurm` says more"
    )


@pytest.mark.parametrize(
    "complaint",
    [
        "allocation failure: Requested node configuration is not available",
        "allocation failure: Required node not available (down, drained or reserved)",
        "Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "Batch job submission failed: Socket timed out on send/recv operation",
    ],
)
def test_what_passes_by_itself_refuses_nothing(sbatch, complaint):
    asked = sbatch(f"sbatch: error: {complaint}")
    hazards.check_refused([one()], HERE)
    assert len(asked()) == 1


# -- what a killed driver left -----------------------------------------------------------------------------

OLD = "old_0a1b2c3d-1111-4222-8333-0123456789ab"


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """A working directory, the current one, that a killed driver of this host held."""
    (tmp_path / "jobs").write_text("")
    squeue(tmp_path / "bin", tmp_path / "jobs")
    on_path(monkeypatch, tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    driver.FOLDER.mkdir(parents=True)
    (driver.FOLDER / driver.LEASE).write_text(json.dumps({"host": os.uname().nodename, "pid": "999999"}))
    return tmp_path


def test_a_killed_driver_is_spoken_of(killed, capsys):
    driver.note_on_killed()
    assert capsys.readouterr().err == (
        "note: a driver was killed here. None of its jobs is left. Give its lock back with "
        "`snakemake --unlock`; scripts/submit.py does all of it\n"
    )


def test_jobs_of_a_killed_driver_are_spoken_of(killed, capsys):
    (killed / "jobs").write_text(job_line(40, name=OLD, work_dir=str(killed)))
    driver.note_on_killed()
    said = capsys.readouterr().err
    assert "still run in this folder: 40 (ask, RUNNING); " in said and f"`scancel --name={OLD};`" in said


def test_a_living_driver_none_and_an_absent_controller_are_not_spoken_of(killed, capsys):
    program(killed / "bin", "squeue", "exit 1")
    driver.note_on_killed()
    (driver.FOLDER / driver.LEASE).write_text("")
    driver.note_on_killed()
    with Lease(driver.FOLDER / driver.LEASE):
        driver.note_on_killed()
    (driver.FOLDER / driver.LEASE).unlink()
    driver.note_on_killed()
    assert capsys.readouterr().err == ""


def test_words_of_the_profile_that_rules_must_not_beat():
    defaults = {
        "slurm_partition": SimpleNamespace(raw="'mine'"),
        "constraint": SimpleNamespace(raw="80g"),
        "mem_mb": SimpleNamespace(raw="1000"),
    }
    assert driver.usual(defaults) == {"slurm_partition": "mine", "constraint": "80g"}
    assert driver.usual({"constraint": SimpleNamespace(raw="")}) == {}
    assert driver.usual({"constraint": SimpleNamespace(raw=5)}) == driver.usual(None) == {}
