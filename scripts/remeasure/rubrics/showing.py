"""What a page shows of a rubric: every point with its bits, gates and best sentence, and the images named."""

from collections.abc import Sequence

from remeasure.records import Shown, ShownLine
from remeasure.rubrics import attribution
from remeasure.rubrics.case import Case
from remeasure.rubrics.hierarchy import hierarchy_of
from remeasure.rubrics.points import Point
from remeasure.rubrics.verdicts import Verdicts

_LONGEST = 160


def shown(case: Case, published: Verdicts | None, strict: Verdicts | None) -> tuple[Shown, ...]:
    """Return the points, and the images that the answer names.

    Args:
        case: the case with its answer.
        published: bits of the published reading; null where the case has no row.
        strict: bits of the strict reading; null where it has none.
    """
    rubric = case.rubric
    found = hierarchy_of(published.required, rubric.buckets) if published else None
    required = []
    for place, point in enumerate(rubric.required):
        notes = [f"{point.bucket}, level {point.level}, weight {point.weight}"]
        notes += _bits(place, published, strict)
        if found is not None and point.level > 1:
            notes.append(f"gate {'open' if found.gate(point.bucket) else 'closed'}")
        notes += _similar(place, case)
        required.append(_line(point, published.required[place] if published else None, notes))
    optional = [
        _line(point, published.optional[place] if published else None, [point.bucket])
        for place, point in enumerate(rubric.optional)
    ]
    parts = [
        Shown(title="Required points", lines=tuple(required)),
        Shown(title="Optional points", lines=tuple(optional)),
        Shown(title="Images named", lines=tuple(_images(case))),
    ]
    return tuple(part for part in parts if part.lines)


def _line(point: Point, bit: int | None, notes: Sequence[str]) -> ShownLine:
    mark = None if bit is None else "yes" if bit else "no"
    return ShownLine(text=point.text, mark=mark, note="; ".join(notes))


def _bits(place: int, published: Verdicts | None, strict: Verdicts | None) -> list[str]:
    notes = []
    for name, bits in (("published", published), ("strict", strict)):
        if bits is None:
            notes.append(f"{name}: no verdict")
            continue
        denied = ", denied" if bits.contradicted[place] else ""
        notes.append(f"{name}: {'stated' if bits.required[place] else 'not stated'}{denied}")
    return notes


def _similar(place: int, case: Case) -> list[str]:
    notes = []
    for backend, found in case.overlaps.items():
        if found is None:
            notes.append(f"{backend}: none, no text has words to compare")
        elif found.required:
            sentence = case.said[found.best[place]]
            short = sentence if len(sentence) <= _LONGEST else sentence[:_LONGEST] + "…"
            notes.append(f"{backend} {found.required[place]:.3f}: “{short}”")
    return notes


def _images(case: Case) -> list[ShownLine]:
    if case.published is None:
        return []
    facts = case.facts
    named, labels = attribution.named(case.published), attribution.labelled(case.published)
    lines = []
    for number in range(1, facts.n_images + 1):
        backed = number in facts.decisive or number in facts.supporting
        kind = "decisive" if number in facts.decisive else "supporting" if backed else "neither"
        said = "as a label" if number in labels else "named" if number in named else "not named"
        mark = None if number not in named else "yes" if backed else "no"
        lines.append(ShownLine(text=f"Image {number}", mark=mark, note=f"{kind}; {said}"))
    outside = sorted(str(number)[:20] for number in named - set(range(1, facts.n_images + 1)))
    lines += [ShownLine(text=f"Image {number}", mark="no", note="there is none") for number in outside[:20]]
    return lines
