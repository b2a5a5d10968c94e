"""YAML files read into typed settings: every mistake is one line with the place and the fix."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import yaml
from msgspec import Meta

from remeasure.errors import RemeasureError, did_you_mean

T = TypeVar("T")
Positive = Annotated[int, Meta(ge=1)]
# Into how many jobs something is split: Snakemake plans every one of them.
Pieces = Annotated[int, Meta(ge=1, le=10_000)]
Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: immutable, unknown keys are errors."""


def _known_keys(kind: type, path: str) -> list[str]:
    """Return the field names of the struct that stands at a msgspec error path below ``kind``."""
    here: Any = kind
    for part in re.findall(r"\.(\w+)|\[(?:\.\.\.|\d+)\]", path):
        if isinstance(here, type) and issubclass(here, msgspec.Struct) and part:
            here = {f.name: f.type for f in msgspec.structs.fields(here)}.get(part)
        else:
            here = (getattr(here, "__args__", None) or (None,))[-1]
        options = [a for a in getattr(here, "__args__", ()) if isinstance(a, type) and a is not type(None)]
        if getattr(here, "__origin__", None) is None and options:
            here = options[0]  # Optional[X]
    is_struct = isinstance(here, type) and issubclass(here, msgspec.Struct)
    return [field.name for field in msgspec.structs.fields(here)] if is_struct else []


def convert(value: Any, kind: type[T], path: Path) -> T:
    """Check plain data from a YAML file against ``kind``.

    Raises:
        RemeasureError: one line with the file, the key's place, what was found and what was expected.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at ")
        place = place.strip("`").removeprefix("$").removeprefix(".")
        unknown = re.search(r"unknown field `(\w+)`", text)
        hint = ""
        if unknown:
            known = _known_keys(kind, "." + place)
            hint = did_you_mean(unknown[1], known) or (f"; known here: {', '.join(known)}" if known else "")
        raise RemeasureError(f"{path}: {place or 'top level'}: {text}{hint}; correct the file") from None


_MERGE = "tag:yaml.org,2002:merge"


def _sources(key: yaml.Node, value: yaml.Node) -> list[yaml.MappingNode]:
    """Return the mappings that stand behind ``<<``: one, or a list of them."""
    found = value.value if isinstance(value, yaml.SequenceNode) else [value]
    if not all(isinstance(one, yaml.MappingNode) for one in found):
        said = "`<<` stands before something that is no mapping"
        raise yaml.constructor.ConstructorError(None, None, said, key.start_mark)
    return found


class _UniqueKeys(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """The safe loader, but a key that stands twice in a mapping is an error, not the last one's victory."""

    def __init__(self, stream) -> None:
        super().__init__(stream)
        self._looked_at: dict[int, yaml.MappingNode] = {}

    def flatten_mapping(self, node) -> None:
        # PyYAML 6.0.4 keeps the first of two values where a key has one letter and `<<` takes over what `<<`
        # took.
        if id(node) in self._looked_at:
            return
        self._looked_at[id(node)] = node
        self._check_keys(node)
        own = {(key.tag, str(key.value)): (key, value) for key, value in node.value if key.tag != _MERGE}
        taken: dict[Any, Any] = {}
        for source in (one for key, value in node.value if key.tag == _MERGE for one in _sources(key, value)):
            self.flatten_mapping(source)
            for key, value in source.value:
                if key.tag != _MERGE:  # of a mapping that takes itself over
                    taken.setdefault((key.tag, str(key.value)), (key, value))
        node.value = [pair for name, pair in taken.items() if name not in own] + list(own.values())

    def _check_keys(self, node) -> None:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = "<<" if key_node.tag == _MERGE else self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                said = "a list or a mapping stands as a key, expected a word or a number"
                raise yaml.constructor.ConstructorError(None, None, said, key_node.start_mark)
            if key in seen:
                said = f"key {key!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, said, key_node.start_mark)
            seen.add(key)


# What the loader raises where a value does not fit the tag before it, such as `!!int ""`.
_MISFIT = (TypeError, LookupError, AttributeError, OverflowError)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping, with plain values only.

    Raises:
        RemeasureError: missing file, YAML error with its line, or another top level.
    """
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # a safe loader
    except OSError as error:
        near = sorted(p.stem for p in path.parent.glob("*.yaml"))
        raise RemeasureError(
            f"{path}: {error.strerror}{did_you_mean(path.stem, near)}; there are: {', '.join(near) or 'none'}"
        ) from None
    except _MISFIT:
        raise RemeasureError(
            f"{path}: not YAML: a value does not fit its tag (`!!…`); correct the file"
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        said = " ".join(str(getattr(error, "problem", None) or error).split())
        raise RemeasureError(f"{path}{line}: not YAML: {said}; correct the file") from None
    if not isinstance(value, dict):
        raise RemeasureError(
            f"{path}: expected keys at the top level, found {type(value).__name__}; correct it"
        )
    return value


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return ``base`` with the values of ``over`` laid on top, mapping by mapping; lists are replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged
