"""The fourth study on the same stages: systems that search and answer, killed in a conversation, refused."""

import csv
import json
import re
import shutil
import subprocess
import sys

import pytest

from conftest import Checkout, jobs
from killkit import journal_keys, kill_and_continue
from remeasure import environments
from remeasure.plan import Plan
from timekit import without_times

TARGETS = ("results/ci/tables/ragbench.csv", "results/ci/tables/ragbench.html")
# The second system needs a Python of its own; where there is none, the run has no cell of it.
SYSTEMS = ("builtin", "haiku-0-77") if environments.find_python("3.12") else ("builtin",)
# In the order of the blocks, with the number of questions: eight, or the five turns of one conversation.
CELLS = {
    ("t2_finqa_search", "search", "builtin"): 8,
    ("t2_finqa", "rag", "builtin"): 8,
    **{("mtrag_clapnq_search", "search", system): 8 for system in SYSTEMS},
    ("mtrag_clapnq_rewrite_search", "search", "builtin"): 8,
    ("mtrag_un_clapnq_search", "search", "builtin"): 8,
    ("mtrag_clapnq", "rag", "builtin"): 8,
    **{("mtrag_clapnq_live", "rag", system): 5 for system in SYSTEMS},
    ("mtrag_clapnq_live_uncompacted", "rag", "builtin"): 5,
}
LIVE = {f"results/ci/ragbench/{'/'.join(cell)}": n for cell, n in CELLS.items() if "live" in cell[0]}
SEARCH = "results/ci/ragbench/mtrag_clapnq_search/search"


def journals(checkout: Checkout) -> dict[str, list[str]]:
    """Return the keys of all journals of the study, the judge's too, by folder."""
    found = sorted(checkout.path("results/ci/ragbench").rglob("journal"))
    return {str(path.relative_to(checkout.directory)): journal_keys(path) for path in found}


