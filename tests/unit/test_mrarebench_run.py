"""MRareBench at full size: another model is a few lines of a run, and what is needed is known beforehand."""

import shutil
from pathlib import Path

import pytest

from remeasure import settings
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.preamble import check_run
from remeasure.preflight import cluster, data
from remeasure.preflight.askings import askings, targets

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(ROOT / "config")
CELLS = [(cell.bench, cell.arm) for cell in PLAN.cells_of("mrarebench")]
PAGE = (ROOT / "docs" / "mrarebench-comparable.md").read_text("utf-8")
# The run file that the page shows.
MINE = PAGE.partition("```yaml\n")[2].partition("```")[0]


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


def test_the_documented_run_needs_nothing_of_the_studies_that_it_leaves_out(plan, tmp_path, monkeypatch):
    monkeypatch.delenv("LMUData", raising=False)
    mine = plan(MINE)
    # Two tables, six texts, and what compares sentences of T2: nothing of Wikipedia, news, LLaVA or Qwen.
    assert sorted(path.removeprefix("results/sources/") for path in mine.sources("mine")) == [
        "all-minilm-l6-v2-int8.onnx",
        "bge-small-en-v1.5.tokenizer.json",
        "mrarebench-prompts/basis_images.txt",
        "mrarebench-prompts/basis_text.txt",
        "mrarebench-prompts/instruction_diagnosis.txt",
        "mrarebench-prompts/instruction_evidence.txt",
        "mrarebench-prompts/judge_ranked_list.txt",
        "mrarebench-prompts/judge_rubric.txt",
        "mrarebench/diagnosis/diagnosis_opened.tsv",
        "mrarebench/evidence_verification/evidence_verification_opened_FULL609.tsv",
    ]
    assert not set(mine.sources("mine")) & set(mine.catalogue.by_hand())
    problems = data.check(mine, "mine", tmp_path).problems
    assert [problem.partition(" ")[0] for problem in problems] == [
        "results/sources/mrarebench/diagnosis/diagnosis_opened.tsv",
        "results/sources/mrarebench/evidence_verification/evidence_verification_opened_FULL609.tsv",
    ]
    assert [target.name for target in targets(mine, "mine", askings(mine, "mine"))] == [
        "mine",
        "gpt-5-4-mini",
    ]
    assert list(cluster.needs_of(mine, "mine")) == []


def test_estimates_know_how_long_answers_and_replies_are(plan):
    """Lengths as in config/studies/mrarebench.yaml."""
    reader = PLAN.estimate_reader("paper", "mrarebench", "diagnosis", "gpt-4-1")
    assert reader["answer_tokens"] == 92 and "judged_tokens" not in reader
    judge = PLAN.estimate_judge("paper", "mrarebench", "evidence")
    assert (judge["answer_tokens"], judge["judged_tokens"]) == (28, 300)
    told = "{benches: {evidence: {answer_tokens: 500}}, reader: mine}"
    mine = plan(MINE.replace("{reader: mine}", told))
    assert mine.estimate_reader("mine", "mrarebench", "evidence", "mine")["answer_tokens"] == 500
    # A study that says nothing leaves the settings of its estimates as they were.
    plain = PLAN.estimate_judge("paper", "pixelrag", "sqa")
    assert not {"answer_tokens", "judged_tokens"} & plain.keys()


# -- mistakes that show before anything runs -----------------------------------------------------------------

STUDY = "config/studies/mrarebench.yaml"
LC = "options: {findings: false, basis: images}}"
FD = "options: {findings: true, basis: images}}"
NODX = "options: {diagnosis: false}}"
EVIDENCE_INDEX = "index: evidence.jsonl"


@pytest.fixture
def refused(plan, tmp_path):
    """Change the study by replacing a text, and the run; return what planning says."""

    def called(old: str = "", new: str = "", more: str = "") -> str:
        text = (ROOT / STUDY).read_text()
        assert text.count(old) == 1 or not old
        (tmp_path / STUDY).write_text(text.replace(old, new) if old else text)
        with pytest.raises(RemeasureError) as caught:
            check_run("mine", plan_of(plan, MINE.replace("{reader: mine}", f"{{reader: mine{more}}}")))
        assert str(caught.value).isprintable()
        return str(caught.value)

    return called


def plan_of(plan, text: str) -> Plan:
    settings.load_study.cache_clear()
    return plan(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (FD, "options: {finding: true, basis: images}}", "arms.fd in benches.diagnosis: options"),
        (FD, "options: {findings: true}}", "missing required field `basis`"),
        (FD, "options: {findings: true, basis: image}}", "Invalid enum value 'image'"),
        (FD, "options: {findings: 1, basis: images}}", "Expected `bool`, got `int`"),
        (FD, "options: {findings: true, basis: images, diagnosis: true}}", "unknown field `"),
        (FD, "}", "arms.fd in benches.diagnosis: options {} of an arm: "),
        (NODX, "options: {diagnosys: false}}", "arms.nodx in benches.evidence: options"),
        (
            FD,
            NODX,
            "arms.fd in benches.diagnosis: index diagnosis.jsonl is of the diagnosis track, the arm has "
            "options of the evidence track; use evidence.jsonl, or an arm of the other track",
        ),
        (
            EVIDENCE_INDEX,
            "index: diagnosis.jsonl",
            "arms.img in benches.evidence: index diagnosis.jsonl is of the diagnosis track",
        ),
        (
            "{diagnosis.jsonl: 300",
            "{diagnoses.jsonl: 300",
            "index.options.expected: 'diagnoses.jsonl' is no index file that is made from a table (did you "
            "mean 'diagnosis.jsonl'?)",
        ),
        ("similarity_tokenizer:", "similarity_tokeniser:", "options of grader judge_rubric: "),
        ("name: delta_vis", "name: delta_sub", "contrasts: name 'delta_sub' stands twice; rename one"),
        (
            "{first: lc, second: to,",
            "{first: lc, second: txt,",
            "contrasts: [lc, txt]: stand together in no bench of a table in",
        ),
    ],
)
def test_a_mistake_in_the_study_shows_at_planning(refused, old, new, said):
    assert said in refused(old, new)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ", index: {expected: {evidence.json: 3}}",
            "index.options.expected: 'evidence.json' is no index file",
        ),
        (", benches: {evidence: {index: diagnosis.jsonl}}", "a run cannot change it: take it out"),
        (
            ", benches: {diagnosis: {grader: judge_rubric}}",
            "arms.fd in benches.diagnosis: grader judge_rubric is of the evidence track",
        ),
        (", benches: {evidence: {files: {more: a}}}", "options of grader judge_rubric: "),
    ],
)
def test_a_mistake_in_the_run_shows_at_planning(refused, more, said):
    assert said in refused(more=more)


def test_a_contrast_whose_arm_has_no_cell_shows_at_planning(refused, tmp_path, plan):
    path = tmp_path / "config" / "cells.tsv"
    path.write_text(path.read_text().replace("mrarebench\tdiagnosis\tto\tmrarebench\n", ""))
    assert "contrasts: [lc, to]: arm 'to' has no cell in" in refused()
