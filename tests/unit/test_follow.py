from pathlib import Path

import msgspec
import pytest

import follow
import make_table
import tablekit
from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.records import Score
from remeasure.tables import chain
from remeasure.tables.chain import Provenance

PUBLISHED = Path(__file__).parents[2] / "config/published/pixelrag.csv"
TABLE = "results/embedded/tables/table1.json"
CELL = Path("results/embedded/pixelrag/nq/base/reader")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcomes = {("nq", "naive"): [False, False], ("nq", "base"): [True, False]}
    files = tablekit.write_table_inputs(Path("."), outcomes)
    settings = tablekit.table_settings(["nq"], ["naive", "base"], contrasts=[])
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
    assert "benches are nq, arms naive, base, models reader" in capsys.readouterr().err


RATES = "results/embedded/tables/tosc.json"


@pytest.fixture
def rates(tmp_path, monkeypatch):
    """A table of nine rates and two models, whose source is a folder of images."""
    monkeypatch.chdir(tmp_path)
    lines = {
        "small": [tablekit.rates_line(n, bits) for n, bits in enumerate([(1, 1, 0, 1), (1, 0, 0, 1)])],
        "large": [tablekit.rates_line(n, (1, 0, 0, 1)) for n in range(2)],
    }
    files = tablekit.write_rates_inputs(Path("."), lines)
    for number in (1, 2):
        tablekit.put(Path(f"results/sources/images/{number}.jpg"), f"image {number}")
    pages = Path("results/embedded/corpora/factbook/pages.jsonl")
    tablekit.write_record(
        pages.with_suffix(".json"), "index_images", [Path("results/sources/images")], [pages]
    )
    published = tablekit.put(Path("published.csv"), tablekit.NOTHING_PUBLISHED)
    settings = tablekit.rates_settings()
    assert make_table.main(tablekit.table_argv(Path("."), files, published, settings)) == 0


def test_a_number_of_several_is_named_by_model_and_metric(rates, capsys):
    assert follow.main([RATES, "triplets", "describe", "small", "rca"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "tosc triplets describe small rca = 50.00 percent\n  0.5, n 2, by triplets@1, reader small"
    )
    assert "source                  results/sources/images\n" in out
    # Without a metric the headline is meant: one of two triplets.
    assert follow.main([RATES, "triplets", "describe", "small"]) == 0
    assert capsys.readouterr().out.startswith("tosc triplets describe small tosc = 50.00 percent\n")
    assert follow.main([RATES, "triplets", "describe", "large", "oldpersist_rem"]) == 0
    assert capsys.readouterr().out.startswith("tosc triplets describe large oldpersist_rem = 0.00 percent\n")


def test_a_number_that_is_not_named_well_enough_is_one_line(rates, capsys):
    assert follow.main([RATES, "triplets", "describe"]) == 2
    assert "tosc triplets describe has 2 models; name one: small, large" in capsys.readouterr().err
    assert follow.main([RATES, "triplets", "describe", "small", "rcb"]) == 2
    assert "has no metric 'rcb' (did you mean 'rca'?); metrics are cc, mixconf" in capsys.readouterr().err


def test_a_changed_score_of_the_named_metric_is_found_though_its_hash_were_kept(rates):
    provenance = jsonl.read_json(Path(RATES), Provenance)
    cell, metric = chain.find(provenance, "triplets", "describe", "small", "rca")
    score = jsonl.read_json(Path(cell.score), Score)
    follow.check_number(cell, metric, score)
    other = msgspec.structs.replace(score, metrics=score.metrics | {"rca": score.metrics["opa"]})
    follow.check_number(cell, "opa", other)
    with pytest.raises(RemeasureError, match="says 1.0 for rca, the table 0.5"):
        follow.check_number(cell, "rca", other)


@pytest.mark.parametrize("change", ["bytes", "name", "more", "fewer"])
def test_a_changed_folder_of_sources_is_one_line_that_names_it(rates, capsys, change):
    folder = Path("results/sources/images")
    if change == "bytes":
        (folder / "1.jpg").write_text("another image")
    elif change == "name":
        (folder / "1.jpg").rename(folder / "3.jpg")
    elif change == "more":
        (folder / "3.jpg").write_text("image 3")
    else:
        (folder / "2.jpg").unlink()
    assert follow.main([RATES, "triplets", "describe", "small"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("error: results/sources/images has SHA-256")
    assert said.endswith("as the source was used; restore it, or delete it and rerun the table")


def test_what_to_do_fits_whose_the_file_is():
    """One's own images are never said to be deleted; they are read again when the table is."""
    own = chain.Link(path="/data/images", sha256="0" * 64, stage=None, record=None)
    with pytest.raises(RemeasureError, match="restore it, or rerun the table, which is made from it as"):
        chain.check([own], {"/data/images": "1" * 64})
    made = chain.Link(path="results/a", sha256="0" * 64, stage="grade", record="results/grade.json")
    with pytest.raises(RemeasureError, match="rerun the table, or restore the file"):
        chain.check([made], {"results/a": None})


def test_a_missing_folder_is_named(rates, capsys):
    Path("results/sources/images").rename("elsewhere")
    assert follow.main([RATES, "triplets", "describe", "small"]) == 2
    assert "results/sources/images is missing" in capsys.readouterr().err
