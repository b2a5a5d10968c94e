"""Three captions of a triplet: does the object appear, vanish and change in them as it does in the images?

Readings: ``published`` looks for the synonyms of the lineage by lemma, and a caption that is missing or empty
mentions nothing, which is rewarded where an object was removed. ``strict`` looks for reviewed phrases, in
context, and leaves out what has no caption. ``phrase`` is ``strict`` without the rule about context.
"""

import functools
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from msgspec import Struct

from remeasure import yaml_files
from remeasure.errors import RemeasureError
from remeasure.graders.base import MetricName, Unit
from remeasure.mentions import lexicon as lexicons
from remeasure.mentions import objects, rates, triplets
from remeasure.mentions.matching import Matcher, MatcherName, matcher_label
from remeasure.mentions.objects import Target
from remeasure.mentions.preparing import Prepared
from remeasure.mentions.triplets import STATES, Detected
from remeasure.records import Graded, Item, Mark, Metric, Number, Reading, Response, Status

# From bad to good: the status of a unit is its worst.
_WORST_FIRST: tuple[Status, ...] = ("not_sent", "failed", "refused", "cut_off", "answered")
# What the missing part of a cut caption would have mentioned is not known: it is no caption under ``strict``.
_UNUSABLE = ("cut_off", "failed", "refused", "not_sent")
_SENTENCE_ENDS = ".!?"
# Nothing was asked: no reading can count it, however it treats captions that failed.
_NO_IMAGE = "has no image"
# Which captions a metric looks at, by place: a missing one leaves the metric without a value.
_LOOKS_AT = {
    "opa": (0,),
    "rca": (1,),
    "oldpersist_rem": (1,),
    "rua": (2,),
    "oldpersist_rep": (2,),
    "repfail": (2,),
    "cc": (2,),
    "mixconf": (2,),
    "rca_given_opa": (0, 1),
    "rua_given_opa": (0, 2),
    "tosc": (0, 1, 2),
}


