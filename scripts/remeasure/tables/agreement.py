"""How far judges agree with each other and with exact match, on the same stored answers."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, zip_longest
from typing import Any

from remeasure import stats
from remeasure.calibration import asking
from remeasure.errors import RemeasureError
from remeasure.graders import Grader
from remeasure.records import Graded, Item, Record, Response
from remeasure.tables.csv_text import decimals
from remeasure.text import contains

EXACT_MATCH = "exact-match"
EXACT_MATCH_TITLE = "exact match (a reference stands in the answer, both normalised)"
COLUMNS = (
    "first",
    "second",
    "first_title",
    "second_title",
    "grader",
    "n",
    "n_first_unreadable",
    "n_second_unreadable",
    "n_both_readable",
    "agreement",
    "kappa",
    "yes_yes",
    "yes_no",
    "no_yes",
    "no_no",
    "agreement_published",
    "kappa_published",
)


class Picked(Record, kw_only=True):
    """A stored answer that is shown to every judge: one line of ``picked.jsonl``."""

    answer_id: str
    cell: str
    """Folder of the cell that the answer comes from."""
    item_id: str
    references: tuple[str, ...]
    answer: str


def usable(graded: Graded) -> bool:
    """Say whether there is an answer that a judge can be shown."""
    return graded.status in ("answered", "cut_off") and bool((graded.answer or "").strip())


def pick(
    items: Iterable[Item],
    cells: Sequence[tuple[str, Iterable[tuple[Graded, Response]]]],
    n_answers: int,
) -> list[tuple[Picked, Item, Response]]:
    """Return answers, one cell after the other, each cell in item order, until there are enough.

    Items and cells are read to their ends, so that their errors are found; only what is picked is held.

    Args:
        items: the questions.
        cells: name, and verdicts in item order with their responses.
        n_answers: how many are wanted; fewer come if there are fewer.

    Raises:
        RemeasureError: a cell has an answer to a question that is not among the items.
    """
    streams = [_usable_of(*cell) for cell in cells]
    in_turn = (row for round_ in zip_longest(*streams) for row in round_ if row is not None)
    rows = list(islice(in_turn, n_answers))
    for stream in streams:
        deque(stream, maxlen=0)
    wanted = {line.item_id for _, line, _ in rows}
    known = {item.item_id: item for item in items if item.item_id in wanted}
    for name, line, _ in rows:
        if line.item_id not in known:
            raise RemeasureError(
                f"{name}: item {line.item_id!r} is not among the items; give the items of the cells' bench"
            )
    return [
        (_picked(number, name, line, known[line.item_id]), known[line.item_id], response)
        for number, (name, line, response) in enumerate(rows, start=1)
    ]


def _usable_of(name: str, pairs: Iterable[tuple[Graded, Response]]) -> Iterator[tuple[str, Graded, Response]]:
    return ((name, line, response) for line, response in pairs if usable(line))


def _picked(number: int, cell: str, line: Graded, item: Item) -> Picked:
    return Picked(
        answer_id=f"answer-{number:04}",
        cell=cell,
        item_id=line.item_id,
        references=item.references,
        answer=line.answer or "",
    )


def says_yes(grader: Grader, picked: Picked, reply: Response, reading: str) -> bool | None:
    """Return a judge's yes or no about one answer; None where the reply cannot be read."""
    item = Item(item_id=picked.answer_id, question="", references=picked.references, group="")
    response = Response(custom_id=picked.answer_id, key="", status="answered", text=picked.answer)
    return asking.passes(asking.verdict(grader, {}, item, response, reply, reading))


def exact_match(picked: Picked) -> bool:
    """Say whether one of the references stands in the answer."""
    return any(contains(picked.answer, reference) for reference in picked.references)


def votes(
    grader: Grader, answers: Sequence[Picked], replies: Mapping[str, Sequence[Response]], reading: str
) -> dict[str, list[bool | None]]:
    """Return every judge's votes in the order of the answers, exact match last.

    Raises:
        RemeasureError: a judge's replies are not those to the answers.
    """
    found: dict[str, list[bool | None]] = {}
    for judge, lines in replies.items():
        if [line.custom_id for line in lines] != [picked.answer_id for picked in answers]:
            raise RemeasureError(
                f"judge {judge}: {len(lines)} replies do not fit the {len(answers)} picked answers; "
                "delete its requests.jsonl and rerun"
            )
        pairs = zip(answers, lines, strict=True)
        found[judge] = [says_yes(grader, picked, reply, reading) for picked, reply in pairs]
    found[EXACT_MATCH] = [exact_match(picked) for picked in answers]
    return found


def compare(first: Sequence[bool | None], second: Sequence[bool | None]) -> stats.Agreement:
    """Compare two judges over the answers about which both can be read."""
    both = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if one is not None and other is not None
    ]
    return stats.agreement([one for one, _ in both], [other for _, other in both])


def rows(
    grader: Grader,
    answers: Sequence[Picked],
    replies: Mapping[str, Sequence[Response]],
    titles: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return one row per pair of judges: strict reading with raw counts, published reading beside it."""
    strict = votes(grader, answers, replies, "strict")
    published = votes(grader, answers, replies, "published")
    names = {**titles, EXACT_MATCH: EXACT_MATCH_TITLE}
    found = []
    for first, second in combinations(strict, 2):
        pair = compare(strict[first], strict[second])
        loose = compare(published[first], published[second])
        found.append(
            {
                "first": first,
                "second": second,
                "first_title": names[first],
                "second_title": names[second],
                "grader": grader.label,
                "n": len(answers),
                "n_first_unreadable": strict[first].count(None),
                "n_second_unreadable": strict[second].count(None),
                "n_both_readable": sum(pair[:4]),
                "agreement": decimals(pair.agreement, 3),
                "kappa": decimals(pair.kappa, 3),
                "yes_yes": pair.yes_yes,
                "yes_no": pair.yes_no,
                "no_yes": pair.no_yes,
                "no_no": pair.no_no,
                "agreement_published": decimals(loose.agreement, 3),
                "kappa_published": decimals(loose.kappa, 3),
            }
        )
    return found
