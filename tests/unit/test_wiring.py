from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure import lineage
from remeasure.plan import Plan
from remeasure.wiring import Wiring, as_options

PLAN = Plan(Path(__file__).resolve().parents[2] / "config")
FILES = Wiring(PLAN)
CORPUS = "results/ci/corpora/factbook"


class Wildcards(SimpleNamespace):
    """Wildcards as Snakemake gives them: by attribute, by key, unpackable."""

    def __getitem__(self, name):
        return getattr(self, name)

    def keys(self):
        return vars(self).keys()


def cell(bench="nq", arm="base") -> Wildcards:
    return Wildcards(
        run="ci", study="pixelrag", bench=bench, arm=arm, model="page-reader-smollm2", table="table1"
    )


def test_an_arm_without_retrieval_is_shown_nothing():
    assert FILES.evidence(cell(arm="naive")) == {}
    assert FILES.verdict(cell(arm="naive")) == {}


def test_the_text_arm_reads_passages_and_the_pixel_arms_read_tiles():
    ranking = "results/ci/pixelrag/nq/traf/ranking.jsonl"
    passages = f"{CORPUS}/passages/passages.jsonl"
    assert FILES.evidence(cell(arm="traf")) == {"ranking": ranking, "passages": passages}
    assert FILES.evidence(cell())["tiles"] == f"{CORPUS}/tiles/tiles.zip"


def test_only_the_trained_arm_searches_with_an_adapter():
    assert "adapter" not in FILES.search(cell())
    assert FILES.search(cell(arm="lora"))["adapter"] == f"{CORPUS}/ocr-bge-trained/adapter.h5"


def test_the_text_arm_has_no_picture_route():
    assert not [name for name in FILES.search(cell(arm="traf")) if name.startswith("photo")]


@pytest.mark.parametrize(
    ("bench", "judged"), [("nq", False), ("sqa", True), ("mms", True), ("evqa", True), ("livevqa", False)]
)
def test_a_judge_is_asked_only_where_the_grader_reads_its_replies(bench, judged):
    assert ("judge_responses" in FILES.verdict(cell(bench=bench))) is judged


def test_weights_are_ancient_and_files_of_the_run_are_not():
    files = FILES.server_files("ci", "pixelrag", "page-reader-smollm2")
    ancient = {str(path): bool(getattr(path, "flags", {}).get("ancient")) for path in files}
    assert ancient["results/sources/smollm2-135m-instruct-q4_1.gguf"] is True
    assert ancient[f"{CORPUS}/tiles/ocr.jsonl"] is False


def test_the_judge_s_server_reads_no_page():
    assert not [p for p in FILES.server_files("ci", "pixelrag", "judge-cross-encoder") if "corpora" in p]


def test_named_inputs_become_options():
    assert as_options(lambda wildcards: {"text_index": "a b", "model": "c"})(None) == [
        "--text-index",
        "a b",
        "--model",
        "c",
    ]


def test_every_stage_behind_the_table_has_a_record_once():
    records = lineage.stage_records(PLAN, "ci", "table1")
    assert len(records) == len(set(records))
    # 24 verdicts, 24 answers, 24 requests; 12 judged cells; 18 ranked lists; 6 benches, 2 training sets.
    assert sum(path.endswith("/grade.json") for path in records) == 24
    assert sum(path.endswith("/judge/answers.json") for path in records) == 12
    assert sum(path.endswith("/retrieval.json") for path in records) == 18
    assert sum(path.endswith("/items.json") for path in records) == 8
    assert f"{CORPUS}/ocr-bge-trained/adapter.json" in records and "results/sources/factbook.json" in records
