"""MRareBench at full size: another model is a few lines of a run, and what is needed is known beforehand."""

import shutil
from pathlib import Path

import pytest

from remeasure.plan import Plan
from remeasure.preamble import check_run

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(ROOT / "config")
CELLS = [(cell.bench, cell.arm) for cell in PLAN.cells_of("mrarebench")]
# As in docs/mrarebench.md, "A comparable run".
MINE = """
extends: paper
title: "My model on MRareBench"
models:
  mine:
    title: "My model"
    base_url: http://node7:8000/v1
    served_name: org/my-model
    dialect: vllm
    thinking_default: false
    concurrency: 32
studies:
  pixelrag: null
  tosc: null
  mrarebench: {reader: mine}
"""


@pytest.fixture
def plan(tmp_path):
    """Write a run beside the others; return the plan that knows it."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (tmp_path / name).symlink_to(ROOT / name)

    def written(text: str) -> Plan:
        (tmp_path / "config" / "runs" / "mine.yaml").write_text(text)
        return Plan(tmp_path / "config")

    return written


def test_the_full_run_has_the_sizes_and_the_judge_of_the_study():
    # Card, sections 2 and 12.
    assert PLAN.items("paper", "mrarebench", "diagnosis")["n_units"] == 300
    assert PLAN.items("paper", "mrarebench", "evidence")["n_units"] == 608
    judge = PLAN.judge_request("paper", "mrarebench", "evidence")
    assert judge["max_tokens"] == 2048 and judge["sampling"] == {}
    assert PLAN.ask_judge("paper", "mrarebench")["served_name"] == "gpt-5.4-mini"
    assert PLAN.executor("paper", "gpt-5-4-mini", None)["money"]["price"] is not None


def test_a_prefetch_brings_tables_and_wording():
    needed = PLAN.sources("paper")
    assert set(PLAN.catalogue.unpinned()) <= set(needed)
    assert sum(path.startswith("results/sources/mrarebench-prompts/") for path in needed) == 6


def test_another_model_is_an_entry_of_a_run_and_asks_the_same(plan):
    mine = plan(MINE)
    check_run("mine", mine)
    assert mine.study_run("mine", "mrarebench").readers == ("mine",)
    for bench, arm in CELLS:
        asked = mine.request("mine", "mrarebench", bench, arm, "mine")
        theirs = PLAN.request("paper", "mrarebench", bench, arm, "qwen3-5-4b")
        assert asked == theirs | {"model": "mine"}


def test_another_address_is_one_value_and_asks_nothing_again(plan):
    text = "extends: paper\ntitle: t\nmodels: {gpt-4-1: {base_url: 'http://127.0.0.1:9/v1'}}\n"
    mine = plan(text)
    check_run("mine", mine)
    assert mine.ask("mine", "gpt-4-1") == PLAN.ask("paper", "gpt-4-1")
    assert mine.executor("mine", "gpt-4-1", None)["base_url"] == "http://127.0.0.1:9/v1"


def test_tables_of_your_own_are_used_where_they_lie(plan, tmp_path, monkeypatch):
    for place in (
        "diagnosis/diagnosis_opened.tsv",
        "evidence_verification/evidence_verification_opened_FULL609.tsv",
    ):
        path = tmp_path / "lmu" / "MRareBench" / place
        path.parent.mkdir(parents=True)
        path.write_text("x")
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    mine = plan(MINE)
    check_run("mine", mine)
    assert not set(mine.sources("mine")) & set(mine.catalogue.unpinned())
