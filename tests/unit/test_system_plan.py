"""What a run says of systems: money, estimates, conversations in shards, environments."""

import copy
import json
import shutil

import pytest
import yaml

import estimate_cost
import install_environment
import systemkit
from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.estimates import Estimate
from remeasure.files import sha256_file
from remeasure.journal import Journal
from remeasure.plan import Plan
from remeasure.request_plan import CollectSettings, Planner, read_shard

HOSTED = {
    "title": "hosted",
    "base_url": "http://127.0.0.1:9/v1",
    "dialect": "openai",
    "thinking_default": False,
}


@pytest.fixture
def plan_of(root, tmp_path_factory):
    """A function that gives the plan of the embedded run with changes."""

    def made(limits=None, **models) -> Plan:
        place = tmp_path_factory.mktemp("checkout")
        shutil.copytree(root / "config", place / "config")
        for name in ("scripts", "envs", "requirements.txt"):
            (place / name).symlink_to(root / name)
        path = place / "config" / "runs" / "embedded.yaml"
        run = copy.deepcopy(yaml.safe_load(path.read_text()))
        run["models"] |= models
        if limits:
            run["limits"] = limits
        path.write_text(yaml.safe_dump(run, sort_keys=False))
        return Plan(place / "config")

    return made


def first_price(root) -> str:
    """A price row that charges something."""
    rows = yaml.safe_load((root / "config" / "prices.yaml").read_text())
    return next(name for name, row in rows.items() if name != "free" and row["input_usd_per_mtok"] > 0)


# -- money -------------------------------------------------------------------------------------------------


def test_a_systems_money_is_that_of_its_answerer(plan_of, root):
    price = first_price(root)
    free = HOSTED | {"price": "free"}
    plan = plan_of({"spend_usd": 5.0}, **{"evidence-reader": HOSTED | {"price": price}, "embedder-bge": free})
    money = plan.executor("embedded", "builtin", None)["money"]
    assert money["spend_usd"] == 5.0 and money["price"]["input_usd_per_mtok"] > 0
    assert plan.estimate("embedded", "builtin")["price"] is not None


def test_limits_that_could_not_be_kept_are_refused(plan_of, root):
    priced = HOSTED | {"price": first_price(root)}
    with pytest.raises(RemeasureError, match="the embedder 'embedder-bge' has a price: only the tokens"):
        plan_of({"spend_usd": 5.0}, **{"embedder-bge": priced}).executor("embedded", "builtin", None)
    with pytest.raises(RemeasureError, match="limits.estimate_usd is set, and what a system reads"):
        plan_of({"estimate_usd": 5.0}, **{"evidence-reader": priced}).executor("embedded", "builtin", None)


def test_a_model_behind_a_system_must_be_there_while_it_works(plan_of):
    batch = HOSTED | {"executor": "batch"}
    with pytest.raises(RemeasureError, match="is the answerer of system 'builtin' and reached by 'batch'"):
        plan_of(**{"evidence-reader": batch}).executor("embedded", "builtin", None)


def test_where_and_how_many_at_a_time_are_no_part_of_an_answers_identity(plan_of):
    plan = plan_of()
    before = plan.identity("embedded", "builtin")
    model = yaml.safe_load((plan.folder / "runs" / "embedded.yaml").read_text())["models"]["builtin"]
    model["concurrency"] = 4
    model["system"]["case_timeout_s"] = 7.0
    after = plan_of(builtin=model)
    assert after.identity("embedded", "builtin") == before
    assert after.executor("embedded", "builtin", None)["concurrency"] == 4


def test_code_is_run_in_one_cell_of_the_embedded_run_and_in_none_of_the_small_one(root):
    plan = Plan(root / "config")
    for run, readers in (("embedded", ("haiku-0-77",)), ("ci", ())):
        cells = [cell for cell in plan.cells_of("ragbench", run) if cell.arm == "analysis"]
        assert [(cell.bench, plan.readers(run, "ragbench", cell.bench, cell.arm)) for cell in cells] == (
            [("t2_finqa", readers)] if readers else []
        )
    # The other arm of the bench keeps its readers, and a value of the page stands beside the new row.
    assert plan.readers("embedded", "ragbench", "t2_finqa", "rag") == ("builtin", "haiku-0-77")
    assert plan.readers("ci", "ragbench", "t2_finqa", "rag") == ("builtin",)
    assert "haiku-finqa" in plan.table("embedded", "ragbench")["stands_for"]["haiku-0-77"]


# -- estimates ---------------------------------------------------------------------------------------------


def estimate(folder, requests, **settings) -> Estimate:
    jsonl.write(folder / "requests.jsonl", requests)
    price = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 10.0}
    money = {"price": price, "ledger": str(folder / "spend")}
    way = json.loads(jsonl.encode(systemkit.system(folder / "toy.json", database=None))) | {"money": money}
    settings = {"model": "toy", "identity": {}, "price": None, "answer_tokens": 5} | settings
    words = ["--settings", json.dumps(settings), "--requests", str(folder / "requests.jsonl")]
    words += ["--executor", json.dumps(way), "--out", str(folder / "estimate.json")]
    assert estimate_cost.main(words) == 0
    return jsonl.read_json(folder / "estimate.json", Estimate)


