"""What people see of a graded list: the candidates with their hits, where they stand, the judge's lines."""

import re
from collections.abc import Iterator, Mapping, Sequence

from remeasure.diagnoses import judging
from remeasure.diagnoses.judging import Judged
from remeasure.diagnoses.rankings import Ranking
from remeasure.records import Mark, Shown, ShownLine

LONGEST = 300
"""Characters of a text that are kept for the page."""


def shown(rankings: Mapping[str, Ranking], accepted: Sequence[str]) -> Iterator[Shown]:
    """Yield the right diagnosis and the list of each reading; lists that are alike stand together."""
    yield Shown(
        title="right diagnosis and its other names",
        lines=tuple(ShownLine(text=cut(name)) for name in accepted),
    )
    alike: dict[tuple[str, tuple[ShownLine, ...]], list[str]] = {}
    for reading, ranking in rankings.items():
        if ranking.left_out is None:
            alike.setdefault((ranking.parsed.step, tuple(_lines(ranking))), []).append(reading)
    for (step, lines), readings in alike.items():
        yield Shown(title=f"list as read, {' and '.join(readings)} ({step})", lines=lines)


def _lines(ranking: Ranking) -> Iterator[ShownLine]:
    for span, hit in zip(ranking.parsed.found, ranking.hits, strict=True):
        note = cut(hit.note) if hit else ""
        yield ShownLine(text=cut(span.text), mark="yes" if hit else None, note=note)


def shown_judgement(published: Judged | None, strict: Judged | None, problem: str | None) -> Shown:
    """Return the judge's five lines, as the strict reading has them where it has."""
    judged = strict or published or judging.NOTHING
    lines = []
    for title, value in zip(judging.TITLES, judged.values, strict=True):
        full = judging.HIGHEST_TYPE_MATCH if title == judging.TITLES[2] else 1
        lines.append(ShownLine(text=title, mark="yes" if value == full else "no", note=str(value)))
    doubts = ([problem] if problem else []) + [f"contradiction: {said}" for said in judged.contradictions]
    return Shown(title="judge", lines=(*lines, *(ShownLine(text=doubt) for doubt in doubts)))


def marks(item_id: str, rankings: Mapping[str, Ranking], reply: str | None) -> tuple[Mark, ...]:
    """Return where the candidates stand in the reply.

    Args:
        item_id: of the item.
        rankings: by reading.
        reply: as it came; what the original saw in its place has no marks.
    """
    readings: dict[tuple[int, int, str], list[str]] = {}
    for reading, ranking in rankings.items():
        if ranking.text is not None and ranking.text == reply:
            for place, (span, hit) in enumerate(
                zip(ranking.parsed.found, ranking.hits, strict=True), start=1
            ):
                label = _label(place, bool(hit), reply[: span.start])
                readings.setdefault((span.start, span.end, label), []).append(reading)
    return tuple(
        Mark(item_id=item_id, start=start, end=end, label=label, readings=tuple(names))
        for (start, end, label), names in sorted(readings.items())
    )


def _label(place: int, is_hit: bool, before: str) -> str:
    """Return what a mark adds to the reply: a hit, and the place where the reply does not number it so."""
    numbered = re.search(rf"(?<![0-9]){place}[^0-9A-Za-z]{{0,8}}$", before[-16:])
    return ", ".join([*([] if numbered else [str(place)]), *(["hit"] if is_hit else [])])


def cut(text: str) -> str:
    """Return the beginning of a text that is too long to be shown."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
