"""Items of the RAG benchmarks: the questions of a dataset that a bench searches for or asks, or a user's own.

The same turn has the same id in every bench, so that benches can be compared item by item.

Source:
    RAG card, sections 1 and 2.3 to 2.6.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec

from remeasure.errors import RemeasureError
from remeasure.records import Item, Question, Turn
from remeasure.requests import question_id


def from_questions(
    questions: Iterable[Question], task: Mapping[str, Any], n_units: int
) -> Iterator[tuple[Item, ...]]:
    """Yield the first units of a bench: questions, or whole conversations where they are live.

    Args:
        questions: of a dataset, in its order.
        task: what the bench does (``do``: search, answer, converse; ``query``: which text is searched for;
            ``set``: the questions of one set alone, which the dataset names in their strata).
        n_units: how many are taken.

    Raises:
        RemeasureError: the bench does something else, or the dataset has no such question.
    """
    chosen = _of_set(questions, task["set"]) if "set" in task else questions
    found = map(_searched(task) if task["do"] == "search" else _answered, chosen)
    n_found = 0
    for unit in units((item for item in found if item is not None), task):
        n_found += 1
        if n_found <= n_units:
            yield unit
    if not n_found:
        raise RemeasureError(
            f"the dataset has no question for task {dict(task)}; correct `dataset_of_bench` of the run"
        )


def _of_set(questions: Iterable[Question], name: Any) -> Iterator[Question]:
    """Yield the questions of one set.

    Raises:
        RemeasureError: the dataset has no such set; names those that it has.
    """
    sets: dict[str, None] = {}
    for row in questions:
        own = row.strata.get("set")
        if own is None:
            continue
        sets[own] = None
        if own == name:
            yield row
    if name not in list(sets):
        known = ", ".join(sets) or "none"
        raise RemeasureError(
            f"task.set is {name!r}, expected a set of the dataset's questions (it has {known}); correct the "
            "bench in the study's settings, or `dataset_of_bench` of the run"
        )


def _searched(task: Mapping[str, Any]):
    field = task.get("query")
    if field not in ("query", "rewrite"):
        raise RemeasureError(
            f"task.query is {field!r}, expected query or rewrite; correct the bench in the study's settings"
        )

    def item(row: Question) -> Item | None:
        text = getattr(row, field)
        return None if text is None else _item(row, text, {})

    return item


def _answered(row: Question) -> Item | None:
    if not row.turns:
        return None
    return _item(row, row.turns[-1].text, {"turns": [msgspec.to_builtins(turn) for turn in row.turns]})


def _item(row: Question, text: str, meta: dict[str, Any]) -> Item:
    return Item(
        item_id=row.question_id,
        question=text,
        references=() if row.expected is None or not row.expected.strip() else (row.expected,),
        relevant=row.relevant,
        group=row.group,
        meta=meta
        | {
            "turn": row.turn,
            "answerability": row.answerability,
            "original_id": row.original_id,
            "strata": row.strata,
        },
    )


def units(found: Iterable[Item], task: Mapping[str, Any]) -> Iterator[tuple[Item, ...]]:
    """Yield what counts as one: an item, or the items of a conversation where it is live.

    What may be left out of a user's own items is filled in.

    Raises:
        RemeasureError: an item lacks what messages or graders need, or turns of a live conversation stand
            apart or in another order; names item and key.
    """
    do = task["do"]
    if do not in ("search", "answer", "converse"):
        raise RemeasureError(
            f"task.do is {do!r}, expected search, answer or converse; correct the study's bench"
        )
    checked = (_checked(item, do) for item in found)
    if do != "converse":
        yield from ((item,) for item in checked)
        return
    seen: set[str] = set()
    for name, members in groupby(checked, key=lambda item: item.group):
        conversation = tuple(members)
        if name in seen:
            raise _refused(conversation[0], f"other turns of conversation {name!r} stand further above")
        seen.add(name)
        numbers = [item.meta["turn"] for item in conversation]
        if None in numbers or any(later <= first for first, later in zip(numbers, numbers[1:], strict=False)):
            raise _refused(
                conversation[0], f"its conversation has the turns {numbers}, expected rising numbers"
            )
        yield conversation


class _Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What messages and graders need of an item; it may have further keys."""

    turns: list[Turn] | None = None
    turn: int | None = None
    answerability: str | None = None
    original_id: str | None = None
    strata: dict[str, str] = {}


def _checked(item: Item, do: str) -> Item:
    if question_id(item.item_id) != item.item_id:
        raise _refused(item, "its id is longer than 50, so that ids of further questions do not fit")
    if item.images:
        raise _refused(item, f"has {len(item.images)} images, and a system is asked in words alone")
    try:
        meta = msgspec.convert(item.meta, _Meta)
    except msgspec.ValidationError as error:
        said = str(error).replace("`$.", "`meta.").replace("`$`", "`meta`")
        raise _refused(item, said) from None
    filled = {
        "turn": meta.turn,
        "answerability": meta.answerability,
        "original_id": meta.original_id or item.item_id,
        "strata": meta.strata,
    }
    if do == "search":
        if not item.relevant:
            raise _refused(item, "is searched for, and `relevant` names no document")
        return msgspec.structs.replace(item, meta=item.meta | filled)
    turns = [Turn(speaker="user", text=item.question)] if meta.turns is None else meta.turns
    if not turns or turns[-1] != Turn(speaker="user", text=item.question):
        raise _refused(item, "meta.turns does not end with the question, said by the user")
    if any(not turn.text.strip() for turn in turns):
        raise _refused(item, "meta.turns has one without text")
    return msgspec.structs.replace(item, meta=item.meta | filled | {"turns": msgspec.to_builtins(turns)})


def _refused(item: Item, said: str) -> RemeasureError:
    return RemeasureError(f"item {item.item_id!r}: {said}; correct the question file (docs/ragbench-data.md)")
