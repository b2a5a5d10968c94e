"""vLLM under the contract of a model server, with a stand-in for the program ``vllm``."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import serve_vllm
from processes import alive, wait_until
from remeasure import collecting, model_server
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan

STANDIN = Path(__file__).resolve().parent.parent / "standin_vllm.py"
ROOT_CAUSE = b"""(EngineCore pid=7) ERROR ValueError: 4.2 GiB KV cache is needed, 1.0 GiB is available
(APIServer pid=6) Traceback (most recent call last):
(APIServer pid=6)   File "x.py", line 1, in main
(APIServer pid=6) RuntimeError: Engine core initialization failed. See root cause above.
"""
VALIDATION = b"""pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, User-specified max_model_len (999999) is greater than 2048
    For further information visit the site
"""


@pytest.fixture
def notes(tmp_path, monkeypatch) -> Path:
    """The stand-in is on the search path; what it notes is in the folder."""
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STANDIN} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def noted(notes, name):
    return json.loads(wait_until(lambda: (notes / name).exists() and (notes / name).read_text()))


def command(notes, **options) -> list[str]:
    options = {"notes": str(notes), **options}
    return model_server.command("serve_vllm.py", "slug", {"model": "org/model"}, options)


def all_gone(notes, seconds: float = 5.0) -> bool:
    with contextlib.suppress(AssertionError):
        return wait_until(lambda: not any(map(alive, noted(notes, "pids"))), seconds)
    return False


def started(notes, **options) -> subprocess.Popen:
    """The server program alone, without anybody who waits for it."""
    words = command(notes, **options)
    return subprocess.Popen(
        [*words, "--port", "0", "--port-file", str(notes / "port")], stdin=subprocess.PIPE
    )


def test_options_reach_vllm_and_the_server_ends_with_the_block(notes, tmp_path, monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "k" * 20)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with model_server.running(command(notes, max_model_len=32768), "slug", tmp_path / "log", 20) as server:
        assert server.description.startswith("vllm 0.0.0, ")
        body = {"model": "slug", "messages": [{"role": "user", "content": "hello"}]}
        request = urllib.request.Request(f"{server.base_url}/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            assert json.load(reply)["choices"][0]["message"]["content"] == "answer to hello"
        port = str(server.port)
        assert server.died() is None
    assert all_gone(notes, 0.5)
    assert noted(notes, "words") == [
        *("serve", "org/model", "--notes", str(notes), "--max-model-len", "32768"),
        *("--host", "127.0.0.1", "--served-model-name", "slug", "--port", port),
    ]
    given = noted(notes, "environment")
    assert (given["VLLM_NO_USAGE_STATS"], given["DO_NOT_TRACK"], given["HF_HUB_OFFLINE"]) == ("1", "1", "1")
    assert "VLLM_API_KEY" not in given


def test_the_port_is_told_when_vllm_is_healthy_and_not_before(notes, tmp_path):
    began = time.monotonic()
    with model_server.running(command(notes, health_after=1.5), "slug", tmp_path / "log", 20):
        assert time.monotonic() - began > 1.5
    said = (tmp_path / "log").read_text()
    assert "vllm answers on 127.0.0.1:" in said


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (b"x" * 300_000 + b"\n" + ROOT_CAUSE, "ValueError: 4.2 GiB KV cache is needed, 1.0 GiB is available"),
        (VALIDATION, "Value error, User-specified max_model_len (999999) is greater than 2048"),
        (
            b"vllm: error: unrecognized arguments: --nonsense 1\n",
            "error: unrecognized arguments: --nonsense 1",
        ),
    ],
)
def test_a_vllm_that_cannot_start_is_told_with_its_root_cause(notes, tmp_path, said, cause):
    (tmp_path / "said").write_bytes(said)
    with pytest.raises(RemeasureError) as found:
        with model_server.running(command(notes, say=tmp_path / "said"), "slug", tmp_path / "log", 20):
            pass
    assert "ended with exit status 3 before it was ready" in str(found.value)
    assert str(found.value).endswith(f"vllm ended with exit status 3: {cause}")
    assert all_gone(notes, 0.5)


def test_a_vllm_that_dies_in_the_middle_is_told_with_its_last_error(notes, tmp_path):
    with model_server.running(command(notes, die_after=1), "slug", tmp_path / "log", 20) as server:
        body = json.dumps({"model": "slug", "messages": [{"role": "user", "content": "hello"}]}).encode()
        with pytest.raises(OSError):
            urllib.request.urlopen(f"{server.base_url}/chat/completions", body, timeout=10)
        reason = wait_until(server.died)
    assert "ended with exit status 1" in reason
    assert reason.endswith("vllm ended with exit status 1: OutOfMemoryError: CUDA out of memory")
    assert all_gone(notes, 0.5)


def test_a_vllm_under_another_name_is_refused(notes, tmp_path):
    with pytest.raises(RemeasureError, match=r"lists the models \['other'\] and not 'slug'"):
        with model_server.running(command(notes, list_name="other"), "slug", tmp_path / "log", 20):
            pass
    assert all_gone(notes, 0.5)


@pytest.mark.parametrize("end", ["input", "sigterm", "sigint", "sigkill"])
def test_nothing_of_vllm_lives_on_however_the_server_program_ends(notes, end):
    process = started(notes, stubborn=True)
    wait_until((notes / "port").exists)
    if end == "input":
        process.stdin.close()
    else:
        process.send_signal(getattr(signal, end.upper()))
    assert process.wait(5) == (-9 if end == "sigkill" else 0)
    process.stdin.close()
    assert all_gone(notes)


def test_nothing_of_vllm_lives_on_when_it_is_stopped_while_it_starts(notes):
    process = started(notes, health_after=60)
    pids = noted(notes, "pids")
    process.terminate()
    assert process.wait(5) == 0
    process.stdin.close()
    assert all_gone(notes) and not any(map(alive, pids))
    assert not (notes / "port").exists()


def test_nothing_of_vllm_lives_on_when_the_parent_is_killed(notes, tmp_path):
    code = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from pathlib import Path; from remeasure import model_server\n"
        f"with model_server.running({command(notes)!r}, 'slug', Path({str(tmp_path / 'log')!r}), 20):\n"
        "    print('ready', flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"ready\n"
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert all_gone(notes)


def test_a_port_that_is_taken_while_vllm_starts_is_left_to_the_other(notes):
    process = started(notes, wait_for=notes / "go")
    taken = int(noted(notes, "words")[-1])
    with socket.create_server(("127.0.0.1", taken)):
        (notes / "words").unlink()
        (notes / "go").touch()
        port = int(wait_until(lambda: (notes / "port").exists() and (notes / "port").read_text()))
        assert port != taken
        assert int(noted(notes, "words")[-1]) == port
        process.stdin.close()
        assert process.wait(5) == 0
    assert all_gone(notes)


def arguments(tmp_path, *more, model="org/model") -> list[str]:
    words = ["--port", "0", "--port-file", str(tmp_path / "port"), "--served-name", "m", "--model", model]
    return [*words, *more]


@pytest.mark.parametrize(
    "option",
    ["--host", "--served-model-name", "--served_model_name", "--api-key", "--api", "--uds", "--config=x"],
)
def test_an_option_that_is_not_the_users_is_one_line(notes, tmp_path, capsys, option):
    assert serve_vllm.main(arguments(tmp_path, "--max-model-len", "9", option, "secret-value")) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {option.partition('=')[0]}: address, port, served name and key")
    assert said.count("\n") == 1 and "secret-value" not in said
    assert not (notes / "words").exists()


def test_a_second_port_is_refused(notes, tmp_path, capsys):
    with pytest.raises(SystemExit) as found:
        serve_vllm.main(arguments(tmp_path, "--port", "8000"))
    assert found.value.code == 2
    assert capsys.readouterr().err.endswith("error: argument --port: given twice; take it out of `options`\n")


def test_a_word_without_an_option_is_one_line(notes, tmp_path, capsys):
    assert serve_vllm.main(arguments(tmp_path, "32768")) == 2
    assert "'32768': expected an option of `vllm serve`" in capsys.readouterr().err


def test_a_missing_folder_and_a_missing_vllm_are_one_line(notes, tmp_path, capsys, monkeypatch):
    assert serve_vllm.main(arguments(tmp_path, model=str(tmp_path / "none"))) == 2
    assert f"--model {tmp_path}/none: no such folder" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "/nowhere")
    assert serve_vllm.main(arguments(tmp_path)) == 2
    assert "no program `vllm`" in capsys.readouterr().err


def test_a_port_that_is_asked_for_and_taken_is_one_line(notes, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = arguments(tmp_path)
        words[1] = str(taken.getsockname()[1])
        assert serve_vllm.main(words) == 2
    assert f"--port {words[1]}: cannot be used" in capsys.readouterr().err


MINE = """
extends: embedded
models:
  qwen:
    title: Qwen
    server: serve_vllm.py
    files: {model: /models/qwen}
    packages: [vllm]
    revision: '2026-05'
    options: {max-model-len: 32768, enforce-eager: true, gpu-memory-utilization: 0.9}
    dialect: vllm
    thinking_default: true
