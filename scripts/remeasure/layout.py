"""Where the numbers of a table stand: which axis makes rows, which makes columns, and what is compared."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import structs

from remeasure import graders
from remeasure.settings import Axis, Bench, Cell, Study, StudyRun

AXES: tuple[Axis, ...] = ("bench", "arm", "model", "metric")


def of_table(
    cells: Sequence[Cell],
    study: Study,
    benches: Mapping[str, Bench],
    here: StudyRun,
    readers_of: Callable[[Cell], Sequence[str]],
) -> dict[str, Any]:
    """Return the layout of a table as settings of ``make_table``.

    Args:
        cells: the table's lines of ``cells.tsv``, all of one study.
        study: its protocol.
        benches: the benches of the study, with the changes of the run.
        here: what the run says about it.
        readers_of: the readers of a cell.

    Returns:
        ``cells``: bench, arm and model of every cell; ``metrics``: name, title and better of every metric;
        ``shown_metrics``: those that the page shows, none for all; ``figure``: kind of the picture;
        ``titles``: by axis and value; ``row_axes`` and ``column_axes``; ``rows`` and ``columns``: what each
        pins (``at``, axis to value) and its title; ``fixed``: axes that have one value and stand in neither;
        ``is_exact``: there where nothing is sampled; ``averaged``: divisions whose parts are averaged;
        ``contrasts``: axis, first, second and what they are called, of those that have cells.
    """
    graded = {cell.bench: graders.by_name(benches[cell.bench].grader) for cell in cells}
    metrics = {metric.name: metric for grader in graded.values() for metric in grader.metrics}
    answering = {name for cell in cells for name in readers_of(cell)}
    values = {
        "bench": {cell.bench: benches[cell.bench].title for cell in cells},
        "arm": {cell.arm: study.arms[cell.arm].title for cell in cells},
        # Their titles are sentences; the page says them once.
        "model": {name: name for name in here.readers if name in answering},
        "metric": {name: metric.title for name, metric in metrics.items()},
    }
    named = study.layout.metrics or tuple(name for block in study.layout.blocks for name in block.metrics)
    shown = [name for name in dict.fromkeys(named or metrics) if name in metrics]
    # The table shows what was answered the first time.
    wide = values | {
        "metric": {name: metrics[name].title for name in shown},
        "model": {name: name for name in here.models if name in answering},
    }
    rows, columns = list(study.layout.rows), list(study.layout.columns)
    rest = [axis for axis in AXES if axis not in rows + columns]
    rows += [axis for axis in rest if len(wide[axis]) > 1]
    numbers = [
        {"bench": cell.bench, "arm": cell.arm, "model": model, "metric": metric.name}
        for cell in cells
        for model in readers_of(cell)
        for metric in graded[cell.bench].metrics
    ]
    return {
        "cells": [[cell.bench, cell.arm, model] for cell in cells for model in readers_of(cell)],
        "metrics": [
            {
                "name": metric.name,
                "title": metric.title,
                "better": metric.better,
                "kind": metric.kind,
                "shows_n": metric.shows_n,
                "if_none": metric.if_none,
                "per_group": metric.per_group,
                "of_answers": metric.of_answers,
                "is_tested": metric.is_tested,
            }
            for metric in metrics.values()
        ],
        "shown_metrics": shown if named else [],
        "figure": study.layout.figure,
        **({"is_exact": True} if study.galleries else {}),
        "blocks": [
            structs.asdict(block)
            for block in study.layout.blocks
            if not graded.keys().isdisjoint(block.benches)
        ],
        "titles": values,
        "row_axes": rows,
        "column_axes": columns,
        "rows": _places(rows, wide, numbers),
        "columns": _places(columns, wide, numbers),
        "fixed": {axis: next(iter(wide[axis])) for axis in rest if len(wide[axis]) == 1},
        "averaged": list(dict.fromkeys(name for grader in graded.values() for name in grader.averaged)),
        "contrasts": [
            pair
            for pair in (
                *(structs.asdict(pair) for pair in study.compared),
                *({"axis": "model", "first": a, "second": b} for a, b in here.compare),
            )
            if pair["first"] in values[pair["axis"]] and pair["second"] in values[pair["axis"]]
        ],
    }


def _places(
    axes: Sequence[Axis], values: Mapping[str, Mapping[str, str]], numbers: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return one place for every combination of the values of some axes that has a number, in order."""
    taken = {tuple(number[axis] for axis in axes) for number in numbers}
    return [
        {
            "at": dict(zip(axes, names, strict=True)),
            "title": ", ".join(values[axis][name] for axis, name in zip(axes, names, strict=True)),
        }
        for names in product(*(values[axis] for axis in axes))
        if names in taken
    ]
