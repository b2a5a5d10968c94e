"""A user's mistakes end in one line and exit code 2, in Snakemake's first second."""

import pytest

TABLE = "results/ci/tables/table1.csv"


def edited(checkout, name: str, old: str, new: str):
    path = checkout.project / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def one_line(done) -> str:
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in done.stderr, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("run=embeded", "did you mean 'embedded'?"),
        ("rnu=ci", "unknown key 'rnu' (did you mean 'run'?)"),
        ("browser_sandbox=maybe", "expected auto, true or false"),
        ("run=../../etc", "has no file"),
    ],
)
def test_a_wrong_key_or_run_on_the_command_line_names_the_fix(checkout, config, expected):
    assert expected in one_line(checkout.call(TABLE, "-n", "--config", config))


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
def test_a_mistake_in_a_settings_file_names_the_file_and_the_fix(checkout, file, old, new, expected):
    edited(checkout, file, old, new)
    line = one_line(checkout.call(TABLE, "-n", "--config", "run=ci"))
    assert expected in line and "config/" in line
