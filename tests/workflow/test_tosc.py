"""The second study on the same stages: killed and continued, on one's own images, and named by no rule."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT, Checkout, copy_project, jobs, link_sources
from killkit import journal_keys, kill_and_continue

TARGETS = ("results/ci/tables/tosc.csv", "results/ci/tables/tosc.html")
MODELS = ("captioner-scan", "captioner-glance")


def answered(checkout: Checkout, model: str) -> list[str]:
    """Return the keys of all answers that a captioner's journal holds."""
    return journal_keys(checkout.path(f"results/ci/tosc/triplets/describe/{model}/journal"))


def test_no_rule_names_a_study():
    studies = sorted(path.stem for path in (ROOT / "config" / "studies").glob("*.yaml"))
    assert {"pixelrag", "tosc", "mrarebench", "ragbench"} <= set(studies)
    for path in [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]:
        text = path.read_text().lower()
        assert not [name for name in studies if re.search(rf"\b{name}\b", text)], path


def test_no_stage_asks_which_study_it_serves():
    """Scripts and the modules of stages look a study's modules up by name and compare with none."""
    for path in (ROOT / "scripts").rglob("*.py"):
        assert not re.search(r"study\s*(==|!=|in)\s*[\[(\"']", path.read_text()), path


@pytest.mark.slow  # the story of test_ragbench.py, which is told every time
@pytest.mark.timeout(300)
def test_a_killed_run_goes_on_asks_nothing_twice_and_ends_in_the_same_bytes(finished, tmp_path):
    checkout = Checkout(copy_project(tmp_path / "project"), tmp_path / "work")
    link_sources(checkout.directory)
    cells = {f"results/ci/tosc/triplets/describe/{model}": 30 for model in MODELS}  # images of ten triplets
    kill_and_continue(checkout, TARGETS, cells, at_least=4)
    for pattern in ("results/ci/tosc/**/*", "results/ci/tables/tosc*"):
        assert checkout.bytes_of(pattern) == finished.bytes_of(pattern)


def test_another_lexicon_grades_again_and_asks_nothing(checkout):
    lexicon = checkout.project / "config/lexicons/coco.tsv"
    lines = lexicon.read_text().splitlines(keepends=True)
    lexicon.write_text("".join(line for line in lines if "\tlamb\t" not in line))
    before = {model: answered(checkout, model) for model in MODELS}
    done = jobs(checkout.run(*TARGETS))
    assert {"index_tosc": 1, "grade": 2, "make_table": 1, "make_page": 1}.items() <= done.items()
    assert before == {model: answered(checkout, model) for model in MODELS}


def test_one_captioner_more_asks_it_alone(edited):
    run = edited.project / "config/runs/ci.yaml"
    run.write_text(
        run.read_text().replace(
            "tosc: {", "tosc: {reader: [captioner-scan, captioner-glance, captioner-two], "
        )
        + """
models:
  captioner-two:
    title: "Two scales"
    server: serve_captioner.py
    files:
      weights: results/sources/efficientnet-lite0.pth
      synsets: results/sources/imagenet-synsets.txt
      lemmas: results/sources/imagenet-lemmas.txt
    packages: [onnx, onnxruntime, opencv-python-headless, numpy]
    options: {threads: 1, scales: 2, threshold: 0.3}
"""
    )
    planned = edited.planned(*TARGETS)
    assert (planned["ask"], planned["grade"]) == (1, 1)
    assert "build_items" not in planned and "index_tosc" not in planned


def own_images(folder: Path, n: int = 2) -> None:
    """Unpack the first triplets of the composed store, and add what people have lying about."""
    with zipfile.ZipFile(ROOT / "results/sources/composed-triplets.zip") as store:
        for name in store.namelist():
            if int(re.match(r"\d+", Path(name).name)[0]) <= n:
                target = folder / Path(name).relative_to("benchmark")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(store.read(name))
    (folder / "original/images/.DS_Store").write_bytes(b"x")
    (folder / "original/images/notes.txt").write_text("mine")


@pytest.mark.timeout(300)
def test_ones_own_folder_of_images_makes_a_table(checkout, tmp_path):
    own_images(tmp_path / "my images")
    (checkout.project / "config/runs/mine.yaml").write_text(
        f"""
extends: ci
title: "Mine"
studies:
  tosc:
    source: {json.dumps(str(tmp_path / "my images"))}
    index: {{expected: null}}
    items_per_bench: 2
    reader: captioner-glance
    compare: []
"""
    )
    checkout.run("results/mine/tables/tosc.csv", config=("run=mine",))
    report = json.loads(checkout.path("results/mine/tosc/index/index_report.json").read_text())
    assert (report["n_complete"], report["n_ignored"]) == (2, 2)
    wide = checkout.path("results/mine/tables/tosc.csv").read_text().splitlines()
    assert wide[0].startswith("model,opa,rca,rua,tosc,") and wide[1].startswith("captioner-glance,")
    # The same images under other roofs have the same captions.
    ours = checkout.path("results/mine/tosc/triplets/describe/captioner-glance/responses.jsonl")
    theirs = checkout.path("results/ci/tosc/triplets/describe/captioner-glance/responses.jsonl")
    said = [[json.loads(line)["text"] for line in path.read_text().splitlines()] for path in (ours, theirs)]
    assert said[0] == said[1][:6]


def test_two_images_of_one_number_stop_the_run_with_a_sentence(checkout, tmp_path):
    own_images(tmp_path / "images")
    shutil.copy(tmp_path / "images/original/images/1.jpg", tmp_path / "images/original/images/0001.jpg")
    (checkout.project / "config/runs/mine.yaml").write_text(
        f"""
extends: ci
title: "Mine"
studies:
  tosc: {{source: {json.dumps(str(tmp_path / "images"))}, items_per_bench: 2}}
"""
    )
    done = checkout.call("results/mine/tables/tosc.csv", "--config", "run=mine")
    assert done.returncode != 0
    assert "0001.jpg" in done.stderr and "1.jpg" in done.stderr
    assert "Traceback" not in done.stderr


