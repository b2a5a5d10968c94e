"""Choosing what a case is about: a disease, what its text tells, what each of its pictures shows.

All that is random follows from the seed and the id of the disease.
"""

import hashlib
import random
from collections.abc import Iterator

from remeasure.cases.case import Case, Finding, Picture
from remeasure.cases.naming import answer_words, gives_away, is_plain
from remeasure.cases.settings import CaseSettings, Kind
from remeasure.cases.wording import FRAME
from remeasure.errors import RemeasureError
from remeasure.phenotypes.knowledge import Knowledge
from remeasure.phenotypes.phrases import words_of
from remeasure.phenotypes.records import Disease

_FREQUENT = ("obligate", "very_frequent", "frequent")


class Chooser:
    """Draws cases from what is known.

    Args:
        knowledge: diseases and phenotypes.
        settings: how.

    Raises:
        RemeasureError: the settings name a term that there is not.
    """

    def __init__(self, knowledge: Knowledge, settings: CaseSettings) -> None:
        self._known, self._settings = knowledge, settings
        named = [*settings.never]
        named += [term for kind in settings.kinds.values() for term in (*kind.below, *kind.without)]
        if odd := [term for term in named if term not in knowledge.terms]:
            raise RemeasureError(f"config/cases.yaml: {odd[0]} is no phenotype of the ontology; correct it")

    def cases(self, n: int) -> list[Case]:
        """Return the first cases; fewer are the beginning of more.

        Raises:
            RemeasureError: there are not as many diseases of which a case can be made.
        """
        found: list[Case] = []
        for disease in self._candidates():
            case = self._case(disease)
            if case is not None:
                found.append(case)
            if len(found) == n:
                return found
        raise RemeasureError(f"config/cases.yaml: only {len(found)} of {n} cases can be made; ask for fewer")

    def _candidates(self) -> Iterator[Disease]:
        """Yield the diseases of this half in the order that the seed gives them."""
        names = [frozenset(words_of(disease.name)) for disease in self._known.diseases.values()]

        def order(disease: Disease) -> str:
            return _hash(f"{self._settings.seed}/{disease.id}")

        for disease in sorted(self._known.diseases.values(), key=order):
            if int(_hash(disease.id), 16) % 2 != self._settings.half:
                continue
            if any(part in disease.name.lower() for part in self._settings.never_named):
                continue
            if is_plain(disease.name, names) and not gives_away(FRAME, answer_words([disease.name])):
                yield disease

    def _case(self, disease: Disease) -> Case | None:
        """Return a case of a disease; nothing where too little of it can be shown or told."""
        dice = random.Random(f"{self._settings.seed}/{disease.id}")
        answers = answer_words([disease.name])
        seen = [t for t, often in disease.frequency_of().items() if often in _FREQUENT]
        usable = [t for t in sorted(seen) if self._usable(t, answers)]
        pictures = self._pictures(usable, answers, dice)
        shown = [finding.term for picture in pictures for finding in picture.findings]
        told = self._told(usable, shown, dice)
        if len(pictures) < self._settings.images[0] or len(told) < self._settings.told[0]:
            return None
        age, sex = dice.randint(*self._settings.age_years), dice.choice(("female", "male"))
        return Case(disease, age, sex, tuple(told), tuple(pictures))

    def with_incidental(self, case: Case) -> Case:
        """Return a case in which, by chance, a picture shows one finding more, foreign to the disease."""
        dice = random.Random(f"{self._settings.seed}/{case.disease.id}/incidental")
        if dice.random() >= self._settings.incidental_share:
            return case
        places = [n for n, p in enumerate(case.pictures) if len(p.findings) < self._settings.findings[1]]
        if not places:
            return case
        place = dice.choice(places)
        picture = case.pictures[place]
        foreign = self._foreign(case, self._settings.kinds[picture.kind], 1, dice)
        findings = [*picture.findings, *foreign]
        changed = Picture(picture.kind, tuple(dice.sample(findings, len(findings))))
        return _with(case, (*case.pictures[:place], changed, *case.pictures[place + 1 :]))

    def with_distractor(self, case: Case) -> Case:
        """Return a case that, by chance, has one picture that has nothing to do with the disease."""
        dice = random.Random(f"{self._settings.seed}/{case.disease.id}/distractor")
        if dice.random() >= self._settings.distractor_share:
            return case
        taken, answers = {picture.kind for picture in case.pictures}, answer_words([case.disease.name])
        names = [
            name
            for name, kind in sorted(self._settings.kinds.items())
            if name not in taken and not gives_away(" ".join((kind.title, *kind.normal)), answers)
        ]
        for name in dice.sample(names, len(names)):
            foreign = self._foreign(case, self._settings.kinds[name], self._settings.findings[0], dice)
            if len(foreign) == self._settings.findings[0]:
                kept = list(case.pictures[: self._settings.images[1] - 1])
                kept.insert(dice.randint(0, len(kept)), Picture(name, tuple(foreign)))
                return _with(case, tuple(kept))
        return case

    def _foreign(self, case: Case, kind: Kind, n: int, dice: random.Random) -> list[Finding]:
        """Return findings of a kind of examination that the disease is not known to have."""
        answers = answer_words([case.disease.name])
        terms = [
            term
            for term in sorted(self._known.terms)
            if self._known.n_diseases_with(term) >= 10
            and self._fits(term, kind)
            and self._usable(term, answers)
            and self._settings.finding_shares.holds(self._share(term))
            and not self._known.shares(case.disease, term)
        ]
        return [self._finding(term, False, dice) for term in self._apart(terms, [], n, dice)]

    def _pictures(self, usable: list[str], answers: frozenset[str], dice: random.Random) -> list[Picture]:
        """Return pictures of different kinds, each with findings that no other one has."""
        n_images = dice.randint(*self._settings.images)
        kinds, found, taken = self._settings.kinds, [], []
        names = dice.sample(sorted(kinds), len(kinds))
        for name in sorted(names, key=lambda name: not kinds[name].first):
            kind = kinds[name]
            if gives_away(" ".join((kind.title, *kind.normal)), answers):
                continue
            terms = [t for t in usable if self._fits(t, kind)]
            terms = [t for t in terms if self._settings.finding_shares.holds(self._share(t))]
            chosen = self._apart(terms, taken, dice.randint(*self._settings.findings), dice)
            if len(chosen) >= self._settings.findings[0] and len(found) < n_images:
                taken += chosen
                found.append(Picture(name, tuple(self._finding(t, True, dice) for t in chosen)))
        return found

    def _told(self, usable: list[str], shown: list[str], dice: random.Random) -> list[str]:
        terms = [t for t in usable if self._settings.told_shares.holds(self._share(t))]
        chosen = self._apart(terms, shown, dice.randint(*self._settings.told), dice)
        return [self._known.terms[term].label for term in chosen]

    def _apart(self, terms: list[str], taken: list[str], n: int, dice: random.Random) -> list[str]:
        """Draw terms of which none is above or below another, or one of those taken."""
        found: list[str] = []
        for term in dice.sample(terms, len(terms)):
            above = self._known.ancestors(term)
            if len(found) < n and not any(
                other in above or term in self._known.ancestors(other) for other in (*taken, *found)
            ):
                found.append(term)
        return found

    def _usable(self, term: str, answers: frozenset[str]) -> bool:
        label = self._known.terms[term].label
        return (
            label.isascii()
            and len(label) <= self._settings.label_letters
            and not self._known.ancestors(term) & {*self._settings.never}
            and not gives_away(label, answers)
            and all(not gives_away(name, answers) for name in self._known.terms[term].synonyms)
        )

    def _fits(self, term: str, kind: Kind) -> bool:
        above = self._known.ancestors(term)
        if not above & {*kind.below} or above & {*kind.without}:
            return False
        return kind.layout != "bars" or self.side(self._known.terms[term].label) is not None

    def side(self, label: str) -> bool | None:
        """Return whether a label says that something is above its range; null where it says neither."""
        lower = label.lower()
        for side, parts in ((False, self._settings.low), (True, self._settings.high)):
            if any(part in lower for part in parts):
                return side
        return None

    def _share(self, term: str) -> float:
        return self._known.n_diseases_with(term) / len(self._known.diseases)

    def _finding(self, term: str, belongs: bool, dice: random.Random) -> Finding:
        return Finding(term, self._spoken(term, dice), self._spoken(term, dice), belongs)

    def _spoken(self, term: str, dice: random.Random) -> str:
        """Return the label of a term or, by chance, an exact synonym that is no other term's name."""
        here = self._known.terms[term]
        others = [
            name
            for name in here.synonyms
            if name.isascii() and 6 <= len(name) <= self._settings.label_letters and "(" not in name
        ]
        use = dice.random() < self._settings.synonym_share
        return dice.choice(others) if use and others else here.label


def _with(case: Case, pictures: tuple[Picture, ...]) -> Case:
    return Case(case.disease, case.age, case.sex, case.told, pictures)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
