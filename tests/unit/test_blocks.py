import functools
import json
from pathlib import Path

import msgspec
import pytest

import blockkit
import tablekit
from blockkit import table, value
from remeasure import settings as project
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.tables import (
    anchors,
    blocks,
    csv_text,
    figure_blocks,
    inputs,
    protocol,
    published,
)
from remeasure.tables.settings import Facts

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make the table with two published rows; return the folder of its files."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(blockkit.make, tmp_path)


def test_the_wide_file_has_a_row_per_cell_block_by_block_with_the_published_value_beside_it(made):
    header, rows = csv_text.read_table(made() / "rag.csv")
    assert header[:8] == [
        "block",
        "bench",
        "arm",
        "model",
        "recall@5",
        "recall@5.published",
        "recall@5.published_at_least",
        "recall@5.difference",
    ]
    assert [(row["block"], row["bench"], row["model"]) for row in rows] == [
        ("Retrieval", "find", "small"),
        ("Retrieval", "find", "large"),
        ("Answers", "talk", "small"),
        ("Answers", "talk", "large"),
        ("Answers", "say", "small"),
        ("Answers", "say", "large"),
    ]
    found, said = rows[0], rows[4]
    # Mean of 1, 0, 0.5 and 0.5; 0.5 - 0.501.
    assert [found[name] for name in header[4:8]] == ["0.5000", "0.5010", "", "-0.0010"]
    assert (found["comparable"], found["reason"]) == ("comparable", "R@5 within")
    # Two of the three that the judge gave a verdict on; 0.96 * 2836 / 3045 = 0.8941.
    assert [said[f"accuracy{part}"] for part in ("", ".published", ".published_at_least")] == [
        "0.6667",
        "0.9600",
        "0.8941",
    ]
    assert [said[name] for name in ("n_attempted", "n_task_failed", "n_judge_failed", "n_scored")] == [
        "4",
        "0",
        "1",
        "3",
    ]
    assert said["published_coverage"] == "2836/3045"
    assert said["comparable"] == "not because"
    assert said["reason"] == (
        "coverage (all 4, published 2,836 of 3,045, without x), version (haiku.rag 0.77.0, published 0.74.0)"
    )
    assert (rows[5]["comparable"], rows[5]["recall@5"], rows[5]["tokens"]) == (
        "no published value",
        "",
        "25.000",
    )


def test_pages_have_a_section_per_block_with_what_helps_to_read_it(made):
    folder = made(left_out=["haiku"])
    text = (folder / "rag.md").read_text()
    assert text.index("## Retrieval") < text.index("## Answers") < text.index("## Cells")
    assert "| Find | small | 0.5000; published 0.5010; -0.0010 | 4 of 4 | comparable: R@5 within |" in text
    assert "0.6667; published 0.9600, at least 0.8941; -0.2933" in text
    assert "3 of 4 (1 without a verdict)" in text
    assert "- BM25 (all domains; Find): R@5 0.2000 \\[a README\\]" in text
    assert "Left out: haiku is not in this table" in text and "HAIKU_PYTHON" in text
    document = json.loads((folder / "rag.json").read_text())
    assert [block["title"] for block in document["blocks"]] == ["Retrieval", "Answers"]
    assert document["left_out"].startswith("Left out: haiku")


def test_each_block_shows_its_own_metrics_only(made):
    text = (made() / "rag.md").read_text()
    cells = text[text.index("## Cells") : text.index("## Failures")]
    lines = [line for line in cells.splitlines() if line.startswith("| ")][2:]
    assert len(lines) == 2 + 2 * 4


def test_a_note_is_read_as_facts_and_anything_else_is_passed_over():
    note = "version 0.77.0; judge: Qwen3.6-35B; somebody said that version 3; Coverage 7,939 of 8,280"
    assert protocol.noted(note) == {"version": "0.77.0", "judge": "Qwen3.6-35B", "coverage": "7,939 of 8,280"}
    assert protocol.noted("") == {}


@pytest.mark.parametrize(
    ("ours", "theirs", "is_same"),
    [
        ("Qwen/Qwen3-Embedding-4B", "qwen3-embedding-4b", True),
        ("haiku.rag 0.77.0", "0.77.0", True),
        ("haiku.rag 0.101.1", "0.10", False),
        ("none", "mxbai-rerank-base-v2", False),
        ("haiku.rag 0.77.0", "not said", False),
        ("Qwen/Qwen3-Embedding-4B", "qwen3-embedding:4b", True),
        ("Qwen3.6-35B-A3B-NVFP4", "Qwen3.6-35B-A3B-NVFP4, temperature 0.6, thinking", True),
        ("a-judge", "Qwen3.6", False),
        ("judge failures are excluded", "exclude", True),
    ],
)
def test_a_papers_short_name_may_be_part_of_the_whole_name(ours, theirs, is_same):
    assert protocol.same(ours, theirs) == is_same