def test_captions_that_another_system_has_written_are_graded(checkout, tmp_path):
    """Known by the names of the image files, as the lines of the published runner are."""
    with zipfile.ZipFile(ROOT / "results/sources/composed-triplets.zip") as store:
        names = [Path(name).name for name in store.namelist()[:6]]
    lines = []
    for first in (0, 3):
        old, new = names[first + 2].removesuffix(".png").partition("_masked_")[2].split("_insert_")
        # The second triplet's object is said to be there still after it was removed.
        for name, shown in zip(names[first : first + 3], (old, old if first else "wall", new), strict=True):
            text = f"There is a {shown.replace('_', ' ')} in the picture."
            lines.append({"question_id": name, "text": text})
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (checkout.project / "config/runs/mine.yaml").write_text(
        f"""
extends: ci
title: "Mine"
models:
  theirs: {{title: "Theirs", imported: {{format: tosc, path: {json.dumps(str(path))}}}}}
studies:
  tosc: {{items_per_bench: 2, reader: theirs, compare: []}}
"""
    )
    cell = "results/mine/tosc/triplets/describe/theirs"
    checkout.run(f"{cell}/score.json", config=("run=mine",))
    graded = [json.loads(line) for line in checkout.path(f"{cell}/graded.jsonl").read_text().splitlines()]
    assert [(line["item_id"], line["strict"]["verdict"]) for line in graded] == [
        ("000001", "consistent"),
        ("000002", "inconsistent"),
    ]
    assert not checkout.path(f"{cell}/journal/unmatched.txt").exists()


def my_run(checkout: Checkout, source: Path) -> tuple[str, ...]:
    """Write the run ``mine`` over a folder of one's own images; return the settings of a call."""
    (checkout.project / "config/runs/mine.yaml").write_text(
        f"""
extends: ci
title: "Mine"
studies:
  tosc:
    source: {json.dumps(str(source))}
    index: {{expected: null}}
    items_per_bench: 2
    reader: captioner-glance
    compare: []
"""
    )
    return ("run=mine",)


@pytest.mark.timeout(300)
def test_what_changes_below_a_folder_of_images_is_noticed_and_nothing_else(checkout, tmp_path):
    images = tmp_path / "images"
    own_images(images, 3)
    third = [path for path in images.rglob("3*") if path.is_file()]
    assert len(third) == 3
    for path in third:
        path.rename(tmp_path / path.name)
    config, index = my_run(checkout, images), "results/mine/tosc/index/index_report.json"
    checkout.run(index, config=config)
    times = {path: path.stat().st_mtime_ns for path in (images, *images.glob("*"), *images.glob("*/images"))}

    def as_before() -> None:
        """Give every folder its old time: what is noticed then are the files."""
        for path, then in times.items():
            os.utime(path, ns=(then, then))

    as_before()
    assert checkout.planned(index, config=config) == {}
    image = images / "original/images/1.jpg"
    data = image.read_bytes()
    image.write_bytes(data + b"\0")
    triplets = checkout.path("results/mine/tosc/index/TOSC_dataset.jsonl")
    before = json.loads(triplets.read_text().splitlines()[0])
    assert jobs(checkout.run(index, config=config)) == {"index_tosc": 1}
    after = json.loads(triplets.read_text().splitlines()[0])
    assert before["sha256"]["origin"] != after["sha256"]["origin"]
    assert checkout.planned(index, config=config) == {}
    for path in third:
        (tmp_path / path.name).rename(path)
    as_before()
    assert jobs(checkout.run(index, config=config)) == {"index_tosc": 1}
    assert json.loads(checkout.path(index).read_text())["n_complete"] == 3
    assert checkout.planned(index, config=config) == {}


def test_the_first_table_of_ones_own_run_says_nothing_of_another_run_s_copy(checkout, tmp_path):
    own_images(tmp_path / "images")
    config = my_run(checkout, tmp_path / "images")
    tables = [f"{name}.csv" for name in ("cells", "contrasts", "breakdown", "drift", "spread", "failures")]
    for part in ("csv", *tables, "md", "json", "svg", "html"):
        checkout.path(f"results/tosc.{part}").write_text("model,run\nreader,embedded\n")
    done = checkout.call("results/tosc.csv", "--dry-run", "--config", *config)
    assert done.returncode == 0 and "gap:" not in done.stderr, done.stderr
    assert "make_table" in done.stdout + done.stderr


def test_forgetting_a_captioner_takes_its_captions_from_the_page_too(checkout):
    cell = "results/ci/tosc/triplets/describe/captioner-glance"
    for part in ("csv", "html"):
        checkout.path(f"results/tosc.{part}").write_text("model,run\nreader,ci\n")
    grader = checkout.project / "scripts/remeasure/graders/triplets.py"
    script = [sys.executable, str(checkout.project / "scripts/forget.py"), "-n", cell]

    def listed() -> set[str]:
        done = subprocess.run(script, cwd=checkout.directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return set(done.stdout.split())

    gone = listed()
    tables = {f"results/{name}.{part}" for name in ("ci/tables/tosc", "tosc") for part in ("csv", "html")}
    assert tables <= gone and not [path for path in gone if "captioner-scan" in path or "table1" in path]
    grader.write_text(grader.read_text() + "\n_LATER = None\n")  # every table is outdated for that reason too
    assert listed() == gone