def test_an_estimate_of_a_system_counts_what_its_model_reads(tmp_path):
    asked = [systemkit.request(f"q{n}", f"question {n}") for n in range(10)]
    found = estimate(tmp_path, asked, requests_per_case=3.0, input_tokens=2000)
    # 10 questions of 3 requests of 2,000 tokens at 1 USD a million, and 5 tokens each at 10 USD a million.
    assert (found.text_tokens, found.output_tokens) == (60_000, 150)
    assert found.usd.expected == 0.0615
    assert (
        found.notes[0]
        == "system: 3 requests of 2000 tokens for each question, 5 tokens written in each (assumed)"
    )


def test_an_estimate_that_nothing_is_known_for_says_so(tmp_path):
    found = estimate(tmp_path, [systemkit.request("q1", "question")])
    assert found.usd is None and "what its model reads is not known before" in found.notes[0]


def test_a_search_asks_no_model_that_answers(tmp_path):
    found = estimate(tmp_path, [systemkit.request("q1", "question", do="search")])
    assert (found.text_tokens, found.output_tokens, found.usd.expected) == (0, 0, 0.0)


# -- conversations -----------------------------------------------------------------------------------------


def turns(name, *questions):
    return [
        systemkit.request(f"{name}-{n}", *questions[:n], do="converse") for n in range(1, len(questions) + 1)
    ]


def planned(folder, requests, shard=None):
    jsonl.write(folder / "requests.jsonl", requests)
    settings = CollectSettings(model="toy", served_name="toy", identity={})
    planner = Planner(folder / "requests.jsonl", settings, systemkit.system(folder / "toy.json"), folder)
    with Journal(folder / "journal", shard or "answers") as journal:
        plan = planner.plan(journal, read_shard(shard) if shard else None)
        return plan, list(planner.missing_calls(plan))


def test_each_turn_follows_the_request_that_asks_all_but_its_last_question(tmp_path):
    _, calls = planned(tmp_path, turns("a", "x", "y", "z") + turns("b", "u", "y"))
    assert [(call.custom_id, call.after) for call in calls] == [
        ("a-1", None),
        ("a-2", "a-1"),
        ("a-3", "a-2"),
        ("b-1", None),
        ("b-2", "b-1"),
    ]


def test_conversations_that_begin_alike_share_what_they_share(tmp_path):
    plan, calls = planned(tmp_path, turns("a", "hello", "x") + turns("b", "hello", "y"))
    assert [(call.custom_id, call.after) for call in calls] == [("a-1", None), ("a-2", "a-1"), ("b-2", "a-1")]
    keys = dict(plan.rows)
    assert keys["a-1"] == keys["b-1"]


def test_a_turn_without_the_turn_before_is_refused(tmp_path):
    with pytest.raises(
        RemeasureError, match="'a-2' is a later turn .* the turn before does not stand in front"
    ):
        planned(tmp_path, turns("a", "x", "y")[1:])


def test_a_shard_holds_whole_conversations(tmp_path):
    asked = [turn for n in range(12) for turn in turns(f"c{n}", f"begin {n}", "more", "and more")]
    found = [planned(tmp_path, asked, f"{n}of3")[0] for n in (1, 2, 3)]
    names = [{custom_id.partition("-")[0] for custom_id, _ in plan.rows} for plan in found]
    assert sum(len(plan.rows) for plan in found) == 36
    assert sum(map(len, names)) == 12  # no conversation stands in two


# -- environments ------------------------------------------------------------------------------------------


def install(folder, lock, sha256, python="3.9") -> int:
    settings = json.dumps({"lock": str(lock), "sha256": sha256, "python": python})
    return install_environment.main(["--settings", settings, "--record", str(folder / "environment.json")])


def test_an_environment_is_made_once_and_taken_as_it_is_then(tmp_path, monkeypatch):
    lock = tmp_path / "nothing.txt"
    lock.write_text("# no package\n")
    assert install(tmp_path, lock, sha256_file(lock)) == 0
    python = tmp_path / "environment" / "bin" / "python"
    made = python.lstat().st_mtime_ns
    assert install(tmp_path, lock, sha256_file(lock)) == 0
    assert python.lstat().st_mtime_ns == made
    assert jsonl.read_json(tmp_path / "environment.json")["facts"]["python"] == str(python)


def test_what_is_not_pinned_by_hash_is_not_installed(tmp_path, capsys):
    lock = tmp_path / "loose.txt"
    lock.write_text("msgspec==0.23.0\n")
    assert install(tmp_path, lock, sha256_file(lock)) == 2
    assert "pip install failed" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "environment.json").exists()


def test_another_file_of_pins_and_a_python_that_there_is_not_are_one_line(tmp_path, capsys, monkeypatch):
    lock = tmp_path / "nothing.txt"
    lock.write_text("# no package\n")
    assert install(tmp_path, lock, "0" * 64) == 2
    assert "was changed while the run was planned" in capsys.readouterr().err
    monkeypatch.delenv("HAIKU_PYTHON", raising=False)
    assert install(tmp_path, lock, sha256_file(lock), python="3.99") == 2
    assert "no Python 3.99 or later was found" in capsys.readouterr().err
