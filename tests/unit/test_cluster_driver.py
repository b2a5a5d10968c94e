"""What is refused before a job is sent, in profiles and in needs; signals that reach the driver."""

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure.cluster import hazards
from remeasure.cluster.site import Gpus, Partition, Site
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS

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
