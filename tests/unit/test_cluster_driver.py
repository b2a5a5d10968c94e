"""What is refused before a job is sent, and what is said of it; signals that reach the driver."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from clusterkit import job_line, on_path, program, squeue
from remeasure.cluster import driver, hazards, site
from remeasure.cluster.site import Gpus, Partition, Site
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


@pytest.fixture
def own_default(tmp_path, monkeypatch):
    """A working directory whose default profile says how many cores; Snakemake is called without words."""
    (tmp_path / "profiles" / "default").mkdir(parents=True)
    (tmp_path / "profiles" / "default" / "config.yaml").write_text("cores: 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["snakemake"])
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    return SimpleNamespace(basedir=str(ROOT))


@pytest.mark.parametrize(
    ("words", "variable", "is_slurm"),
    [
        (["--profile", "slurm"], "", False),
        (["--profile=slurm"], "", False),
        ([], "slurm", False),
        ([], "", True),
    ],
    ids=["option", "option in one word", "SNAKEMAKE_PROFILE", "executor"],
)
def test_a_default_profile_may_not_beat_a_profile_however_that_is_named(
    own_default, monkeypatch, words, variable, is_slurm
):
    monkeypatch.setattr(sys, "argv", ["snakemake", *words])
    monkeypatch.setenv("SNAKEMAKE_PROFILE", variable)
    with pytest.raises(RemeasureError, match="default/config.yaml: `cores` stands here and wins over"):
        hazards.check_profiles(own_default, is_slurm)


def test_a_default_profile_is_the_user_s_business_where_no_other_was_asked_for(own_default):
    hazards.check_profiles(own_default, is_slurm=False)


H100 = Partition(max_runtime=60, max_mem_mb=8000, max_gpu=1, available_gpu_models=["h100"])
A10G = Partition(max_runtime=60, max_mem_mb=8000, max_gpu=2, available_gpu_models=["a10g"])
CPU = Partition(max_runtime=60, max_mem_mb=4000, max_threads=4)


def checked(resources, threads=1, **gpus):
    """Check one job of a rule ``ask`` against a site of three partitions."""
    usual = {"mem_mb": 1000, "runtime": 30}
    job = SimpleNamespace(
        rule=SimpleNamespace(name="ask"), threads=threads, resources=usual | dict(resources)
    )
    here = Site({"cpu": CPU, "h100": H100, "a10g": A10G}, Gpus(**gpus))
    hazards.check_needs([job], here, Path("slurm/partitions.yaml"))


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ({"gpu": 2, "gpu_model": "h100"}, "2 GPUs h100, 1 thread, 1,000 MB, 30 min"),
        ({"gpu": 3}, "3 GPUs, 1 thread, 1,000 MB, 30 min"),
        ({"gpu": 1, "gpu_model": "a100"}, "1 GPU a100, 1 thread, 1,000 MB, 30 min"),
        ({"gpu": 1, "mem_mb": 9000}, "1 GPU, 1 thread, 9,000 MB, 30 min"),
        ({"mem_mb": 9000}, "1 thread, 9,000 MB, 30 min"),
        ({"runtime": 61}, "1 thread, 1,000 MB, 61 min"),
    ],
)
def test_a_need_that_no_partition_holds_is_refused_in_words(resources, said):
    with pytest.raises(RemeasureError) as raised:
        checked(resources)
    assert str(raised.value) == (
        f"slurm/partitions.yaml: no partition holds ask: {said}; add one, raise its limits, or correct the "
        "needs in config/runs/"
    )


@pytest.mark.parametrize(
    "resources", [{}, {"gpu": 1, "gpu_model": "h100"}, {"gpu": 2, "gpu_model": "a10g"}, {"gpu": 2}]
)
def test_a_need_that_fits_is_not(resources):
    checked(resources)


def test_a_partition_that_is_named_is_not_judged():
    checked({"slurm_partition": "big", "gpu": 8, "mem_mb": 900_000})


def test_without_types_a_gpu_job_must_name_its_partition():
    with pytest.raises(RemeasureError, match="no partition holds ask: 1 GPU, 1 thread"):
        checked({"gpu": 1}, typed=False)
    checked({"gpu": 1, "slurm_partition": "h100"}, typed=False)
    checked({}, typed=False)


CAUGHT = """
import os, signal, sys, time
from pathlib import Path
from remeasure.cluster import driver
driver.catch_signals(Path(sys.argv[1]))
try:
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    time.sleep(0.2)
    print("goes on")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("name", "before", "said"),
    [
        ("SIGHUP", signal.SIG_DFL, "interrupted"),
        ("SIGHUP", signal.SIG_IGN, "goes on"),
        ("SIGINT", signal.SIG_DFL, "interrupted"),
        ("SIGINT", signal.SIG_IGN, "interrupted"),
    ],
    ids=["closed terminal", "nohup", "Ctrl-C", "Ctrl-C in the background"],
)
def test_a_closed_terminal_interrupts_the_driver_unless_it_was_told_to_live_on(tmp_path, name, before, said):
    done = subprocess.run(
        [sys.executable, "-c", CAUGHT, str(tmp_path), name],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(getattr(signal, name), before),
    )
    assert (done.returncode, done.stdout) == (0, f"{said}\n"), done.stderr
    assert (tmp_path / "ending").exists() == (said == "interrupted")


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
