"""How far judges agree with each other and with exact match, on the same stored answers."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, zip_longest
from typing import Any

from remeasure import stats
from remeasure.errors import RemeasureError
from remeasure.graders import Case, Grader
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
    items: Mapping[str, Item],
    cells: Sequence[tuple[str, Sequence[Graded], Mapping[str, Response]]],
    n_answers: int,
) -> Iterator[tuple[Picked, Item, Response]]:
    """Yield answers, one cell after the other, each cell in item order, until there are enough.

    Args:
        items: item id to item.
        cells: name, verdicts in item order, responses by item id.
        n_answers: how many are wanted; fewer come if there are fewer.
    """
    found = 0
    for round_ in zip_longest(*([line for line in lines if usable(line)] for _, lines, _ in cells)):
        for (name, _, responses), line in zip(cells, round_, strict=True):
            if line is None or found == n_answers:
                continue
            found += 1
            picked = Picked(
                answer_id=f"answer-{found:04}",
                cell=name,
                item_id=line.item_id,
                references=items[line.item_id].references,
                answer=line.answer or "",
            )
            yield picked, items[line.item_id], responses[line.item_id]


def says_yes(grader: Grader, picked: Picked, reply: Response, reading: str) -> bool | None:
    """Return a judge's yes or no about one answer; None where the reply cannot be read."""
    response = Response(custom_id=picked.answer_id, key="", status="answered", text=picked.answer)
    case = Case(references=picked.references, response=response, judge=reply, thinking=False)
    score = (grader.strict if reading == "strict" else grader.published)(case).score
    return None if score is None else score == 1.0


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
