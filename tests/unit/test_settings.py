from pathlib import Path

import pytest

from remeasure import settings
from remeasure.errors import RemeasureError
from remeasure.plan import Plan

CONFIG = Path(__file__).resolve().parents[2] / "config"
PLAN = Plan(CONFIG)


def test_the_table_has_the_paper_s_24_cells():
    cells = PLAN.cells_of("table1")
    assert len(cells) == 24
    assert {c.bench for c in cells} == {"nq", "nqt", "sqa", "livevqa", "mms", "evqa"}
    assert [c.arm for c in cells if c.bench == "nq"] == ["naive", "traf", "base", "lora"]


@pytest.mark.parametrize(
    ("bench", "arm", "thinking", "max_tokens"),
    [
        ("nq", "base", False, 200),
        ("sqa", "traf", False, 200),
        ("mms", "naive", False, 16384),
        ("mms", "traf", True, 16384),
        ("evqa", "lora", False, 16384),
        ("livevqa", "naive", False, 16),
    ],
)
def test_thinking_and_token_budget_are_the_published_ones(bench, arm, thinking, max_tokens):
    # PixelRAG evaluation guide, cell table: think / max_tokens per bench and arm.
    request = PLAN.request("embedded", "pixelrag", bench, arm, "page-reader-smollm2")
    assert (request["thinking"], request["max_tokens"]) == (thinking, max_tokens)


def test_a_run_that_extends_another_changes_only_what_it_says():
    full, small = PLAN.run("embedded"), PLAN.run("ci")
    assert small.studies["pixelrag"].items_per_bench == 4
    assert small.models == full.models and small.encoders == full.encoders
    assert small.corpora["factbook"].render == full.corpora["factbook"].render


def test_the_text_arm_sends_no_picture_to_its_retriever():
    # In the published system the text retriever gets the question only (6.3 of the study's specification).
    assert PLAN.retrieval("embedded", "pixelrag", "traf")["photo"] is None
    assert PLAN.retrieval("embedded", "pixelrag", "base")["photo"]["unit"] == "pictures"


def test_addresses_and_time_limits_are_not_part_of_an_answer_s_identity():
    text = str(PLAN.ask("embedded", "page-reader-smollm2"))
    assert "timeout" not in text and "concurrency" not in text
    assert "threads" in text and "xllamacpp" in text


def test_an_unknown_key_is_named_with_its_place_and_a_guess():
    value = settings.read_yaml(CONFIG / "runs" / "embedded.yaml")
    wrong = settings.merge(value, {"corpora": {"factbook": {"render": {"widht_px": 1}}}})
    with pytest.raises(RemeasureError, match=r"render: .*widht_px.*did you mean 'width_px'"):
        settings.convert(wrong, settings.Run, Path("mine.yaml"))


def test_a_mapping_is_laid_over_key_by_key_and_a_list_is_replaced():
    assert settings.merge({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\n? [a]\n: 1\n", " line 2: not YAML: a list or a mapping stands as a key"),
        ("{{a: b}: {}}", " line 1: not YAML: a list or a mapping stands as a key"),
        ("? !!set {a}\n: 1\n", " line 1: not YAML: a list or a mapping stands as a key"),
        ('a: !!int ""\n', ": not YAML: a value does not fit its tag"),
        ("a: !!bool x\n", ": not YAML: a value does not fit its tag"),
        ("a: !!timestamp x\n", ": not YAML: a value does not fit its tag"),
    ],
)
def test_odd_yaml_is_one_line(tmp_path, text, said):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RemeasureError) as caught:
        settings.read_yaml(path)
    assert str(caught.value).startswith(f"{path}{said}") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"corpora": {"factbook": {"parts": 10_001}}}, "corpora.factbook.parts"),
        ({"studies": {"pixelrag": {"shards": {"nq": 10_001}}}}, "studies.pixelrag.shards.nq"),
    ],
)
def test_more_jobs_than_can_be_planned_are_refused(change, place):
    value = settings.read_yaml(CONFIG / "runs" / "embedded.yaml")
    with pytest.raises(RemeasureError) as caught:
        settings.convert(settings.merge(value, change), settings.Run, Path("mine.yaml"))
    assert str(caught.value) == f"mine.yaml: {place}: Expected `int` <= 10000; correct the file"
