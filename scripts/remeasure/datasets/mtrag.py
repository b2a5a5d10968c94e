"""Questions of MTRAG: queries, generation tasks and gold labels joined by conversation and turn.

Texts are never joined by: two queries may have the same one. A task's own passages are what some system
showed, not gold: only labels are.

Source:
    RAG card, section 1.5; README of the data slice, traps 1 to 8.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from remeasure.datasets.reading import wrong
from remeasure.records import Question, Turn
from remeasure.requests import question_id

T = TypeVar("T")

ROLE_MARKER = "|user|: "
"""What every query of the original files begins with."""
MTRAG, MTRAG_UN = "MTRAG", "MTRAG-UN"
"""Two sets of conversations over the same passages; a question's strata (``set``) say which it is of."""
_TASK_ID = re.compile(r"(?P<conversation>.{1,200}?)(?:<::>|::)(?P<turn>[0-9]{1,4})\Z")


class Key(NamedTuple):
    """A turn of a conversation."""

    conversation: str
    turn: int

    @property
    def original(self) -> str:
        """The id as queries and labels spell it."""
        return f"{self.conversation}<::>{self.turn}"


class Query(NamedTuple):
    """What is searched for."""

    text: str
    rewrite: str | None = None
    answerability: str | None = None


class Task(NamedTuple):
    """What is answered."""

    turns: tuple[Turn, ...]
    answer: str
    answerability: str
    strata: dict[str, str]


def key_of(text: str, where: str | Path) -> Key:
    """Return conversation and turn of a task id; ``<::>`` and ``::`` are the same.

    Raises:
        RemeasureError: it is no task id.
    """
    found = _TASK_ID.match(text)
    if found is None:
        raise wrong(where, f"id {text[:80]!r} is not <conversation><::><turn>")
    return Key(found["conversation"], int(found["turn"]))


def by_key(found: Iterable[tuple[str, str, T]]) -> dict[Key, T]:
    """Collect what was found by turn.

    Args:
        found: id, place and value.

    Raises:
        RemeasureError: a turn stands twice, or its id is none.
    """
    collected: dict[Key, T] = {}
    for text, where, value in found:
        key = key_of(text, where)
        if key in collected:
            raise wrong(where, f"id {text!r} stands already further above")
        collected[key] = value
    return collected


def check_turns(turns: tuple[Turn, ...], where: str | Path) -> None:
    """Check a conversation that ends with a question.

    Raises:
        RemeasureError: it is empty, does not end with the user, or a turn has no text.
    """
    if not turns or turns[-1].speaker != "user":
        raise wrong(where, "the conversation does not end with the user")
    if any(not turn.text.strip() for turn in turns):
        raise wrong(where, "a turn of the conversation has no text")


def strata(multi_turn_type: str, question_type: list[str]) -> dict[str, str]:
    """Return what a task is broken down by; several question types are one word list."""
    return {"multi_turn_type": multi_turn_type, "question_type": ", ".join(question_type) or "N/A"}


def questions(
    queries: Mapping[Key, Query],
    tasks: Mapping[Key, Task],
    labels: Mapping[Key, tuple[str, ...]],
    where: str | Path,
    of_un: Collection[Key] = (),
) -> Iterator[Question]:
    """Yield one question for every turn that is searched for or answered.

    Conversations that are answered come first, each with its turns in order.

    Args:
        queries: what is searched for.
        tasks: what is answered.
        labels: gold documents.
        where: named in errors.
        of_un: the turns of MTRAG-UN; all others are of MTRAG.

    Raises:
        RemeasureError: a query has no label, or a label belongs to nothing.
    """
    bare = [key.original for key in queries if not labels.get(key)]
    if bare:
        raise wrong(where, f"{len(bare)} queries have no gold label, as {bare[0]!r}")
    stray = [key.original for key in labels if key not in queries and key not in tasks]
    if stray:
        raise wrong(where, f"{len(stray)} labelled ids are no queries and no tasks, as {stray[0]!r}")
    turns_of: dict[str, set[int]] = {}
    for key in (*tasks, *queries):
        turns_of.setdefault(key.conversation, set()).add(key.turn)
    for conversation, turns in turns_of.items():
        for turn in sorted(turns):
            key = Key(conversation, turn)
            name = MTRAG_UN if key in of_un else MTRAG
            yield _question(key, name, queries.get(key), tasks.get(key), labels.get(key, ()))


def _question(
    key: Key, set_name: str, query: Query | None, task: Task | None, relevant: tuple[str, ...]
) -> Question:
    return Question(
        question_id=question_id(f"{key.conversation}-{key.turn}"),
        original_id=key.original,
        query=query.text if query else None,
        rewrite=query.rewrite if query else None,
        turns=task.turns if task else (),
        expected=task.answer if task else None,
        relevant=relevant,
        group=key.conversation,
        turn=key.turn,
        answerability=task.answerability if task else query.answerability if query else None,
        strata={"set": set_name} | (task.strata if task else {}),
    )