def rows(checkout: Checkout, name: str) -> list[dict[str, str]]:
    with open(checkout.path(name), newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_table_and_the_page_have_every_cell(finished):
    wide = rows(finished, TARGETS[0])
    assert [(row["bench"], row["arm"], row["model"]) for row in wide] == list(CELLS)
    assert [(row["n_attempted"], row["n_scored"]) for row in wide] == [
        (str(n), str(n)) for n in CELLS.values()
    ]
    assert {row["n_task_failed"] + row["n_judge_failed"] for row in wide} == {"00"}
    compared = rows(finished, "results/ci/tables/ragbench.contrasts.csv")
    (rewrite,) = [row for row in compared if (row["contrast"], row["metric"]) == ("delta_rewrite", "ndcg@10")]
    sides = ("mtrag_clapnq_rewrite_search", "mtrag_clapnq_search")
    assert (rewrite["bench"], rewrite["against"], rewrite["model"]) == (*sides, "builtin")
    assert (rewrite["n_pairs"], rewrite["n_dropped"]) == ("8", "0")
    page = finished.path(TARGETS[1]).read_text(encoding="utf-8")
    shown = re.findall(r"<tr><td>([^<]*)</td>(?:<td>(?:search|rag)</td>)?<td>(builtin|haiku-0-77)</td>", page)
    titles = Plan(finished.project / "config").study("ragbench").benches
    assert shown == [(titles[bench].title, system) for bench, _, system in CELLS]
    for bench in dict.fromkeys(bench for bench, _, _ in CELLS):
        lines = finished.path(f"results/ci/ragbench/{bench}/items.jsonl").read_text().splitlines()
        assert all(json.loads(line)["item_id"] in page for line in lines), bench


def test_every_turn_of_a_live_conversation_was_asked_with_the_answers_before_it(finished):
    for folder in LIVE:
        said = [
            json.loads(line) for line in finished.path(f"{folder}/responses.jsonl").read_text().splitlines()
        ]
        assert [one["status"] for one in said] == ["answered"] * 5, folder
        for n, one in enumerate(said):
            before = [turn["text"] for turn in one["trace"]["before"] if turn["speaker"] != "user"]
            assert before == [earlier["text"] for earlier in said[:n]], folder


def test_without_its_judge_s_folder_a_cell_is_judged_and_graded_again_and_asks_no_system(checkout):
    folder = "results/ci/ragbench/mtrag_clapnq_live/rag/builtin"
    shutil.rmtree(checkout.path(f"{folder}/judge"))
    others = journals(checkout)
    before = checkout.bytes_of("results/ci/**/*")
    assert jobs(checkout.run(*TARGETS)) == {
        "build_judge_requests": 1,
        "ask_judge_on_login": 1,
        "grade": 1,
        "make_table": 1,
        "make_page": 1,
    }
    after = checkout.bytes_of("results/ci/**/*")
    assert {name for name, data in before.items() if after[name] != data} == set()
    again = journals(checkout)
    # Five turns, and for the four that can be answered or not, whether the answer declines.
    assert len(again.pop(f"{folder}/judge/journal")) >= 5
    assert again == others


def test_how_its_models_are_reached_asks_a_system_nothing_again(checkout):
    run = checkout.project / "config/runs/embedded.yaml"
    text = run.read_text()
    old, new = "concurrency: 4\n    timeout_s: 60", "concurrency: 3\n    timeout_s: 61"
    assert text.count(old) == 1, "the embedder"
    run.write_text(text.replace(old, new))
    target = f"{SEARCH}/builtin/responses.jsonl"
    # The database is opened and looked at again; none of its documents is.
    before, asked = checkout.path(target).read_bytes(), journals(checkout)
    assert jobs(checkout.run(target)) == {"describe_executor": 1, "ingest_documents": 1, "ask": 1}
    assert checkout.path(target).read_bytes() == before
    assert journals(checkout) == asked


@pytest.mark.timeout(300)
def test_killed_in_the_middle_of_a_conversation_it_goes_on_and_says_the_same(finished, checkout):
    ours = {folder: n for folder, n in LIVE.items() if folder.endswith("/builtin")}
    for folder in ours:
        shutil.rmtree(checkout.path(f"{folder}/journal"))
        checkout.path(f"{folder}/responses.jsonl").unlink()
    kill_and_continue(checkout, TARGETS, ours, at_least=2)
    assert {folder: sorted(keys) for folder, keys in journals(checkout).items()} == {
        folder: sorted(keys) for folder, keys in journals(finished).items()
    }
    for pattern in ("results/ci/ragbench/**/*", "results/ci/tables/ragbench*"):
        assert checkout.bytes_of(pattern) == finished.bytes_of(pattern)
    # What they differ in is how long the turns took.
    for folder in ours:
        name = f"{folder}/responses.jsonl"
        again, once = (one.path(name).read_bytes() for one in (checkout, finished))
        assert again != once and without_times(name, again) == without_times(name, once)


def test_a_database_whose_record_names_another_embedder_is_refused_in_one_line(checkout):
    record = checkout.path("results/ci/datasets/clapnq-mini/builtin-bge.json")
    record.write_text(
        record.read_text().replace('"model": "embedder-bge"', '"model": "text-embedding-3-small"')
    )
    plan = Plan(checkout.project / "config")
    command = [sys.executable, str(checkout.project / "scripts/collect_responses.py")]
    command += ["--settings", json.dumps(plan.ask_reader("ci", "ragbench", "builtin"))]
    command += ["--executor", "results/ci/ragbench/executors/builtin.json"]
    command += ["--requests", f"{SEARCH}/builtin/requests.jsonl", "--journal", "other/journal"]
    command += ["--database", "results/ci/datasets/clapnq-mini/builtin-bge.json"]
    command += ["--out", "other/responses.jsonl", "--record", "other/answers.json"]
    done = subprocess.run(command, cwd=checkout.directory, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.stderr.rstrip().endswith(line)
    assert "results/ci/datasets/clapnq-mini/builtin-bge.json: the database was built with embedder " in line
    assert "'text-embedding-3-small' of 384 dimensions, the run configures 'embedder-bge' of 384" in line
    assert not checkout.path("other/responses.jsonl").exists()
    # Nothing was started for that.
    assert not list(checkout.path("other").rglob("embedder*.log"))


def test_a_filter_over_a_column_that_there_is_not_is_one_clear_line_of_each_system(checkout):
    run = checkout.project / "config/runs/ci.yaml"
    run.write_text(run.read_text().replace("  ragbench:\n", "  ragbench:\n    filter: \"colour = 'red'\"\n"))
    done = checkout.call(*(f"{SEARCH}/{system}/responses.jsonl" for system in SYSTEMS), "--config", "run=ci")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for system in SYSTEMS:
        log = checkout.path(f"{SEARCH}/{system}/logs/ask.log").read_text()
        (line,) = [line for line in log.splitlines() if line.startswith("error: ")]
        assert log.rstrip().endswith(line) and "Traceback" not in log
        assert "filter \"colour = 'red'\"" in line and "correct `filter` of the study in the run" in line
        assert line.count("colour") >= 2, "what is wrong with it"
    assert f"Failed jobs ({len(SYSTEMS)}):" in done.stderr


def test_the_page_s_own_run_is_planned_with_all_of_its_benches(finished):
    done = finished.call("results/ragbench.csv", "--dry-run", "--config", "run=paper")
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    asked = set(re.findall(r"output: results/paper/ragbench/(\w+)/\w+/[\w-]+/responses\.jsonl", text))
    assert {bench.removesuffix("_search") for bench in asked} == {
        *("orb_text", "orb_multimodal", "orb_multimodal_nemotron"),
        *("t2_finqa", "hotpotqa"),
        *("mtrag_clapnq", "mtrag_clapnq_rewrite", "mtrag_clapnq_live", "mtrag_clapnq_live_uncompacted"),
    }
