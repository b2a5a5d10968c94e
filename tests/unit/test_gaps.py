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
    job = Job(output=["cell/responses.jsonl"])
    dag = SimpleNamespace(jobs=[job], depending={job: {}})
    assert [path for path, _ in gaps.find(dag)] == ["cell/responses.jsonl"]
    Path("cell/journal").mkdir()
    assert list(gaps.find(dag)) == []


def test_only_gaps_with_a_reason_are_said(capsys):
    assert gaps.report([("a", "a is missing, but b was made from it"), ("c", None)]) == {"a", "c"}
    assert (
        capsys.readouterr().err
        == "gap: a is missing, but b was made from it; making it and what follows again\n"
    )
