"""The third study on the same stages: its table, killed and continued, and one cell asked again."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from conftest import Checkout, copy_project, jobs, link_sources
from killkit import journal_keys, kill_and_continue

TARGETS = ("results/ci/tables/mrarebench.csv", "results/ci/tables/mrarebench.html")
CELLS = [f"diagnosis/{arm}" for arm in ("fd", "lc", "to")] + [
    f"evidence/{arm}" for arm in ("img", "txt", "nodx")
]
N_ITEMS = 6


def folder(cell: str) -> str:
    return f"results/ci/mrarebench/{cell}/case-reader"


def answered(checkout: Checkout, cell: str, part: str = "journal") -> list[str]:
    """Return the keys of all answers that a cell's journal holds."""
    return journal_keys(checkout.path(f"{folder(cell)}/{part}"))


def rows(path: Path) -> dict[str, dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return {row["arm"]: row for row in csv.DictReader(stream)}


def test_images_tell_more_than_text_in_both_tracks(finished):
    found = rows(finished.path(TARGETS[0]))
    assert list(found) == ["fd", "lc", "to", "img", "txt", "nodx"]
    # Six cases: a difference of three of six.
    assert float(found["lc"]["recall@3"]) >= float(found["to"]["recall@3"]) + 0.5
    metric = "hierarchical_required_recall"
    assert float(found["img"][metric]) >= float(found["txt"][metric]) + 0.5
    assert float(found["txt"][metric]) == 0.0, "without an image nothing was seen"
    assert found["to"]["hierarchical_required_recall"] == found["img"]["recall@1"] == ""
    assert {row["infer_fail_rate"] for row in found.values()} == {"0.000"}


def test_requests_differ_in_nothing_but_their_condition(finished):
    """Card, section 1: what is told of findings, which images are sent, whether the diagnosis is named."""

    def parts(cell: str) -> list[list[dict]]:
        lines = finished.path(f"{folder(cell)}/requests.jsonl").read_text().splitlines()
        return [json.loads(line)["body"]["messages"][0]["content"] for line in lines]

    def images(content: list[dict]) -> list[str]:
        return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]

    for lc, fd, to in zip(*(parts(f"diagnosis/{arm}") for arm in ("lc", "fd", "to")), strict=True):
        assert images(lc) == images(fd) != [] == images(to)
    for img, txt, nodx in zip(*(parts(f"evidence/{arm}") for arm in ("img", "txt", "nodx")), strict=True):
        assert images(img) == images(nodx) != [] == images(txt)
        assert img[-1] == txt[-1] and img[:-1] == nodx[:-1]
        name = img[-1]["text"].partition("Established diagnosis: ")[2].partition(".")[0]
        assert name and name not in nodx[-1]["text"]


@pytest.mark.slow  # the story of test_ragbench.py, which is told every time
@pytest.mark.timeout(300)
def test_a_killed_run_goes_on_asks_nothing_twice_and_ends_in_the_same_bytes(finished, tmp_path):
    checkout = Checkout(copy_project(tmp_path / "project"), tmp_path / "work")
    link_sources(checkout.directory)
    kill_and_continue(checkout, TARGETS, {folder(cell): N_ITEMS for cell in CELLS}, at_least=2)
    for pattern in ("results/ci/mrarebench/**/*", "results/ci/tables/mrarebench*"):
        assert checkout.bytes_of(pattern) == finished.bytes_of(pattern)


def test_without_one_cell_s_answers_that_cell_and_its_table_are_made_again(checkout):
    cell = "evidence/nodx"
    judged = {other: answered(checkout, other, "judge/journal") for other in CELLS}
    checkout.path(f"{folder(cell)}/responses.jsonl").unlink()
    shutil.rmtree(checkout.path(f"{folder(cell)}/journal"))
    before = checkout.bytes_of("results/ci/**/*")
    done = jobs(checkout.run(*TARGETS))
    assert {rule: n for rule, n in done.items() if rule.startswith("ask") or rule.startswith("build")} == {
        **{"ask": 1, "build_judge_requests": 1, "ask_judge_on_login": 1}
    }
    assert (done["grade"], done["make_table"], done["make_page"]) == (1, 1, 1)
    assert sum(done.values()) <= 7, done  # and the program that answers is described
    after = checkout.bytes_of("results/ci/**/*")
    assert {name: data for name, data in after.items() if before.get(name, data) != data} == {}
    assert len(answered(checkout, cell)) == N_ITEMS
    # The same answers: every verdict is known.
    assert {other: answered(checkout, other, "judge/journal") for other in CELLS} == judged


def test_another_judge_judges_again_and_asks_the_reader_nothing(edited):
    run = edited.project / "config/runs/ci.yaml"
    run.write_text(run.read_text() + "models:\n  case-judge: {options: {threads: 1, threshold: 3.0}}\n")
    planned = edited.planned(*TARGETS)
    assert planned["ask_judge_on_login"] == 6 and planned["grade"] == 6
    assert not {"ask", "build_requests", "build_items", "index_mrarebench", "make_composed_cases"} & set(
        planned
    )


def test_another_set_of_cases_is_one_setting(edited):
    run = edited.project / "config/runs/ci.yaml"
    run.write_text(
        run.read_text().replace(
            "mrarebench: {", "mrarebench: {source: results/sources/composed-cases-tuning, "
        )
    )
    planned = edited.planned(*TARGETS)
    assert planned["index_mrarebench"] == 1 and planned["ask"] == 6


def test_what_is_asked_again_is_asked_under_a_number_and_nothing_else_is(edited):
    (edited.project / "config/runs/twice.yaml").write_text(
        "extends: ci\ntitle: Twice\nstudies:\n  pixelrag: null\n  tosc: null\n  mrarebench: {repeat: 2}\n"
    )
    target = "results/twice/tables/mrarebench.drift.csv"
    done = edited.call(target, "--dry-run", "--config", "run=twice")
    assert done.returncode == 0, done.stderr
    for cell in CELLS:
        for called in ("case-reader", "case-reader@2"):
            assert f"results/twice/mrarebench/{cell}/{called}/responses.jsonl" in done.stdout + done.stderr
    assert "case-reader@3" not in done.stdout + done.stderr and "pixelrag" not in done.stdout
