"""Readers that are the same but for a seed: mean and spread, and what two groups of them differ by."""

import json
import shutil
from pathlib import Path

import pytest

import conditionkit as kit
import make_table
import publish_table
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.tables import csv_text, spread
from remeasure.wiring import as_json

CONFIG = Path(__file__).parents[2] / "config"
PLAIN, CLEAN = ("plain", "plain-2", "plain-3"), ("clean", "clean-2", "clean-3")
BOTH = [["standard", list(PLAIN)], ["decon", list(CLEAN)]]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(".")


def write(hits, strict=None):
    """Cells of ten units in one bench; the first so many of a reader's are right.

    Args:
        hits: reader to how many are right under arm ``fd``; under the others none is.
        strict: (reader, unit) of answers that there are not.
    """
    return {
        ("diagnosis", arm, model): [
            kit.unit(
                n,
                "diagnosis",
                {"recall@1": float(arm == "fd" and n < right), "mrr": 0.5, "mr": None},
                None if (model, n) in (strict or ()) else "same",
            )
            for n in range(10)
        ]
        for arm in kit.ARMS_OF["diagnosis"]
        for model, right in hits.items()
    }


def make(here, found, spread_of=BOTH, **changes):
    files = kit.write(here, found)
    models = tuple(dict.fromkeys(model for _, _, model in found))
    places = [list(key) for key in found]
    told = kit.settings(models, benches=("diagnosis",), spread_of=spread_of, cells=places, **changes)
    return make_table.main(kit.argv(here, files, told))


def part(suffix):
    return Path("results/embedded/tables") / f"conditions{suffix}"


def rows(**wanted):
    wanted = {"arm": "fd", "metric": "recall@1", "reading": "published"} | wanted
    return [row for row in csv_text.read(part(".spread.csv")) if wanted.items() <= row.items()]


SIX = dict(zip(PLAIN + CLEAN, (7, 8, 9, 6, 6, 9), strict=True))


def test_mean_and_sample_deviation_of_a_group_and_the_difference_of_two_reader_by_reader(here):
    assert make(here, write(SIX)) == 0
    # 0.7, 0.8, 0.9: mean 0.8, squares 0.01 + 0 + 0.01 over 2: sd 0.1.
    # 0.6, 0.6, 0.9: mean 0.7, squares 0.01 + 0.01 + 0.04 over 2: sd √0.03 = 0.1732.
    # Differences 0.1, 0.2, 0.0: mean 0.1, sd 0.1; that of the means would have no sd at all.
    first, second, differ = rows()
    assert first == {
        "bench": "diagnosis",
        "arm": "fd",
        "spread": "standard",
        "against": "",
        "metric": "recall@1",
        "better": "high",
        "reading": "published",
        "unit": "share",
        "n": "3",
        "readers": "plain; plain-2; plain-3",
        "readers_against": "",
        "n_units": "10; 10; 10",
        "values": "0.7000; 0.8000; 0.9000",
        "mean": "0.8000",
        "sd": "0.1000",
        "min": "0.7000",
        "max": "0.9000",
        "grader": "made_diagnosis@1",
    }
    assert (second["spread"], second["mean"], second["sd"]) == ("decon", "0.7000", "0.1732")
    assert (differ["spread"], differ["against"]) == ("standard", "decon")
    assert differ["readers"] == "plain; plain-2; plain-3"
    assert differ["readers_against"] == "clean; clean-2; clean-3"
    assert differ["values"] == "0.1000; 0.2000; 0.0000"
    assert (differ["n"], differ["mean"], differ["sd"], differ["min"], differ["max"]) == (
        "3",
        "0.1000",
        "0.1000",
        "0.0000",
        "0.2000",
    )


def test_the_strict_reading_has_numbers_of_its_own(here):
    # Unit 0 of "plain" has no answer: strict 6 of 9 beside 8 and 9 of 10.
    assert make(here, write(SIX, strict={("plain", 0)})) == 0
    (first, *_) = rows(reading="strict", spread="standard", against="")
    assert first["values"] == "0.6667; 0.8000; 0.9000"
    assert first["n_units"] == "9; 10; 10"
    assert rows(reading="strict", against="decon")[0]["n_units"] == "9; 10; 10"


def test_groups_of_different_size_are_not_subtracted(here):
    assert make(here, write(SIX), [BOTH[0], ["decon", list(CLEAN[:2])]]) == 0
    assert [(row["spread"], row["against"], row["n"]) for row in rows()] == [
        ("standard", "", "3"),
        ("decon", "", "2"),
    ]


def test_a_number_that_fewer_than_two_readers_have_is_left_out(here):
    cells = write(SIX)
    alone = {key: lines for key, lines in cells.items() if key[1] != "lc" or key[2] in ("plain", "clean")}
    assert make(here, alone) == 0
    assert rows(arm="lc") == [] and len(rows(arm="to")) == 3
    # Nothing is in the strict denominator of "mr" for anybody.
    assert rows(metric="mr", reading="strict") == []


def test_without_groups_there_is_a_header_and_no_section(here):
    assert make(here, write(SIX), []) == 0
    assert part(".spread.csv").read_text() == ",".join(spread.COLUMNS) + "\n"
    assert "Spread over seeds" not in part(".md").read_text()
    assert json.loads(part(".json").read_text())["spread"] == []


def test_pages_show_the_spread(here):
    assert make(here, write(SIX), shown=("recall@1",)) == 0
    text = part(".md").read_text()
    assert "## Spread over seeds" in text
    assert "| FD: findings and images | standard | Recall@1 ↑ | 3 | 0.800 | 0.100 | 0.700 | 0.900 |" in text
    assert "| standard − decon | Recall@1 ↑ | 3 | 0.100 | 0.100 | 0.000 | 0.200 |" in text
    assert "| MRR ↑ |" not in text.partition("## Spread over seeds")[2].partition("## ")[0]
    told = json.loads(part(".json").read_text())
    assert told["spread"][0]["rows"][0][1:] == [
        "standard", "Recall@1 ↑", "3", "0.800", "0.100", "0.700", "0.900",
    ]  # fmt: skip
    assert str(part(".spread.csv")) in told["outputs"]


def test_the_spread_is_published_with_its_run(here):
    assert make(here, write(SIX)) == 0
    copy = "results/conditions.spread.csv"
    words = ["--run", "embedded", "--inputs", str(part(".spread.csv")), "--outputs", copy]
    assert publish_table.main(words) == 0
    assert {row["run"] for row in csv_text.read(Path(copy))} == {"embedded"}


def test_groups_stay_in_the_order_of_the_run():
    told = as_json(Plan(CONFIG).table, "run", "table")({"run": "embedded", "table": "landmarks"})
    # Keys are sorted on their way to a step, lists are not.
    assert [name for name, _ in json.loads(told)["spread_of"]] == ["standard", "decon"]


@pytest.mark.parametrize(
    ("readers", "said"),
    [
        ("[head-standard]", "head-standard; name at least two readers, each once"),
        ("[head-standard, head-standard]", "head-standard, head-standard; name at least two readers"),
        ("[head-standard, nobody]", "spread_of.standard: reader 'nobody' is not defined"),
    ],
)
def test_every_reader_of_a_group_is_one_of_the_study(tmp_path, readers, said):
    shutil.copytree(CONFIG, tmp_path / "config")
    told = f"studies:\n  landmarks:\n    spread_of: {{standard: {readers}}}\n"
    (tmp_path / "config/runs/mine.yaml").write_text(f"extends: embedded\ntitle: mine\n{told}")
    with pytest.raises(RemeasureError, match=said):
        Plan(tmp_path / "config").run("mine")
