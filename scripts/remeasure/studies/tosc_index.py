"""The index of the TOSC benchmark: which triplets there are, and everything that keeps one from being used.

Source:
    TOSC card, sections 1.2 and 1.3 (files, missing and conflicting members), 4.5 and 4.6 (classes, overlap).
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec

from remeasure.errors import RemeasureError
from remeasure.image_tree import Listing
from remeasure.indexing import Index
from remeasure.looking import Seen
from remeasure.mentions import lexicon as lexicons
from remeasure.mentions import objects
from remeasure.mentions.lexicon import Lexicon
from remeasure.mentions.objects import Overlap, Target, canonical_name
from remeasure.studies.tosc_names import Fault, Name, State, parse
from remeasure.studies.tosc_report import (
    Composited,
    Contradiction,
    Doubled,
    Excluded,
    Incomplete,
    IndexReport,
    Odd,
    OpenObject,
    Problem,
    counts,
    lines,
    summary,
)
from remeasure.studies.tosc_triplets import STATES, Insertion, Triplet

# The collection may be the folder `benchmark`, or hold it.
# What stands in the files of the index; config/schema/ describes it.
RECORDS = (Triplet, Insertion, IndexReport)
_BENCHMARK = "benchmark/"
_FOLDERS: dict[State, str] = {
    "origin": "original/images",
    "removed": "repair/images",
    "replaced": "insert/images",
}
_FORMATS = {"jpg": "jpeg", "jpeg": "jpeg", "png": "png"}
_PLAIN_MODES = ("RGB", "L")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the index."""

    expected: Annotated[int, msgspec.Meta(ge=1)] | None
    """How many complete triplets there should be; null: not known."""
    policy: Literal["complete", "available"]
    """Triplets with three readable images only, or also those that lack some but name their object."""
    fail_on_conflict: bool
    """Whether doubled images or names that contradict each other stop the run; else they are left out."""
    unknown_objects: Literal["error", "other"]
    """An object outside the lexicon: an error that names it, or looked for by its own name."""
    lexicon: lexicons.LexiconFile
    extra_synonyms: dict[str, list[str]]
    """By name further names of objects outside the lexicon."""
    exclude: dict[int, Annotated[str, msgspec.Meta(min_length=1)]]
    """Triplets that are not used, each with its reason."""


class Words(NamedTuple):
    """What names of objects are looked up in."""

    lexicon: Lexicon
    extra_synonyms: Mapping[str, Sequence[str]]

    def target(self, name: str, side: Literal["o", "r"]) -> Target:
        """Return what to look for when a triplet's object has this canonical name."""
        return objects.resolve(
            name, side, self.lexicon, unknown_objects="other", extra_synonyms=self.extra_synonyms
        )


class Found(NamedTuple):
    """A file with a name of the benchmark, in its folder."""

    path: str
    name: Name


class Sorted(NamedTuple):
    """All listed files, by what their names say."""

    triplets: dict[int, dict[State, list[Found]]]
    """By index, and these in order."""
    errors: list[Problem]
    ignored: list[Problem]


def sort_files(paths: Sequence[str]) -> Sorted:
    """Read the names of all files; of a path, folder and name must fit.

    Edges:
        What lies in none of the three folders is passed over, whatever its name.
    """
    folders = {folder: state for state, folder in _FOLDERS.items()}
    triplets: dict[int, dict[State, list[Found]]] = {}
    errors: list[Problem] = []
    ignored: list[Problem] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        place = folders.get(unicodedata.normalize("NFC", folder).removeprefix(_BENCHMARK))
        parsed = parse(name)
        if any(part.startswith(".") for part in path.split("/")):
            ignored.append(Problem(image=path, problem="is hidden"))
        elif place is None:
            ignored.append(Problem(image=path, problem="lies in none of the three folders"))
        elif isinstance(parsed, Fault):
            (errors if parsed.is_error else ignored).append(Problem(image=path, problem=parsed.problem))
        elif parsed.state != place:
            said = f"is named as an image of state {parsed.state} and lies in the folder of {place}"
            errors.append(Problem(image=path, problem=said))
        else:
            triplets.setdefault(parsed.index, {}).setdefault(parsed.state, []).append(Found(path, parsed))
    return Sorted(dict(sorted(triplets.items())), errors, ignored)


