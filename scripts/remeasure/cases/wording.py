"""What is written about a case: context, question, findings, evidence points. The sentences are ours.

The published columns are kept (MRareBench card, section 2.1).
"""

import random
from typing import Any

from remeasure.cases.case import Case, Finding, Picture
from remeasure.cases.settings import Kind

QUESTION_DIAGNOSIS = "Which diagnosis explains this case?"
QUESTION_EVIDENCE = "What do the images show, and how does it fit the case?"
# Share of the points about a second finding of a picture that need not be told.
_OPTIONAL_SHARE = 0.5


# All words that every case has, whatever it is about.
FRAME = (
    f"{QUESTION_DIAGNOSIS} {QUESTION_EVIDENCE} A year-old girl woman boy man is seen for. "
    "Two Three examinations followed."
)


def _a(words: str) -> str:
    return f"{'an' if words[0].lower() in 'aeiou' else 'a'} {words}"


def _spoken(label: str) -> str:
    """Return a label as it stands inside a sentence: small, but for abbreviations such as "EMG"."""
    return label if label[:2].isupper() or not label[:2].isalpha() else label[0].lower() + label[1:]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def patient(case: Case) -> str:
    """Return who the patient is and what is told."""
    who = {"female": ("girl", "woman"), "male": ("boy", "man")}[case.sex][case.age >= 16]
    article = "An" if str(case.age)[0] == "8" or case.age in (11, 18) else "A"
    seen = _listed([_spoken(label) for label in case.told])
    counted = {2: "Two", 3: "Three"}.get(len(case.pictures), str(len(case.pictures)))
    return f"{article} {case.age}-year-old {who} is seen for {seen}. {counted} examinations followed."


def label(number: int) -> str:
    """Return how an image is called; numbers begin with 1."""
    return f"Image {number}"


def context_evidence(case: Case) -> str:
    """Return the case of the second track: the diagnosis first, the names of the images last."""
    names = "; ".join(label(number) for number in range(1, len(case.pictures) + 1))
    return f"Established diagnosis: {case.disease.name}. {patient(case)}\n\nImages: {names}"


def findings_blocks(case: Case, kinds: dict[str, Kind], as_markdown: bool) -> list[dict[str, str]]:
    """Return what the pictures show, in words: one object per picture, in either of the published forms."""
    found = []
    for picture in case.pictures:
        title = kinds[picture.kind].title
        body = "\n".join(f"- {finding.label}" for finding in picture.findings)
        found.append({"markdown": f"### {title}\n{body}"} if as_markdown else {"title": title, "body": body})
    return found


def rationale(case: Case, kinds: dict[str, Kind]) -> str:
    """Return what the images show and how it fits, in sentences."""
    sentences = []
    for number, picture in enumerate(case.pictures, start=1):
        seen = _listed([_spoken(finding.called) for finding in picture.findings])
        sentences.append(f"{label(number)}, {_a(_spoken(kinds[picture.kind].title))}, shows {seen}.")
    own = [_spoken(f.called) for picture in case.pictures for f in picture.findings if f.belongs]
    return " ".join(
        [
            *sentences,
            f"In {case.disease.name}, {_listed(own)} {'is' if len(own) == 1 else 'are'} known to occur.",
        ]
    )


def image_ids(case: Case) -> tuple[list[int], list[int]]:
    """Return the numbers of the decisive images, the first two of the disease, and of the supporting ones."""
    own = [number for number, picture in enumerate(case.pictures, start=1) if picture.belongs]
    return own[:2], own[2:]


def task_type(case: Case) -> str:
    """Return what an item mainly asks for."""
    if any(not picture.belongs for picture in case.pictures):
        return "image_selection"
    return "multi_image_synthesis" if len(case.pictures) > 2 else "image_pair"


def points(case: Case, kinds: dict[str, Kind], seed: str) -> list[dict[str, Any]]:
    """Return the evidence points: what each image is and shows, then across images, then the fit."""
    dice, decisive = random.Random(seed), image_ids(case)[0]
    found: list[dict[str, Any]] = []
    for number, picture in enumerate(case.pictures, start=1):
        if picture.belongs:
            found += _of_picture(number, picture, kinds[picture.kind], number in decisive, dice)
    chosen = {number: dice.choice(_own(case.pictures[number - 1])) for number in decisive}
    if len(chosen) > 1:
        told = [f"{_spoken(finding.called)} ({label(number)})" for number, finding in chosen.items()]
        found.append(
            {
                "point": f"{' and '.join(told)} occur together",
                "image": ", ".join(label(number) for number in chosen),
                "credit": "required",
                "category": "Cross-Image Integration",
            }
        )
    told = " and ".join(_spoken(finding.called) for finding in chosen.values())
    found.append(
        {
            "point": f"{told} {'fit' if len(chosen) > 1 else 'fits'} {case.disease.name}",
            "image": "",
            "credit": "required",
            "category": "Diagnostic Attribution",
        }
    )
    return found


def _own(picture: Picture) -> list[Finding]:
    return [finding for finding in picture.findings if finding.belongs]


def _of_picture(
    number: int, picture: Picture, kind: Kind, is_decisive: bool, dice: random.Random
) -> list[dict[str, Any]]:
    found = [
        {
            "point": f"it is {_a(_spoken(kind.title))}",
            "image": label(number),
            "credit": "required" if is_decisive else "optional",
            "category": "Abstract modality",
        }
    ]
    for place, finding in enumerate(_own(picture)):
        is_optional = not is_decisive or (place > 0 and dice.random() < _OPTIONAL_SHARE)
        found.append(
            {
                "point": _spoken(finding.called),
                "image": label(number),
                "credit": "optional" if is_optional else "required",
                "category": kind.category,
            }
        )
    return found
