"""A user's mistakes end in one line and exit code 2, in Snakemake's first second."""

import shutil
from pathlib import Path

import pytest
import yaml

from conftest import ROOT, Checkout, copy_project
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.preamble import check_config

TABLE = "results/ci/tables/table1.csv"


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Checkout:
    """A project and an empty folder to work in: no mistake lets anything begin."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "work").mkdir()
    return Checkout(copy_project(folder / "project"), folder / "work")


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy of the settings, beside what they are resolved with."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def edit(folder: Path, name: str, old: str, new: str) -> str:
    """Replace words of a settings file; return what it was."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    return text


def refusal(project: Path, **config) -> str:
    """Return the sentence with which rules/common.smk would end the call."""
    told = yaml.safe_load((project / "config/config.yaml").read_text()) | config
    with pytest.raises(RemeasureError) as found:
        check_config(told, Plan(project / "config"))
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "config", "expected"),
    [
        ("config/config.yaml", "", "", "rnu=ci", "unknown key 'rnu' (did you mean 'run'?)"),
        ("config/runs/ci.yaml", "items_per_bench: 4", "item_per_bench: 4", "run=ci", "'items_per_bench'?"),
        ("config/cells.tsv", "pixelrag\tnq\ttraf", "pixelrag\tnqx\ttraf", "run=ci", "line 3: bench 'nqx'"),
    ],
)
def test_a_mistake_ends_the_call_in_one_line_with_exit_code_2(empty, file, old, new, config, expected):
    before = edit(empty.project, file, old, new)
    done = empty.call(TABLE, "-n", "--config", config)
    (empty.project / file).write_text(before)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert expected in line and "config/" in line


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("run", "embeded", "did you mean 'embedded'?"),
        ("rnu", "ci", "unknown key 'rnu' (did you mean 'run'?)"),
        ("browser_sandbox", "maybe", "expected auto, true or false"),
        ("run", "../../etc", "has no file"),
    ],
)
def test_a_wrong_key_or_run_on_the_command_line_names_the_fix(project, key, value, expected):
    assert expected in refusal(project, **{key: value})


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("config/runs/ci.yaml", "items_per_bench: 4", "item_per_bench: 4", "did you mean 'items_per_bench'?"),
        ("config/runs/ci.yaml", "items_per_bench: 4", "items_per_bench: four", "Expected `int`, got `str`"),
        ("config/runs/ci.yaml", "items_per_bench: 4", "items_per_bench: 0", ">= 1"),
        ("config/runs/ci.yaml", "extends: embedded", "extends: ci", "circle"),
        ("config/runs/embedded.yaml", "reader: page-reader-smollm2", "reader: page-reader", "did you mean"),
        (
            "config/runs/embedded.yaml",
            "photo: photo-efficientnet}",
            "photo: photo}",
            "encoder 'photo' is not",
        ),
        ("config/runs/embedded.yaml", "results/sources/factbook.zim", "/nowhere/x.zim", "is not a file"),
        ("config/runs/embedded.yaml", "prompts: own", "prompts: mine", "no prompt files"),
        (
            "config/studies/pixelrag.yaml",
            "grader: mcq_letter",
            "grader: mcq_leter",
            "did you mean 'mcq_letter'?",
        ),
        ("config/studies/pixelrag.yaml", "evidence: text", "evidence: txt", "did you mean 'text'?"),
        (
            "config/cells.tsv",
            "pixelrag\tnq\ttraf",
            "pixelrag\tnqx\ttraf",
            "line 3: bench 'nqx' is not defined",
        ),
        ("config/cells.tsv", "pixelrag\tnq\ttraf", "pixelrag\tnq\tnaive", "stands already in line 2"),
        ("config/cells.tsv", "mrarebench\tdiagnosis\tto\tmrarebench\n", "", "arm 'to' has no cell in"),
        ("config/runs/ci.yaml", "extends:", "extends: [", "not YAML"),
        ("config/runs/ci.yaml", "title:", "title: x\ntitle:", "key 'title' stands twice"),
        ("config/runs/embedded.yaml", "concurrency: 1", "concurrency: 0", ">= 1"),
        ("config/runs/embedded.yaml", "serve_judge.py", "serve_jugde.py", "is not a file"),
        ("config/runs/embedded.yaml", "factbook.zim #", "factbok.zim #", "no rule makes"),
        ("config/runs/embedded.yaml", "base: ocr-bge,", "base: ocr-bge-trained,", "the encoder itself"),
        ("config/studies/pixelrag.yaml", "{n_docs: 5, n_shown: 3}", "{n_docs: 5}", "n_shown"),
        ("config/studies/pixelrag.yaml", ", lora: true}", "}", "naive, traf, base, lora"),
        (
            "config/studies/pixelrag.yaml",
            "instruction: short_answer",
            "instruction: short",
            "instruction_short.txt",
        ),
    ],
)
def test_a_mistake_in_a_settings_file_names_the_file_and_the_fix(project, file, old, new, expected):
    edit(project, file, old, new)
    said = refusal(project, run="ci")
    assert expected in said and "config/" in said