def check(settings: Settings) -> None:
    """Check what can be checked before an image is looked at: the lexicon and the further names.

    Raises:
        RemeasureError: the lexicon cannot be read, or is another than the settings say; a further name is
            one of its own.
    """
    _words(settings)


def wanted(paths: Sequence[str], settings: Settings) -> list[str]:
    """Return which files are images of the benchmark, in order of triplets."""
    return [found.path for found in _all(sort_files(paths).triplets)]


def _all(triplets: Mapping[int, Mapping[State, Sequence[Found]]]) -> list[Found]:
    return [found for members in triplets.values() for state in STATES for found in members.get(state, ())]


class Members(NamedTuple):
    """What became of the triplets that names speak of."""

    triplets: list[Triplet]
    """Those that can be used, excluded ones among them."""
    incomplete: list[Incomplete]
    doubled: list[Doubled]
    contradictions: list[Contradiction]
    excluded: Collection[int]
    """Numbers that the settings exclude, whether or not there are such triplets."""

    @property
    def doubled_or_contradicting(self) -> set[int]:
        """The triplets in conflict."""
        return {one.index for one in (*self.doubled, *self.contradictions)}

    @property
    def indexed(self) -> list[Triplet]:
        """Those that are indexed."""
        return [triplet for triplet in self.triplets if triplet.index not in self.excluded]

    @property
    def complete(self) -> list[Triplet]:
        """The usable triplets with all three images, excluded ones among them."""
        return [triplet for triplet in self.triplets if len(triplet.images) == len(STATES)]


def index(listing: Listing, seen: Mapping[str, Seen], settings: Settings) -> Index:
    """Make the three index files.

    Args:
        listing: all files of the collection.
        seen: what the images that are ``wanted`` are.
        settings: options of the index.

    Returns:
        Triplets, insertions and report. There is an error where no triplet is complete, and, as the
        settings say, where there are conflicts or objects outside the lexicon.

    Raises:
        RemeasureError: as ``check``.
    """
    found = sort_files(listing.paths)
    twice = sort_files([one.path for one in listing.refused if one.is_doubled]).triplets
    words = _words(settings)
    members = _members(found.triplets, twice, seen, settings, words)
    report = _report(listing, found, seen, members, settings, words)
    complete = {triplet.index for triplet in members.complete}
    return Index(
        files=(members.indexed, _insertions(found.triplets, seen, complete), report),
        counts=counts(report),
        problems=tuple(lines(report)),
        summary=summary(report),
        error=_error(report, settings, words.lexicon),
    )


def _members(
    named: Mapping[int, Mapping[State, Sequence[Found]]],
    twice: Mapping[int, Mapping[State, Sequence[Found]]],
    seen: Mapping[str, Seen],
    settings: Settings,
    words: Words,
) -> Members:
    used = {number: images for number, images in named.items() if number not in settings.exclude}
    doubled = _doubled(used, {number: twice[number] for number in twice if number not in settings.exclude})
    contradictions = _contradictions(used, {one.index for one in doubled}, words)
    conflicting = {one.index for one in (*doubled, *contradictions)}
    triplets: list[Triplet] = []
    incomplete: list[Incomplete] = []
    for number, images in named.items():
        if number in conflicting:
            continue
        usable = {state: one for state in STATES for one in images.get(state, ()) if _is_good(seen, one)}
        missing = [state for state in STATES if state not in usable]
        if missing:
            incomplete.append(Incomplete(index=number, missing=missing))
        if not missing or (settings.policy == "available" and usable.keys() - {"origin"}):
            triplets.append(_triplet(number, usable, seen, words))
    return Members(triplets, incomplete, doubled, contradictions, settings.exclude.keys())


def _is_good(seen: Mapping[str, Seen], found: Found) -> bool:
    """Return whether an image could be decoded; one that could not counts as missing."""
    return seen[found.path].problem is None


