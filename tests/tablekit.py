"""A small made-up table on disk, with stage records from score back to sources."""

import json
from itertools import product
from pathlib import Path

from remeasure import files, jsonl
from remeasure.graders import by_name
from remeasure.grading import Bootstrap, GradeSettings, Tally, score
from remeasure.records import Failed, Graded, Reading, Stage
from remeasure.tables import published

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
_WORDS = Path(__file__).parents[1] / "config/lexicons/coco.tsv"
# What the grader of triplets is told.
LEXICON = {
    "lexicon": {"name": "coco", "path": "config/lexicons/coco.tsv", "sha256": files.sha256_file(_WORDS)},
    "unknown_objects": "other",
    "extra_synonyms": {},
    "denominator": "complete",
    "cut_off": "keep",
    "negation": False,
}
GRADERS = {
    "nq": "em",
    "nqt": "em",
    "sqa": "judge_simpleqa",
    "livevqa": "mcq_letter",
    "mms": "judge_worldvqa",
    "evqa": "judge_worldvqa",
    "triplets": "triplets",
}


READER = "reader"


def table_settings(benches=BENCHES, arms=ARMS, **changes):
    """Settings of a table with a row per bench and a column per arm."""
    return {
        "table": "table1",
        "run": "embedded",
        "study": "pixelrag",
        "title": "Screenshots or extracted text as evidence (PixelRAG, Table 1)",
        "run_title": "Embedded data and models",
        "unit": "percent",
        "decimals": 1,
        "notes": [],
        "cells": [[bench, arm, READER] for bench, arm in product(benches, arms)],
        "metrics": [{"name": "accuracy", "title": "Accuracy", "better": "high"}],
        "titles": {
            "bench": {bench: BENCHES[bench] for bench in benches},
            "arm": {arm: ARMS[arm] for arm in arms},
            "model": {READER: "A reader"},
            "metric": {"accuracy": "Accuracy"},
        },
        "row_axes": ["bench"],
        "column_axes": ["arm"],
        "rows": [{"at": {"bench": bench}, "title": BENCHES[bench]} for bench in benches],
        "columns": [{"at": {"arm": arm}, "title": ARMS[arm]} for arm in arms],
        "fixed": {"model": READER, "metric": "accuracy"},
        "averaged": [],
        "contrasts": [{"axis": "arm", "first": arm, "second": "naive"} for arm in ("traf", "base")],
        "not_comparable": ["data", "reader"],
        "bootstrap": {"n": 200, "seed": 1},
    } | changes


# Name, title and better direction of what a triplet is measured by; the headline metric is `tosc`.
RATES = {
    "opa": ("OPA", "high"),
    "rca": ("RCA", "high"),
    "rua": ("RUA", "high"),
    "tosc": ("TOSC", "high"),
    "oldpersist_rem": ("OldPersist_rem", "low"),
    "oldpersist_rep": ("OldPersist_rep", "low"),
    "repfail": ("RepFail", "low"),
    "cc": ("CC", "low"),
    "mixconf": ("MixConf", "low"),
}
NOTHING_PUBLISHED = ",".join(published.COLUMNS) + "\n"
MODELS = {"small": "A small model", "large": "A large model"}


def rates_settings(models=MODELS, rates=RATES, **changes):
    """Settings of a table with a row per model and a column per metric."""
    titles = {name: title for name, (title, _) in rates.items()}
    return table_settings(
        **{
            "table": "tosc",
            "study": "tosc",
            "title": "One object, three images (TOSC)",
            "decimals": 2,
            "cells": [["triplets", "describe", model] for model in models],
            "metrics": [
                {"name": name, "title": title, "better": better} for name, (title, better) in rates.items()
            ],
            "titles": {
                "bench": {"triplets": "Image triplets"},
                "arm": {"describe": "Describe"},
                "model": dict(models),
                "metric": titles,
            },
            "row_axes": ["model"],
            "column_axes": ["metric"],
            "rows": [{"at": {"model": model}, "title": title} for model, title in models.items()],
            "columns": [{"at": {"metric": name}, "title": title} for name, title in titles.items()],
            "fixed": {"bench": "triplets", "arm": "describe"},
            "averaged": ["overlap", "object"],
            "contrasts": [{"axis": "model", "first": "large", "second": "small"}],
            "not_comparable": [],
        }
        | changes
    )


def rates_of(bits):
    """The nine rates of one triplet, worked out from its four bits as the TOSC card has them."""
    a, b, c, d = bits
    return {
        "opa": a,
        "rca": 1 - b,
        "rua": d * (1 - c),
        "tosc": a * (1 - b) * d * (1 - c),
        "oldpersist_rem": b,
        "oldpersist_rep": c,
        "repfail": 1 - d,
        "cc": (1 - c) * (1 - d),
        "mixconf": c * d,
    }


def rates_reading(bits, *, graded=True):
    scores = {name: float(value) if graded else None for name, value in rates_of(bits).items()}
    score = scores.pop("tosc")
    verdict = "ungraded" if score is None else "consistent" if score else "inconsistent"
    return Reading(verdict=verdict, score=score, reason="made up", scores=scores)


def rates_line(number, bits, *, strict=None, phrase=None, status="answered", strata=None, counts=None):
    """A triplet; its strict and phrase readings have other bits where they are given.

    A triplet that failed is ungraded in the strict reading; ``phrase=False`` makes it so in that reading.
    """
    return Graded(
        item_id=f"{number:06}",
        group=f"{number:06}",
        status=status,
        answer=None,
        grader="triplets@1",
        published=rates_reading(bits),
        strict=rates_reading(strict or bits, graded=status == "answered"),
        also={"phrase": rates_reading(phrase or bits, graded=phrase is not False)},
        strata=strata or {},
        counts=counts or {},
    )


