"""What a run takes over from the one that it extends, what it replaces, and tables of cells.tsv."""

import shutil
from pathlib import Path

import pytest
import yaml

from remeasure import settings
from remeasure.errors import RemeasureError

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def config(tmp_path):
    folder = tmp_path / "config"
    shutil.copytree(CONFIG, folder)
    settings.load_run.cache_clear()
    yield folder
    settings.load_run.cache_clear()


def mine(config, **tosc):
    """Return the study of the run `mine`, which extends the embedded one."""
    run = {"extends": "embedded", "title": "mine", "studies": {"tosc": tosc}}
    (config / "runs" / "mine.yaml").write_text(yaml.safe_dump(run))
    settings.load_run.cache_clear()
    return settings.load_run(config, "mine").studies["tosc"]


def test_a_run_of_another_size_keeps_what_is_said_of_images_and_models(config):
    ours, theirs = mine(config, items_per_bench=3), settings.load_run(config, "embedded").studies["tosc"]
    assert theirs.notes and (ours.notes, ours.compare) == (theirs.notes, theirs.compare)


@pytest.mark.parametrize("change", [{"source": "/data/images"}, {"items": "/data/items"}])
def test_what_was_said_of_other_images_is_not_said_of_one_s_own(config, change):
    ours = mine(config, **change)
    assert ours.notes == [] and ours.compare


def test_what_was_said_of_other_models_is_not_said_of_one_s_own(config):
    ours = mine(config, reader="captioner-scan")
    assert (ours.notes, ours.compare, ours.readers) == ([], [], ("captioner-scan",))
    assert mine(config, reader="captioner-scan", notes=["Mine."]).notes == ["Mine."]


@pytest.mark.parametrize(
    ("section", "labels"),
    [
        ({"items_per_bench": 3}, "config/labels/ragbench.csv"),
        ({"reader": "haiku-0-77"}, None),
        ({"items": "/data/items"}, None),
        ({"reader": "haiku-0-77", "calibration": {"labels": "mine.csv"}}, "mine.csv"),
    ],
)
def test_labels_of_other_answers_are_not_inherited(config, section, labels):
    run = {"extends": "embedded", "title": "mine", "studies": {"ragbench": section}}
    (config / "runs" / "mine.yaml").write_text(yaml.safe_dump(run))
    settings.load_run.cache_clear()
    found = settings.load_run(config, "mine").studies["ragbench"].calibration
    assert (found.labels, found.n) == (labels, 24)


def test_a_run_may_leave_out_a_study(config):
    run = {"extends": "embedded", "title": "mine", "studies": {"pixelrag": None}}
    (config / "runs" / "mine.yaml").write_text(yaml.safe_dump(run))
    assert list(settings.load_run(config, "mine").studies) == ["tosc", "mrarebench", "ragbench", "landmarks"]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([["captioner-scan", "captioner-glance"], ["captioner-glance", "captioner-scan"]], "stand twice"),
        ([["captioner-scan", "captioner-scan"]], "with itself"),
        ([["captioner-scan", "other"]], "'other' is not defined"),
    ],
)
def test_a_pair_is_two_and_stands_once(config, pairs, said):
    with pytest.raises(RemeasureError, match=said):
        mine(config, compare=pairs)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # A heading, 24 + 1 + 6 + 20 cells, and this one.
        ("tosc\ttriplets\tdescribe\ttable1", "line 63: table 'table1' is one of study 'pixelrag'"),
        ("tosc\ttriplets\tdescribe\t../x", "line 63: table '../x' may hold only"),
    ],
)
def test_a_table_is_named_plainly_and_has_one_study(config, line, said):
    path = config / "cells.tsv"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RemeasureError, match=said):
        settings.load_cells(config)