_MATCHERS: dict[str, MatcherName] = {"published": "lemma", "strict": "phrase+context", "phrase": "phrase"}


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the grader: ``options`` of the bench."""

    lexicon: lexicons.LexiconFile
    unknown_objects: Literal["error", "other"]
    """An object outside the lexicon: an error, or looked for by its own name."""
    extra_synonyms: dict[str, list[str]]
    """By name further names of objects outside the lexicon."""
    denominator: Literal["complete", "per_rate"]
    """Strict reading: triplets with three captions only, or for each rate those with what it needs."""
    cut_off: Literal["keep", "drop_last_sentence"]
    """What ``published`` looks at of a caption that the token limit cut."""
    negation: bool
    """Whether a mention that its caption denies counts as none; ``published`` has no such rule."""


class Way(Struct, frozen=True):
    """One reading: its lexicon and its matcher."""

    lexicon: lexicons.Lexicon
    matcher: Matcher
    keeps_missing: bool
    """Whether a caption that is missing counts as one that mentions nothing."""

    def target(self, name: str | None, side: Literal["o", "r"], options: Options) -> Target:
        """Return what to look for; nothing without a name, which an object has that no image shows."""
        if name is None:
            return Target("", side, None, None, ())
        return objects.resolve(
            name,
            side,
            self.lexicon,
            unknown_objects=options.unknown_objects,
            extra_synonyms=options.extra_synonyms,
        )


def caption(response: Response, cut_off: str) -> str:
    """Return what is looked at of a reply.

    Edges:
        No text, or no answer at all (failed, not sent): the empty string. A cut caption without the end of a
        sentence stays whole.
    """
    if response.status in ("failed", "not_sent"):
        return ""  # what an import kept beside an error is no caption
    text = response.text or ""
    if response.status != "cut_off" or cut_off == "keep":
        return text
    end = max(text.rfind(mark) for mark in _SENTENCE_ENDS)
    return text[: end + 1] if end >= 0 else text


def problem_of(response: Response, text: str) -> str | None:
    """Return why a reply is no caption, null where it is one."""
    if response.status in _UNUSABLE:
        return response.status.replace("_", " ")
    return None if text.strip() else "empty"


class TripletGrader:
    """Gives a triplet its nine rates under every reading."""

    name = "triplets"
    version = 1
    judged = False
    compares: ClassVar[bool] = False
    metrics = tuple(
        MetricName(metric.name, metric.title, metric.better)
        for metric in (*rates.METRICS, *rates.CONDITIONAL)
    )
    headline = rates.HEADLINE

    packages: ClassVar[tuple[str, ...]] = ("lemminflect",)
    averaged: ClassVar[tuple[str, ...]] = ("object",)
    needs_form: ClassVar[bool] = False
    questions: ClassVar[tuple[str, ...]] = ()

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the lexicon and the matcher of every reading."""
        found = _options(options)
        matchers = {f"matcher_{reading}": matcher_label(name) for reading, name in _MATCHERS.items()}
        return {"lexicon": found.lexicon.name, "lexicon_sha256": found.lexicon.sha256} | matchers

    def unit_of(self, item: Item) -> str:
        """Return the triplet that an image belongs to."""
        return item.group

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Read the lexicon; return the function that grades triplets.

        Raises:
            RemeasureError: an option that is missing or unknown, or another lexicon than the settings say.
        """
        found = _options(options)
        strict, published = (lexicons.read_named(found.lexicon, name) for name in ("strict", "published"))
        objects.check_synonyms(found.extra_synonyms, strict)
        words = {"published": published, "strict": strict, "phrase": strict}
        ways = {
            reading: Way(words[reading], Matcher.of(name, words[reading]), reading == "published")
            for reading, name in _MATCHERS.items()
        }
        return functools.partial(self._grade, options=found, ways=ways)

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Check that the rates of each reading fit together where they are over the same triplets.

        Source:
            TOSC card, section 3.1.
        """
        for reading in _MATCHERS:
            numbers = {
                metric.name: _number(metrics[metric.name], reading)
                for metric in rates.METRICS
                if metric.name in metrics
            }
            ns = {number.n for number in numbers.values()}
            if len(numbers) == len(rates.METRICS) and len(ns) == 1 and ns != {0}:
                rates.check_identities({name: number.value for name, number in numbers.items()})

    def _grade(self, unit: Unit, options: Options, ways: Mapping[str, Way]) -> Graded:
        names = _names(unit)
        given = {item.meta["state"]: answer for item, answer in zip(unit.items, unit.responses, strict=True)}
        answers = [given.get(state) for state in STATES]
        texts = tuple(caption(answer, options.cut_off) if answer else "" for answer in answers)
        no_image = [None if answer else _NO_IMAGE for answer in answers]
        problems = [
            problem_of(answer, text) if answer else _NO_IMAGE
            for answer, text in zip(answers, texts, strict=True)
        ]
        prepared = tuple(map(Prepared, texts))
        detected, targets = {}, {}
        for reading, way in ways.items():
            targets[reading] = way.target(names[0], "o", options), way.target(names[1], "r", options)
            detected[reading] = triplets.detect(
                prepared,
                *targets[reading],
                way.matcher,
                negation=options.negation and reading != "published",
            )
        conflict = objects.conflict(*targets["strict"])
        readings = {
            reading: _reading(
                detected[reading], conflict, no_image if way.keeps_missing else problems, options
            )
            for reading, way in ways.items()
        }
        n_mentions, n_denied = detected["strict"].n_mentions()
        o, r = targets["strict"]
        return Graded(
            item_id=unit.unit_id,
            group=unit.unit_id,
            status=min((response.status for response in unit.responses), key=_WORST_FIRST.index),
            answer=None,
            grader=self.label,
            published=readings.pop("published"),
            strict=readings.pop("strict"),
            also=readings,
            strata={"object": o.cls or o.name, "overlap": objects.overlap(o, r)},
            counts={
                "mentions": n_mentions,
                "denied_mentions": n_denied,
                "head_matches": sum(detected["strict"].head_match().values()),
                "captions_without_latin": sum(map(_is_foreign, texts)),
            },
            marks=_marks(unit, detected, targets),
        )