# How a failed answer of each status is classed, and what is said of it.
KIND_OF = {
    "failed": ("timeout", "timeout: no reply within 60 s"),
    "not_sent": ("missing", "not_sent"),
    "refused": ("refused", "refused: content filter"),
    "cut_off": ("truncated", "cut_off: 8 tokens"),
}


def failed_of(item_id, status):
    """What is on record of an answer of this status; nothing where it is whole."""
    if status not in KIND_OF:
        return ()
    kind, error = KIND_OF[status]
    return (Failed(item_id=item_id, role="reader", kind=kind, error=error),)


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
        failed=failed_of(f"q{number:02}", status),
    )


def write_cell(
    root: Path,
    bench: str,
    arm: str,
    lines,
    *,
    reader="A reader",
    model=READER,
    headline="accuracy",
    answers=None,
) -> Path:
    """Write graded.jsonl, score.json and grade.json of a cell below ``root``; return the folder.

    Args:
        root: working directory.
        bench: of the cell.
        arm: of the cell.
        lines: its graded units.
        reader: title of the model.
        model: of the cell.
        headline: metric of the units' scores.
        answers: status and text of every answer; those of the units where each has one.
    """
    study = "tosc" if bench == "triplets" else "pixelrag"
    folder = root / "results/embedded" / study / bench / arm / model
    grader = by_name(GRADERS[bench])
    settings = GradeSettings(
        study=study,
        bench=bench,
        arm=arm,
        model=model,
        grader=GRADERS[bench],
        options=LEXICON if bench == "triplets" else {},
        k=None if bench == "triplets" else 3,
        thinking=False,
        reader=reader,
        judge="A judge" if grader.judged else None,
        corpus=None if bench == "triplets" else "factbook",
        bootstrap=Bootstrap(n=200, seed=1),
        max_judge_failed_share=0.01,
    )
    tally = Tally(headline)
    for line in lines:
        tally.add(line)
    for status, text in answers or [(line.status, line.answer) for line in lines]:
        tally.add_answer(status, text)
    jsonl.write(folder / "graded.jsonl", lines)
    jsonl.write_json(folder / "score.json", score(settings, grader, tally, retrieved=False))
    return folder


def digest(path: Path) -> str:
    return files.sha256_of(path)


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


def write_table_inputs(root: Path, outcomes, *, status_of=None, answered_by=None, model=READER):
    """Write a whole table's cells of one metric with records.

    Args:
        root: working directory.
        outcomes: (bench, arm) to list of right or wrong.
        answered_by: (bench, arm) to the models and servers on record.
        status_of: (bench, arm, number) to response status, where it is not "answered".
        model: of all cells.

    Returns:
        Options of make_table for scores, graded files and stages.
    """
    folders = {}
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
        folders[bench, arm] = write_cell(root, bench, arm, lines, model=model)
    return write_stages(root, folders, answered_by)


def write_rates_inputs(root: Path, lines, *, answers=None):
    """Write the cells of a table of rates with records.

    Args:
        root: working directory.
        lines: model to its graded triplets.
        answers: model to status and text of its captions, three for each triplet.

    Returns:
        Options of make_table for scores, graded files and stages.
    """
    folders = {}
    for model, triplets in lines.items():
        captions = (answers or {}).get(model) or [("answered", "one two")] * (3 * len(triplets))
        folders[model, "triplets"] = write_cell(
            root,
            "triplets",
            "describe",
            triplets,
            reader=MODELS.get(model, model),
            model=model,
            headline="tosc",
            answers=captions,
        )
    return write_stages(root, folders)


def write_stages(root: Path, folders, answered_by=None):
    """Write the records of the stages behind cells, from one source on."""
    source = put(root / "results/sources/factbook.zip", "source bytes")
    pages = put(root / "results/embedded/corpora/factbook/pages.jsonl", "pages")
    stages = [write_record(pages.with_suffix(".json"), "select_pages", [source], [pages])]
    for name, folder in folders.items():
        responses = put(folder / "responses.jsonl", f"responses of {' '.join(name)}")
        facts = {"answered_by": (answered_by or {}).get(name, [])}
        record = folder / "answers.json"
        stages.append(write_record(record, "collect_responses", [pages], [responses], facts))
        outputs = [folder / "graded.jsonl", folder / "score.json"]
        stages.append(write_record(folder / "grade.json", "grade", [responses, pages], outputs))
    return {
        "--scores": [folder / "score.json" for folder in folders.values()],
        "--graded": [folder / "graded.jsonl" for folder in folders.values()],
        "--stages": stages,
    }


def table_argv(root: Path, cells, printed: Path, settings):
    argv = ["--settings", json.dumps(settings), "--published", str(printed)]
    for option, paths in cells.items():
        argv += [option, *map(str, paths)]
    tables = root / "results/embedded/tables"
    for option, suffix in {
        "--out-wide": ".csv",
        "--out-cells": ".cells.csv",
        "--out-contrasts": ".contrasts.csv",
        "--out-breakdown": ".breakdown.csv",
        "--out-drift": ".drift.csv",
        "--out-spread": ".spread.csv",
        "--out-failures": ".failures.csv",
        "--out-markdown": ".md",
        "--out-provenance": ".json",
        "--out-figure": ".svg",
    }.items():
        argv += [option, str(tables / f"{settings['table']}{suffix}")]
    return argv
