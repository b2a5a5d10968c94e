"""Adapted models in a run: settings, what they are made from, and what of it decides an answer."""

import json
import shutil
from pathlib import Path

import pytest

from remeasure import adapters, collecting, executors, jsonl, lineage, preamble
from remeasure.adapters import Adapted, check_adapted, misleading
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.needs import Needs
from remeasure.plan import Plan
from remeasure.records import Stage
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(ROOT / "config")
EIGHT = [
    f"{name}{ending}"
    for name in ("llava-1-5-7b", "llava-1-5-13b", "qwen2-vl-7b", "qwen2-5-vl-7b")
    for ending in ("", "-tsa-dpo")
]
RUN = """
extends: paper
adapted:
  mine: {family: llava15, base: /models/base, adapter: /models/adapter, vision: /models/clip}
models:
  mine:
    title: "Mine"
    server: serve_vllm.py
    files: {model: results/mine/adapted/mine}
    packages: [vllm]
    dialect: vllm
"""


def a_plan(tmp_path, text: str = RUN) -> Plan:
    tmp_path.mkdir(exist_ok=True)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for name in ("requirements.txt", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    (tmp_path / "config" / "runs" / "mine.yaml").write_text(text)
    return Plan(tmp_path / "config")


def test_the_paper_s_run_has_four_adapters_and_their_bases():
    run = PLAN.run("paper")
    assert list(run.adapted) == EIGHT and [name for name in run.models if name in EIGHT] == EIGHT
    titles = {run.models[name].title for name in EIGHT if name.endswith("dpo")}
    # TOSC card, section 5: output names.
    assert titles == {
        "LLaVA_v1_5_7b-TSA-DPO",
        "LLaVA_v1_5_13b-TSA-DPO",
        "Qwen2_VL_7B-TSA-DPO",
        "Qwen2_5_VL_7B-TSA-DPO",
    }
    for name in EIGHT:
        adapted, model = run.adapted[name], run.models[name]
        assert model.files == {"model": f"results/paper/adapted/{name}"}
        assert (adapted.adapter is not None) == name.endswith("dpo")
        assert adapted.family == ("llava15" if name.startswith("llava") else name.partition("-7b")[0])
        assert (model.needs.gpu, model.needs.gpu_model) == (1, "h100" if "13b" in name else "a10g")
        assert model.options["max-model-len"] == 4096
        assert ("mm-processor-kwargs" in model.options) == name.startswith("qwen")
        json.loads(model.options["limit-mm-per-prompt"])
        known = PLAN.catalogue.by_hand()
        assert all(path in known for path in PLAN.adapted_files("paper", name).values())


def test_a_base_and_its_adapted_model_are_asked_in_the_same_way():
    models = PLAN.run("paper").models
    for name in EIGHT[::2]:
        base, adapted = models[name], models[f"{name}-tsa-dpo"]
        ways = ("options", "needs", "dialect", "image_tokens", "concurrency", "packages")
        assert [getattr(base, way) for way in ways] == [getattr(adapted, way) for way in ways]


def test_what_was_merged_is_part_of_an_answer_s_identity(tmp_path):
    plan = a_plan(tmp_path)
    # No revision: the bytes of the folder are looked at when the model is asked.
    assert plan.identity("mine", "mine")["weights"] == {
        "model": {
            "path": "results/mine/adapted/mine",
            "family": "llava15",
            "base": "/models/base",
            "adapter": "/models/adapter",
            "vision": "/models/clip",
            "system": None,
            "trained_projector": True,
        }
    }
    # A run that extends another shares its folders: the path says whose settings count.
    shared = plan.identity("mine", "llava-1-5-7b-tsa-dpo")
    assert shared == PLAN.identity("paper", "llava-1-5-7b-tsa-dpo")
    assert shared["weights"]["model"]["base"] == "results/sources/llava-v1.5-7b"


def test_the_bytes_of_a_merged_folder_belong_to_the_identity(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = "results/mine/adapted/mine"
    Path(place).mkdir(parents=True)
    way = {"dialect": "vllm", "concurrency": 1, "timeout_s": 1}
    served = executors.ServerSettings(program="serve_vllm.py", files={"model": place}, **way)
    batch = executors.VllmBatchSettings(model=place, dialect="vllm")
    assert collecting.made_files(served) == {} == collecting.known_hashes(served)
    outputs = {f"{place}/b.json": "2" * 64, f"{place}/a.safetensors": "1" * 64}
    stage = {"stage": "merge_adapter", "settings": {}, "code": "c", "inputs": {}}
    jsonl.write_json(Path(f"{place}.json"), Stage(**stage, outputs=outputs))
    text = "1" * 64 + " a.safetensors\n" + "2" * 64 + " b.json\n"
    expected = {"made": {"model": sha256_bytes(text.encode())}}
    assert collecting.made_files(served) == expected == collecting.made_files(batch)
    assert collecting.known_hashes(served) == outputs
    (Path(place) / ".snakemake_timestamp").write_text("")
    assert collecting.served_files(served) == sorted(outputs)
    jsonl.write_json(Path(f"{place}.json"), Stage(**stage, outputs=outputs | {f"{place}/b.json": "3" * 64}))
    assert collecting.made_files(served) != expected


def test_asking_waits_for_the_folder_and_a_table_names_its_record(monkeypatch):
    wiring = Wiring(PLAN)
    monkeypatch.setattr(PLAN, "executor_corpus", lambda *_: None)
    assert wiring.server_files("paper", "pixelrag", "qwen2-vl-7b") == ["results/paper/adapted/qwen2-vl-7b"]
    batch = {"kind": "vllm-batch", "model": "results/paper/adapted/qwen2-vl-7b"}
    monkeypatch.setattr(PLAN, "study_executor", lambda *_: batch)
    assert wiring.server_files("paper", "pixelrag", "qwen2-vl-7b") == ["results/paper/adapted/qwen2-vl-7b"]
    found = lineage._model_records(PLAN, "paper", "llava-1-5-7b")
    assert found == ["results/paper/adapted/llava-1-5-7b.json"]
    assert lineage._model_records(PLAN, "paper", "qwen3-5-4b") == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"family": "llava15"}, "vision: is missing"),
        ({"family": "qwen2-vl", "vision": "c"}, "vision: belongs to family llava15"),
        ({"family": "qwen2-vl", "system": "s"}, "system: belongs to family llava15"),
        (
            {"family": "qwen2-5-vl", "trained_projector": False},
            "trained_projector: belongs to family llava15",
        ),
        ({"family": "qwen2-vl", "needs": Needs(gpu=1)}, "merging uses no GPU"),
    ],
)
def test_fields_that_do_not_belong_to_the_family_are_refused(fields, says):
    with pytest.raises(RemeasureError, match=says):
        check_adapted(Adapted(base="b", **fields), "adapted.x")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("family: llava15", "family: llava", "Invalid enum value 'llava'"),
        (
            "base: /models/base",
            "base: results/sources/llava-v1.5-7",
            "did you mean 'results/sources/llava-v1.5-7b'",
        ),
        ("base: /models/base", "base: /nowhere/base", "is not there and no source"),
        ("adapted/mine}", "adapted/mind}", "no adapted model 'mind'.*did you mean 'mine'"),
        ("results/mine/adapted", "results/nobody/adapted", "runs/nobody.yaml: No such file"),
        ("  mine: {family", "  Mine: {family", "may hold only a-z"),
    ],
)
def test_a_mistake_in_a_run_names_the_place(tmp_path, old, new, says):
    text = RUN.replace("/models", str(tmp_path))
    for name in ("base", "adapter", "clip"):
        (tmp_path / name).mkdir()
    preamble.check_run("mine", a_plan(tmp_path / "right", text))
    with pytest.raises(RemeasureError, match=says):
        preamble.check_run(
            "mine", a_plan(tmp_path / "wrong", text.replace(old.replace("/models", str(tmp_path)), new))
        )


