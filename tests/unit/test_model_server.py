"""A model server runs for as long as it is needed, and never longer."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import alive
from remeasure import hardware, model_server
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS

PROGRAM = str(Path(__file__).resolve().parent.parent / "loopback.py")


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def command(tmp_path, **options) -> list[str]:
    return model_server.command(PROGRAM, "toy", {"pid_file": str(tmp_path / "pid")}, options)


def test_files_and_options_become_words_of_the_command():
    words = model_server.command(
        "serve_x.py", "slug", {"llm": "a.gguf"}, {"n_threads": 1, "fast": True, "off": False}
    )
    assert words == [
        sys.executable,
        str(SCRIPTS / "serve_x.py"),
        "--served-name",
        "slug",
        "--llm",
        "a.gguf",
        "--n-threads",
        "1",
        "--fast",
    ]


def test_a_server_gets_neither_credentials_nor_thread_counts():
    given = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "x",
        "HF_TOKEN": "x",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
    }
    assert model_server.environment(given) == {"PATH": "/bin"}


def test_a_server_is_ready_inside_the_block_and_gone_after_it(tmp_path):
    with model_server.running(command(tmp_path), "toy", tmp_path / "log", 20) as server:
        pid = int((tmp_path / "pid").read_text())
        assert server.get("/health") == (200, b"{}") and server.died() is None and alive(pid)
        assert server.base_url == f"http://127.0.0.1:{server.port}/v1"
    assert not alive(pid)


def test_the_environment_of_the_process_is_cleaned(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    words = command(tmp_path, environment_file=str(tmp_path / "env"))
    with model_server.running(words, "toy", tmp_path / "log", 20):
        found = json.loads((tmp_path / "env").read_text())
    assert "SOME_API_KEY" not in found and "OMP_NUM_THREADS" not in found and "PATH" in found


def test_a_server_that_needs_time_is_waited_for(tmp_path):
    began = time.monotonic()
    with model_server.running(command(tmp_path, health_after=0.5), "toy", tmp_path / "log", 20):
        assert time.monotonic() - began >= 0.5


def test_a_server_is_stopped_when_the_block_raises(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with model_server.running(command(tmp_path), "toy", tmp_path / "log", 20):
            raise ZeroDivisionError
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_server_that_ends_at_once_is_one_line_with_the_end_of_its_log(tmp_path):
    with pytest.raises(
        RemeasureError, match="ended with exit status 1 before it was ready.*file truncated"
    ) as found:
        with model_server.running(command(tmp_path, fail=True), "toy", tmp_path / "log", 20):
            pass
    assert "\n" not in str(found.value)


def test_a_server_that_is_never_ready_is_stopped_and_named(tmp_path):
    with pytest.raises(RemeasureError, match="was not ready within 1 s"):
        with model_server.running(command(tmp_path, health_after=60), "toy", tmp_path / "log", 1):
            pass
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_server_with_another_model_is_refused(tmp_path):
    with pytest.raises(RemeasureError, match=r"lists the models \['other'\] and not 'toy'"):
        with model_server.running(command(tmp_path, list_name="other"), "toy", tmp_path / "log", 20):
            pass
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_description_names_build_and_hardware(tmp_path, monkeypatch):
    smi = tmp_path / "nvidia-smi"
    told = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)"
    smi.write_text(f"#!/bin/sh\necho '{told}'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with model_server.running(command(tmp_path), "toy", tmp_path / "log", 20) as server:
        assert server.description == "loopback.py, 2 x NVIDIA H100 80GB HBM3"
    words = command(tmp_path, version="0.19.0", owned_by="vllm")
    with model_server.running(words, "toy", tmp_path / "log", 20) as server:
        assert server.description == "vllm 0.19.0, 2 x NVIDIA H100 80GB HBM3"
    words = command(tmp_path, version="0.19.0", owned_by="remeasure")
    with model_server.running(words, "toy", tmp_path / "log", 20) as server:
        assert server.description == f"loopback.py, {hardware.cpu()}"


GPUS = """GPU 0: NVIDIA A10G (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 1g.5gb      Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)
GPU 2: NVIDIA A10G (UUID: GPU-00000000-0000-0000-0000-000000000002)"""


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, "NVIDIA A100-SXM4-40GB, 2 x NVIDIA A10G"),
        ("0", "NVIDIA A10G"),
        ("2,0", "2 x NVIDIA A10G"),
        ("1", "NVIDIA A100-SXM4-40GB"),
        ("GPU-5d5ba0d6", "NVIDIA A100-SXM4-40GB"),
        ("GPU-5", None),  # fits two
        ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
        ("0,7,2", "NVIDIA A10G"),  # what fits nothing hides all after it
        ("", None),
        ("-1", None),
        ("NoDevFiles", None),
    ],
)
def test_only_the_gpus_that_a_job_may_use_are_named(tmp_path, monkeypatch, given, names):
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\n[ \"$1\" = -L ] && cat <<'END'\n{GPUS}\nEND\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert hardware.gpus() == names


@pytest.mark.parametrize("does", ["exit 9", "sleep 60", "printf ''"])
def test_gpus_that_do_not_answer_are_none(tmp_path, monkeypatch, does):
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\n{does}\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(hardware, "_TIMEOUT_S", 0.5)
    assert hardware.gpus() is None


def test_the_processor_has_a_name_without_the_file_too(tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: AMD  EPYC 9R14\n\nprocessor\t: 1\nmodel name\t: another\n")
    monkeypatch.setattr(hardware, "_CPU_FILE", info)
    assert hardware.cpu() == "AMD EPYC 9R14"
    monkeypatch.setattr(hardware, "_CPU_FILE", tmp_path / "none")
    assert hardware.cpu() == f"{platform.machine()} CPU"


def test_the_end_of_a_log_is_short_and_readable_and_holds_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-abcdefgh")
    said = (
        b"before\n" * 9
        + b"\x1b[31mERROR\x1b[0m key sk-abcdefgh\n"
        + b"x" * 100_000
        + b"\n\0\xff\xfe end\r\n\n"
    )
    (tmp_path / "said").write_bytes(said)
    with pytest.raises(RemeasureError) as found:
        with model_server.running(
            command(tmp_path, fail_with=str(tmp_path / "said")), "toy", tmp_path / "log", 20
        ):
            pass
    start = "before | before | ERROR key [SOME_API_KEY] | " + "x" * 300 + "… | "
    assert str(found.value).partition("ends: ")[2] == start + "\ufffd\ufffd end"


def test_a_server_that_died_says_so_with_its_log(tmp_path):
    with model_server.running(command(tmp_path), "toy", tmp_path / "log", 20) as server:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert "ended with exit status -9" in server.died()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_parent_leaves_no_orphan(tmp_path, number):
    code = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from pathlib import Path; from remeasure import hardware, model_server\n"
        f"with model_server.running({command(tmp_path)!r}, 'toy', Path({str(tmp_path / 'log')!r}), 20):\n"
        "    print('ready', flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"ready\n"
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    parent.send_signal(number)
    parent.wait()
    parent.stdout.close()
    assert gone_within(pid, 5)
