"""How a live conversation went so far: what the next turn is given, and what is shown before it."""

from typing import Any

from remeasure.records import JournalEntry, Trace, Turn

GOES_ON = ("answered", "cut_off")
"""Outcomes of a turn that another may follow."""
EARLIER_FAILED = "not_sent: an earlier turn failed"


class Before:
    """The turns before one, as they went.

    Args:
        turns: of user and agent.
        carry: what the last of them has carried on; null before the first.
    """

    def __init__(self, turns: tuple[Turn, ...] = (), carry: Any = None) -> None:
        self.turns, self.carry = turns, carry

    def then(self, question: str, answer: str | None, carry: Any) -> "Before":
        """Return it with one more turn."""
        return Before((*self.turns, *_turn(question, answer)), carry)


def from_journal(entry: JournalEntry | None, question: str) -> Before | None:
    """Return what a turn goes on from, out of the outcome of the turn before; null where that has no answer.

    Args:
        entry: what was kept of the turn before.
        question: what was asked then.
    """
    if entry is None or entry.status not in GOES_ON:
        return None
    earlier = entry.trace.before if isinstance(entry.trace, Trace) else ()
    return Before((*earlier, *_turn(question, entry.text)), entry.raw)


def not_sent(key: str, custom_id: str) -> JournalEntry:
    """Return the outcome of a turn behind one that failed."""
    return JournalEntry(
        key=key,
        custom_id=custom_id,
        status="not_sent",
        text=None,
        error=EARLIER_FAILED,
        attempts=0,
        seconds=0.0,
    )


def _turn(question: str, answer: str | None) -> tuple[Turn, Turn]:
    return Turn(speaker="user", text=question), Turn(speaker="agent", text=answer or "")
