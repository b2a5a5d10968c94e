"""What a table in blocks says of how it was made: reasons, options, differences and its picture."""

import functools
import shutil
from pathlib import Path

import msgspec
import pytest

import blockkit
import tablekit
from blockkit import table, value
from remeasure.plan import Plan
from remeasure.records import Stage
from remeasure.tables import blocks, figure_scale, inputs, markdown_differences, markdown_stages, protocol
from remeasure.tables.contrasts import Contrast, Paired
from remeasure.tables.settings import CellKey, Facts, Pair, TableSettings

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make the table with two published rows; return the folder of its files."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(blockkit.make, tmp_path)


def test_a_filter_of_the_run_and_options_that_a_note_names_otherwise_are_reasons(made, tmp_path):
    made()
    folder = tmp_path / "results/embedded/ragbench/find/search/small"
    cell = inputs.load_cell(folder / "score.json", folder / "graded.jsonl")
    facts = Facts(
        model={"small": {"embedder": "bge", "filter": "title LIKE 'none%'"}},
        options={"small": {"search_limit": "7", "max_searches": "5", "chunk_tokens": "256"}},
    )
    settings = msgspec.structs.replace(table(), facts=facts)
    note = "embedder: bge; search_limit: 5; max searches: 5; target: analysis"
    assert [one.said for one in protocol.differences(cell.score, value(1.0, note), settings)] == [
        "filter (title LIKE 'none%', published none)",
        "search limit (7, published 5)",
        "target (search, published analysis)",
    ]
    same = value(1.0, "filter: title LIKE 'none%'")
    assert protocol.differences(cell.score, same, settings) == []


def test_filter_and_options_of_a_run_are_facts_of_its_systems(tmp_path):
    shutil.copytree(CONFIG, tmp_path / "config")
    run = """extends: embedded
title: "Filtered"
models:
  builtin: {system: {database: builtin-bge, answerer: evidence-reader, arms: [search, rag],
    options: {max_searches: 3}}}
studies:
  ragbench: {filter: "title LIKE 'A%'", reader: [builtin], compare: []}
"""
    tablekit.put(tmp_path / "config/runs/filtered.yaml", run)
    found = Plan(tmp_path / "config").table("filtered", "ragbench")["facts"]
    assert found["model"]["builtin"]["filter"] == "title LIKE 'A%'"
    assert found["options"]["builtin"] == {"max_searches": "3", "chunk_tokens": "256"}
    assert "filter" not in Plan(CONFIG).table("embedded", "ragbench")["facts"]["model"]["builtin"]


def test_reasons_that_all_rows_of_a_block_share_stand_once_above_it(made, tmp_path):
    made()
    folder = tmp_path / "results/embedded/ragbench/talk/rag"
    pair = [
        inputs.load_cell(folder / name / "score.json", folder / name / "graded.jsonl")
        for name in blockkit.SYSTEMS
    ]
    cells = {cell.key: cell for cell in pair}
    there = {(*cell.key, "tokens"): value(7461.0, "version 0.77.0", metric="tokens") for cell in pair}
    (found,) = blocks.texts(cells, there, table(not_comparable=["data", "prompts"]))
    assert found.common == "All rows differ from the page in: data, prompts."
    assert [row[-1] for row in found.rows] == [
        "not, as said above",
        "not, as said above; also version (haiku.rag 0.101.1, published 0.77.0)",
    ]
    # 25 - 7461; a large number has no decimals.
    assert found.rows[0][3] == "25.000; published 7461; -7436"
    del there[(*pair[0].key, "tokens")]
    (found,) = blocks.texts(cells, there, table(not_comparable=["data"]))
    assert found.common == "" and found.rows[0][-1] == "no published value"
    assert found.rows[1][-1] == "not because data, version (haiku.rag 0.101.1, published 0.77.0)"


def test_pages_say_published_and_name_the_benches_and_systems_of_options(made, tmp_path):
    facts = blockkit.block_settings()["facts"] | {"options": {"small": {"search_limit": "7"}}}
    facts["model"]["small"]["filter"] = "title LIKE 'A%'"
    text = (made(facts=facts, not_comparable=["data"]) / "rag.md").read_text()
    assert "**Not comparable with the published values: " in text
    assert "Paper |" not in text and "| Published | Verdict |" in text
    cells = text[text.index("## Cells") :]
    assert "| Say | rag | large | Accuracy ↑ | 0.6667 |" in cells
    (line,) = (line for line in cells.splitlines() if line.startswith("| Say | rag | large | Accuracy ↑ |"))
    assert line.endswith("| – | no published value |")
    stages = [
        Stage(
            stage="grade", settings={"bench": bench, "options": {"limit": n}}, code="c", inputs={}, outputs={}
        )
        for bench, n in (("find", 5), ("say", 10), ("talk", 10))
    ]
    settings = msgspec.convert(blockkit.block_settings(facts=facts), TableSettings)
    assert markdown_stages.told(stages, settings) == [
        "## Options\n",
        "Grading (Find): limit 5.\n",
        "Grading (Say; Talk): limit 10.\n",
        "System `small`: filter title LIKE 'A%', search limit 7.\n",
    ]
    same = [msgspec.structs.replace(one, settings=one.settings | {"options": {"limit": 5}}) for one in stages]
    assert markdown_stages.told(same, settings)[1] == "Grading: limit 5.\n"


def test_the_picture_has_published_values_hollow_where_they_are_not_comparable(made):
    text = (made() / "rag.svg").read_text()
    # R@5 of the small system is comparable, its accuracy of all cases is not (coverage, version).
    assert "<!-- published, comparable -->" in text and "<!-- published, not comparable -->" in text
    # In grey: the one of the legend, and that of the panel.
    assert text.count("fill-opacity: 0; stroke: #8a8a8a") == 2
    text = (made(not_comparable=["data"]) / "rag.svg").read_text()
    assert "<!-- published, comparable -->" not in text and "<!-- published, not comparable -->" in text


def test_the_axis_reaches_as_far_as_a_published_number_that_is_drawn_on_it():
    # Nothing of ours; 7,461 tokens: the next of 1, 2, 2.5, 5 and 10 times a power of ten is 10,000.
    assert figure_scale.of_metric("tokens", [], table(), [7461.0])[:2] == (0, 10000.0)


def test_a_difference_is_called_by_its_short_name_in_rows_and_left_out_where_nothing_has_the_metric(made):
    pair = {
        "axis": "bench",
        "first": "say",
        "second": "talk",
        "name": "d",
        "title": "Δ: what it gives to have said it in so many words",
    }
    text = (made(contrasts=[pair]) / "rag.md").read_text()
    assert "- Δ: what it gives to have said it in so many words: Say minus Talk" in text
    rows = [line for line in text.splitlines() if "| Δ |" in line]
    assert len(rows) == 4 and text.count("what it gives") == 1
    (here,) = (line for line in rows if "| small |" in line and "Tokens" in line)
    assert "| rag | small | Δ |" in here or "| small | Δ |" in here


def test_rows_of_differences_without_any_pair_are_left_out():
    paired = Paired(None, 0, 4, 0, 0, 0, is_binary=False, is_weighted=False)
    pair = msgspec.convert({"axis": "bench", "first": "say", "second": "talk"}, Pair)
    made_up = Contrast(
        grader="made_up@1",
        pair=pair,
        first=CellKey("say", "rag", "small"),
        second=CellKey("talk", "rag", "small"),
        metric="tokens",
        is_headline=False,
        published=paired,
        strict=paired,
    )
    text = "\n".join(markdown_differences.differences([made_up], table()))
    assert "undefined" not in text and "Tokens per request ↓" not in text
