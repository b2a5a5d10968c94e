"""What the stages behind a table were told and what they counted, as text."""

from collections.abc import Iterable
from pathlib import Path

from remeasure import showing
from remeasure.records import Stage

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


def told(stages: Iterable[Stage]) -> list[str]:
    """Return what listing images and grading were told, and what the list counted, as a section of its own.

    Edges:
        Nothing where neither has options.
    """
    lines: dict[str, None] = {}
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
        lines[f"{_TOLD[stage.stage]}: {showing.markdown(said)}.\n"] = None
    return ["## Options\n", *lines] if lines else []


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
