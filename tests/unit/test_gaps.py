from pathlib import Path
from types import SimpleNamespace

from remeasure import gaps


class Job(SimpleNamespace):
    __hash__ = object.__hash__


def plan(monkeypatch, folder: Path, existing: list[str]):
    """A plan a -> b -> table with a side product of a, in which only some files exist."""
    monkeypatch.chdir(folder)
    for name in existing:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x")
    first, second, last = Job(output=["a", "a.json"]), Job(output=["b"]), Job(output=["table"])
    return SimpleNamespace(
        jobs=[last, second, first], depending={first: {second: {"a"}}, second: {last: {"b"}}, last: {}}
    )


def test_a_missing_file_with_a_product_is_a_gap_with_a_reason(tmp_path, monkeypatch):
    dag = plan(monkeypatch, tmp_path, ["a.json", "b", "table"])
    assert list(gaps.find(dag)) == [("a", "a is missing, but b was made from it")]


def test_a_missing_side_product_is_forced_without_a_reason(tmp_path, monkeypatch):
    dag = plan(monkeypatch, tmp_path, ["a", "b", "table"])
    assert list(gaps.find(dag)) == [("a.json", None)]


def test_nothing_made_yet_is_no_gap(tmp_path, monkeypatch):
    assert list(gaps.find(plan(monkeypatch, tmp_path, []))) == []


def test_a_missing_end_of_the_chain_is_left_to_snakemake(tmp_path, monkeypatch):
    dag = plan(monkeypatch, tmp_path, ["a", "a.json"])
    assert list(gaps.find(dag)) == []


def test_responses_without_their_journal_are_asked_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cell").mkdir()
    Path("cell/responses.jsonl").write_text("x")
    job = Job(output=["cell/responses.jsonl"], rule=SimpleNamespace(shellcmd="ask --journal cell/journal"))
    dag = SimpleNamespace(jobs=[job], depending={job: {}})
    assert [path for path, _ in gaps.find(dag)] == ["cell/responses.jsonl"]
    Path("cell/journal").mkdir()
    assert list(gaps.find(dag)) == []


def test_responses_that_are_computed_have_no_journal_to_miss(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cell").mkdir()
    Path("cell/responses.jsonl").write_text("x")
    job = Job(output=["cell/responses.jsonl"], rule=SimpleNamespace(shellcmd="place --items items.jsonl"))
    assert list(gaps.find(SimpleNamespace(jobs=[job], depending={job: {}}))) == []


def test_only_gaps_with_a_reason_are_said(capsys):
    assert gaps.report([("a", "a is missing, but b was made from it"), ("c", None)]) == {"a", "c"}
    assert (
        capsys.readouterr().err
        == "gap: a is missing, but b was made from it; making it and what follows again\n"
    )


def published(monkeypatch, folder: Path, run: str):
    """The plan of publishing a table of run `mine` that is not there, over the copy of some run."""
    monkeypatch.chdir(folder)
    Path("results").mkdir()
    Path("results/tosc.csv").write_text(f"model,tosc,run\nreader,0.5,{run}\n")
    Path("results/tosc.html").write_text("page")
    table, copy = Job(output=["results/mine/tables/tosc.csv"]), Job(output=["results/tosc.html"])
    return SimpleNamespace(jobs=[table, copy], depending={table: {copy: set(table.output)}, copy: {}})


def test_the_published_copy_of_another_run_was_not_made_from_a_missing_table(tmp_path, monkeypatch):
    assert list(gaps.find(published(monkeypatch, tmp_path, "embedded"))) == []


def test_the_published_copy_of_the_same_run_was(tmp_path, monkeypatch):
    table = "results/mine/tables/tosc.csv"
    said = f"{table} is missing, but results/tosc.html was made from it"
    assert list(gaps.find(published(monkeypatch, tmp_path, "mine"))) == [(table, said)]


def test_a_copy_belongs_to_the_run_of_its_last_column(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/tosc.csv").write_text('model,run\n"a, b",ci\n')
    assert gaps.published_run(tmp_path / "results/tosc.cells.csv") == "ci"
    assert gaps.published_run(tmp_path / "results/table1.csv") is None
    assert gaps.published_run(tmp_path / "tosc.csv") is None
