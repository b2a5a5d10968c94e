"""What a cluster's job brings with it changes neither which GPU a server uses nor what it answers."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from processes import wait_until
from remeasure import model_server
from remeasure.fingerprint import SCRIPTS

TESTS = Path(__file__).resolve().parent.parent
# As they stand in a step of a real job; the thread counts are Snakemake's.
JOB = {
    "CUDA_VISIBLE_DEVICES": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "SLURM_JOB_ID": "77",
    "SLURM_JOBID": "77",
    "SLURM_NTASKS": "1",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_CPUS_PER_TASK": "7",
    "SLURM_CPUS_ON_NODE": "7",
    "SLURM_GPUS_ON_NODE": "1",
    "SLURM_STEP_GPUS": "1",
    "SLURM_JOB_PARTITION": "h100",
    "OMP_NUM_THREADS": "7",
    "MKL_NUM_THREADS": "7",
}


@pytest.fixture
def job(monkeypatch):
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def vllm(tmp_path, monkeypatch) -> Path:
    """The stand-in for vLLM is on the search path; what it notes is in the folder."""
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {TESTS / "standin_vllm.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@contextlib.contextmanager
def served(folder: Path, name: str, model: str = "org/model"):
    """vLLM's stand-in behind ``serve_vllm.py``; gives the server and what the stand-in notes."""
    notes = folder / name
    notes.mkdir()
    words = model_server.command("serve_vllm.py", "slug", {"model": model}, {"notes": str(notes)})
    with model_server.running(words, "slug", notes / "log", 20) as server:
        yield server, lambda what: json.loads((notes / what).read_text())


def test_the_gpu_of_the_job_is_the_gpu_of_vllm(vllm, job):
    with served(vllm, "notes") as (_, noted):
        found = noted("environment")
    assert found["CUDA_VISIBLE_DEVICES"] == "1" and found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "OMP_NUM_THREADS" not in found and "MKL_NUM_THREADS" not in found


@pytest.mark.parametrize("given", ["", "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", "NoDevFiles", None])
def test_whatever_the_variable_says_it_says_to_vllm_too(vllm, monkeypatch, given):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    with served(vllm, "notes") as (_, noted):
        assert noted("environment").get("CUDA_VISIBLE_DEVICES") == given


def test_two_jobs_on_one_node_have_a_port_each(vllm, job):
    with served(vllm, "one") as (one, noted_one), served(vllm, "two") as (two, noted_two):
        assert one.port != two.port
        assert noted_one("words")[-1] == str(one.port) and noted_two("words")[-1] == str(two.port)
        for server in (one, two):
            assert server.get("/health")[0] == 200


@pytest.mark.slow
def test_two_jobs_that_start_in_one_moment_have_a_port_each(vllm):
    files = [vllm / name for name in "abcdef"]
    runs = []
    for file in files:
        (vllm / f"notes-{file.name}").mkdir()
        words = model_server.command(
            "serve_vllm.py", "slug", {"model": "m"}, {"notes": vllm / f"notes-{file.name}"}
        )
        runs.append(
            subprocess.Popen([*words, "--port", "0", "--port-file", str(file)], stdin=subprocess.PIPE)
        )
    try:
        wait_until(lambda: all(file.exists() for file in files), 40)
        assert len({file.read_text() for file in files}) == 6
    finally:
        for run in runs:
            run.stdin.close()
            run.wait(10)


@pytest.mark.parametrize("folder", ["missing", "read-only", "long", "with spaces"])
def test_homes_and_temporary_folders_as_nodes_have_them(vllm, tmp_path, monkeypatch, folder):
    place = {
        "missing": Path("/nowhere/at/all"),
        "read-only": Path("/proc"),
        "long": tmp_path / ("x" * 100) / ("y" * 100),
        "with spaces": tmp_path / "a  b'c$d",
    }[folder]
    if place.is_relative_to(tmp_path):
        place.mkdir(parents=True)
    for name in ("TMPDIR", "TMP", "TEMP", "HOME"):
        monkeypatch.setenv(name, str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    with served(vllm, "notes") as (server, noted):
        assert server.get("/health")[0] == 200
        # The names of vLLM's sockets begin with this folder, and may have 107 characters.
        is_long = place.exists() and len(str(place)) > 60
        assert noted("environment").get("VLLM_RPC_BASE_PATH") == ("/tmp" if is_long else None)
    monkeypatch.setattr("tempfile.tempdir", None)


def test_a_folder_for_sockets_that_somebody_chose_stays(vllm, tmp_path, monkeypatch):
    place = tmp_path / ("x" * 100)
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("VLLM_RPC_BASE_PATH", "/run/mine")
    with served(vllm, "notes") as (_, noted):
        assert noted("environment")["VLLM_RPC_BASE_PATH"] == "/run/mine"


def test_weights_are_read_from_the_node_s_own_disk_where_there_is_one(vllm, tmp_path, monkeypatch):
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"layers")
    monkeypatch.setenv("REMEASURE_SCRATCH", str(tmp_path / "local"))
    with served(vllm, "notes", str(weights)) as (server, noted):
        copy = Path(noted("words")[1])
    assert copy.is_relative_to(tmp_path / "local") and copy.name == "weights"
    assert (copy / "model.safetensors").read_bytes() == b"layers"
    # A name on the hub is no folder, and its cache is not copied.
    with served(vllm, "hub") as (server, noted):
        assert noted("words")[1] == "org/model"
    monkeypatch.setenv("REMEASURE_SCRATCH", str(tmp_path / "$NOT_SET"))
    with served(vllm, "in-place", str(weights)) as (server, noted):
        assert noted("words")[1] == str(weights)
    assert "is read in place" in (vllm / "in-place" / "log").read_text()


@pytest.mark.models
def test_a_job_s_variables_change_neither_answers_nor_threads(tmp_path, sources, monkeypatch):
    def answer_and_threads(name: str) -> tuple[bytes, int]:
        words = model_server.command(
            "serve_llm.py", "m", {"llm": str(sources / "smollm2-135m-instruct-q4_1.gguf")}, {"threads": 1}
        )
        with model_server.running(words, "m", tmp_path / name, 60) as server:
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": "Name a colour."}],
                "max_tokens": 12,
            }
            request = urllib.request.Request(f"{server.base_url}/chat/completions", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=60) as reply:
                said = reply.read()
            path, counts = Path(f"/proc/{server._process.pid}/status"), []
            for _ in range(20):  # the thread of the connection ends a moment later
                counts.append(int(path.read_text().partition("Threads:")[2].split()[0]))
                time.sleep(0.02)
        return said, min(counts)

    for name in JOB:
        monkeypatch.delenv(name, raising=False)
    plain = answer_and_threads("plain")
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)
    assert answer_and_threads("job") == plain


def test_no_server_reads_a_job_s_variables():
    """Settings come as options: what a server reads by itself is in no identity."""
    package = SCRIPTS / "remeasure"
    files = [package / "model_server.py", package / "vllm_server.py", *SCRIPTS.glob("serve_*.py")]
    for folder in ("embedded", "executors", "encoders"):
        files += sorted((package / folder).rglob("*.py"))
    assert len(files) > 30
    assert [path.name for path in files if "SLURM" in path.read_text()] == []
