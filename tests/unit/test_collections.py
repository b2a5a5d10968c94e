"""A study of images without pages: what its settings give the stages, and which files its rules read."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure import lineage, preamble, prompts, settings
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.plan import Plan
from remeasure.preflight import data
from remeasure.status.rule_files import RuleFiles
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[2]
RUN = """
title: Images
corpora: {}
encoders: {}
models:
  one: {title: One, base_url: "http://127.0.0.1:9/v1"}
  two: {title: Two, base_url: "http://127.0.0.1:9/v1"}
studies:
  tosc:
    source: %s
    reader: [one, two]
    prompts: %s
    items_per_bench: 12
    index: {expected: 64, unknown_objects: other}
"""


@pytest.fixture
def config(tmp_path) -> Path:
    """A copy of the configuration with one more table and a run that asks for nothing else."""
    folder = tmp_path / "config"
    shutil.copytree(ROOT / "config", folder)
    cells = folder / "cells.tsv"
    line = "tosc\ttriplets\tdescribe\tstates\n"
    cells.write_text(re.sub("(?m)^tosc\t.*\n", "", cells.read_text()) + line)
    return folder


def plan_of(config: Path, source: str = "results/sources/tosc_describe.txt", profile: str = "own") -> Plan:
    name = f"images{len(list((config / 'runs').glob('images*')))}"
    (config / "runs" / f"{name}.yaml").write_text(RUN % (source, profile))
    return Plan(config)


def at(**more) -> SimpleNamespace:
    class Wildcards(SimpleNamespace):
        def __getitem__(self, name):
            return getattr(self, name)

        def keys(self):
            return vars(self).keys()

    place = {"run": "images0", "study": "tosc", "bench": "triplets", "arm": "describe", "model": "one"}
    return Wildcards(**(place | more))


def test_the_index_is_told_what_study_and_run_say_and_which_lexicon_it_is(config):
    plan = plan_of(config)
    assert plan.index("images0", "tosc") == {
        "files": ["TOSC_dataset.jsonl", "insertions.jsonl", "index_report.json"],
        "options": {
            "expected": 64,
            "policy": "complete",
            "fail_on_conflict": True,
            "unknown_objects": "other",
            "extra_synonyms": {},
            "exclude": {},
            "lexicon": {
                "name": "coco",
                "path": "config/lexicons/coco.tsv",
                "sha256": sha256_file(ROOT / "config" / "lexicons" / "coco.tsv"),
            },
        },
    }


def test_items_are_made_from_the_first_index_file_or_from_own_questions(config, tmp_path):
    plan = plan_of(config, source="/data/images")
    assert plan.items("images0", "tosc", "triplets") == {"n_units": 12, "source": "/data/images"}
    assert Wiring(plan).items(at()) == {"index": "results/images0/tosc/index/TOSC_dataset.jsonl"}
    path = config / "runs" / "images0.yaml"
    path.write_text(path.read_text() + "    items: /data/questions\n")
    settings.load_run.cache_clear()
    assert plan.items("images0", "tosc", "triplets") == {
        "own": "/data/questions",
        "n_items": 12,
        "with_answers": False,
    }
    assert Wiring(plan).items(at()) == {"own": "/data/questions/triplets.jsonl"}
    assert Plan(ROOT / "config").items("paper", "pixelrag", "nq")["with_answers"] is True


def test_a_reader_is_asked_with_a_fixed_seed_and_the_study_s_prompt_alone(config):
    asked = plan_of(config).request("images0", "tosc", "triplets", "describe", "two")
    assert asked["sampling"] == {"temperature": 0.0, "seed": 0}
    assert (asked["evidence"], asked["max_tokens"], asked["thinking"]) == ("none", 1024, False)
    assert list(asked["prompts"]["files"]) == ["describe"]


def test_a_published_wording_is_an_input_that_somebody_brings(config):
    plan = plan_of(config, profile="published")
    brought = "results/sources/tosc_describe.txt"
    assert [str(path) for path in Wiring(plan).prompts(at())] == [brought]
    assert Wiring(plan).prompts(at())[0].flags["ancient"]
    assert brought in plan.sources("images0") and brought in plan.catalogue.by_hand()
    assert "tosc_describe.txt" in data._needed(plan, "images0")
    preamble.check_run("images0", plan)
    (config / "prompts" / "tosc" / "published" / "elsewhere.yaml").write_text(
        "describe: {path: results/sources/other.txt, sha256: " + 64 * "a" + "}"
    )
    prompts.profile.cache_clear()
    with pytest.raises(RemeasureError, match=r"no source results/sources/other\.txt"):
        preamble.check_run("images0", plan)


def test_our_own_wording_is_no_input(config):
    assert Wiring(plan_of(config)).prompts(at()) == []


def test_images_that_are_not_there_are_named_before_anything_runs(config, tmp_path):
    plan = plan_of(config, source=str(tmp_path / "nowhere"))
    with pytest.raises(RemeasureError, match=r"studies\.tosc\.source: .*nowhere is not there"):
        preamble.check_run("images0", plan)


def test_a_rule_makes_the_index_and_its_record_stands_behind_the_table(config):
    plan = plan_of(config)
    rules = RuleFiles(ROOT / "rules", Wiring(plan), plan.index_stages(), plan.catalogue.makings())
    records = lineage.stage_records(plan, "images0", "states")
    assert "results/images0/tosc/index/index_images.json" in records
    for path in records:
        rules.maker(path)
    rule, made = rules.maker("results/images0/tosc/index/index_report.json")
    assert rule.name == "index_tosc" and made.outputs[1].endswith("/TOSC_dataset.jsonl")
