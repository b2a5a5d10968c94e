"""What users do with files, and exactly what runs after it."""

import os
import shutil

import pytest

from conftest import ROOT, jobs

TABLE = "results/ci/tables/table1.csv"
READER = "page-reader-smollm2"
NQ_BASE = f"results/ci/pixelrag/nq/base/{READER}"
SQA_BASE = f"results/ci/pixelrag/sqa/base/{READER}"


def journal_lines(checkout) -> dict[str, int]:
    """Number of lines of every journal: what was ever asked."""
    found = checkout.path("results/ci").rglob("journal/*.jsonl")
    return {str(path.relative_to(checkout.directory)): len(path.read_text().splitlines()) for path in found}


def test_a_second_call_has_nothing_to_do(finished):
    assert finished.planned(TABLE) == {}


def test_deleted_responses_are_assembled_from_the_journal_and_nothing_is_asked_again(checkout):
    responses = checkout.path(f"{NQ_BASE}/responses.jsonl")
    before, asked = responses.read_bytes(), journal_lines(checkout)
    responses.unlink()
    said = checkout.run(TABLE)
    assert jobs(said) == {"ask": 1, "grade": 1, "make_table": 1}
    gaps = [line for line in said.splitlines() if line.startswith("gap:")]
    assert gaps == [
        f"gap: {NQ_BASE}/responses.jsonl is missing, but {NQ_BASE}/graded.jsonl was made from it; "
        "making it and what follows again"
    ]
    assert responses.read_bytes() == before
    assert journal_lines(checkout) == asked
    assert checkout.planned(TABLE) == {}


def test_deleted_responses_of_a_judged_cell_redo_the_judge_requests_but_ask_no_judge(checkout):
    asked = journal_lines(checkout)
    checkout.path(f"{SQA_BASE}/responses.jsonl").unlink()
    assert jobs(checkout.run(TABLE)) == {
        "ask": 1,
        "build_judge_requests": 1,
        "ask_judge_on_login": 1,
        "grade": 1,
        "make_table": 1,
    }
    assert journal_lines(checkout) == asked


def test_a_deleted_cell_folder_asks_that_cell_only(checkout):
    before, asked = checkout.bytes_of(), journal_lines(checkout)
    own_journal = f"{NQ_BASE}/journal/answers.jsonl"
    asked[own_journal] = len(checkout.path(f"{NQ_BASE}/requests.jsonl").read_text().splitlines())
    shutil.rmtree(checkout.path(NQ_BASE))
    assert jobs(checkout.run(TABLE)) == {"build_requests": 1, "ask": 1, "grade": 1, "make_table": 1}
    assert journal_lines(checkout) == asked
    assert checkout.bytes_of() == before
    assert checkout.planned(TABLE) == {}


def test_a_deleted_journal_asks_again(checkout):
    shutil.rmtree(checkout.path(f"{NQ_BASE}/journal"))
    said = checkout.run(TABLE)
    assert jobs(said) == {"ask": 1, "grade": 1, "make_table": 1}
    assert f"gap: {NQ_BASE}/journal is missing: its questions are asked again" in said
    assert checkout.path(f"{NQ_BASE}/journal").is_dir()
    assert checkout.planned(TABLE) == {}


def test_deleted_tiles_are_rendered_again_and_what_follows_with_them(checkout):
    checkout.path("results/ci/corpora/factbook/tiles/tiles.zip").unlink()
    planned = checkout.planned(TABLE)
    assert planned["render_tiles"] == 1 and planned["read_tiles"] == 1
    assert "select_pages" not in planned and "extract_text" not in planned and "build_items" not in planned


def test_a_deleted_part_that_nothing_is_made_from_comes_back_alone_and_silently(checkout):
    checkout.path("results/ci/corpora/factbook/ocr-bge-trained/training.json").unlink()
    done = checkout.call(TABLE, "--dry-run", "--config", "run=ci")
    assert jobs(done.stdout + done.stderr)["train_adapter"] == 1 and "gap:" not in done.stderr


LORA = f"results/ci/pixelrag/mms/lora/{READER}"
# The first output of every rule of a cell; what else they make is looked at by `make test-slow`.
OF_RULES = (
    "results/ci/pixelrag/mms/lora/ranking.jsonl",
    *(f"{LORA}/{name}" for name in ("requests.jsonl", "responses.jsonl", "judge/requests.jsonl")),
    *(f"{LORA}/{name}" for name in ("judge/responses.jsonl", "graded.jsonl")),
)


def unnoticed(finished, paths, aside) -> list[str]:
    """Return the files whose deletion makes nothing run."""
    found = []
    for path in paths:
        held = finished.path(path)
        held.rename(aside)
        try:
            found += [] if finished.planned(TABLE) else [path]
        finally:
            aside.rename(held)
    return found


def test_a_deleted_file_of_every_rule_is_noticed(finished, tmp_path):
    assert unnoticed(finished, OF_RULES, tmp_path / "aside") == []


@pytest.mark.slow
def test_every_deleted_file_is_noticed(finished, tmp_path):
    declared = [path for path in finished.bytes_of() if path.startswith("results/ci/pixelrag/mms/lora")]
    others = set(declared) - set(OF_RULES)
    assert len(others) >= 6 and set(OF_RULES) <= set(declared)
    assert unnoticed(finished, sorted(others), tmp_path / "aside") == []


