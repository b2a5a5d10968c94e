"""A small made-up table on disk, with stage records from score back to sources."""

import hashlib
import json
from pathlib import Path

from remeasure import jsonl
from remeasure.graders import by_name
from remeasure.grading import Bootstrap, GradeSettings, Tally, score
from remeasure.records import Graded, Reading, Stage

BENCHES = {
    "nq": "NQ",
    "nqt": "NQ-Tables",
    "sqa": "SimpleQA",
    "livevqa": "LiveVQA",
    "mms": "MMSearch",
    "evqa": "EVQA",
}
ARMS = {
    "naive": "No retrieval",
    "traf": "Trafilatura text",
    "base": "Tiles, base encoder",
    "lora": "Tiles, trained encoder",
}
GRADERS = {
    "nq": "em",
    "nqt": "em",
    "sqa": "judge_simpleqa",
    "livevqa": "mcq_letter",
    "mms": "judge_worldvqa",
    "evqa": "judge_worldvqa",
}


def table_settings(benches=BENCHES, arms=ARMS, **changes):
    return {
        "table": "table1",
        "run": "embedded",
        "title": "Screenshots or extracted text as evidence (PixelRAG, Table 1)",
        "run_title": "Embedded data and models",
        "unit": "percent",
        "rows": [{"bench": bench, "title": BENCHES[bench]} for bench in benches],
        "columns": [{"arm": arm, "title": ARMS[arm]} for arm in arms],
        "contrasts": [["traf", "naive"], ["base", "naive"]],
        "not_comparable": ["data", "reader"],
        "bootstrap": {"n": 200, "seed": 1},
    } | changes


def graded_line(number, right, *, status="answered", grader="em", group=None):
    verdict = "correct" if right else "incorrect"
    published = Reading(verdict=verdict, score=float(right), reason="made up")
    strict = published if status == "answered" else Reading(verdict="ungraded", score=None, reason="made up")
    return Graded(
        item_id=f"q{number:02}",
        group=group or f"page{number}",
        status=status,
        answer="x" if status == "answered" else None,
        grader=f"{grader}@1",
        published=published,
        strict=strict,
    )


def write_cell(root: Path, bench: str, arm: str, lines, *, reader="A reader") -> Path:
    """Write graded.jsonl, score.json and grade.json of a cell below ``root``; return the folder."""
    folder = root / "results/embedded/pixelrag" / bench / arm / "reader"
    settings = GradeSettings(
        study="pixelrag",
        bench=bench,
        arm=arm,
        model="reader",
        grader=GRADERS[bench],
        k=3,
        thinking=False,
        reader=reader,
        judge="A judge" if GRADERS[bench].startswith("judge") else None,
        corpus="factbook",
        bootstrap=Bootstrap(n=200, seed=1),
        max_judge_failed_share=0.01,
    )
    tally = Tally("accuracy")
    for line in lines:
        tally.add(line)
        tally.add_answer(line.status, line.answer)
    jsonl.write(folder / "graded.jsonl", lines)
    jsonl.write_json(folder / "score.json", score(settings, by_name(GRADERS[bench]), tally, retrieved=False))
    return folder


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_record(path: Path, stage: str, inputs, outputs, facts=None) -> Path:
    """Write a stage record with the files' real hashes."""
    jsonl.write_json(
        path,
        Stage(
            stage=stage,
            settings={"stage": stage},
            code="0" * 16,
            inputs={str(name): digest(name) for name in inputs},
            outputs={str(name): digest(name) for name in outputs},
            facts=facts or {},
        ),
    )
    return path


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_table_inputs(root: Path, outcomes, *, status_of=None, answered_by=None):
    """Write a whole table's cells with records.

    Args:
        root: working directory.
        outcomes: (bench, arm) to list of right or wrong.
        answered_by: (bench, arm) to the models and servers on record.
        status_of: (bench, arm, number) to response status, where it is not "answered".

    Returns:
        Options of make_table for scores, graded files and stages.
    """
    source = put(root / "results/sources/factbook.zip", "source bytes")
    pages = put(root / "results/embedded/corpora/factbook/pages.jsonl", "pages")
    stages = [write_record(pages.with_suffix(".json"), "select_pages", [source], [pages])]
    scores, graded = [], []
    for (bench, arm), rights in outcomes.items():
        lines = [
            graded_line(
                number,
                right,
                status=(status_of or {}).get((bench, arm, number), "answered"),
                grader=GRADERS[bench],
            )
            for number, right in enumerate(rights)
        ]
        folder = write_cell(root, bench, arm, lines)
        responses = put(folder / "responses.jsonl", f"responses of {bench} {arm}")
        facts = {"answered_by": (answered_by or {}).get((bench, arm), [])}
        record = folder / "answers.json"
        stages.append(write_record(record, "collect_responses", [pages], [responses], facts))
        outputs = [folder / "graded.jsonl", folder / "score.json"]
        stages.append(write_record(folder / "grade.json", "grade", [responses, pages], outputs))
        scores.append(outputs[1])
        graded.append(outputs[0])
    return {"--scores": scores, "--graded": graded, "--stages": stages}


def table_argv(root: Path, files, published: Path, settings):
    argv = ["--settings", json.dumps(settings), "--published", str(published)]
    for option, paths in files.items():
        argv += [option, *map(str, paths)]
    tables = root / "results/embedded/tables"
    for option, suffix in {
        "--out-wide": ".csv",
        "--out-cells": ".cells.csv",
        "--out-contrasts": ".contrasts.csv",
        "--out-markdown": ".md",
        "--out-provenance": ".json",
        "--out-figure": ".svg",
    }.items():
        argv += [option, str(tables / f"table1{suffix}")]
    return argv