"""


def test_a_run_s_model_is_served_by_vllm(tmp_path, root):
    shutil.copytree(root / "config", tmp_path / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "config" / "runs" / "mine.yaml").write_text(MINE)
    plan = Plan(tmp_path / "config")
    identity = plan.identity("mine", "qwen")
    assert identity["packages"] == {"vllm": "0.19.0"}
    assert identity["weights"] == {"model": "/models/qwen"} and identity["revision"] == "2026-05"
    assert identity["options"]["enforce-eager"] is True
    found = collecting.read_executor(json.dumps(plan.executor("mine", "qwen", None)))
    words = model_server.command(found.program, "qwen", found.files, found.options)
    assert words[2:] == [
        *("--served-name", "qwen", "--model", "/models/qwen", "--max-model-len", "32768"),
        *("--enforce-eager", "--gpu-memory-utilization", "0.9"),
    ]


def test_a_changed_start_of_vllm_asks_nothing_again_but_a_changed_version_does(tmp_path, root):
    shutil.copytree(root / "config", tmp_path / "config")
    for name in ("scripts", "requirements.txt"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "vllm.yaml").write_text("dependencies:\n  - pip:\n      - vllm==0.20.0\n")
    runs = tmp_path / "config" / "runs"
    (runs / "mine.yaml").write_text(MINE)
    (runs / "other.yaml").write_text(MINE.replace("packages: [vllm]", "packages: [numpy]"))
    identity = Plan(tmp_path / "config").identity("mine", "qwen")
    assert (identity["code"], identity["packages"]) == (None, {"vllm": "0.20.0"})
    with pytest.raises(RemeasureError, match="models.qwen.packages: needs vllm"):
        Plan(tmp_path / "config").identity("other", "qwen")
    (runs / "vague.yaml").write_text(MINE.replace("    revision: '2026-05'\n", ""))
    with pytest.raises(RemeasureError, match="models.qwen.revision: is missing; /models/qwen is no verified"):
        Plan(tmp_path / "config").identity("vague", "qwen")


LEFT_OUT = (
    "WARNING 01-01 [models.py:1] Regarding multimodal models, vLLM currently only supports adding LoRA to "
    "language model, visual.blocks.0.attn.qkv will be ignored."
)


def test_a_part_of_an_adapter_that_vllm_leaves_out_ends_the_step(notes, tmp_path):
    options = {"enable_lora": True, "murmur": LEFT_OUT}
    with pytest.raises(RemeasureError, match="leaves out a part of the adapter; merge it instead .WARNING"):
        with model_server.running(command(notes, **options), "slug", tmp_path / "log", 20):
            wait_until(lambda: False, 5.0)
    assert all_gone(notes)


@pytest.mark.parametrize(
    "options",
    [
        {"murmur": LEFT_OUT},
        {"enable_lora": True, "murmur": "INFO LoRA is on"},
        {"enable_lora": True, "murmur": "x ignored"},
    ],
)
def test_other_words_of_vllm_end_nothing(notes, tmp_path, options):
    with model_server.running(command(notes, **options), "slug", tmp_path / "log", 20) as server:
        assert server.died() is None
