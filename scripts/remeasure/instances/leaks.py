"""Which classes of a training set show what a benchmark asks for, by the names of their categories.

The rule is deterministic and every decision says why, so that a person can review it: exclusions come
before a supplied list of ids, that before equal names, and these before names that contain one another.

Source:
    Landmarks card, section 4. The published list has 87 classes; the rule set behind it is not published.
    This one is ours, and what it finds otherwise than a supplied list is told class by class.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.yaml_files import Settings, convert, read_yaml

# A list of ids is some kilobytes.
_MAX_LIST_BYTES = 10_000_000
_ORDER = ("exact", "part", "deny")
_WORD = re.compile(r"\w+")


class Subject(Settings, kw_only=True):
    """Something that a benchmark asks for."""

    stems: tuple[str, ...]
    """How the names of the benchmark's photographs begin."""
    city: tuple[str, ...]
    aliases: tuple[str, ...]
    """Names that mean it and nothing else; the whole category, or a part of it beside the city or a
    detail."""
    short: tuple[str, ...] = ()
    """Names that other things have as well: only beside the city."""
    deny: tuple[str, ...] = ()
    """Words of what has such a name and is something else."""


class Rules(Settings, kw_only=True):
    """Subjects of benchmarks and what counts for all of them."""

    subjects: dict[str, Subject]
    details: tuple[str, ...] = ()
    """Words that, beside an alias, say that a part or a view of the subject is meant."""
    deny: tuple[str, ...] = ()
    reviewed: tuple[int, ...] = ()
    """Ids of classes that a person has looked at."""


class Leak(msgspec.Struct, frozen=True, kw_only=True):
    """A class that shows a subject."""

    landmark_id: int
    category: str
    n_images: int
    subject: str | None
    """Null where only the list says so."""
    rule: str
    """id, exact or part; deny in the list of those that are kept."""
    alias: str | None
    """The name that matched; for deny the words that exclude it."""
    reviewed: bool


class _Match(NamedTuple):
    rule: str
    subject: str
    alias: str


def read_rules(path: Path) -> Rules:
    """Read subjects from a YAML file.

    Raises:
        RemeasureError: it is missing or not as expected.
    """
    rules = convert(read_yaml(path), Rules, path)
    for name, subject in rules.subjects.items():
        texts = (*subject.aliases, *subject.short, *subject.deny, *subject.city, *rules.details, *rules.deny)
        empty = [text for text in texts if not words(text)]
        if empty or not subject.aliases or not subject.city:
            raise RemeasureError(
                f"{path}: subjects.{name}: lacks aliases or a city, or one of its names has no letters; "
                "correct it"
            )
    return rules


def normalised(category: str) -> str:
    """Return a category as it is compared.

    Args:
        category: address or name of a Wikimedia category.

    Returns:
        The last part of the address, percent-decoded, underscores as spaces, without marks, letter case and
        the word "Category:".
    """
    last = re.split(r"[?#]", category.strip())[0].rstrip("/").rpartition("/")[2]
    text = unicodedata.normalize("NFKD", unquote(last).replace("_", " "))
    text = "".join(sign for sign in text if not unicodedata.combining(sign)).casefold()
    return text.removeprefix("category:").strip()


def words(text: str) -> tuple[str, ...]:
    """Return the words of a name, normalised; punctuation only parts them."""
    return tuple(_WORD.findall(normalised(text)))


def _line(text: str) -> str:
    """Return words between single spaces: a sequence of words is then a part of a text."""
    return f" {' '.join(words(text))} "


class Judge:
    """The rules, ready to judge many categories.

    Args:
        rules: subjects and what counts for all of them.
        ids: classes that a supplied list names.
    """

    def __init__(self, rules: Rules, ids: Collection[int] = ()) -> None:
        self._ids = frozenset(ids)
        self._reviewed = frozenset(rules.reviewed)
        self._details = [_line(text) for text in rules.details]
        self._deny = [(_line(text), text) for text in rules.deny]
        self._subjects = {
            name: {
                "aliases": _longest_first(subject.aliases),
                "short": _longest_first(subject.short),
                "city": [_line(text) for text in subject.city],
                "deny": [(_line(text), text) for text in subject.deny],
            }
            for name, subject in rules.subjects.items()
        }

    def match(self, category: str) -> _Match | None:
        """Return the rule, the subject and the name by which a category matches; null where it does not.

        Source:
            Landmarks card, section 4, step 3. What excludes a class from one subject says nothing of
            another; of several the equal name comes first, then the longest, then the first subject of the
            file.
        """
        line = _line(category)
        found: list[tuple[int, int, _Match]] = []
        for name, subject in self._subjects.items():
            named = [text for one, text in (*subject["aliases"], *subject["short"]) if one in line]
            denied = self._denied(line, subject) if named else None
            match = _Match("deny", name, denied) if denied else self._match_of(line, name, subject)
            if match is not None:
                found.append((_ORDER.index(match.rule), -len(words(match.alias)), match))
        return min(found, key=lambda one: one[:2])[2] if found else None

    def _match_of(self, line: str, name: str, subject: Mapping[str, Any]) -> _Match | None:
        for alias, text in subject["aliases"]:
            if alias == line:
                return _Match("exact", name, text)
        in_city = any(city in line for city in subject["city"])
        for alias, text in subject["aliases"]:
            if alias in line and (in_city or any(one in line.replace(alias, "  ") for one in self._details)):
                return _Match("part", name, text)
        for alias, text in subject["short"]:
            if alias in line and in_city:
                return _Match("part", name, text)
        return None

    def _denied(self, line: str, subject: Mapping[str, Any]) -> str | None:
        return next((text for one, text in (*subject["deny"], *self._deny) if one in line), None)

    def judge(self, landmark_id: int, category: str, n_images: int) -> tuple[Leak | None, bool]:
        """Judge a class.

        Returns:
            Why it leaks, or by which rule (``deny``) it does not although it has such a name, else null; and
            whether it would leak by its name alone.
        """
        match = self.match(category)
        by_name = match is not None and match.rule != "deny"
        if landmark_id in self._ids and (match is None or by_name):
            match = _Match("id", match.subject if match else "", match.alias if match else "")
        if match is None:
            return None, False
        leak = Leak(
            landmark_id=landmark_id,
            category=category,
            n_images=n_images,
            subject=match.subject or None,
            rule=match.rule,
            alias=match.alias or None,
            reviewed=landmark_id in self._reviewed,
        )
        return leak, by_name


