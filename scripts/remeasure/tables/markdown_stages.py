"""What the stages behind a table were told and what they counted, as text."""

from collections.abc import Iterable
from pathlib import Path

from remeasure import showing
from remeasure.records import Stage
from remeasure.tables.settings import TableSettings

_LISTS = ("index_images", "index_tables")
_TOLD = {"index_images": "Images", "index_tables": "Tables", "grade": "Grading"}


def fewer(stages: Iterable[Stage]) -> list[str]:
    """Return a sentence for every list of images that has another number of units than was expected."""
    found = []
    for stage in stages:
        expected = stage.counts.get("expected")
        complete = stage.counts.get("complete", stage.counts.get("indexed"))
        if stage.stage in _LISTS and expected is not None and complete != expected:
            found.append(f"**{complete:,} of {expected:,} expected units are complete.**\n")
    return found


def told(stages: Iterable[Stage], settings: TableSettings | None = None) -> list[str]:
    """Return what listing images, grading and systems were told, and what the list counted, as a section.

    A line of grading names its benches where it is not that of all of them.

    Args:
        stages: behind the table.
        settings: of the table; null: benches have no titles, and there are no systems.

    Edges:
        Nothing where neither has options.
    """
    lines: dict[tuple[str, str], list[str]] = {}
    for stage in stages:
        options = stage.settings.get("options")
        if stage.stage not in _TOLD or not options:
            continue
        said = ", ".join(
            f"{name.replace('_', ' ')} {_option(value)}" for name, value in sorted(options.items())
        )
        if stage.stage in _LISTS:
            said += ". Counted: " + ", ".join(
                f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(stage.counts.items()) if count
            )
        benches = lines.setdefault((_TOLD[stage.stage], said), [])
        bench = stage.settings.get("bench")
        if bench is not None and bench not in benches:
            benches.append(bench)
    found = [
        f"{what}{_of(benches, settings)}: {showing.markdown(said)}.\n"
        for (what, said), benches in lines.items()
    ]
    found += _systems(settings)
    return ["## Options\n", *found] if found else []


def _of(benches: list[str], settings: TableSettings | None) -> str:
    """Return which benches a line is of; empty where it is of all."""
    if settings is None or not benches:
        return ""
    known = dict.fromkeys(cell.bench for cell in settings.cells)
    if set(benches) >= set(known):
        return ""
    titles = [settings.title_of("bench", bench) for bench in known if bench in benches]
    return f" ({showing.markdown('; '.join(titles))})" if titles else ""


def _systems(settings: TableSettings | None) -> list[str]:
    """Return a line for every system with options, and for one with a filter."""
    found = []
    for model, facts in settings.facts.model.items() if settings else ():
        told = {name.replace("_", " "): value for name, value in settings.facts.options_of(model).items()}
        told |= {"filter": facts["filter"]} if "filter" in facts else {}
        said = ", ".join(f"{name} {value}" for name, value in sorted(told.items()))
        found += [f"System `{model}`: {showing.markdown(said)}.\n"] if said else []
    return found


def _option(value: object) -> str:
    if isinstance(value, dict) and "sha256" in value and {"name", "path"} & set(value):  # a file
        name = value["name"] if "name" in value else Path(str(value["path"])).name
        return f"{name} (SHA-256 {value['sha256'][:12]}…)" if value["sha256"] else f"{name} (any SHA-256)"
    if isinstance(value, dict | list) and not value:
        return "none"
    if isinstance(value, dict):
        return f"({', '.join(f'{name}: {_option(inner)}' for name, inner in sorted(value.items()))})"
    if isinstance(value, list):
        return f"({', '.join(map(_option, value))})"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not given" if value is None else str(value)
