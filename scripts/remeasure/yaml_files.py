"""YAML files read into typed settings: every mistake is one line with the place and the fix."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import msgspec.inspect
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


# A step of a path below a value: a key or a position; `...` stands for a key that msgspec does not name.
_Step = Any


def convert(value: Any, kind: type[T], path: Path) -> T:
    """Check plain data from a YAML file against ``kind``.

    Raises:
        RemeasureError: one line with the file, the key's place, what was found and what was expected.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at ")
        if is_key := place.startswith("`key` in "):
            place, text = f"{place.removeprefix('`key` in ')}[...]", f"the key itself: {text}"
        steps = _named(value, kind, _steps(place), str(error))
        hint = "" if is_key else _hint(kind, steps, text)
        raise RemeasureError(f"{path}: {_spelled(steps)}: {text}{hint}; correct the file") from None


def _steps(place: str) -> list[_Step]:
    """Return the steps of a msgspec error path, such as ```$.studies[...].shards[2]```."""
    found = re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]|\[(\.\.\.)\]", place)
    return [... if dots else int(number) if number else name for name, number, dots in found]


def _spelled(steps: list[_Step]) -> str:
    words = (f"[{s}]" if isinstance(s, int) else "[...]" if s is ... else f".{s}" for s in steps)
    return "".join(words).removeprefix(".") or "top level"


def _named(value: Any, kind: type, steps: list[_Step], said: str) -> list[_Step]:
    """Put the key in the place of each ``...``: the first one that is wrong in this way by itself."""
    named: list[_Step] = []
    for step in steps:
        here = _at(value, named) if step is ... else None
        for key in here or ():
            alone = _replaced(value, named, {key: here[key]})
            try:
                msgspec.convert(alone, kind)
            except msgspec.ValidationError as error:
                if str(error) == said:
                    value, step = alone, str(key)
                    break
        named.append(step)
        if step is ...:
            return named + steps[len(named) :]
    return named


def _at(value: Any, steps: list[_Step]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _replaced(value: Any, steps: list[_Step], by: Any) -> Any:
    """Return a copy with something else at a path."""
    if not steps:
        return by
    copy = value.copy()
    copy[steps[0]] = _replaced(value[steps[0]], steps[1:], by)
    return copy


def _hint(kind: type, steps: list[_Step], text: str) -> str:
    """Return what an unknown key or value may have been, or which ones there are; else nothing."""
    unknown = re.search("unknown field `(.+)`|Invalid (?:enum )?value (.+)", text)
    if unknown is None:
        return ""
    if unknown[1]:
        names = [field.encode_name for node in _structs(_types(kind, steps)) for field in node.fields]
        known, meant, are = names, unknown[1], "known here"
    else:
        known, meant, are = _valid(kind, steps), unknown[2].strip("'"), "valid are"
    return did_you_mean(meant, known) or (f"; {are}: {', '.join(known)}" if known else "")


def _valid(kind: type, steps: list[_Step]) -> list[str]:
    """Return the values that may stand at a path, where they can be counted."""
    found: list[Any] = []
    for node in _types(kind, steps):
        found += node.values if isinstance(node, msgspec.inspect.LiteralType) else ()
    for node in _structs(_types(kind, steps[:-1])):
        found += [node.tag] if node.tag_field is not None and node.tag_field == steps[-1] else []
    return [str(one) for one in dict.fromkeys(found)]


def _structs(nodes: list[msgspec.inspect.Type]) -> list[msgspec.inspect.StructType]:
    return [node for node in nodes if isinstance(node, msgspec.inspect.StructType)]


def _types(kind: type, steps: list[_Step]) -> list[msgspec.inspect.Type]:
    """Return the types that may stand at a path below ``kind``, unions taken apart."""
    nodes = _apart(msgspec.inspect.type_info(kind))
    for step in steps:
        below: list[msgspec.inspect.Type] = []
        for node in nodes:
            if isinstance(node, msgspec.inspect.StructType):
                below += [field.type for field in node.fields if field.encode_name == step]
            elif isinstance(node, msgspec.inspect.DictType):
                below.append(node.value_type)
            elif isinstance(node, msgspec.inspect.CollectionType):
                below.append(node.item_type)
        nodes = [part for node in below for part in _apart(node)]
    return nodes


def _apart(node: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    if isinstance(node, msgspec.inspect.UnionType):
        return [part for one in node.types for part in _apart(one)]
    return _apart(node.type) if isinstance(node, msgspec.inspect.Metadata) else [node]


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