def test_touching_everything_reruns_nothing(checkout):
    sources = checkout.path("results/sources")
    shutil.rmtree(sources)
    shutil.copytree(ROOT / "results/sources", sources)
    for path in sorted(checkout.path("results").rglob("*"), reverse=True):
        if path.is_file():
            os.utime(path)
    assert checkout.planned(TABLE) == {}


def test_an_edited_grader_redoes_grading_and_the_table_only(edited):
    source = edited.project / "scripts/remeasure/graders/exact.py"
    source.write_text(source.read_text() + "\nCHANGED = 1\n")
    assert edited.planned(TABLE) == {"grade": 24, "make_table": 1}


def test_a_comment_in_a_grader_reruns_nothing(edited):
    source = edited.project / "scripts/remeasure/graders/exact.py"
    source.write_text("# a remark\n" + source.read_text() + "\n# another\n")
    assert edited.planned(TABLE) == {}


def test_a_changed_setting_of_one_bench_asks_its_cells_only(edited):
    protocol = edited.project / "config/studies/pixelrag.yaml"
    text = protocol.read_text()
    assert "nq: {title: NQ, grader: em, max_tokens: 200" in text
    protocol.write_text(
        text.replace(
            "nq: {title: NQ, grader: em, max_tokens: 200", "nq: {title: NQ, grader: em, max_tokens: 100"
        )
    )
    assert edited.planned(TABLE) == {"build_requests": 4, "ask": 4, "grade": 4, "make_table": 1}


def test_a_changed_prompt_asks_the_cells_that_show_it(edited):
    prompt = edited.project / "config/prompts/pixelrag/own/judge_simpleqa.txt"
    prompt.write_text("Judge with care.\n" + prompt.read_text())
    planned = edited.planned(TABLE)
    assert planned == {"build_judge_requests": 4, "ask_judge_on_login": 4, "grade": 4, "make_table": 1}


def test_a_changed_address_or_time_limit_asks_nothing_again(checkout):
    run = checkout.project / "config/runs/embedded.yaml"
    run.write_text(run.read_text().replace("timeout_s: 120", "timeout_s: 121"))
    asked = journal_lines(checkout)
    done = jobs(checkout.run(TABLE))
    assert done["describe_executor"] == 1 and "build_requests" not in done
    assert journal_lines(checkout) == asked
    assert checkout.planned(TABLE) == {}


def test_forget_removes_a_cell_and_what_follows_and_nothing_else(checkout):
    import subprocess
    import sys

    copy = checkout.path("results/table1.csv")
    copy.write_text("bench,naive,run\nnq,0.0,ci\n")
    before = set(checkout.bytes_of())
    script = [sys.executable, str(checkout.project / "scripts/forget.py")]
    listed = subprocess.run([*script, "-n", NQ_BASE], cwd=checkout.directory, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    assert set(checkout.bytes_of()) == before
    gone = set(listed.stdout.split())
    assert f"{NQ_BASE}/journal/answers.jsonl" in gone and TABLE in gone and "results/table1.csv" in gone
    assert not [path for path in gone if "/nq/naive/" in path]
    subprocess.run([*script, NQ_BASE], cwd=checkout.directory, check=True, capture_output=True)
    assert not copy.exists()
    gone.discard("results/table1.csv")
    assert before - set(checkout.bytes_of()) == {
        path for path in gone if not {"logs", "journal"} & set(path.split("/"))
    }
    assert checkout.planned(TABLE)["ask"] == 1


def test_a_cell_that_is_split_into_jobs_later_asks_nothing_again_and_keeps_its_bytes(checkout):
    path = checkout.project / "config" / "runs" / "ci.yaml"
    path.write_text(
        path.read_text().replace("items_per_bench: 4", "items_per_bench: 4, shards: {nq/base: 3}")
    )
    cell = "results/ci/pixelrag/nq/base/page-reader-smollm2"
    target = f"{cell}/responses.jsonl"
    before = checkout.path(target).read_bytes()
    n_lines = len(checkout.path(f"{cell}/journal/answers.jsonl").read_text().splitlines())
    assert jobs(checkout.run(target)) == {"ask_shard": 3, "ask": 1}
    assert checkout.path(target).read_bytes() == before
    assert [len(p.read_bytes()) for p in sorted(checkout.path(f"{cell}/journal").glob("?of3.jsonl"))] == [
        0
    ] * 3
    assert len(checkout.path(f"{cell}/journal/answers.jsonl").read_text().splitlines()) == n_lines
    assert checkout.planned(target) == {}
    # Asked anew in three jobs, each of which starts the model: the same bytes.
    shutil.rmtree(checkout.path(cell))
    assert jobs(checkout.run(target)) == {"build_requests": 1, "ask_shard": 3, "ask": 1}
    assert checkout.path(target).read_bytes() == before
    sizes = [
        len(p.read_text().splitlines()) for p in sorted(checkout.path(f"{cell}/journal").glob("?of3.jsonl"))
    ]
    assert sum(sizes) == 4 and checkout.path(f"{cell}/journal/answers.jsonl").read_bytes() == b""
