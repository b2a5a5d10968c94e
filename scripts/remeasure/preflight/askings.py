"""Who is asked in a run: every request file that its tables are made from, and every model behind them."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from remeasure import executors, options
from remeasure.models import Model
from remeasure.plan import Plan
from remeasure.records import Record


class Asking(Record, kw_only=True):
    """One file of requests that a run makes."""

    cell: str
    """Name for people: ``pixelrag/nq/base``, the same with ``/judge``, or ``judges/<judge>``."""
    study: str
    bench: str
    arm: str
    """Empty where the requests of several arms are in one file."""
    model: str
    path: Path
    words: dict[str, Any]
    """Neutral body without messages, as the settings will have it; ``do`` is what a system does."""


class Target(Record, kw_only=True):
    """A model that a run asks."""

    name: str
    spec: Model
    served_name: str
    way: executors.Settings
    files: tuple[Asking, ...]
    role: Literal["whole", "embedder", "answerer", "reranker"] = "whole"
    """What it is asked for; a model that only systems ask has no files of requests."""
    words: dict[str, Any] = {}
    """Neutral body without messages, as it is asked first."""
    vector_dim: int | None = None
    """Of an embedder."""


def askings(plan: Plan, run: str) -> list[Asking]:
    """Return every request file that the tables of a run are made from, in table order."""
    found = []
    for cell in plan.cells_in(run):
        here, name = plan.study_run(run, cell.study), f"{cell.study}/{cell.bench}/{cell.arm}"
        place = {"study": cell.study, "bench": cell.bench, "arm": cell.arm}
        for reader in plan.readers(run, cell.study, cell.bench, cell.arm):
            folder = Path("results", run, name, reader)
            shown = name if len(here.readers) == 1 else f"{name}/{reader}"
            if plan.ranker(run, reader) is not None:
                continue  # nobody is asked
            settings = plan.request(run, cell.study, cell.bench, cell.arm, reader)
            found.append(_asking(shown, folder, settings, **place))
            if plan.has_judge(run, cell.study, cell.bench):
                settings = plan.judge_request(run, cell.study, cell.bench)
                found.append(_asking(f"{shown}/judge", folder / "judge", settings, **place))
    audit = plan.run(run).judge_agreement
    for judge in audit.judges if audit else ():
        folder, place = Path("results", run, "judges", judge), {"study": audit.study, "bench": audit.bench}
        found.append(_asking(f"judges/{judge}", folder, plan.agreement(run, judge), **place, arm=""))
    for table in dict.fromkeys(cell.table for cell in plan.cells_in(run)):
        found += _calibration(plan, run, table) if plan.is_calibrated(run, table) else []
    return found


def _calibration(plan: Plan, run: str, table: str) -> list[Asking]:
    """Return the request files of the judges that a table's judge is compared with."""
    study, benches = plan.calibrated_study(run, table), plan.calibrated_benches(run, table)
    return [
        _asking(
            f"calibration/{table}/{judge}",
            Path("results", run, "calibration", table, judge),
            plan.calibration_request(run, table, judge),
            study=study,
            bench=benches[0],
            arm="",
        )
        for judge in plan.calibration(run, table).judges
    ]


def _asking(cell: str, folder: Path, settings: dict[str, Any], study: str, bench: str, arm: str) -> Asking:
    words = {"model": settings["model"], "max_tokens": settings["max_tokens"]} | settings["sampling"]
    if settings.get("thinking") is not None:
        words["thinking"] = settings["thinking"]
    if settings.get("task"):
        words["do"] = settings["task"]["do"]
    return Asking(
        cell=cell,
        study=study,
        bench=bench,
        arm=arm,
        model=settings["model"],
        path=folder / "requests.jsonl",
        words=words,
    )


def targets(plan: Plan, run: str, files: list[Asking]) -> list[Target]:
    """Return every model that a run asks, once per study that reaches it in a way of its own."""
    found: dict[tuple[str, str], list[Asking]] = {}
    for asking in files:
        settings = plan.study_executor(run, asking.study, asking.model)
        text = msgspec.json.encode(settings, order="sorted").decode()
        found.setdefault((asking.model, text), []).append(asking)
    asked = [
        Target(
            name=model,
            spec=plan.model(run, model),
            served_name=plan.ask(run, model)["served_name"],
            way=options.decode(text, executors.Settings, f"models.{model}"),
            files=tuple(group),
            words=group[0].words,
        )
        for (model, text), group in found.items()
    ]
    return [*asked, *_behind_systems(plan, run, asked)]


def _behind_systems(plan: Plan, run: str, asked: list[Target]) -> list[Target]:
    """Return the models that systems ask, each once for what it is asked for."""
    found: dict[tuple[str, str], Target] = {}
    for target in asked:
        system = target.spec.system
        if system is None or not isinstance(target.way, executors.SystemSettings):
            continue
        named = {"answerer": system.answerer, "reranker": system.reranker}
        named["embedder"] = plan.database(run, system.database).embedder
        answers = [one.words for one in target.files if one.words.get("do") != "search"]
        for role, name in named.items():
            part = getattr(target.way, role)
            if name is None or part is None or (role == "answerer" and not answers):
                continue
            found.setdefault(
                (role, name),
                Target(
                    name=name,
                    spec=plan.model(run, name),
                    served_name=part.served_name,
                    way=part.way,
                    files=(),
                    role=role,
                    words={w: v for w, v in answers[0].items() if w != "do"} if role == "answerer" else {},
                    vector_dim=target.way.vector_dim if role == "embedder" else None,
                ),
            )
    return list(found.values())