def _options(options: Mapping[str, Any]) -> Options:
    return yaml_files.convert(dict(options), Options, Path("options of grader triplets"))


def _number(metric: Metric, reading: str) -> Number:
    return {"published": metric.published, "strict": metric.strict, **metric.also}[reading]


def _names(unit: Unit) -> tuple[str, str | None]:
    """Return the canonical names of the two objects; the second may be null where no image shows it.

    Raises:
        RemeasureError: the unit is no triplet, or its items name no objects.
    """
    states = [item.meta.get("state") for item in unit.items]
    named = {(item.meta.get("original"), item.meta.get("replacement")) for item in unit.items}
    names = named.pop() if len(named) == 1 else (None, None)
    known = [state for state in STATES if state in states]
    needed = names if "replaced" in states or names[1] is not None else names[:1]
    if states != known or not all(isinstance(name, str) and name for name in needed):
        raise RemeasureError(
            f"unit {unit.unit_id!r}: has the states {', '.join(map(str, states))} and the objects "
            f"{names[0]!r} and {names[1]!r}; expected one image each of {', '.join(STATES)}, in this order "
            "and with the same `original` and `replacement` in meta; correct the items"
        )
    return names


def _reading(
    detected: Detected, conflict: str | None, problems: list[str | None], options: Options
) -> Reading:
    """Return one reading of a triplet.

    Args:
        detected: what the captions mention.
        conflict: why the two objects cannot be told apart, null where they can.
        problems: of each caption why it is none, null where it is one.
        options: of the grader.
    """
    missing = [f"{state} {problem}" for state, problem in zip(STATES, problems, strict=True) if problem]
    bits = detected.bits
    values = rates.scores(bits)
    reason = " ".join(f"{name}={int(bit)}" for name, bit in zip("abcd", bits, strict=True))
    if conflict is not None:
        values, verdict, reason = dict.fromkeys(values), "ungraded", f"conflict: {conflict}"
    elif missing:
        values = {
            name: None if _lacks(name, problems, options.denominator) else value
            for name, value in values.items()
        }
        verdict, reason = "ungraded", f"no caption: {', '.join(missing)}"
    else:
        verdict = "consistent" if values[rates.HEADLINE] else "inconsistent"
    score = values.pop(rates.HEADLINE)
    return Reading(verdict=verdict, score=score, reason=reason, scores=values)


def _lacks(metric: str, problems: list[str | None], denominator: str) -> bool:
    looked_at = range(len(problems)) if denominator == "complete" else _LOOKS_AT[metric]
    return any(problems[place] is not None for place in looked_at)


def _is_foreign(text: str) -> bool:
    """Return whether a caption is in a script that no form of the lexicon is written in."""
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and not any("LATIN" in unicodedata.name(letter, "") for letter in letters)


def _marks(
    unit: Unit, detected: Mapping[str, Detected], targets: Mapping[str, tuple[Target, Target]]
) -> tuple[Mark, ...]:
    """Return where the captions mention the two objects, each place with the readings that see it so."""
    readings: dict[tuple[str, int, int, str], list[str]] = {}
    for reading, found in detected.items():
        names = {target.label: target.name for target in targets[reading]}
        marks = dict(zip(STATES, found.marks(), strict=True))
        for item in unit.items:
            for mark in marks[item.meta["state"]]:
                place = (item.item_id, mark.start, mark.stop, names[mark.label])
                readings.setdefault(place, []).append(reading)
    order = {item.item_id: number for number, item in enumerate(unit.items)}
    return tuple(
        Mark(item_id=place[0], start=place[1], end=place[2], label=place[3], readings=tuple(readings[place]))
        for place in sorted(readings, key=lambda place: (order[place[0]], *place[1:]))
    )


TRIPLETS = TripletGrader()
