"""Adapted models as files: the rule runs on a tiny checkpoint, and the paper's name what is missing."""

import json
import os
import subprocess

import pytest

import adapterkit
import snakekit
from conftest import copy_project

TINY = """
extends: ci
adapted:
  tiny: {family: llava15, base: models/base, adapter: models/adapter, vision: models/clip}
  plain: {family: qwen2-vl, base: models/qwen}
"""
SOURCES = ("llava-v1.5-7b", "llava-v1.5-7b-tsa-dpo", "clip-vit-large-patch14-336")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_project(tmp_path_factory.mktemp("clone") / "project")


def call(project, *words: str) -> subprocess.CompletedProcess:
    return snakekit.call(["--cores", "2", *words], project)


def test_a_tiny_checkpoint_is_merged_once_and_again_where_its_settings_change(project):
    adapterkit.llava_base(project / "models" / "base")
    adapterkit.clip(project / "models" / "clip")
    adapterkit.llava_adapter(project / "models" / "adapter")
    adapterkit.qwen_base(project / "models" / "qwen")
    (project / "config" / "runs" / "tiny.yaml").write_text(TINY)
    targets = ["results/tiny/adapted/tiny", "results/tiny/adapted/plain.json", "--config", "run=tiny"]
    done = call(project, *targets)
    assert done.returncode == 0, done.stderr
    made = project / "results" / "tiny" / "adapted"
    assert json.loads((made / "tiny.json").read_text())["counts"]["lora_pairs"] == 4
    assert (made / "tiny" / "model-00001-of-00001.safetensors").is_file()
    linked = made / "plain" / "model.safetensors"
    assert os.path.samefile(linked, project / "models" / "qwen" / "model.safetensors")
    assert not list(made.glob(".*.part"))
    before = (made / "plain.json").stat().st_mtime_ns
    changed = TINY.replace("vision: models/clip}", 'vision: models/clip, system: "Look well."}')
    (project / "config" / "runs" / "tiny.yaml").write_text(changed)
    again = call(project, *targets)
    assert again.returncode == 0, again.stderr
    assert (made / "plain.json").stat().st_mtime_ns == before
    assert "Look well. " in (made / "tiny" / "chat_template.jinja").read_text()


def test_the_paper_s_adapted_models_name_what_must_be_brought(project):
    target = "results/paper/adapted/llava-1-5-7b-tsa-dpo"
    done = call(project, target, "--config", "run=paper")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    for name in SOURCES:
        assert f"results/sources/{name} is missing and cannot be fetched" in done.stderr
    assert "3 things must be there before this can run" in done.stderr
    for name in SOURCES[:2]:
        (project / "results" / "sources" / name).mkdir(parents=True)
    dry = call(project, target, "-n", "--config", "run=paper")
    assert dry.returncode == 0, dry.stderr
    said = dry.stdout + dry.stderr
    assert "by_hand_clip_vit_large_patch14_336" in said and "by_hand_llava" not in said
    assert "gpu=0" in said and "mem_mb=6000" in said
