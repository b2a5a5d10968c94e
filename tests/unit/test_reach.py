"""Of all that a run's file defines, what its cells reach."""

import shutil
from pathlib import Path

import pytest

from remeasure import reach, settings
from remeasure.plan import Plan
from remeasure.preamble import check_run
from remeasure.preflight import cluster

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(ROOT / "config")


@pytest.fixture
def plan(tmp_path):
    """Write the run ``mine`` beside the others; return the plan that knows it."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (tmp_path / name).symlink_to(ROOT / name)

    def written(text: str) -> Plan:
        (tmp_path / "config" / "runs" / "mine.yaml").write_text(f"title: t\n{text}")
        settings.load_run.cache_clear()
        return Plan(tmp_path / "config")

    return written


def test_the_embedded_run_reaches_all_that_it_defines():
    found = reach.of(PLAN, "embedded")
    assert found.studies == ("pixelrag", "tosc", "mrarebench", "ragbench", "landmarks")
    assert found.corpora == ("factbook",)
    # `ocr-bge` is also what the trained one starts from; the reader's own server reads vectors of lines.
    assert found.encoders == ("ocr-bge", "text-bge", "lines-bge", "photo-efficientnet", "ocr-bge-trained")
    # Four readers, two judges, and a third that is only compared; two systems, what they ask, their judge.
    assert set(found.models) == {
        "page-reader-smollm2",
        "judge-cross-encoder",
        "judge-smollm2",
        "captioner-scan",
        "captioner-glance",
        "case-reader",
        "case-judge",
        "builtin",
        "haiku-0-77",
        "embedder-bge",
        "evidence-reader",
        "answer-judge",
    }
    assert found.adapted == ()


def test_the_papers_reach_all_corpora_and_all_adapted_models():
    found = reach.of(PLAN, "paper")
    assert found.corpora == ("wikipedia", "news") and len(found.adapted) == 8
    # Of systems: folders of ten models, four files and a folder of OpenRAG Bench, that of FinQA, a file
    # of HotpotQA, five of MTRAG; five prompts: two questions of the judge, what goes before each, a preamble.
    # Six ready-made databases, and the tokenizer for one that is made. Of landmarks: photographs and labels
    # of two benchmarks, names of distractors, two files of classes, three folders of models, two of AMES,
    # three files for each benchmark, ids of leaking classes.
    assert len(PLAN.sources("paper")) == 33 + 10 + 5 + 1 + 1 + 5 + 5 + 7 + (4 + 1 + 2 + 3 + 2 + 6 + 1)


def test_captions_alone_need_the_folders_of_their_models_and_no_page(plan):
    mine = plan(
        "extends: paper\nstudies: {pixelrag: null, mrarebench: null, ragbench: null, landmarks: null, tosc: "
        "{reader: qwen2-vl-7b-tsa-dpo, compare: []}}\n"
    )
    check_run("mine", mine)
    assert reach.of(mine, "mine").adapted == (("paper", "qwen2-vl-7b-tsa-dpo"),)
    assert [path.removeprefix("results/sources/") for path in mine.sources("mine")] == [
        "qwen2-vl-7b-instruct",
        "qwen2-vl-7b-tsa-dpo",
        "tosc/benchmark",
        "tosc_describe.txt",
    ]
    assert list(cluster.needs_of(mine, "mine")) == ["models.qwen2-vl-7b-tsa-dpo"]


def test_a_run_without_pages_needs_no_encoder_training_or_comparison_of_judges(plan):
    mine = plan(
        "extends: embedded\nstudies: {pixelrag: null, mrarebench: null, ragbench: null, landmarks: null}\n"
    )
    check_run("mine", mine)
    assert mine.run("mine").judge_agreement is None
    found = reach.of(mine, "mine")
    assert (found.corpora, found.encoders) == ((), ())
    assert found.models == ("captioner-scan", "captioner-glance")
    assert [path.removeprefix("results/sources/") for path in mine.sources("mine")] == [
        "efficientnet-lite0.pth",
        "imagenet-synsets.txt",
        "imagenet-lemmas.txt",
        "composed-triplets.zip",
    ]


def test_an_encoder_that_is_trained_needs_what_it_starts_from(plan):
    mine = plan("extends: embedded\nstudies: {pixelrag: {encoders: {pixel: text-bge}}}\n")
    assert "ocr-bge" in reach.of(mine, "mine").encoders
    mine = plan(
        "extends: embedded\nstudies: {pixelrag: {encoders: {pixel: text-bge, pixel_trained: text-bge}}}\n"
    )
    assert reach.of(mine, "mine").encoders == ("text-bge", "lines-bge", "photo-efficientnet")


def test_judges_that_are_compared_are_asked_although_no_study_names_them(plan):
    others = "tosc: null, mrarebench: null, ragbench: null, landmarks: null"
    mine = plan(f"extends: embedded\nstudies: {{{others}}}\n")
    assert "judge-smollm2" in reach.of(mine, "mine").models
    mine = plan(f"extends: embedded\nstudies: {{{others}}}\njudge_agreement: null\n")
    assert reach.of(mine, "mine").models == ("page-reader-smollm2", "judge-cross-encoder")


def test_systems_alone_need_what_they_ask_their_judges_and_the_data_of_their_benches(plan):
    """Both judges of the calibration are asked, one of them only there; the other system is not needed."""
    mine = plan(
        "extends: embedded\nstudies: {pixelrag: null, tosc: null, mrarebench: null, landmarks: null, "
        "ragbench: {reader: builtin, compare: [], readers_of: {}, stands_for: {}}}\n"
    )
    check_run("mine", mine)
    found = reach.of(mine, "mine")
    assert (found.corpora, found.encoders) == ((), ())
    assert set(found.models) == {
        *("builtin", "embedder-bge", "evidence-reader"),
        *("answer-judge", "judge-smollm2"),
    }
    assert [path.removeprefix("results/sources/") for path in mine.sources("mine")] == [
        "smollm2-135m-instruct-q4_1.gguf",
        "bge-small-en-v1.5.onnx",
        "bge-small-en-v1.5.tokenizer.json",
        "ms-marco-minilm-l-12-v2.onnx",
        "ms-marco-minilm-l-12-v2.tokenizer.json",
    ]
