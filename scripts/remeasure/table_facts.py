"""What a run's settings say of how the cells of a table are made, to be held against what is published."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from remeasure import repeats
from remeasure.settings import Cell
from remeasure.systems.settings import HANDLING

if TYPE_CHECKING:
    from remeasure.plan import Plan

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_POLICIES = {"wrong": "judge failures count as wrong", "exclude": "judge failures are excluded"}


def of_table(plan: "Plan", run: str, study: str, cells: Iterable[Cell]) -> dict[str, Any]:
    """Return the facts of a table's cells as settings of ``make_table`` (``tables.settings.Facts``).

    Only systems and their benches have some: of a model that is asked directly its title is on record.
    """
    found: dict[str, dict[str, dict[str, str]]] = {"model": {}, "bench": {}, "options": {}}
    chosen = plan.run(run).studies[study].filter
    searched = {"filter": chosen} if chosen else {}
    for cell in cells:
        readers = {repeats.model_of(name) for name in plan.readers(run, study, cell.bench, cell.arm)}
        systems = [name for name in sorted(readers) if plan.system(run, name) is not None]
        for name in systems:
            found["model"].setdefault(name, _of_system(plan, run, name) | searched)
            found["options"].setdefault(name, _options(plan, run, name))
        if systems and plan.has_judge(run, study, cell.bench):
            told = plan.bench(run, study, cell.bench).options.get("judge_failure")
            judge = {"judge": served(plan, run, plan.judge(run, study))}
            policy = {"policy": _POLICIES.get(str(told), str(told))} if told else {}
            found["bench"].setdefault(cell.bench, judge | policy)
    return found


def served(plan: "Plan", run: str, model: str) -> str:
    """Return what a model is called by those who serve it, with its other names, or its name in the run."""
    spec = plan.model(run, model)
    return ", also ".join([spec.served_name or model, *spec.also_named])


def _of_system(plan: "Plan", run: str, name: str) -> dict[str, str]:
    system = plan.system(run, name)
    assert system is not None, name
    database = plan.database(run, system.database)
    lock = plan.environment(run, database.environment).lock if database.environment else ""
    version = _VERSION.findall(lock)
    return {
        "version": " ".join([database.adapter.replace("_", "."), *version[:1]]),
        "answerer": served(plan, run, system.answerer) if system.answerer else "none",
        "embedder": served(plan, run, database.embedder),
        "reranker": served(plan, run, system.reranker) if system.reranker else "none",
    }


def _options(plan: "Plan", run: str, name: str) -> dict[str, str]:
    """Return the options of a system and of its database; those of the system's tools come first."""
    system = plan.system(run, name)
    assert system is not None, name
    given = plan.database(run, system.database).options
    told = system.options | {key: value for key, value in given.items() if key not in HANDLING}
    return {key: _said(value) for key, value in told.items()}


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(inner)}" for name, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "none"
    return "none" if value is None else str(value)


def with_anchors(plan: "Plan", table: str, study: str, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return blocks with the numbers of others that stand below them, where the study names such."""
    named = plan.study(study).layout.anchors
    if named is None:
        return blocks
    from msgspec import to_builtins

    from remeasure.tables import anchors

    known = anchors.load(plan.folder.parent / named, table)
    return [
        block | {"anchors": [to_builtins(one) for one in known if one.bench in block["benches"]]}
        for block in blocks
    ]