@pytest.mark.parametrize(
    ("name", "family", "is_misleading"),
    [
        ("LLaVA_v1_5_7b-TSA-DPO", "llava15", False),
        ("liuhaotian/llava-v1.5-7b", "llava15", False),
        ("LLaVA_v1_5_7b-TSA-DPO", "qwen2-vl", True),
        ("llava-v1.5-13b", "qwen2-5-vl", True),
        ("Qwen2_5_VL_7B-TSA-DPO", "qwen2-5-vl", False),
        ("Qwen2_5_VL_7B-TSA-DPO", "llava15", True),
        ("llava-1.6-7b", "llava15", True),
        ("my-captioner", "llava15", False),
        ("clip-vit-large-patch14-336", "llava15", False),
    ],
)
def test_a_name_of_another_family_is_told(name, family, is_misleading):
    assert (misleading(name, family) is not None) == is_misleading


def test_a_misleading_name_is_a_warning_and_no_error(tmp_path, capsys):
    for name in ("base", "adapter"):
        (tmp_path / name).mkdir()
    text = RUN.replace("family: llava15", "family: qwen2-vl").replace(", vision: /models/clip", "")
    text = text.replace('"Mine"', '"LLaVA_v1_5_7b-TSA-DPO"').replace("/models", str(tmp_path))
    preamble.check_run("mine", a_plan(tmp_path / "p", text))
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert (
        len(said) == 1
        and "'LLaVA_v1_5_7b-TSA-DPO' sounds like LLaVA-1.5, but its family is qwen2-vl" in said[0]
    )
    preamble.check_run("paper", PLAN)
    assert capsys.readouterr().err == ""


def test_the_place_of_a_folder_is_told_from_others():
    assert adapters.FOLDER.match("results/paper/adapted/qwen2-vl-7b")
    for path in (
        "results/paper/adapted/x/y",
        "results/sources/x",
        "results/paper/adapted/x.json",
        "/a/results/p/adapted/x",
    ):
        assert not adapters.FOLDER.match(path)