def _words(settings: Settings) -> Words:
    """Read what names are looked up in; errors as in ``check``."""
    lexicon = lexicons.read_named(settings.lexicon, "strict")
    objects.check_synonyms(settings.extra_synonyms, lexicon)
    return Words(lexicon, settings.extra_synonyms)


def _doubled(
    triplets: Mapping[int, Mapping[State, Sequence[Found]]],
    twice: Mapping[int, Mapping[State, Sequence[Found]]],
) -> list[Doubled]:
    """Return the images that are there twice, whether or not both can be read.

    Args:
        triplets: the files, each there once.
        twice: names of the benchmark that several members of a store have.
    """
    found = []
    for number in sorted({*triplets, *twice}):
        for state in STATES:
            once, more = (named.get(number, {}).get(state, ()) for named in (triplets, twice))
            if more or len(once) > 1:
                images = [one.path for one in (*once, *more)]
                found.append(Doubled(index=number, state=state, images=images))
    return found


def _contradictions(
    triplets: Mapping[int, Mapping[State, Sequence[Found]]], doubled: set[int], words: Words
) -> list[Contradiction]:
    found = []
    for number, members in triplets.items():
        named = [one for state in ("removed", "replaced") for one in members.get(state, ())]
        if number in doubled or not named:
            continue
        if problem := _contradiction(named, words):
            found.append(Contradiction(index=number, problem=problem, images=[one.path for one in named]))
    return found


def _contradiction(named: Sequence[Found], words: Words) -> str | None:
    """Return why the names of a triplet's edited images contradict each other; null where they do not."""
    originals = list(dict.fromkeys(canonical_name(one.name.original or "") for one in named))
    if len(originals) > 1:
        return f"the original object is {originals[0]!r} in one name and {originals[1]!r} in the other"
    replacement = named[-1].name.replacement
    if replacement is None:
        return None
    o, r = words.target(originals[0], "o"), words.target(canonical_name(replacement), "r")
    return objects.conflict(o, r)


def _triplet(number: int, usable: Mapping[State, Found], seen: Mapping[str, Seen], words: Words) -> Triplet:
    """Return the line of a triplet.

    Args:
        number: its index.
        usable: its readable images; at least one of them names the original object.
        seen: what the images are.
        words: what its objects are looked up in.
    """
    edited = [usable[state] for state in ("removed", "replaced") if state in usable]
    original, replacement = edited[0].name.original or "", edited[-1].name.replacement
    o = words.target(canonical_name(original), "o")
    r = None if replacement is None else words.target(canonical_name(replacement), "r")
    looked = {state: seen[one.path] for state, one in usable.items()}
    return Triplet(
        index=number,
        original_object=o.name,
        replacement_object=r.name if r else None,
        original_raw=original,
        replacement_raw=replacement,
        images={state: one.path for state, one in usable.items()},
        sha256={state: one.sha256 or "" for state, one in looked.items()},
        size={state: (one.width_px or 0, one.height_px or 0) for state, one in looked.items()},
        o_class=o.cls,
        r_class=r.cls if r else None,
        overlap=objects.overlap(o, r) if r else "none",
    )


def _insertions(
    triplets: Mapping[int, Mapping[State, Sequence[Found]]], seen: Mapping[str, Seen], complete: set[int]
) -> list[Insertion]:
    return [
        Insertion(
            index=number,
            original_object=canonical_name(one.name.original or ""),
            replacement_object=canonical_name(one.name.replacement or ""),
            image=one.path,
            sha256=seen[one.path].sha256 or "",
            complete=number in complete,
        )
        for number, members in triplets.items()
        for one in members.get("replaced", ())
        if _is_good(seen, one)
    ]


