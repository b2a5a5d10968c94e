"""Answers that nobody asked for here stand behind no embedded table, and each cell finds its own file."""

import shutil
import typing
from pathlib import Path

import pytest

from remeasure import imports, models
from remeasure.errors import RemeasureError
from remeasure.plan import Plan

CONFIG = Path(__file__).resolve().parents[2] / "config"
MINE = """
extends: embedded
models:
  original:
    title: "Answers of the original system"
    imported: {{format: {format}, path: "{path}"}}
    {more}
studies:
  pixelrag: {{reader: original, shards: {{nq: 3}}}}
"""


def plan(folder: Path, path: str, format: str = "pixelrag", more: str = "") -> Plan:
    shutil.copytree(CONFIG, folder / "config")
    text = MINE.format(path=path, format=format, more=more)
    (folder / "config/runs/mine.yaml").write_text(text)
    return Plan(folder / "config")


@pytest.mark.parametrize("run", ["embedded", "ci", "tuning"])
def test_every_model_of_an_embedded_run_is_started_and_asked(run):
    plan = Plan(CONFIG)
    asked = [name for name in plan.run(run).models if plan.ranker(run, name) is None]
    ways = {name: plan.executor(run, name, "factbook") for name in asked}
    # A system is started as well, and so is every model that it asks.
    systems = {name: ways.pop(name) for name in asked if plan.system(run, name)}
    assert ways and list(systems) == ["builtin", "haiku-0-77"]
    assert {way["kind"] for way in ways.values()} == {"server"}
    for way in systems.values():
        assert way["kind"] == "system" and way["reranker"] is None
        assert {way[role]["way"]["kind"] for role in ("embedder", "answerer")} == {"server"}


def test_each_cell_takes_its_own_file_and_a_started_model_takes_none(tmp_path):
    mine = plan(tmp_path, "old/{bench}_{arm}.jsonl")
    assert mine.imported("mine", "pixelrag", "nq", "base", "original") == "old/nq_base.jsonl"
    assert mine.imported("mine", "pixelrag", "nq", "base", "judge-cross-encoder") is None
    assert mine.executor("mine", "original", None)["kind"] == "import"
    assert mine.shards("mine", "pixelrag", "nq", "base", "original") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "{benhc}.jsonl"}, r"original\.imported\.path: \{benhc\} stands for nothing; it may hold"),
        (
            {"path": "a.jsonl", "format": "vlmeval"},
            r"imported.format: Invalid enum value 'vlmeval'",
        ),
        (
            {"path": "a.jsonl", "more": "replay: results/old"},
            "imported answers cost nothing and need no `replay`",
        ),
    ],
)
def test_a_wrong_import_is_named_when_the_run_is_read(tmp_path, given, message):
    with pytest.raises(RemeasureError, match=message):
        plan(tmp_path, **given).run("mine")


def test_a_run_may_name_every_format_that_can_be_read():
    assert typing.get_args(typing.get_type_hints(models.Imported)["format"]) == tuple(imports.FORMATS)
