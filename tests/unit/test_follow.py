from pathlib import Path

import pytest

import follow
import make_table
import tablekit

PUBLISHED = Path(__file__).parents[2] / "config/published/pixelrag.csv"
TABLE = "results/embedded/tables/table1.json"
CELL = Path("results/embedded/pixelrag/nq/base/reader")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcomes = {("nq", "naive"): [False, False], ("nq", "base"): [True, False]}
    files = tablekit.write_table_inputs(Path("."), outcomes)
    settings = tablekit.table_settings(["nq"], ["naive", "base"], contrasts=[["base", "naive"]])
    assert make_table.main(tablekit.table_argv(Path("."), files, PUBLISHED, settings)) == 0


def test_a_number_is_printed_with_every_file_down_to_the_sources(here, capsys):
    assert follow.main([TABLE, "nq", "base"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("table1 nq base = 50.0 percent\n")
    names = ["score.json", "graded.jsonl", "grade.json", "responses.jsonl", "answers.json", "pages.jsonl"]
    assert all(name in out for name in [*names, "results/sources/factbook.zip"])
    # Number and verdicts with their record, responses with theirs, pages with theirs, one source.
    assert out.rstrip().endswith("8 files, 1 of them sources: all hashes fit")


@pytest.mark.parametrize(
    "name",
    [
        str(CELL / "graded.jsonl"),
        str(CELL / "grade.json"),
        str(CELL / "responses.jsonl"),
        "results/embedded/corpora/factbook/pages.jsonl",
        "results/sources/factbook.zip",
    ],
)
def test_one_changed_byte_anywhere_is_one_line_that_names_the_file(here, capsys, name):
    data = bytearray(Path(name).read_bytes())
    data[-1] ^= 1
    Path(name).write_bytes(bytes(data))
    assert follow.main([TABLE, "nq", "base"]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and error[0].startswith(f"error: {name} has SHA-256")


def test_a_missing_file_is_named(here, capsys):
    (CELL / "responses.jsonl").unlink()
    assert follow.main([TABLE, "nq", "base"]) == 2
    assert f"{CELL / 'responses.jsonl'} is missing" in capsys.readouterr().err


def test_a_file_of_another_cell_does_not_matter(here):
    Path("results/embedded/pixelrag/nq/naive/reader/responses.jsonl").write_text("changed")
    assert follow.main([TABLE, "nq", "base"]) == 0


def test_an_unknown_cell_is_one_line_with_the_known_ones(here, capsys):
    assert follow.main([TABLE, "nqx", "base"]) == 2
    assert "benches are nq, arms naive, base" in capsys.readouterr().err
