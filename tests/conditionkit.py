"""A small made-up table of conditions: two benches with arms of their own, metrics of every kind, repeats."""

import json
from pathlib import Path

import tablekit
from remeasure import jsonl
from remeasure.graders import MetricName
from remeasure.grading import Bootstrap, GradeSettings, Tally, score
from remeasure.records import Graded, Reading
from remeasure.repeats import name as repeat_name

METRICS = {
    "diagnosis": (
        MetricName("recall@1", "Recall@1"),
        MetricName("mrr", "MRR"),
        MetricName("mr", "MR", better="low", kind="number", if_none=0.0, shows_n=True),
    ),
    "evidence": (
        MetricName("recall", "Recall"),
        MetricName("pooled", "Recall of points"),
        MetricName("drop", "Drop", better="low", kind="difference"),
    ),
}
ARMS = {
    "fd": "FD: findings and images",
    "lc": "LC: images, findings withheld",
    "to": "TO: text only, findings withheld",
    "img": "Img: images, diagnosis given",
    "txt": "Txt: no images, diagnosis given",
    "nodx": "NoDx: images, diagnosis withheld",
}
ARMS_OF = {"diagnosis": ("fd", "lc", "to"), "evidence": ("img", "txt", "nodx")}
BENCHES = {"diagnosis": "Diagnosis (T1)", "evidence": "Evidence (T2)"}
CONTRASTS = [
    {"axis": "arm", "first": "fd", "second": "lc", "name": "delta_sub", "title": "Δ_sub: what findings tell"},
    {"axis": "arm", "first": "lc", "second": "to", "name": "delta_vis", "title": "Δ_vis: what images give"},
    {"axis": "arm", "first": "img", "second": "txt", "name": "delta_grd", "title": "Δ_grd: what is seen"},
    {"axis": "arm", "first": "img", "second": "nodx", "name": "delta_dx", "title": "Δ_dx: what names give"},
]


class Made:
    """What ``grading.score`` needs of a grader."""

    def __init__(self, bench):
        self.metrics = METRICS[bench]
        self.label = f"made_{bench}@1"

    def method(self, options):
        return {}

    def check(self, metrics):
        """Nothing to agree with."""


def settings(models=("m",), repeat=1, shown=(), benches=tuple(ARMS_OF), **changes):
    """Settings with rows model, bench, arm and a column per metric."""
    metrics = {metric.name: metric for bench in benches for metric in METRICS[bench]}
    asked = [repeat_name(model, n) for model in models for n in range(1, repeat + 1)]
    places = [(bench, arm) for bench in benches for arm in ARMS_OF[bench]]
    titles = {name: metric.title for name, metric in metrics.items()}
    return tablekit.table_settings(
        **{
            "table": "conditions",
            "study": "made",
            "title": "Six conditions",
            "unit": "share",
            "decimals": 3,
            "cells": [[bench, arm, model] for bench, arm in places for model in asked],
            "metrics": [
                {
                    "name": m.name,
                    "title": m.title,
                    "better": m.better,
                    "kind": m.kind,
                    "shows_n": m.shows_n,
                    "if_none": m.if_none,
                }
                for m in metrics.values()
            ],
            "shown_metrics": list(shown),
            "titles": {
                "bench": BENCHES,
                "arm": ARMS,
                "model": {model: model for model in asked},
                "metric": titles,
            },
            "row_axes": ["model", "bench", "arm"],
            "column_axes": ["metric"],
            "rows": [
                {"at": {"model": model, "bench": bench, "arm": arm}, "title": f"{model}, {bench}, {arm}"}
                for model in models
                for bench, arm in places
            ],
            "columns": [{"at": {"metric": name}, "title": titles[name]} for name in shown or metrics],
            "fixed": {},
            "contrasts": [pair for pair in CONTRASTS if any(pair["first"] in ARMS_OF[b] for b in benches)],
            "not_comparable": [],
        }
        | changes
    )


def unit(number, bench, published, strict="same", *, weights=None, status="answered", group=None, part=None):
    """A graded unit; scores by metric.

    Args:
        number: of the unit.
        bench: whose grader it was.
        published: scores by metric; the first metric is the headline.
        strict: as ``published``; "same", or null for an answer that there is not.
        weights: of both readings.
        status: of the answer.
        group: of the unit; its own where none is given.
        part: of the division "kind".
    """
    headline = METRICS[bench][0].name

    def reading(scores):
        own = dict(scores)
        return Reading(
            verdict="graded",
            score=own.pop(headline),
            reason="made up",
            scores=own,
            weights=weights or {},
        )

    strict = published if strict == "same" else strict or dict.fromkeys(published)
    return Graded(
        item_id=f"u{number:04}",
        group=group or f"g{number:04}",
        status=status,
        answer="x" if status == "answered" else None,
        grader=f"made_{bench}@1",
        published=reading(published),
        strict=reading(strict),
        strata={"kind": part} if part else {},
    )


def write(root: Path, cells):
    """Write cells with the records behind them.

    Args:
        root: working directory.
        cells: (bench, arm, model) to graded units.

    Returns:
        Options of make_table for scores, graded files and stages.
    """
    folders = {}
    for (bench, arm, model), lines in cells.items():
        folder = root / "results/embedded/made" / bench / arm / model
        told = GradeSettings(
            study="made",
            bench=bench,
            arm=arm,
            model=model,
            grader=f"made_{bench}",
            k=None,
            thinking=False,
            reader=f"Model {model}",
            judge=None,
            corpus=None,
            bootstrap=Bootstrap(n=200, seed=1),
            max_judge_failed_share=0.01,
        )
        tally = Tally(METRICS[bench][0].name)
        for line in lines:
            tally.add(line)
            tally.add_answer(line.status, line.answer)
        jsonl.write(folder / "graded.jsonl", lines)
        jsonl.write_json(folder / "score.json", score(told, Made(bench), tally, retrieved=False))
        folders[bench, arm, model] = folder
    return tablekit.write_stages(root, folders)


def argv(root: Path, files, told):
    """Command line of make_table without published values."""
    tablekit.put(root / "published.csv", tablekit.NOTHING_PUBLISHED)
    return tablekit.table_argv(root, files, root / "published.csv", json.loads(json.dumps(told)))
