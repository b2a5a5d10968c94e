"""What must hold of every dataset: checked while documents and questions go by, and counted.

Source:
    RAG card, requirements R12 and R14: every gold label names a document that is there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.records import Document, Question, is_uri
from remeasure.requests import question_id

_SHOWN = 3


def refused(dataset: str, said: str) -> RemeasureError:
    """Return the error for a dataset that is not as it must be."""
    return RemeasureError(
        f"dataset {dataset!r}: {said}; correct its files, or the run's `datasets` (docs/ragbench-data.md)"
    )


def documents(found: Iterable[Document], dataset: str, uris: set[str], counts: Counter) -> Iterator[Document]:
    """Pass documents through, collect their uris, count.

    Raises:
        RemeasureError: a uri that is blank, twice, or more than one line; a document that is neither text nor
            a file with its hash; none at all.
    """
    for number, one in enumerate(found, start=1):
        where = f"document {number}, {one.uri[:80]!r}"
        # Ranked documents are written one a line.
        if not is_uri(one.uri):
            raise refused(dataset, f"{where}: a uri is one line of text that is not blank")
        if one.uri in uris:
            raise refused(dataset, f"{where}: its uri stands already further above")
        if (one.text is None) == (one.path is None) or (one.path is None) != (one.sha256 is None):
            raise refused(dataset, f"{where}: needs either a text, or a file and its hash")
        uris.add(one.uri)
        counts["documents"] += 1
        counts["files"] += one.path is not None
        counts["empty_documents"] += one.text is not None and not one.text.strip()
        yield one
    if not uris:
        raise refused(dataset, "holds no documents")


def questions(
    found: Iterable[Question],
    dataset: str,
    uris: Collection[str],
    absent: Collection[str],
    counts: Counter,
) -> Iterator[Question]:
    """Pass questions through and count.

    Args:
        found: the questions.
        dataset: name for errors.
        uris: of all documents.
        absent: uris that may be missing.
        counts: what is counted.

    Raises:
        RemeasureError: an id that is not unique or too long, a question that is for nothing, a query without
            a gold label, turns of a conversation that stand apart or in another order, labels whose document
            is not there (all are counted before it is said); none at all.
    """
    seen: set[str] = set()
    conversations: dict[str, int] = {}
    missing: list[str] = []
    gold: set[str] = set()
    last = None
    for number, one in enumerate(found, start=1):
        where = f"question {number}, {one.original_id[:80]!r}"
        _check(one, where, dataset)
        if one.question_id in seen:
            raise refused(dataset, f"{where}: its id {one.question_id!r} stands already further above")
        seen.add(one.question_id)
        if one.turns and one.turn is not None:
            before = conversations.get(one.group)
            if before is not None and (last != one.group or one.turn <= before):
                raise refused(dataset, f"{where}: turns of a conversation stand together and in order")
            conversations[one.group] = one.turn
            last = one.group
        strange = [uri for uri in one.relevant if uri not in uris]
        missing += [f"{uri!r} of {one.original_id!r}" for uri in strange if uri not in absent]
        counts["labels_of_missing_files"] += len(strange)
        gold.update(one.relevant)
        _count(one, counts)
        yield one
    counts["gold_documents"] = len(gold)
    counts["conversations"] = len(conversations)
    if missing:
        shown = ", ".join(missing[:_SHOWN])
        raise refused(
            dataset, f"{len(missing)} gold labels name documents that are not among {len(uris)}, as {shown}"
        )
    if not seen:
        raise refused(dataset, "holds no questions")


def _check(one: Question, where: str, dataset: str) -> None:
    if one.question_id != question_id(one.question_id):
        raise refused(dataset, f"{where}: id {one.question_id[:80]!r} is not 1 to 50 of A-Z a-z 0-9 _ -")
    if one.query is None and not one.turns:
        raise refused(dataset, f"{where}: is neither searched for nor answered")
    if any(text is not None and not text.strip() for text in (one.query, one.rewrite)):
        raise refused(dataset, f"{where}: its query or rewrite is blank; leave it out instead")
    if one.query is not None and not one.relevant:
        raise refused(dataset, f"{where}: is searched for, and no document is right")
    if one.turns and (one.turns[-1].speaker != "user" or not one.turns[-1].text.strip()):
        raise refused(dataset, f"{where}: its conversation does not end with a question of the user")
    if len(set(one.relevant)) != len(one.relevant):
        raise refused(dataset, f"{where}: names a gold document twice")


def _count(one: Question, counts: Counter) -> None:
    counts["questions"] += 1
    counts["queries"] += one.query is not None
    counts["rewrites"] += one.rewrite is not None
    counts["labels"] += len(one.relevant) if one.query is not None else 0
    if one.turns:
        counts["answers"] += 1
        counts["answers_with_gold"] += bool(one.relevant)
        counts["answers_without_reference"] += one.expected is None
        counts["turns"] += one.turn is not None
        if one.answerability is not None:
            counts[one.answerability.lower()] += 1


def check_counts(counts: Mapping[str, int], expected: Mapping[str, int], dataset: str) -> None:
    """Compare what was counted with what must come out; what is not counted at all is 0.

    Raises:
        RemeasureError: names every count that differs.
    """
    differing = [
        f"{counts.get(name, 0)} {name}, expected {number}"
        + ("" if name in counts else did_you_mean(name, counts))
        for name, number in expected.items()
        if counts.get(name, 0) != number
    ]
    if differing:
        raise refused(dataset, "; ".join(differing))
