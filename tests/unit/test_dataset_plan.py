"""What runs say of datasets, and where the questions of a bench come from."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure import datasets, settings
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[2]


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


def of(mine: Plan, bench: str) -> dict:
    return Wiring(mine).items(SimpleNamespace(run="mine", study="ragbench", bench=bench))


@pytest.mark.parametrize("run", ["ci", "embedded", "paper"])
def test_every_dataset_of_a_run_can_be_read_by_its_loader_and_comes_from_somewhere(run):
    plan = Plan(ROOT / "config")
    known = {*plan.catalogue.by_hand(), *plan.catalogue.by_url()}
    assert plan.run(run).datasets
    for name, dataset in plan.run(run).datasets.items():
        datasets.chosen(dataset.loader, dataset.files, dataset.options)
        assert plan.load_dataset(run, name)["expected"] == dataset.expected != {}
        for path in dataset.files.values():
            assert path in known or (ROOT / path).is_dir()


def test_counts_of_the_papers_datasets_are_those_of_the_card():
    datasets = Plan(ROOT / "config").run("paper").datasets
    # RAG card 1.1 to 1.5.
    counts = [("open-rag-bench", "queries", 3045), ("open-rag-bench", "documents", 1000)]
    counts += [
        ("open-rag-bench", "gold_documents", 400),
        ("t2-finqa", "rows", 8281),
        ("t2-finqa", "documents", 2789),
    ]
    counts += [
        ("hotpotqa", "queries", 7405),
        ("mtrag-clapnq", "documents", 183408),
        ("mtrag-clapnq", "queries", 208),
    ]
    counts += [
        ("mtrag-clapnq", "labels", 578),
        ("mtrag-clapnq", "turns", 224),
        ("mtrag-clapnq", "conversations", 29),
    ]
    for name, what, number in counts:
        assert datasets[name].expected[what] == number
    assert datasets["mtrag-clapnq"].options == {"role_marker": "keep"}


def test_questions_come_from_the_dataset_of_the_bench(plan):
    mine = plan("extends: embedded\n")
    here = "results/mine/datasets/clapnq-mini/questions.jsonl"
    assert of(mine, "mtrag_clapnq_live") == {"dataset": here}
    assert mine.items("mine", "ragbench", "mtrag_clapnq_search")["task"]["query"] == "query"


def test_which_set_is_asked_decides_the_items_and_no_request():
    plan = Plan(ROOT / "config")
    sets = {
        bench: plan.items("embedded", "ragbench", bench)["task"].get("set")
        for bench in ("mtrag_clapnq_search", "mtrag_clapnq_rewrite_search", "mtrag_un_clapnq_search")
    }
    assert list(sets.values()) == ["MTRAG", "MTRAG", "MTRAG-UN"]
    told = {"do": "search", "query": "query", "limit": 10, "filter": None}
    for bench in ("mtrag_clapnq_search", "mtrag_un_clapnq_search"):
        assert plan.task("embedded", "ragbench", bench, "search") == told
    # The page has no MTRAG-UN.
    assert plan.readers("paper", "ragbench", "mtrag_un_clapnq_search", "search") == ()


def test_own_questions_are_checked_against_the_documents_of_the_dataset(plan):
    mine = plan("extends: embedded\nstudies: {ragbench: {items: my/questions}}\n")
    documents = "results/mine/datasets/number-problems/documents.jsonl"
    assert of(mine, "t2_finqa") == {"own": "my/questions/t2_finqa.jsonl", "documents": documents}
    told = mine.items("mine", "ragbench", "t2_finqa")
    assert (told["own"], told["task"]["do"]) == ("my/questions", "answer")
    # Without documents there is nothing to answer from.
    assert mine.readers("mine", "ragbench", "hotpotqa", "rag") == ()


def test_data_that_ships_with_the_workflow_is_found_from_every_working_directory(plan, tmp_path, monkeypatch):
    mine, at = plan("extends: embedded\n"), SimpleNamespace(run="mine", dataset="clapnq-mini")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    named = {"folder": "config/data/clapnq_mini"}
    # No input of the step: it lies elsewhere in every clone, as new as the clone. Its hash is looked at.
    assert (Wiring(mine).dataset_files(at), Wiring(mine).dataset_words(at)) == ({}, named)
    state = Wiring(mine).dataset_state(at)
    monkeypatch.chdir(tmp_path)
    assert (Wiring(mine).dataset_files(at), Wiring(mine).dataset_words(at)) == ({}, named)
    assert Wiring(mine).dataset_state(at) == state
    monkeypatch.chdir(tmp_path / "elsewhere")
    Path("config/data/clapnq_mini").mkdir(parents=True)
    assert (Wiring(mine).dataset_files(at), Wiring(mine).dataset_words(at)) == (named, named)


def test_a_changed_file_in_a_folder_of_a_dataset_is_noticed(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine, at = plan("extends: embedded\n"), SimpleNamespace(run="mine", dataset="number-problems")
    before = Wiring(mine).dataset_state(at)
    (tmp_path / "config/data/number_problems/questions.jsonl").write_text("{}\n")
    assert Wiring(mine).dataset_state(at) != before
    # What is verified by hash or brought by hand is never looked at again, as all sources.
    hotpotqa = SimpleNamespace(run="paper", dataset="hotpotqa")
    assert Wiring(mine).dataset_state(hotpotqa) == ""


@pytest.mark.parametrize(
    "dataset, said",
    [
        (
            "{loader: hotpot, files: {questions: x}}",
            "loader 'hotpot' is not known (did you mean 'hotpotqa'?)",
        ),
        ("{loader: hotpotqa, files: {folder: x}}", "loader 'hotpotqa' reads questions, and is given folder"),
        (
            "{loader: t2_finqa, files: {folder: x}}",
            "loader 't2_finqa': Object missing required field `allow_missing`",
        ),
    ],
)
def test_a_dataset_that_no_loader_can_read_is_said_when_the_run_is_planned(plan, dataset, said):
    mine = plan(f"extends: embedded\ndatasets: {{other: {dataset}}}\n")
    with pytest.raises(RemeasureError) as caught:
        mine.load_dataset("mine", "other")
    assert "mine.yaml: datasets.other: " + said in str(caught.value)


def test_an_arm_that_a_system_misspells_and_a_version_that_is_none_are_named(plan):
    embedded = (ROOT / "config" / "runs" / "embedded.yaml").read_text()
    start = embedded.index("\n", embedded.index("title:")) + 1
    body = embedded[start:]
    mine = plan(body.replace("arms: [search, rag]", "arms: [serch, rag]", 1))
    said = "models.builtin.system.arms: study ragbench has no arm 'serch' .did you mean 'search'"
    with pytest.raises(RemeasureError, match=said):
        mine.readers("mine", "ragbench", "mtrag_clapnq", "rag")
    with pytest.raises(RemeasureError, match="environments.haiku-0-77.python"):
        plan(body.replace('python: "3.12"', 'python: "3.x"', 1)).run("mine")