def _report(
    listing: Listing,
    found: Sorted,
    seen: Mapping[str, Seen],
    members: Members,
    settings: Settings,
    words: Words,
) -> IndexReport:
    files = _all(found.triplets)
    good = [one for one in files if _is_good(seen, one)]
    by_state = Counter(one.name.state for one in good)
    overlaps = Counter(triplet.overlap for triplet in members.indexed)
    unreadable = [
        Problem(image=one.path, problem=problem) for one in files if (problem := seen[one.path].problem)
    ]
    n_complete = len(members.complete)
    excluded = [
        Excluded(index=number, reason=reason, known=number in found.triplets)
        for number, reason in sorted(settings.exclude.items())
    ]
    return IndexReport(
        images={state: by_state[state] for state in STATES},
        expected=settings.expected,
        expected_met=None if settings.expected is None else n_complete == settings.expected,
        policy=settings.policy,
        n_triplets=len(found.triplets),
        n_complete=n_complete,
        n_indexed=len(members.indexed),
        n_excluded=len(excluded),
        n_conflicting=len(members.doubled_or_contradicting),
        n_incomplete=len(members.incomplete),
        n_errors=len(found.errors),
        n_ignored=len(found.ignored),
        n_refused=len(listing.refused),
        n_unreadable=len(unreadable),
        size_mismatch=sum(len({*triplet.size.values()}) > 1 for triplet in members.complete),
        overlap={name: overlaps[name] for name in get_args(Overlap)},
        lexicon={"name": settings.lexicon.name, "sha256": words.lexicon.sha256},
        excluded=excluded,
        incomplete=members.incomplete,
        duplicates=members.doubled,
        name_conflicts=members.contradictions,
        errors=found.errors,
        ignored=found.ignored,
        refused=[Problem(image=one.path, problem=one.problem) for one in listing.refused],
        unreadable=unreadable,
        composited=_composited(good, seen),
        odd=[Odd(image=one.path, facts=odd) for one in good if (odd := _odd(one.path, seen[one.path]))],
        open_objects=_open_objects(members.indexed, words),
    )


def _composited(good: Sequence[Found], seen: Mapping[str, Seen]) -> list[Composited]:
    looked = {one.path: seen[one.path] for one in good}
    return [
        Composited(image=path, mode=one.mode or "", transparent=one.transparent)
        for path, one in looked.items()
        if one.transparent or one.mode not in _PLAIN_MODES
    ]


def _odd(path: str, seen: Seen) -> list[str]:
    suffix = path.rpartition(".")[2].lower()
    return [*seen.odd, *([f"{seen.format}-content"] if seen.format != _FORMATS[suffix] else [])]


def _open_objects(triplets: Sequence[Triplet], words: Words) -> list[OpenObject]:
    counted: Counter[str] = Counter()
    for triplet in triplets:
        names = {triplet.original_object: triplet.o_class, triplet.replacement_object: triplet.r_class}
        counted.update(name for name, cls in names.items() if name is not None and cls is None)
    return [
        OpenObject(name=name, parent=words.target(name, "o").parent, n=counted[name])
        for name in sorted(counted)
    ]


def _error(report: IndexReport, settings: Settings, lexicon: Lexicon) -> str | None:
    """Return why there must be no index; null where there may be one."""
    if settings.fail_on_conflict and report.n_conflicting:
        return (
            f"{report.n_conflicting} of {report.n_triplets} triplets are in conflict: {lines(report)[0]}; "
            "repair the files, or set `fail_on_conflict: false` to leave such triplets out"
        )
    if not report.n_indexed or not report.n_complete:
        there = ", ".join(f"{n} {state}" for state, n in report.images.items())
        return (
            f"holds no complete triplet that is used ({there}; {report.n_incomplete} incomplete, "
            f"{report.n_conflicting} conflicting, {report.n_excluded} excluded, {report.n_errors} broken "
            f"names, {report.n_unreadable} unreadable, {report.n_ignored} other files); images are looked "
            f"for in {', '.join(_FOLDERS.values())}"
        )
    if settings.unknown_objects == "error" and report.open_objects:
        names = [one.name for one in report.open_objects]
        try:
            objects.resolve(names[0], "o", lexicon, unknown_objects="error")
        except RemeasureError as error:
            others = f" ({len(names)} such names: {', '.join(names[:10])}{', …' if names[10:] else ''})"
            return f"{error}{others if names[1:] else ''}"
    return None