@pytest.mark.parametrize(
    ("note", "least"),
    [
        # 0.89 at 1,409 of 3,045 is 0.412 (ragbench card, 2.8).
        ("coverage 1,409 of 3,045", 0.412),
        ("coverage 3045/3045", None),
        ("coverage 3046 of 3045", None),
        ("no word of it", None),
    ],
)
def test_a_value_of_part_of_the_cases_has_a_lower_bound(note, least):
    found = protocol.lower_bound(value(0.89, note), "accuracy", table())
    assert found is None if least is None else round(found, 3) == least
    assert protocol.lower_bound(value(0.89, note), "tokens", table()) is None


def test_a_row_names_what_differs_once_though_all_its_numbers_differ_in_it(made, tmp_path):
    made()
    settings = table(not_comparable=["data"])
    paths = [
        tmp_path / "results/embedded/ragbench/say/rag/small" / name for name in ("score.json", "graded.jsonl")
    ]
    cell = inputs.load_cell(*paths)
    there = {
        (*cell.key, metric): value(1.0, "judge Qwen3.6; policy wrong", metric=metric)
        for metric in ("accuracy", "tokens")
    }
    assert blocks.judged(cell, ["accuracy", "tokens"], there, settings) == (
        "not because",
        "data, judge (a-judge, published Qwen3.6)",
    )


def test_values_of_another_system_of_the_page_say_so(made, tmp_path):
    made()
    paths = [
        tmp_path / "results/embedded/ragbench/say/rag/small" / name for name in ("score.json", "graded.jsonl")
    ]
    cell = inputs.load_cell(*paths)
    there = msgspec.structs.replace(value(1.0), stands_in="haiku-mtrag", reader="haiku-mtrag")
    settings = msgspec.structs.replace(table(), facts=Facts(model={"small": {"answerer": "bert"}}))
    found = protocol.differences(cell.score, there, settings)
    assert [one.said for one in found] == ["system (small, published haiku-mtrag)"]


def test_every_published_row_says_how_it_was_made():
    settings = published.load(CONFIG / "published/ragbench.csv", "ragbench", ["accuracy", "recall@5"])
    notes = [protocol.noted(one.note) for one in settings.values()]
    assert notes and all({"version", "embedder", "reranker", "coverage"} <= note.keys() for note in notes)
    assert all(protocol.coverage(one) for one in settings.values())


def test_the_models_of_the_papers_run_are_those_of_the_page_whatever_they_are_served_as():
    # The page's rows were made with other versions, and another judge where Qwen3.8 answered: nothing else.
    found = Plan(CONFIG).table("paper", "ragbench")
    facts = msgspec.convert(found["facts"], Facts)
    differing = {}
    for row in csv_text.read(CONFIG / "published/ragbench.csv", published.COLUMNS):
        bench, _, model = row["row"].split("/")
        ours, theirs = facts.of(bench, model), protocol.noted(row["note"])
        for name in protocol.FACTS:
            if name in ours and name in theirs and not protocol.same(ours[name], theirs[name]):
                differing.setdefault(name, set()).add(model)
    assert differing.keys() == {"version", "judge"}
    assert differing["judge"] == {"haiku-nemotron-qwen38"}


def test_the_papers_systems_are_asked_as_the_pages_configurations_say():
    # evaluations/configs at e9f6fea: a temperature for FinQA alone, budgets; the page: the judge's.
    plan = Plan(CONFIG)
    asked = {
        (bench, arm): plan.request("paper", "ragbench", bench, arm, model)
        for bench, arm, model in (
            ("t2_finqa", "analysis", "haiku-finqa"),
            ("hotpotqa", "rag", "haiku-hotpot"),
            ("orb_multimodal_nemotron", "rag", "haiku-nemotron-gemma4"),
            ("mtrag_clapnq", "rag", "haiku-mtrag"),
            ("mtrag_clapnq_live", "rag", "haiku-mtrag"),
        )
    }
    told = {bench: (one["sampling"], one["max_tokens"]) for (bench, _), one in asked.items()}
    assert told == {
        "t2_finqa": ({"temperature": 0.3}, 16384),
        "hotpotqa": ({}, 49152),
        "orb_multimodal_nemotron": ({}, 49152),
        "mtrag_clapnq": ({}, 8192),
        "mtrag_clapnq_live": ({}, 8192),
    }
    assert asked["t2_finqa", "analysis"]["instruction"] == "numbers"
    judged = plan.judge_request("paper", "ragbench", "mtrag_clapnq")
    assert (judged["sampling"], judged["max_tokens"]) == ({"temperature": 0.6}, 16384)
    searched = {
        bench: plan.request("paper", "ragbench", bench, "search", model)["task"]
        for bench, model in (("hotpotqa_search", "haiku-hotpot"), ("mtrag_clapnq_search", "haiku-mtrag"))
    }
    assert {bench: task["limit"] for bench, task in searched.items()} == {
        "hotpotqa_search": 5,
        "mtrag_clapnq_search": 10,
    }