def _longest_first(names: Sequence[str]) -> list[tuple[str, str]]:
    return sorted(((_line(text), text) for text in names), key=lambda pair: -len(pair[0]))


def read_ids(path: Path) -> list[int]:
    """Read a list of class ids: JSON (numbers, or records with ``landmark_id``), or a text of one per line.

    Raises:
        RemeasureError: it is missing or holds something else.
    """
    try:
        with open_regular(path) as stream:
            text = stream.read(_MAX_LIST_BYTES).decode("utf-8-sig")
        if text.lstrip()[:1] in ("[", "{"):
            raw = json.loads(text)
            if isinstance(raw, dict):
                raw = next((value for value in raw.values() if isinstance(value, list)), [])
            found = [one["landmark_id"] if isinstance(one, dict) else one for one in raw]
        else:
            lines = [line.split(",")[0].strip() for line in text.splitlines() if line.strip()]
            found = [int(line) for line in lines if line != "landmark_id"]
    except OSError as error:
        raise RemeasureError(
            f"{path}: cannot be read ({error.strerror}); put the list there, or take it out of `leaks`"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RemeasureError(
            f"{path}: no list of class ids; expected whole numbers, one per line or as JSON: correct it"
        ) from None
    if not found or not all(type(one) is int and 0 <= one < 1 << 31 for one in found):
        raise RemeasureError(f"{path}: holds no class ids, or something else beside them; correct it")
    return sorted(set(found))


def report(
    judge: Judge,
    classes: Iterable[tuple[int, str, int]],
    ids: Sequence[int] | None,
    other_ids: Sequence[int] | None,
) -> dict[str, Any]:
    """Judge all classes of a training set.

    Args:
        judge: with the list that is used, if there is one.
        classes: id, category and number of photographs of each, in order.
        ids: the same list, to say what differs; null: none was given.
        other_ids: a list of others that should be contained in what leaks.

    Returns:
        ``classes`` (leaks, by id), ``denied``, and how the supplied lists differ from what the names say.
        Nothing is added silently: what only the list names is in ``only_in_list``.
    """
    leaks: list[Leak] = []
    denied: list[Leak] = []
    by_name: set[int] = set()
    known: set[int] = set()
    for landmark_id, category, n_images in classes:
        known.add(landmark_id)
        found, is_by_name = judge.judge(landmark_id, category, n_images)
        if found is not None:
            (denied if found.rule == "deny" else leaks).append(found)
        if is_by_name:
            by_name.add(landmark_id)
    leaking = {leak.landmark_id for leak in leaks}
    told: dict[str, Any] = {
        "classes": msgspec.to_builtins(sorted(leaks, key=lambda leak: leak.landmark_id)),
        "denied": msgspec.to_builtins(sorted(denied, key=lambda leak: leak.landmark_id)),
        "n_classes": len(leaks),
        "n_photos": sum(leak.n_images for leak in leaks),
        "by_rule": _counted(leak.rule for leak in leaks),
        "by_subject": _counted(leak.subject or "" for leak in leaks),
    }
    if ids is not None:
        told["list"] = {
            "n": len(ids),
            "only_in_list": sorted(set(ids) & known - by_name),
            "only_by_name": sorted(by_name - set(ids)),
            "denied": sorted({one.landmark_id for one in denied} & set(ids)),
            "not_in_training": sorted(set(ids) - known),
        }
    if other_ids is not None:
        told["other_list"] = {"n": len(other_ids), "missing": sorted(set(other_ids) - leaking)}
    return told


def _counted(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items()))
