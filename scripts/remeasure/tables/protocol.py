"""How a number was made, ours and a published one: what is on record of both, and in what they differ."""

import re
from typing import NamedTuple

from remeasure.records import Score
from remeasure.tables.published import Published
from remeasure.tables.settings import TableSettings

FACTS = ("version", "target", "answerer", "judge", "embedder", "reranker", "policy")
"""What is known of both sides by words. ``policy``: what answers without a judge's verdict count as."""
FILTER = "filter"
"""Which documents a search may find; where nothing is said of it on one side, there all of them."""
COVERAGE, EXCLUDED = "coverage", "excluded"
"""Of a published value: "scored of all", where not every case was, and what the others are."""
_NOTED = re.compile(
    rf"\s*({'|'.join((*FACTS, FILTER, COVERAGE, EXCLUDED))})\s*[:=]?\s+(.*\S)\s*", re.IGNORECASE | re.DOTALL
)
_COVERAGE = re.compile(r"([\d,]+)\s*(?:of|/)\s*([\d,]+)")


class Difference(NamedTuple):
    """A field of the protocol in which ours and a published value differ."""

    field: str
    ours: str | None
    """Null where only the field is known."""
    theirs: str | None

    @property
    def said(self) -> str:
        """The field with both sides, as far as they are known."""
        if self.ours is None and self.theirs is None:
            return self.field
        return f"{self.field} ({self.ours or 'none'}, published {self.theirs or 'none'})"


class Coverage(NamedTuple):
    """How many cases a published value is of, and of how many."""

    n: int
    n_all: int


def noted(note: str) -> dict[str, str]:
    """Return the facts of a note: its parts between semicolons that begin with the name of a fact.

    ``"version 0.77.0; judge: Qwen3.6; coverage 2,836 of 3,045; anything else"`` has three.
    """
    found: dict[str, str] = {}
    for part in note.split(";"):
        match = _NOTED.fullmatch(part)
        if match:
            found.setdefault(match[1].lower(), match[2])
    return found


def noted_option(note: str, name: str) -> str | None:
    """Return what a note says of an option of a system, ``search_limit: 5``; null where it says nothing."""
    for part in note.split(";"):
        head, colon, value = part.partition(":")
        if colon and head.strip().lower().replace(" ", "_") == name.lower():
            return value.strip()
    return None


def coverage(published: Published) -> Coverage | None:
    """Return how many of how many cases a published value is of; null where its note does not say it.

    Edges:
        A note that names more scored cases than there are says nothing.
    """
    match = _COVERAGE.match(noted(published.note).get(COVERAGE, ""))
    if match is None:
        return None
    n, n_all = (int(number.replace(",", "")) for number in match.groups())
    return Coverage(n, n_all) if 0 < n <= n_all else None


def lower_bound(published: Published, metric: str, settings: TableSettings) -> float | None:
    """Return what a published share is at least: with every case that it leaves out as a failure.

    Null where it leaves none out, or where the metric is no share that is better high.
    """
    found, named = coverage(published), settings.metric(metric)
    if found is None or found.n == found.n_all or named.kind != "share" or named.better != "high":
        return None
    return published.value * found.n / found.n_all


def same(ours: str, theirs: str) -> bool:
    """Say whether two names are of the same thing: that of a paper is often a part of the whole name.

    ``Qwen/Qwen3-Embedding-4B`` is ``qwen3-embedding-4b``; a version is compared number by number. What stands
    behind a comma says how a model was asked, not which it is.
    """
    theirs = theirs.partition(",")[0]
    if re.fullmatch(r"v?\d+(\.\d+)+", theirs.strip()):
        return theirs.strip().removeprefix("v") in re.findall(r"\d+(?:\.\d+)+", ours)
    one, other = (re.sub(r"[^a-z0-9]+", "", text.lower()) for text in (ours, theirs))
    return one == other or (len(other) > 3 and other in one)


def differences(score: Score, published: Published, settings: TableSettings) -> list[Difference]:
    """Return the fields in which a cell and its published value differ, each once, sorted by name."""
    ours, theirs = settings.facts.of(score.bench, score.model), noted(published.note)
    if ours:  # Of a system the arm is what it was to do.
        ours = ours | {"target": score.arm}
    pairs = {
        "grader": (score.grader.partition("@")[0], published.grader),
        "n": (str(score.n), None if published.n is None else str(published.n)),
        # Of a system it is known which model answers, and its title is a sentence.
        "reader": (score.reader, None if "answerer" in ours else published.reader),
        # Values of another system of the page, shown beside this one.
        "system": (score.model, published.stands_in),
        **settings.protocol,
    }
    found = {
        name: Difference(name, one, other)
        for name, (one, other) in pairs.items()
        if other is not None and one != other
    }
    for name in FACTS:
        if name in ours and name in theirs and not same(ours[name], theirs[name]):
            found[name] = Difference(name, ours[name], theirs[name])
    if ours.get(FILTER) != theirs.get(FILTER):
        found[FILTER] = Difference(FILTER, ours.get(FILTER), theirs.get(FILTER))
    for name, one in settings.facts.options_of(score.model).items():
        other = noted_option(published.note, name)
        if other is not None and other != one:
            found[name] = Difference(name.replace("_", " "), one, other)
    part = coverage(published)
    if part is not None and part.n < part.n_all:
        left = f", without {theirs[EXCLUDED]}" if EXCLUDED in theirs else ""
        said = f"{part.n:,} of {part.n_all:,}{left}"
        found[COVERAGE] = Difference(COVERAGE, f"all {score.n:,}", said)
        # Where all cases are the same number, what the paper scored is no other set of questions.
        if score.n == part.n_all:
            found.pop("n", None)
    for name in settings.not_comparable:
        # Of a system it is known which model answers, and whether a judge was asked.
        if ours and (name == "reader" or (name == "judge" and score.judge is None)):
            continue
        found.setdefault(name, Difference(name, None, None))
    return [found[name] for name in sorted(found)]