def test_the_anchors_of_the_study_are_labelled_with_what_they_were_measured_on():
    found = anchors.load(CONFIG / "published/ragbench_anchors.csv", "ragbench")
    assert all("all four domains" in one.scope for one in found if one.label.startswith("IBM"))
    # Elser, last turn: R@5 .49, R@10 .58, nDCG@5 .45, nDCG@10 .49 (ragbench card, 5).
    elser = next(one for one in found if one.label == "IBM: Elser" and one.bench == "mtrag_clapnq_search")
    assert list(elser.values.values()) == [0.49, 0.58, 0.45, 0.49]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("rag,find,BM25,,recall@5,0.2,x", "row 2: scope is empty"),
        ("rag,find,BM25,all,recall@5,20,x", "row 2: value 20 is no share"),
        ("rag,find,BM25,all,recall@5,much,x", "row 2: value 'much' is no number"),
        ("rag,find,BM25,all,recall@5,nan,x", "row 2: value nan is no share"),
        ("rag,find,BM25,all,recall@5,0.2,x\nrag,find,BM25,all,recall@5,0.2,x", "row 3: BM25 recall@5 stands"),
    ],
)
def test_a_damaged_file_of_anchors_is_one_line(tmp_path, row, said):
    path = tablekit.put(tmp_path / "anchors.csv", ",".join(anchors.COLUMNS) + f"\n{row}\n")
    with pytest.raises(RemeasureError, match=said):
        anchors.load(path, "rag")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("benches: [t2_finqa_search, t2_finqa]", None),
        ("benches: [t2_finqa_search]", "bench 't2_finqa' stands in none"),
        ("benches: [t2_finqa_search, t2_finqa, hotpotqa]", "bench 'hotpotqa' stands twice"),
        ("benches: [t2_finqa_search, t2_finqa, t3]", "bench 't3' is not defined"),
    ],
)
def test_every_bench_stands_in_one_block(tmp_path, changed, said):
    text = (CONFIG / "studies/ragbench.yaml").read_text()
    text = text.replace("benches: [t2_finqa_search, t2_finqa]", changed)
    tablekit.put(tmp_path / "studies/ragbench.yaml", text)
    if said is None:
        assert project.load_study(tmp_path, "ragbench").layout.blocks
    else:
        with pytest.raises(RemeasureError, match=said):
            project.load_study(tmp_path, "ragbench")


def test_the_picture_has_the_panels_of_each_block_under_its_title(made):
    text = (made() / "rag.svg").read_text()
    for said in ("Retrieval", "Answers", "Tokens per request ↓", "Say, small", "lower is better"):
        assert f"<!-- {said} -->" in text or f">{said}<" in text
    assert "Answers, Talk, small: Accuracy 0.6667, Tokens per request 25.000." in text
    # In its block only: a panel of searches has no row of answers.
    assert text.count("no cell") == 0


def test_a_block_without_cells_is_not_drawn(made, tmp_path):
    made()
    found = inputs.load_cell(
        *(
            tmp_path / "results/embedded/ragbench/say/rag/small" / name
            for name in ("score.json", "graded.jsonl")
        )
    )
    assert [one.title for one in figure_blocks.parts({found.key: found}, table())] == ["Answers"]
    assert len(blocks.texts({found.key: found}, {}, table())) == 1


def test_of_a_system_the_run_says_nothing_of_a_reader_or_of_a_judge_that_was_not_asked(made, tmp_path):
    made()
    settings = table(not_comparable=["data", "reader", "judge"])
    for place, fields in {"find/search": ["data"], "say/rag": ["data", "judge"]}.items():
        folder = tmp_path / "results/embedded/ragbench" / place / "small"
        cell = inputs.load_cell(folder / "score.json", folder / "graded.jsonl")
        assert [one.field for one in protocol.differences(cell.score, value(1.0), settings)] == fields
